# How DPDK gets into what we link. Layers name `roci_dpdk` (and `roci_dpdk_ring`) and know no more.
#
# Programs and tests link DPDK's shared libraries, and the EAL loads the drivers that are installed. What is itself a
# library of the verbs must not: among the drivers are mlx4 and mlx5, which need libibverbs.so.1 and would so load the one
# that is loading them. It calls
#
#   roci_link_static_dpdk(TARGET)   links DPDK's archives into TARGET, with the drivers below and no others
#
# and the layers it links bring it no shared DPDK.

# The in-process ring port needs the driver's own symbols, which libdpdk.pc leaves to the plug-in loader.
find_library(RTE_NET_RING rte_net_ring REQUIRED)

set(shared "$<NOT:$<BOOL:$<TARGET_PROPERTY:ROCI_STATIC_DPDK>>>")  # of the program or library that is linked in the end
add_library(roci_dpdk INTERFACE)
target_include_directories(roci_dpdk SYSTEM INTERFACE ${DPDK_INCLUDE_DIRS})
target_compile_options(roci_dpdk INTERFACE ${DPDK_CFLAGS_OTHER})
target_link_libraries(roci_dpdk INTERFACE $<${shared}:PkgConfig::DPDK>)
add_library(roci_dpdk_ring INTERFACE)
target_link_libraries(roci_dpdk_ring INTERFACE roci_dpdk $<${shared}:${RTE_NET_RING}>)

# The drivers: packet memory; buses; ports without hardware; NICs that want neither libibverbs nor firmware of ours. Not
# among them is bnxt, which alone is larger than all of these.
set(ROCI_STATIC_DRIVERS
  mempool_ring mempool_stack
  bus_vdev bus_pci
  net_memif net_af_packet net_af_xdp net_tap net_ring net_null net_virtio
  net_e1000 net_ixgbe net_i40e common_iavf net_iavf net_ice net_ena net_vmxnet3)
# What they and our layers use of DPDK.
set(ROCI_STATIC_DPDK
  kvargs telemetry eal ring rcu mempool mbuf net meter ethdev pci hash timer stack gso cryptodev security)
# What these use of others; shared libraries.
set(ROCI_STATIC_DPDK_NEEDS xdp bpf numa bsd m ${CMAKE_DL_LIBS})

# Whole archives: drivers, tail queues and telemetry commands register themselves in constructors that nobody calls.
function(roci_link_static_dpdk TARGET)
  list(TRANSFORM ROCI_STATIC_DRIVERS PREPEND "rte_")
  list(TRANSFORM ROCI_STATIC_DPDK PREPEND "rte_")
  set(archives)
  foreach(name ${ROCI_STATIC_DRIVERS} ${ROCI_STATIC_DPDK})
    find_library(archive NAMES lib${name}.a HINTS ${DPDK_STATIC_LIBRARY_DIRS} ${DPDK_LIBDIR} REQUIRED NO_CACHE)
    list(APPEND archives ${archive})
    unset(archive)
  endforeach()
  list(JOIN archives "," archives)
  set_target_properties(${TARGET} PROPERTIES ROCI_STATIC_DPDK ON)
  target_link_libraries(${TARGET} PRIVATE "-Wl,--whole-archive,${archives},--no-whole-archive"
    ${ROCI_STATIC_DPDK_NEEDS} Threads::Threads)
endfunction()
