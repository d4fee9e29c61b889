# Compiler settings of all targets of the project. They do not affect packages.
add_library(roci_options INTERFACE)
target_compile_options(roci_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow
  -fno-strict-aliasing)  # packet bytes are accessed through header structs
if(ROCI_WERROR)
  target_compile_options(roci_options INTERFACE -Werror)
endif()
if(ROCI_MARCH)
  target_compile_options(roci_options INTERFACE -march=${ROCI_MARCH})
endif()
# False warnings of GCC 12 and 13 on "literal" + std::string (GCC bug 105651) and, at -O3, on the growth of a byte
# vector.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  target_compile_options(roci_options INTERFACE -Wno-restrict -Wno-stringop-overflow)
endif()
# False warnings of GCC 13 and 14 on references that functions with temporary arguments return.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  target_compile_options(roci_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-dangling-reference>)
endif()
# In C++, GCC's -Wconversion does not include sign conversions; Clang's does, so they are disabled for Clang.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(roci_options INTERFACE -Wno-sign-conversion)
endif()
target_include_directories(roci_options INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/lib)

if(ROCI_SANITIZE)
  target_compile_options(roci_options INTERFACE -fsanitize=${ROCI_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  # Instrumentation reduces GCC's knowledge of values and causes false warnings; other builds keep the warning.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(roci_options INTERFACE -Wno-maybe-uninitialized)
  endif()
  target_link_options(roci_options INTERFACE -fsanitize=${ROCI_SANITIZE})
  # GCC's macros; Clang provides __has_feature instead.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    foreach(kind address thread)
      string(TOUPPER ${kind} upper)
      if(ROCI_SANITIZE MATCHES ${kind})
        target_compile_definitions(roci_options INTERFACE __SANITIZE_${upper}__=1)
      endif()
    endforeach()
  endif()
endif()
# Hardening. Always: PIE, read-only relocations that are resolved at start, no executable stack. With ROCI_HARDENING, as
# tests/install/hardening.py checks:
#   - Stack protector: in all code but the layers that process packets, whose targets have the property ROCI_HOT.
#   - _FORTIFY_SOURCE: not with sanitizers, which check more, and not without optimization (targets with the property
#     ROCI_NOT_OPTIMIZED), where the C library rejects it. Level 2, because GCC 12 inlines less with level 3, which costs
#     instructions per message. Distributions define another level; it is replaced.
#   - Control-flow protection (x86): shadow stacks. Landing pads (-fcf-protection=branch) also cost instructions, and Linux
#     does not use them in user space.
option(ROCI_HARDENING "Stack protector, _FORTIFY_SOURCE and shadow stacks" ON)
include(CheckPIESupported)
check_pie_supported()
set(ROCI_HOT_LAYERS wire transport engine port switch_lib)
set(ROCI_HARDENED_COMPILE)
set(ROCI_HARDENED_LINK -Wl,-z,relro,-z,now,-z,noexecstack)
if(ROCI_HARDENING)
  list(APPEND ROCI_HARDENED_COMPILE -fstack-protector-strong)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|i[3-6]86)$")
    list(APPEND ROCI_HARDENED_COMPILE -fcf-protection=return)
  endif()
  target_compile_options(roci_options INTERFACE ${ROCI_HARDENED_COMPILE}
    $<$<BOOL:$<TARGET_PROPERTY:ROCI_HOT>>:-fno-stack-protector>)
  if(NOT ROCI_SANITIZE)
    set(optimized "$<NOT:$<OR:$<CONFIG:Debug>,$<BOOL:$<TARGET_PROPERTY:ROCI_NOT_OPTIMIZED>>>>")
    target_compile_options(roci_options INTERFACE -U_FORTIFY_SOURCE $<${optimized}:-D_FORTIFY_SOURCE=2>)
  endif()
endif()
target_link_options(roci_options INTERFACE ${ROCI_HARDENED_LINK})
# Garbage collection takes a seventh of GCC's time. With these parameters it starts at a heap of 1 GiB.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(roci_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-expand=1000 --param ggc-min-heapsize=1048576>)
endif()

# Layers are compiled for link-time optimization with programs, and also as normal objects for tests (fat objects). With
# sanitizers, programs are not optimized, as optimization of their instrumented code takes too long. Tests are not optimized:
# they take more than half of the compile time, and most of their run time is that of the layers.
set(ROCI_LAYER_OPTIONS)
set(ROCI_PROGRAM_OPTIONS)
set(ROCI_TEST_OPTIONS -O0)
if(ROCI_LTO)
  set(ROCI_LAYER_OPTIONS -flto=auto -ffat-lto-objects)
endif()
if(ROCI_SANITIZE)
  set(ROCI_PROGRAM_OPTIONS -O0)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Paths below the source folder are relative in the cache, so that clones and worktrees share compiled files. The
  # sloppiness is required with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
endif()

# Trace points (lib/base/trace_points.hpp, docs/tracing.md).
include(CheckIncludeFileCXX)
check_include_file_cxx(sys/sdt.h ROCI_HAVE_SDT)
if(ROCI_TRACE_POINTS AND ROCI_HAVE_SDT)
  target_compile_definitions(roci_options INTERFACE ROCI_TRACE_POINTS)
  message(STATUS "Trace points (USDT probes): enabled.")
elseif(ROCI_TRACE_POINTS)
  message(STATUS "Trace points (USDT probes): disabled, because <sys/sdt.h> (package systemtap-sdt-dev) was not found.")
else()
  message(STATUS "Trace points (USDT probes): disabled by ROCI_TRACE_POINTS=OFF.")
endif()
