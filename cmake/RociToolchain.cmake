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
  # GCC's names for what Clang asks for with __has_feature.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    foreach(kind address thread)
      string(TOUPPER ${kind} upper)
      if(ROCI_SANITIZE MATCHES ${kind})
        target_compile_definitions(roci_options INTERFACE __SANITIZE_${upper}__=1)
      endif()
    endforeach()
  endif()
endif()
# A seventh of GCC's time goes into collecting its own garbage; at most a GiB of it may lie around.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(roci_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-expand=1000 --param ggc-min-heapsize=1048576>)
endif()

# Besides: layers are compiled to be optimised with the program that they are linked into, and as they are, for tests to link
# (fat); with sanitizers, programs and tests are not worth the time that optimising what is generated for them takes.
set(ROCI_LAYER_OPTIONS)
set(ROCI_PROGRAM_OPTIONS)
set(ROCI_TEST_OPTIONS)
if(ROCI_LTO)
  set(ROCI_LAYER_OPTIONS -flto=auto -ffat-lto-objects)
endif()
if(ROCI_SANITIZE)
  set(ROCI_PROGRAM_OPTIONS -O0)
  set(ROCI_TEST_OPTIONS -O0)
elseif(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  set(ROCI_TEST_OPTIONS -O1)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Paths below the source folder count as relative, so that clones and work trees share what they have compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
    ${CCACHE_PROGRAM})
endif()
