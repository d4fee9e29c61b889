# roci_embed(TARGET FUNCTION FILE HEADER [NAMESPACE])   adds the bytes of a file to a target, as
#                                                       `std::string_view FUNCTION()` in NAMESPACE (default roci::lab),
#                                                       declared in HEADER
# This file is also executed as a script, by the build step that writes the .cpp file.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ "${FILE}" bytes HEX)
  string(LENGTH "${bytes}" digits)
  math(EXPR length "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  file(WRITE "${OUT}"
    "#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\nstd::string_view ${FUNCTION}() {\n"
    "  static constexpr unsigned char kBytes[] = {${bytes}};\n"
    "  return {reinterpret_cast<const char*>(kBytes), ${length}};\n}\n\n}  // namespace ${NAMESPACE}\n")
  return()
endif()

set(ROCI_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(roci_embed TARGET FUNCTION FILE HEADER)
  cmake_path(ABSOLUTE_PATH FILE BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${FUNCTION}.cpp)
  set(namespace roci::lab)
  if(ARGC GREATER 4)
    set(namespace ${ARGV4})
  endif()
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DFILE=${FILE} -DOUT=${out} -DFUNCTION=${FUNCTION} -DHEADER=${HEADER}
      -DNAMESPACE=${namespace} -P ${ROCI_EMBED_SCRIPT}
    DEPENDS ${FILE} ${ROCI_EMBED_SCRIPT} VERBATIM)
  target_sources(${TARGET} PRIVATE ${out})
  add_custom_target(embedded_${FUNCTION} DEPENDS ${out})
  add_dependencies(${TARGET} embedded_${FUNCTION})
  if(NOT TARGET generated)
    add_custom_target(generated)  # all generated sources, for clang-tidy
  endif()
  add_dependencies(generated embedded_${FUNCTION})
endfunction()
