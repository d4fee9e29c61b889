# Libraries of the distribution, as shared libraries or, with ROCI_PORTABLE, as static ones. Targets of the project link
#
#   roci_spdlog roci_yaml roci_isal roci_pcap roci_hdf5 roci_tbb      also see roci_dpdk (RociDpdk)
#
# With ROCI_PORTABLE, programs and libraries require the C library only, of version 2.34 or later. Of spdlog and fmt, Debian
# has headers and shared libraries: the headers are used. It has no static ISA-L and no static oneTBB:
# lib/wire/icrc/crc32.cpp and lib/lab/execution/thread_team.cpp replace them. Without MPI.
foreach(name spdlog yaml isal pcap hdf5 tbb)
  add_library(roci_${name} INTERFACE)
endforeach()

if(NOT ROCI_PORTABLE)
  target_link_libraries(roci_spdlog INTERFACE spdlog::spdlog)
  target_link_libraries(roci_yaml INTERFACE yaml-cpp)
  target_link_libraries(roci_isal INTERFACE PkgConfig::ISAL)
  target_link_libraries(roci_pcap INTERFACE PkgConfig::PCAP)
  target_link_libraries(roci_hdf5 INTERFACE hdf5::hdf5)
  target_link_libraries(roci_tbb INTERFACE TBB::tbb)
  return()
endif()

function(roci_static_library VARIABLE NAME)
  find_library(found NAMES lib${NAME}.a PATH_SUFFIXES hdf5/serial REQUIRED NO_CACHE)
  set(${VARIABLE} ${found} PARENT_SCOPE)
endfunction()
foreach(name yaml-cpp pcap hdf5 sz aec z bsd md)
  string(MAKE_C_IDENTIFIER ${name} id)
  roci_static_library(ROCI_STATIC_${id} ${name})
endforeach()

target_compile_definitions(roci_spdlog INTERFACE SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY SPDLOG_HEADER_ONLY)
target_link_libraries(roci_spdlog INTERFACE Threads::Threads)
target_include_directories(roci_yaml SYSTEM INTERFACE $<TARGET_PROPERTY:yaml-cpp,INTERFACE_INCLUDE_DIRECTORIES>)
target_link_libraries(roci_yaml INTERFACE ${ROCI_STATIC_yaml_cpp})
add_library(roci_without_dbus OBJECT ${CMAKE_SOURCE_DIR}/packaging/portable/without_dbus.c)
target_link_libraries(roci_pcap INTERFACE $<TARGET_OBJECTS:roci_without_dbus> ${ROCI_STATIC_pcap})
target_include_directories(roci_hdf5 SYSTEM INTERFACE ${HDF5_INCLUDE_DIRS})
target_link_libraries(roci_hdf5 INTERFACE ${ROCI_STATIC_hdf5} ${ROCI_STATIC_sz} ${ROCI_STATIC_aec} ${ROCI_STATIC_z} m
  ${CMAKE_DL_LIBS})
set(ROCI_STATIC_DPDK_NEEDS roci_numa ${ROCI_STATIC_bsd} ${ROCI_STATIC_md} m ${CMAKE_DL_LIBS})

# Functions that static libraries of a newer system require and that glibc 2.34 does not have, with hidden visibility. The
# linker must include them before it reads libgcc_eh.a and libstdc++.a. Each has a file of its own, as libbsd.a also
# defines arc4random.
add_library(roci_numa STATIC ${CMAKE_SOURCE_DIR}/packaging/portable/numa.c)
add_library(roci_old_libc STATIC ${CMAKE_SOURCE_DIR}/packaging/portable/find_object.c
  ${CMAKE_SOURCE_DIR}/packaging/portable/random.c ${CMAKE_SOURCE_DIR}/packaging/portable/single_threaded.c)
foreach(target roci_old_libc roci_numa roci_without_dbus)
  target_compile_options(${target} PRIVATE -O2 -Wall -Wextra -Wconversion -Wshadow -Werror -fvisibility=hidden
    ${ROCI_HARDENED_COMPILE})
  set_target_properties(${target} PROPERTIES C_STANDARD 11)
endforeach()
target_link_libraries(roci_options INTERFACE roci_old_libc)
target_link_options(roci_options INTERFACE -static-libstdc++ -static-libgcc
  LINKER:--undefined=_dl_find_object,--undefined=arc4random,--undefined=__libc_single_threaded,--gc-sections)
target_compile_options(roci_options INTERFACE -ffunction-sections)
target_compile_definitions(roci_options INTERFACE ROCI_PORTABLE)
