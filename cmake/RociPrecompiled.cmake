# roci_precompile_tests(TARGET)   with ROCI_PCH, the GoogleTest program TARGET uses precompiled headers of the standard
#                                 library, DPDK and GoogleTest. They save a third to a half of the compile time of a
#                                 small file.
#
# Only tests: GCC 12 reports false warnings in optimized code that uses precompiled headers. Files still include all
# headers that they use: the presets `debug` and `clang` compile without precompiled headers.
option(ROCI_PCH "precompiled headers of tests" OFF)

function(roci_precompile_tests TARGET)
  if(NOT ROCI_PCH)
    return()
  endif()
  if(NOT TARGET roci_precompiled_tests)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled/main.cpp CONTENT "int main() {}\n")
    add_executable(roci_precompiled_tests EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/precompiled/main.cpp)
    target_link_libraries(roci_precompiled_tests PRIVATE roci_dpdk GTest::gtest roci_options)
    roci_test_code(roci_precompiled_tests)
    roci_use_precompiled(roci_precompiled_tests)
    target_precompile_headers(roci_precompiled_tests PRIVATE
      <rte_config.h>  # first: DPDK's headers require it
      <algorithm> <array> <atomic> <bit> <chrono> <cstdint> <cstdio> <cstring> <deque> <filesystem> <fstream> <functional>
      <map> <memory> <mutex> <optional> <ranges> <set> <span> <string> <string_view> <thread> <utility> <variant> <vector>
      <gtest/gtest.h> <rte_mbuf.h> <tl/expected.hpp>)
  endif()
  roci_use_precompiled(${TARGET})
  target_precompile_headers(${TARGET} REUSE_FROM roci_precompiled_tests)
endfunction()

function(roci_use_precompiled TARGET)
  set_target_properties(${TARGET} PROPERTIES ROCI_PRECOMPILED ON)
  # ccache requires these options.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${TARGET} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  else()
    target_compile_options(${TARGET} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
endfunction()
