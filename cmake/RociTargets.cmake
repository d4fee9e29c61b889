# roci_layer(NAME [USES target…])      a static library roci_NAME from the .cpp files of the current folder and below
# roci_app(NAME [WHOLE] [USES target…])  a program from apps/NAME/; WHOLE: link-time optimization with the layers
# roci_app_of_parts(NAME [WHOLE] [USES …] [MAIN …])  the same from the current folder, with all but main() as a library
# roci_test(NAME [OPTIMIZED] [LABELS …] [USES …] [RUNNER command…] [SHARDS n] [FIGURES pattern…])
#                                      a GoogleTest program from the .cpp files in tests/NAME/ and below, run by RUNNER
#                                      as one CTest test, or as n tests that can run concurrently; RUNNER may exit with
#                                      77 to skip the test;
#                                      FIGURES: see below; OPTIMIZED: the test code takes most of the run time
# roci_fuzzer(NAME [USES target…])     NAME_fuzz from NAME_fuzz.cpp: a libFuzzer program in the preset `fuzz`;
#                                      otherwise a CTest test `fuzz-NAME` that runs the inputs in corpus/NAME and in
#                                      corpus/NAME_seed_corpus.zip, which is unpacked to ${CMAKE_BINARY_DIR}/seeds/NAME;
#                                      with AddressSanitizer, also mutations of them
# roci_target_without(NAME EXCEPT…)    a target NAME that builds everything but the dependencies of the targets EXCEPT

# With ROCI_UNITY, 16 files of TARGET are compiled together, since headers of the standard library and of DPDK take
# most of the time. Names must therefore be unique within a target, also in unnamed namespaces. Each file still includes
# all headers that it uses: the preset `debug` compiles files separately.
function(roci_in_unity TARGET)
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ${ROCI_UNITY} UNITY_BUILD_BATCH_SIZE 16)
endfunction()

