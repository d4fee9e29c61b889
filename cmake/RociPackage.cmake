# `./roci package`: a Debian package of the installed files. dpkg-shlibdeps determines the required libraries.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME rocinante)
set(CPACK_PACKAGE_VENDOR Rocinante)
set(CPACK_PACKAGE_CONTACT "The authors of Rocinante <rocinante@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"RoCEv2 in user space, without RDMA hardware and without a kernel module: RC, UC,
UD and XRC queue pairs over DPDK devices, over shared memory between processes,
and over simulated links. Contains the drop-in libraries libibverbs.so.1 and
librdmacm.so.1 for unmodified programs, a C++ library, a software switch,
congestion control algorithms (also as plugins), and a lab that simulates
networks of hosts and switches in virtual time.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# librdmacm.so.1 requires Rocinante's libibverbs.so.1.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib/rocinante)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# DPDK's drivers are plug-ins and not linked, so dpkg-shlibdeps does not find them. Their package names contain DPDK's
# ABI version.
file(REAL_PATH ${RTE_NET_RING} ring)
if(NOT ring MATCHES "\\.so\\.([0-9]+)")
  message(WARNING "the Debian package will not name DPDK's drivers: ${ring} has no ABI in its name")
endif()
set(abi ${CMAKE_MATCH_1})
set(drivers)
foreach(driver bus-vdev bus-pci mempool-ring net-ring net-memif net-af-packet net-tap net-null)
  list(APPEND drivers librte-${driver}${abi})
endforeach()
list(JOIN drivers ", " CPACK_DEBIAN_PACKAGE_DEPENDS)
# NIC drivers, and the packages that the C++ API's headers include.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "librte-meta-net, libibverbs-dev, libexpected-dev")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "bash-completion, perftest, wireshark")

# For packages that link librocinante.so. The drop-in libraries are excluded, as packages must not depend on them by
# accident.
configure_file(${CMAKE_SOURCE_DIR}/packaging/shlibs.in ${CMAKE_BINARY_DIR}/debian/shlibs @ONLY)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/debian/shlibs)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
