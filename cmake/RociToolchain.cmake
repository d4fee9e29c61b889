# Compiler settings that hold for every target of ours; nothing here reaches the packages we use.
add_library(roci_options INTERFACE)
target_compile_options(roci_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror
  -fno-strict-aliasing  # packet bytes are read through header structs
  -march=x86-64-v2)     # the floor; faster code is chosen at run time
# GCC 12 and 13 misread "literal" + std::string (GCC bug 105651) and, at -O3, the growth of a vector of bytes;
# Clang and later GCC are right.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  target_compile_options(roci_options INTERFACE -Wno-restrict -Wno-stringop-overflow)
endif()
# In C++, GCC's -Wconversion leaves signedness alone; let Clang's mean the same.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(roci_options INTERFACE -Wno-sign-conversion)
endif()
target_include_directories(roci_options INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/lib)

if(ROCI_SANITIZE)
  target_compile_options(roci_options INTERFACE -fsanitize=${ROCI_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  # The instrumentation hides from GCC what it knows of values; other builds warn.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(roci_options INTERFACE -Wno-maybe-uninitialized)
  endif()
  target_link_options(roci_options INTERFACE -fsanitize=${ROCI_SANITIZE})
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Paths below the source folder count as relative, so that clones and work trees share what they have compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
    ${CCACHE_PROGRAM})
endif()
