# millrace_add_plugin(name sources… [LINKS targets…]): a shared library that exports its plugin's entry and hides
# all else, so that two plugins in one process can't meet in a symbol. Nobody but its owner may write the file: the
# loader insists on it.
function(millrace_add_plugin name)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  add_library(${name} MODULE ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE millrace::handler ${ARG_LINKS})
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX ".so" POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${name} PRIVATE -fno-gnu-unique)
  endif()
  target_link_options(${name} PRIVATE -Wl,--exclude-libs,ALL)
  if(NOT MILLRACE_SANITIZE)
    target_link_options(${name} PRIVATE -Wl,--no-undefined)
  endif()
  add_custom_command(TARGET ${name} POST_BUILD COMMAND chmod go-w $<TARGET_FILE:${name}> VERBATIM)
endfunction()
