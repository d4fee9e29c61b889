# What `cmake --install` puts where: programs, public headers, and the CMake package `rocinante` with
#   rocinante::cc        what a plugin of congestion control includes (an interface library: plugins link nothing of ours)
#   rocinante::roci-cc   the program that checks plugins
# The C++ API's library is not installed: it is linked from the build tree.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(rocinante_cc INTERFACE)
set_target_properties(rocinante_cc PROPERTIES EXPORT_NAME cc)
target_include_directories(rocinante_cc INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>)

install(TARGETS roci-perf roci-switch roci-top roci-pcap RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS roci-cc rocinante_cc EXPORT rocinante RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/roci DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/rocinante)
install(EXPORT rocinante NAMESPACE rocinante:: FILE rocinanteConfig.cmake DESTINATION ${package})
# Plugins of another version of the interface are refused when they are loaded (ROCI_CC_ABI), which says more than this.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/rocinanteConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/rocinanteConfigVersion.cmake DESTINATION ${package})