# Sets VARIABLE to the .cpp files of FOLDER and its sub-folders. They are sorted by name, so that the sub-folder of a
# file does not change which files are compiled together.
function(roci_sources VARIABLE FOLDER)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${FOLDER}/*.cpp)
  list(SORT found COMPARE FILE_BASENAME)
  set(${VARIABLE} ${found} PARENT_SCOPE)
endfunction()

function(roci_layer NAME)
  cmake_parse_arguments(ARG "" "" "USES" ${ARGN})
  roci_sources(sources ${CMAKE_CURRENT_SOURCE_DIR})
  add_library(roci_${NAME} STATIC ${sources})
  target_link_libraries(roci_${NAME} PUBLIC ${ARG_USES} PRIVATE roci_options)
  target_include_directories(roci_${NAME} PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/lib)
  target_compile_options(roci_${NAME} PRIVATE ${ROCI_LAYER_OPTIONS})
  if(NAME IN_LIST ROCI_HOT_LAYERS)
    set_target_properties(roci_${NAME} PROPERTIES ROCI_HOT ON)
    roci_precompile(roci_${NAME} hot_layers)
  else()
    roci_precompile(roci_${NAME} layers)
  endif()
  roci_in_unity(roci_${NAME})
endfunction()

# Optimizes a program together with the layers that it links. GCC would do so for every program, as the layers contain
# the required code. As it takes longer than compilation, it is enabled only for programs whose time is spent on
# packets.
function(roci_with_lto TARGET)
  if(ROCI_LTO)
    target_compile_options(${TARGET} PRIVATE -flto=auto)
    target_link_options(${TARGET} PRIVATE -flto=auto -w)  # -w: the false warnings listed in RociToolchain occur again
  endif()
endfunction()

function(roci_without_lto TARGET)
  if(ROCI_LTO)
    target_link_options(${TARGET} PRIVATE -fno-lto)
  endif()
endfunction()

# For files that define command-line options with CLI11: their optimization takes 10 s per file.
function(roci_less_optimized)
  if(NOT ROCI_SANITIZE)
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -O1)
  endif()
endfunction()

function(roci_app NAME)
  cmake_parse_arguments(ARG "WHOLE" "" "USES" ${ARGN})
  roci_sources(sources ${CMAKE_CURRENT_SOURCE_DIR}/${NAME})
  add_executable(${NAME} ${sources})
  roci_less_optimized(${CMAKE_CURRENT_SOURCE_DIR}/${NAME}/main.cpp)
  target_link_libraries(${NAME} PRIVATE ${ARG_USES} roci_options)
  target_include_directories(${NAME} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  roci_in_unity(${NAME})
  if(ARG_WHOLE)
    roci_with_lto(${NAME})
  else()
    roci_without_lto(${NAME})
  endif()
endfunction()

# The same from the current folder. Everything but main() is a library that tests also link: roci-top creates
# roci_top_parts. MAIN: targets used only by main().
function(roci_app_of_parts NAME)
  cmake_parse_arguments(ARG "WHOLE" "" "USES;MAIN" ${ARGN})
  string(REPLACE "-" "_" parts ${NAME}_parts)
  roci_sources(sources ${CMAKE_CURRENT_SOURCE_DIR})
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  add_library(${parts} STATIC ${sources})
  target_include_directories(${parts} PUBLIC ${CMAKE_SOURCE_DIR}/apps)
  target_link_libraries(${parts} PUBLIC ${ARG_USES} PRIVATE roci_options)
  target_compile_options(${parts} PRIVATE ${ROCI_PROGRAM_OPTIONS})
  roci_in_unity(${parts})
  if(NOT ROCI_PROGRAM_OPTIONS)  # else not optimized as the layers are
    roci_precompile(${parts} layers)
  endif()
  add_executable(${NAME} main.cpp)
  roci_less_optimized(main.cpp)
  target_link_libraries(${NAME} PRIVATE ${parts} ${ARG_MAIN} roci_options)
  if(ARG_WHOLE)
    roci_with_lto(${NAME})
  else()
    roci_without_lto(${NAME})
  endif()
endfunction()

# Options of test code, which is not optimized as a whole, unlike the tested code.
function(roci_test_code TARGET)
  target_compile_options(${TARGET} PRIVATE ${ROCI_TEST_OPTIONS})
  set_target_properties(${TARGET} PROPERTIES ROCI_NOT_OPTIMIZED ON)
  roci_without_lto(${TARGET})
  roci_in_unity(${TARGET})
endfunction()

# FIGURES: GoogleTest patterns of tests of end results in virtual time, of rates and of whole tables. They are excluded
# with sanitizers: they are slow there and run code that other tests also run.
function(roci_test NAME)
  cmake_parse_arguments(ARG "OPTIMIZED" "SHARDS" "USES;LABELS;RUNNER;FIGURES" ${ARGN})
  roci_sources(sources ${CMAKE_CURRENT_SOURCE_DIR}/${NAME})
  add_executable(${NAME}_tests ${sources})
  target_link_libraries(${NAME}_tests PRIVATE ${ARG_USES} GTest::gtest_main roci_options)
  target_include_directories(${NAME}_tests PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  roci_test_code(${NAME}_tests)
  if(ARG_OPTIMIZED)
    target_compile_options(${NAME}_tests PRIVATE -O1)  # precompiled headers are those of -O0
  else()
    roci_precompile(${NAME}_tests tests)
  endif()
  set(environment LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/lsan.supp
                  TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/tsan.supp)
  if("protocol" IN_LIST ARG_LABELS)
    add_dependencies(protocol_tests ${NAME}_tests)
  endif()
  if("ci" IN_LIST ARG_LABELS)
    add_dependencies(ci_tests ${NAME}_tests)
  endif()
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

# Unpacks a seed archive when the archive has changed. The script removes inputs that are no longer in the archive.
function(roci_unpack_seeds NAME)
  set(script ${CMAKE_SOURCE_DIR}/tests/fuzz/seed_archive.py)
  set(archive ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${NAME}_seed_corpus.zip)
  set(folder ${CMAKE_BINARY_DIR}/seeds/${NAME})
  add_custom_command(OUTPUT ${folder}.stamp DEPENDS ${script} ${archive} VERBATIM COMMENT "Unpacking the seeds of ${NAME}"
    COMMAND Python3::Interpreter ${script} unpack ${archive} ${folder}
    COMMAND ${CMAKE_COMMAND} -E touch ${folder}.stamp)
  add_custom_target(${NAME}_seeds DEPENDS ${folder}.stamp)
endfunction()

function(roci_fuzzer NAME)
  cmake_parse_arguments(ARG "" "" "USES" ${ARGN})
  add_executable(${NAME}_fuzz ${CMAKE_CURRENT_SOURCE_DIR}/${NAME}_fuzz.cpp)
  target_link_libraries(${NAME}_fuzz PRIVATE ${ARG_USES} roci_options)
  target_include_directories(${NAME}_fuzz PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  roci_unpack_seeds(${NAME})
  add_dependencies(${NAME}_fuzz ${NAME}_seeds)
  if(ROCI_FUZZ)
    target_link_options(${NAME}_fuzz PRIVATE -fsanitize=fuzzer)
    return()
  endif()
  roci_test_code(${NAME}_fuzz)
  target_sources(${NAME}_fuzz PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz/replay_main.cpp)
  add_dependencies(fuzz_tests ${NAME}_fuzz)
  file(GLOB named CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${NAME}/*)
  set(mutations)
  if(ROCI_SANITIZE MATCHES address)
    set(mutations --mutations 2)
  endif()
  add_test(NAME fuzz-${NAME} COMMAND ${NAME}_fuzz ${mutations} ${CMAKE_BINARY_DIR}/seeds/${NAME} ${named})
  set_tests_properties(fuzz-${NAME} PROPERTIES LABELS "unit;protocol;ci")
endfunction()

# A target NAME that builds what the target `all` builds, without the dependencies of the targets EXCEPT….
function(roci_target_without NAME)
  set(except)
  foreach(target ${ARGN})
    if(TARGET ${target})
      get_target_property(dependencies ${target} MANUALLY_ADDED_DEPENDENCIES)
      list(APPEND except ${dependencies})
    endif()
  endforeach()
  add_custom_target(${NAME})
  set(folders ${CMAKE_SOURCE_DIR})
  while(folders)
    list(POP_FRONT folders folder)
    get_directory_property(below DIRECTORY ${folder} SUBDIRECTORIES)
    list(APPEND folders ${below})
    get_directory_property(targets DIRECTORY ${folder} BUILDSYSTEM_TARGETS)
    foreach(target ${targets})
      get_target_property(apart ${target} EXCLUDE_FROM_ALL)
      if(NOT apart AND NOT target STREQUAL NAME AND NOT target IN_LIST except)
        add_dependencies(${NAME} ${target})
      endif()
    endforeach()
  endwhile()
endfunction()
