# Linkage of DPDK. Layers only name `roci_dpdk` (and `roci_dpdk_ring`, `roci_dpdk_fib`).
#
# Programs and tests link DPDK's shared libraries, and the EAL loads the installed drivers. A library that itself
# implements verbs cannot do this: the drivers mlx4 and mlx5 require libibverbs.so.1 and would load the library that is
# loading them. Such a library calls
#
#   roci_link_static_dpdk(TARGET)   links DPDK's archives into TARGET, with only the drivers below
#
# and the layers that it links do not add shared DPDK libraries.

# The in-process ring port requires symbols of its driver, which libdpdk.pc leaves to the plug-in loader.
find_library(RTE_NET_RING rte_net_ring REQUIRED)

set(shared "$<NOT:$<BOOL:$<TARGET_PROPERTY:ROCI_STATIC_DPDK>>>")  # property of the final program or library
add_library(roci_dpdk INTERFACE)
target_include_directories(roci_dpdk SYSTEM INTERFACE ${DPDK_INCLUDE_DIRS})
# libdpdk.pc includes rte_config.h by an option. Precompiled headers contain that file (RociPrecompiled), and GCC ignores
# precompiled headers after such an option. So only roci_dpdk sets the options, and this one not for all targets.
set(dpdk_options ${DPDK_CFLAGS_OTHER})
string(REPLACE "-include;rte_config.h" "" dpdk_options "${dpdk_options}")
# Instruction sets that DPDK's headers require (-mrtm since DPDK 23.11), in all code: precompiled headers are only valid with
# the same ones. ROCI_MARCH replaces DPDK's -march.
set(dpdk_machine ${dpdk_options})
list(FILTER dpdk_machine INCLUDE REGEX "^-m")
if(ROCI_MARCH)
  list(FILTER dpdk_machine EXCLUDE REGEX "^-march=")
endif()
list(FILTER dpdk_options EXCLUDE REGEX "^-m")
target_compile_options(roci_options INTERFACE ${dpdk_machine})
set_target_properties(PkgConfig::DPDK PROPERTIES INTERFACE_COMPILE_OPTIONS "")
target_compile_options(roci_dpdk INTERFACE ${dpdk_options}
  $<$<NOT:$<BOOL:$<TARGET_PROPERTY:ROCI_PRECOMPILED>>>:SHELL:-include rte_config.h>)
target_link_libraries(roci_dpdk INTERFACE $<${shared}:PkgConfig::DPDK>)
add_library(roci_dpdk_ring INTERFACE)
target_link_libraries(roci_dpdk_ring INTERFACE roci_dpdk $<${shared}:${RTE_NET_RING}>)

# The drivers: packet memory; buses; ports without hardware; NICs that require neither libibverbs nor additional
# firmware. bnxt is excluded, as it is larger than all others together.
set(ROCI_STATIC_DRIVERS
  mempool_ring mempool_stack
  bus_vdev bus_pci
  net_memif net_af_packet net_af_xdp net_tap net_ring net_null net_virtio
  net_e1000 net_ixgbe net_i40e common_iavf net_iavf net_ice net_ena net_vmxnet3)
if(ROCI_PORTABLE)
  # libxdp loads its program from files of the system, and libelf.a cannot be linked into a shared library.
  list(REMOVE_ITEM ROCI_STATIC_DRIVERS net_af_xdp)
endif()
# DPDK libraries used by the drivers and by the layers.
set(ROCI_STATIC_DPDK
  kvargs telemetry eal ring rcu mempool mbuf net meter ethdev pci hash timer stack gso cryptodev security)
# Libraries of the EAL that newer versions of DPDK have.
set(ROCI_DPDK_EAL_PARTS)
if(DPDK_VERSION VERSION_GREATER_EQUAL 23.11)
  list(APPEND ROCI_DPDK_EAL_PARTS log)
endif()
if(DPDK_VERSION VERSION_GREATER_EQUAL 24.03)
  list(APPEND ROCI_DPDK_EAL_PARTS argparse)
endif()
list(APPEND ROCI_STATIC_DPDK ${ROCI_DPDK_EAL_PARTS})
# Shared libraries that these require.
if(NOT ROCI_PORTABLE)  # otherwise static libraries (RociLibraries)
  set(ROCI_STATIC_DPDK_NEEDS xdp bpf numa bsd m ${CMAKE_DL_LIBS})
endif()

# Sets VARIABLE to the static libraries with these names, separated by commas.
function(roci_dpdk_archives VARIABLE)
  set(archives)
  foreach(name ${ARGN})
    find_library(archive NAMES librte_${name}.a HINTS ${DPDK_STATIC_LIBRARY_DIRS} ${DPDK_LIBDIR} REQUIRED NO_CACHE)
    list(APPEND archives ${archive})
    unset(archive)
  endforeach()
  list(JOIN archives "," archives)
  set(${VARIABLE} ${archives} PARENT_SCOPE)
endfunction()

# Route tables, which only the switch uses: with static DPDK, these archives are not in ROCI_STATIC_DPDK, so that
# libibverbs.so.1 does not contain them. libdpdk.pc has the shared libraries.
roci_dpdk_archives(archives fib rib)
string(REPLACE "," ";" archives "${archives}")
add_library(roci_dpdk_fib INTERFACE)
target_link_libraries(roci_dpdk_fib INTERFACE roci_dpdk "$<$<NOT:${shared}>:${archives}>")

# Whole archives: drivers, tail queues and telemetry commands register themselves in constructors, which no code
# references.
function(roci_link_static_dpdk TARGET)
  roci_dpdk_archives(archives ${ROCI_STATIC_DRIVERS} ${ROCI_STATIC_DPDK})
  set_target_properties(${TARGET} PROPERTIES ROCI_STATIC_DPDK ON)
  target_link_libraries(${TARGET} PRIVATE "-Wl,--whole-archive,${archives},--no-whole-archive"
    ${ROCI_STATIC_DPDK_NEEDS} Threads::Threads)
endfunction()

# With ROCI_PORTABLE, the same for programs and libraries that otherwise link the shared libraries. MBUFS: TARGET only reads
# chains of mbufs and links neither drivers nor the EAL's constructors.
function(roci_link_portable_dpdk TARGET)
  cmake_parse_arguments(ARG "MBUFS" "" "" ${ARGN})
  if(NOT ROCI_PORTABLE)
    return()
  endif()
  if(NOT ARG_MBUFS)
    roci_link_static_dpdk(${TARGET})
    return()
  endif()
  roci_dpdk_archives(archives mbuf mempool ring eal ${ROCI_DPDK_EAL_PARTS} telemetry kvargs)
  set_target_properties(${TARGET} PROPERTIES ROCI_STATIC_DPDK ON)
  target_link_libraries(${TARGET} PRIVATE "-Wl,--start-group,${archives},--end-group" ${ROCI_STATIC_DPDK_NEEDS})
endfunction()
