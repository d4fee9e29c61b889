# Packages of the distribution. `./roci deps` installs them; docs/architecture.md describes their use.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(TBB REQUIRED)
find_package(tl-expected REQUIRED)
pkg_check_modules(DPDK REQUIRED IMPORTED_TARGET libdpdk>=22.11)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(PCAP REQUIRED IMPORTED_TARGET libpcap)
find_package(HDF5 REQUIRED COMPONENTS C)
if(NOT ROCI_PORTABLE)
  find_package(MPI QUIET COMPONENTS CXX)  # optional: with MPI, roci-lab distributes its runs over processes
endif()
pkg_check_modules(IBVERBS REQUIRED IMPORTED_TARGET libibverbs)

# Only rdma-core's headers are used, for types and constants. Rocinante implements the functions, so rdma-core's shared
# library is not linked.
add_library(roci_verbs_headers INTERFACE)
target_include_directories(roci_verbs_headers SYSTEM INTERFACE ${IBVERBS_INCLUDE_DIRS})

# The chart library of the lab's reports, embedded into roci-lab together with its license (MIT).
find_file(ROCI_CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js NO_DEFAULT_PATH REQUIRED)

if(ROCI_TESTS)
  find_package(GTest REQUIRED)
endif()
if(ROCI_BENCH)
  find_package(benchmark REQUIRED)
endif()
