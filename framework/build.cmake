# How every target of the project is built: its options, and the functions that the folders use to declare themselves.
include(GNUInstallDirs)
list(APPEND CMAKE_MODULE_PATH ${PROJECT_SOURCE_DIR}/framework/cmake)

option(MILLRACE_WERROR "Treat warnings as errors" OFF)
option(MILLRACE_WAYS "Note which functions run, for tests/ways alone" OFF)
set(MILLRACE_COLD_FLAGS "" CACHE STRING "Compiler options for what runs seldom: commands, pages, checks")
set(MILLRACE_SANITIZE "" CACHE STRING "Sanitizers: empty, 'address' (with undefined) or 'thread'")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
find_program(MILLRACE_CCACHE ccache)
if(MILLRACE_CCACHE)
  # Without this it keeps nothing that is compiled with a header of the tests' that was compiled before.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${MILLRACE_CCACHE})
endif()
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=mold MILLRACE_MOLD)  # where it is there, it links in a third of the time

find_package(Threads REQUIRED)

# What each target of ours links and nobody else sees: the language, the warnings, the sanitizers, the linker.
add_library(millrace_options INTERFACE)
set_target_properties(millrace_options PROPERTIES INTERFACE_POSITION_INDEPENDENT_CODE ON)
target_compile_features(millrace_options INTERFACE cxx_std_20)
target_compile_options(millrace_options INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers $<$<BOOL:${MILLRACE_WERROR}>:-Werror>)
target_link_options(millrace_options INTERFACE $<$<BOOL:${MILLRACE_MOLD}>:-fuse-ld=mold>)
# Files that are compiled together look to the compiler like a header with local types in it.
if(CMAKE_UNITY_BUILD)
  target_compile_options(millrace_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
# GCC 12 takes `"text" + std::string` at -O3 for a copy over itself (its bug 105651). Where warnings are errors
# nothing is built so, and it warns of true ones.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(millrace_options INTERFACE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-Wno-restrict>)
endif()
# Assertions guard against programmers' errors; they stay on in release builds.
string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
if(CMAKE_CXX_FLAGS_${type} MATCHES NDEBUG)
  target_compile_options(millrace_options INTERFACE -UNDEBUG)
endif()
if(MILLRACE_SANITIZE STREQUAL "address")
  target_compile_options(millrace_options INTERFACE
    -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(millrace_options INTERFACE -fsanitize=address,undefined)
elseif(MILLRACE_SANITIZE STREQUAL "thread")
  target_compile_options(millrace_options INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  # It does not know fences by themselves; what Asio puts them around runs on one thread of ours.
  target_compile_definitions(millrace_options INTERFACE BOOST_ASIO_DISABLE_FENCED_BLOCK)
  target_link_options(millrace_options INTERFACE -fsanitize=thread)
elseif(MILLRACE_SANITIZE)
  message(FATAL_ERROR "MILLRACE_SANITIZE must be empty, 'address' or 'thread', not '${MILLRACE_SANITIZE}'")
endif()
if(MILLRACE_WAYS)
  target_compile_options(millrace_options INTERFACE
    -finstrument-functions -finstrument-functions-exclude-file-list=/usr/include/,/usr/lib/)
endif()

# Folders whose code runs seldom name this one in MILLRACE_FOLDER_OPTIONS: they may be built in less time.
add_library(millrace_cold_options INTERFACE)
target_compile_options(millrace_cold_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${MILLRACE_COLD_FLAGS}>)

# The two functions that folders declare themselves by. What MILLRACE_FOLDER_OPTIONS names is linked after millrace_options,
# so that a folder and those below it may be built otherwise.
#
# One library per folder: millrace_library(store_mysql SOURCES a.cc LINKS millrace_store PRIVATE_LINKS SQLite::SQLite3)
# makes the target millrace_store_mysql. The link graph is the layer rule.
function(millrace_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  set(target millrace_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PUBLIC ${ARG_LINKS} PRIVATE millrace_options ${MILLRACE_FOLDER_OPTIONS} ${ARG_PRIVATE_LINKS})
endfunction()

# A program of a folder: millrace_program(drain_bench SOURCES drain_bench.cc LINKS millrace_bench_drain).
function(millrace_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE millrace_options ${MILLRACE_FOLDER_OPTIONS} ${ARG_LINKS})
endfunction()
