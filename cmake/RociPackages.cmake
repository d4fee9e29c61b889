# Packages of the distribution; docs/architecture.md describes their use. `./roci deps` installs them on Debian 12 and 13.
# All are searched before the configuration fails, so that one message names all that are missing. With
# ROCI_ONLY_PACKAGES, the configuration ends after this file.
set(ROCI_MISSING)

# roci_package(VARIABLE NAME DEBIAN RPM)   records NAME as missing unless VARIABLE, the result of a search, is true. DEBIAN:
# package in Debian and Ubuntu. RPM: capability that dnf and zypper resolve to the distribution's package.
macro(roci_package variable name debian rpm)
  if(${variable})
    message(STATUS "${name}: found")
  else()
    list(APPEND ROCI_MISSING "${name}")
    list(APPEND ROCI_MISSING_DEBIAN "${debian}")
    list(APPEND ROCI_MISSING_RPM "'${rpm}'")
  endif()
endmacro()

# roci_cmake_package(NAME DEBIAN)   searches a package that contains a CMake package NAME.
macro(roci_cmake_package name debian)
  find_package(${name} QUIET)
  roci_package(${name}_FOUND ${name} "${debian}" "cmake(${name})")
endmacro()

find_package(Threads REQUIRED)  # part of the C library
find_program(PKG_CONFIG_EXECUTABLE NAMES pkgconf pkg-config)
roci_package(PKG_CONFIG_EXECUTABLE "pkg-config" pkg-config pkgconf-pkg-config)
if(PKG_CONFIG_EXECUTABLE)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(DPDK QUIET IMPORTED_TARGET libdpdk>=22.11)
  pkg_check_modules(ISAL QUIET IMPORTED_TARGET libisal)
  pkg_check_modules(PCAP QUIET IMPORTED_TARGET libpcap)
  pkg_check_modules(IBVERBS QUIET IMPORTED_TARGET libibverbs)
endif()
roci_package(DPDK_FOUND "DPDK 22.11 or later" libdpdk-dev "pkgconfig(libdpdk)")
if(DPDK_FOUND)
  # The drop-in libibverbs.so.1 links DPDK's archives (RociDpdk). Some distributions do not have them.
  find_library(ROCI_DPDK_EAL_ARCHIVE NAMES librte_eal.a HINTS ${DPDK_STATIC_LIBRARY_DIRS} ${DPDK_LIBDIR})
  roci_package(ROCI_DPDK_EAL_ARCHIVE "static libraries of DPDK" libdpdk-dev dpdk-static)
endif()
roci_package(IBVERBS_FOUND "headers of libibverbs" libibverbs-dev "pkgconfig(libibverbs)")
roci_package(ISAL_FOUND "ISA-L" libisal-dev "pkgconfig(libisal)")
roci_package(PCAP_FOUND "libpcap" libpcap-dev "pkgconfig(libpcap)")
roci_cmake_package(spdlog libspdlog-dev)
roci_cmake_package(yaml-cpp libyaml-cpp-dev)
roci_cmake_package(nlohmann_json nlohmann-json3-dev)
roci_cmake_package(CLI11 libcli11-dev)
roci_cmake_package(TBB libtbb-dev)
roci_cmake_package(tl-expected libexpected-dev)
find_package(HDF5 QUIET COMPONENTS C)
roci_package(HDF5_FOUND "HDF5" libhdf5-dev hdf5-devel)
# Libraries that DPDK's static libraries require.
foreach(name xdp bpf numa bsd)
  find_library(ROCI_LIB${name} NAMES ${name})
endforeach()
roci_package(ROCI_LIBxdp libxdp libxdp-dev "pkgconfig(libxdp)")
roci_package(ROCI_LIBbpf libbpf libbpf-dev "pkgconfig(libbpf)")
roci_package(ROCI_LIBnuma libnuma libnuma-dev "pkgconfig(numa)")
roci_package(ROCI_LIBbsd libbsd libbsd-dev "pkgconfig(libbsd)")
# The chart library of the lab's reports, embedded into roci-lab together with its license (MIT).
find_file(ROCI_CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js NO_DEFAULT_PATH
  DOC "chart.min.js of Chart.js 3")
roci_package(ROCI_CHART_JS "Chart.js 3 (-D ROCI_CHART_JS=FILE names another place)" libjs-chart.js "npm(chart.js)")
if(ROCI_TESTS)
  roci_cmake_package(GTest "libgtest-dev libgmock-dev")
endif()
if(ROCI_BENCH)
  roci_cmake_package(benchmark libbenchmark-dev)
endif()

if(ROCI_MISSING)
  list(REMOVE_DUPLICATES ROCI_MISSING_DEBIAN)
  list(REMOVE_DUPLICATES ROCI_MISSING_RPM)
  list(JOIN ROCI_MISSING "\n  " missing)
  list(JOIN ROCI_MISSING_DEBIAN " " debian)
  list(JOIN ROCI_MISSING_RPM " " rpm)
  message(FATAL_ERROR "Not found:\n  ${missing}\nTo install them (names on other distributions can differ):\n"
    "  Debian, Ubuntu:  apt-get install ${debian}\n"
    "  Fedora, RHEL:    dnf install ${rpm}\n"
    "  openSUSE:        zypper install ${rpm}\n")
endif()

if(NOT ROCI_PORTABLE AND NOT ROCI_ONLY_PACKAGES)
  find_package(MPI QUIET COMPONENTS CXX)  # optional: with MPI, roci-lab distributes its runs over processes
endif()

# Only rdma-core's headers are used, for types and constants. Rocinante implements the functions, so rdma-core's shared
# library is not linked.
add_library(roci_verbs_headers INTERFACE)
target_include_directories(roci_verbs_headers SYSTEM INTERFACE ${IBVERBS_INCLUDE_DIRS})
