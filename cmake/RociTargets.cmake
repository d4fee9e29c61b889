# roci_layer(NAME [USES target…])      a static library roci_NAME from the .cpp files of the current folder
# roci_app(NAME [WHOLE] [USES target…])  a program from apps/NAME/; WHOLE: optimised together with the layers that it links
# roci_app_of_parts(NAME [WHOLE] [USES …] [MAIN …])  the same from the current folder, but for main() as a library for tests
# roci_test(NAME [LABELS …] [USES …] [RUNNER command…] [SHARDS n] [APART file…])
#                                      a GoogleTest program from tests/NAME/*.cpp, run (by RUNNER, which may exit 77 to
#                                      say why it cannot) as one CTest test, or in n parts at a time where it takes long;
#                                      files APART, without .cpp, have names in them that others have too
# roci_fuzzer(NAME [USES target…])     NAME_fuzz from NAME_fuzz.cpp: a libFuzzer program in the preset `fuzz`; in others a
#                                      CTest test `fuzz-NAME` that runs the inputs in corpus/NAME

# With ROCI_UNITY the files of TARGET are compiled eight at a time: most of the time goes into the headers of the library and of
# DPDK. So names are unique within such a folder, also in unnamed namespaces. Files still include what they use: the preset
# `debug` compiles each by itself.
function(roci_in_unity TARGET)
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ${ROCI_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

function(roci_layer NAME)
  cmake_parse_arguments(ARG "" "" "USES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_library(roci_${NAME} STATIC ${sources})
  target_link_libraries(roci_${NAME} PUBLIC ${ARG_USES} PRIVATE roci_options)
  target_include_directories(roci_${NAME} PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/lib)
  target_compile_options(roci_${NAME} PRIVATE ${ROCI_LAYER_OPTIONS})
  roci_in_unity(roci_${NAME})
endfunction()

# Optimises a program together with the layers it links. GCC would do it for every program, as the layers are prepared for it, and
# it takes longer than compiling: so only for those where packets are what takes time.
function(roci_optimise_whole TARGET)
  if(ROCI_LTO)
    target_compile_options(${TARGET} PRIVATE -flto=auto)
    target_link_options(${TARGET} PRIVATE -flto=auto -w)  # RociToolchain says what GCC misreads; here it would again
  endif()
endfunction()

function(roci_link_as_is TARGET)
  if(ROCI_LTO)
    target_link_options(${TARGET} PRIVATE -fno-lto)
  endif()
endfunction()

function(roci_app NAME)
  cmake_parse_arguments(ARG "WHOLE" "" "USES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${NAME}/*.cpp)
  add_executable(${NAME} ${sources})
  target_link_libraries(${NAME} PRIVATE ${ARG_USES} roci_options)
  target_include_directories(${NAME} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  roci_in_unity(${NAME})
  if(ARG_WHOLE)
    roci_optimise_whole(${NAME})
  else()
    roci_link_as_is(${NAME})
  endif()
endfunction()

# The same from the current folder, with everything but main() as a library that tests link too: roci-top makes roci_top_parts.
# MAIN: what main() alone uses.
function(roci_app_of_parts NAME)
  cmake_parse_arguments(ARG "WHOLE" "" "USES;MAIN" ${ARGN})
  string(REPLACE "-" "_" parts ${NAME}_parts)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  add_library(${parts} STATIC ${sources})
  target_include_directories(${parts} PUBLIC ${CMAKE_SOURCE_DIR}/apps)
  target_link_libraries(${parts} PUBLIC ${ARG_USES} PRIVATE roci_options)
  target_compile_options(${parts} PRIVATE ${ROCI_PROGRAM_OPTIONS})
  roci_in_unity(${parts})
  add_executable(${NAME} main.cpp)
  target_link_libraries(${NAME} PRIVATE ${parts} ${ARG_MAIN} roci_options)
  if(ARG_WHOLE)
    roci_optimise_whole(${NAME})
  else()
    roci_link_as_is(${NAME})
  endif()
endfunction()

# Compiles and links what tests consist of: what they test is optimised; they need not be.
function(roci_test_way TARGET)
  target_compile_options(${TARGET} PRIVATE ${ROCI_TEST_OPTIONS})
  roci_link_as_is(${TARGET})
  roci_in_unity(${TARGET})
endfunction()

# FIGURES are tests (patterns of GoogleTest) of what comes out in the end, in virtual time: with sanitizers they say the same, more
# slowly, over code that the others run through too, and are left out.
function(roci_test NAME)
  cmake_parse_arguments(ARG "" "SHARDS" "USES;LABELS;RUNNER;APART;FIGURES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${NAME}/*.cpp)
  foreach(pattern ${ARG_APART})
    file(GLOB apart ${CMAKE_CURRENT_SOURCE_DIR}/${NAME}/${pattern}.cpp)
    set_source_files_properties(${apart} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
  add_executable(${NAME}_tests ${sources})
  target_link_libraries(${NAME}_tests PRIVATE ${ARG_USES} GTest::gtest_main roci_options)
  target_include_directories(${NAME}_tests PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  roci_test_way(${NAME}_tests)
  set(environment LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/lsan.supp
                  TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/tsan.supp)
  set(command ${ARG_RUNNER} $<TARGET_FILE:${NAME}_tests>)
  if(ARG_FIGURES AND ROCI_SANITIZE)
    list(JOIN ARG_FIGURES ":" figures)
    list(APPEND command --gtest_filter=-${figures})
  endif()
  if(NOT ARG_SHARDS)
    add_test(NAME ${NAME} COMMAND ${command})
    set_tests_properties(${NAME} PROPERTIES LABELS "${ARG_LABELS}" SKIP_RETURN_CODE 77 ENVIRONMENT "${environment}")
    return()
  endif()
  foreach(shard RANGE 1 ${ARG_SHARDS})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${NAME}_${shard} COMMAND ${command})
    set_tests_properties(${NAME}_${shard} PROPERTIES LABELS "${ARG_LABELS}" SKIP_RETURN_CODE 77
      ENVIRONMENT "${environment};GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

function(roci_fuzzer NAME)
  cmake_parse_arguments(ARG "" "" "USES" ${ARGN})
  add_executable(${NAME}_fuzz ${CMAKE_CURRENT_SOURCE_DIR}/${NAME}_fuzz.cpp)
  target_link_libraries(${NAME}_fuzz PRIVATE ${ARG_USES} roci_options)
  target_include_directories(${NAME}_fuzz PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  if(ROCI_FUZZ)
    target_link_options(${NAME}_fuzz PRIVATE -fsanitize=fuzzer)
    return()
  endif()
  roci_test_way(${NAME}_fuzz)
  target_sources(${NAME}_fuzz PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz/replay_main.cpp)
  add_test(NAME fuzz-${NAME} COMMAND ${NAME}_fuzz ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${NAME})
  set_tests_properties(fuzz-${NAME} PROPERTIES LABELS unit)
endfunction()
