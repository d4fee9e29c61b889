# Installation: programs, the library of the C++ API, the drop-in libibverbs.so.1 and librdmacm.so.1, public headers, a
# CMake package, a pkg-config file, and example configurations. packaging/ adds manual pages and completions;
# RociPackage builds a .deb of the installed files.
include(CMakePackageConfigHelpers)

# Programs in the order of the manual.
set(ROCI_PROGRAMS roci-perf roci-switch roci-run roci-top roci-pcap roci-cc roci-lab)

add_library(rocinante_cc INTERFACE)
set_target_properties(rocinante_cc PROPERTIES EXPORT_NAME cc)
target_include_directories(rocinante_cc INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>)

set(others ${ROCI_PROGRAMS})
list(REMOVE_ITEM others roci-cc)
install(TARGETS ${others} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# Two exports: plugins in C do not require the packages that the C++ API's headers include.
install(TARGETS roci-cc rocinante_cc EXPORT rocinanteCc RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS rocinante EXPORT rocinanteLibrary LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Libraries in a folder outside of the loader's search path; roci-run adds it for a program.
install(TARGETS roci_libibverbs roci_librdmacm roci-paths LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/rocinante)
# The names without a version, which some programs (NCCL, brpc) request with dlopen(), and linkers with -l.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/lib/rocinante)
foreach(name ibverbs rdmacm)
  file(CREATE_LINK lib${name}.so.1 ${CMAKE_BINARY_DIR}/lib/rocinante/lib${name}.so SYMBOLIC)
  install(FILES ${CMAKE_BINARY_DIR}/lib/rocinante/lib${name}.so DESTINATION ${CMAKE_INSTALL_LIBDIR}/rocinante)
endforeach()

install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/roci DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(DIRECTORY ${CMAKE_SOURCE_DIR}/config DESTINATION ${CMAKE_INSTALL_DATADIR}/rocinante)
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/packaging/copyright
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/rocinante)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/rocinante)
foreach(export rocinanteCc rocinanteLibrary)
  install(EXPORT ${export} NAMESPACE rocinante:: DESTINATION ${package})
endforeach()
# The API and the ABI may change with each minor version (ROCI_ABI_VERSION). Plugins with another interface version are
# rejected when loaded (ROCI_CC_ABI).
write_basic_package_version_file(${CMAKE_BINARY_DIR}/rocinanteConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_file(${CMAKE_SOURCE_DIR}/packaging/rocinanteConfig.cmake.in ${CMAKE_BINARY_DIR}/rocinanteConfig.cmake @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/rocinanteConfigVersion.cmake ${CMAKE_BINARY_DIR}/rocinanteConfig.cmake
  DESTINATION ${package})
# Relative to the file's folder: the prefix is chosen at installation (`cmake --install --prefix`) and may be moved
# later.
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" up "${up}")
configure_file(${CMAKE_SOURCE_DIR}/packaging/rocinante.pc.in ${CMAKE_BINARY_DIR}/rocinante.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/rocinante.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

add_subdirectory(packaging)
