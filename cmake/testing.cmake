# How tests are built and run.
enable_testing()
find_package(GTest REQUIRED)

# Headers that every test includes, compiled once, and options of tests: no optimisation, since most
# need no speed. Both together take a third of the time that tests took to build.
add_library(godwit_test_headers OBJECT ${PROJECT_SOURCE_DIR}/tests/test_headers.cc)
target_precompile_headers(godwit_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>
                          <fmt/format.h> <algorithm> <filesystem> <fstream> <functional> <memory>
                          <span> <string> <vector>)
target_link_libraries(godwit_test_headers PUBLIC godwit_base GTest::gmock)
target_include_directories(godwit_test_headers PUBLIC ${PROJECT_SOURCE_DIR})
# GCC 12 warns without reason inside std::string and std::map.
target_compile_options(godwit_test_headers PUBLIC -O0
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overread>)
target_compile_definitions(godwit_test_headers
                           PUBLIC GODWIT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
if(GODWIT_SANITIZE)
  target_compile_definitions(godwit_test_headers PUBLIC GODWIT_SANITIZED)
endif()

# Tests that compute the reference for kernels and policies, for minutes unless they are optimised.
set(GODWIT_COMPUTING_TESTS attention_test kernels_test kv_test ops_test)
add_library(godwit_oracle_options INTERFACE)
target_compile_options(godwit_oracle_options INTERFACE ${GODWIT_ORACLE_OPTIONS})

add_library(godwit_test_main STATIC ${PROJECT_SOURCE_DIR}/tests/test_main.cc)
target_link_libraries(godwit_test_main PUBLIC godwit_test_headers)

# godwit_test(<name> SOURCES <files> LINK <targets> [ROOM <room>] [SHARDS <n>] [THREADS]): a program
# that ctest runs, as <n> processes that share its tests. The target tests_of_<room> builds all
# programs of a room, and the label <room> runs them; <name> is <room>_test unless ROOM is given.
# THREADS: TSan runs it, by the label threads. Each process reports into the folder test_reports
# (tests/test_main.cc).
function(godwit_test name)
  cmake_parse_arguments(ARG "THREADS" "ROOM;SHARDS" "SOURCES;LINK" ${ARGN})
  if(NOT ARG_ROOM)
    string(REGEX REPLACE "_test$" "" ARG_ROOM ${name})
  endif()
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} godwit_test_main)
  set(labels ${ARG_ROOM})
  if(ARG_THREADS)
    list(APPEND labels threads)
  endif()
  foreach(label ${labels})
    if(NOT TARGET tests_of_${label})
      add_custom_target(tests_of_${label})
    endif()
    add_dependencies(tests_of_${label} ${name})
  endforeach()
  if(name IN_LIST GODWIT_COMPUTING_TESTS)
    target_link_libraries(${name} PRIVATE godwit_oracle_options)  # behind the options of all tests
  else()
    target_precompile_headers(${name} REUSE_FROM godwit_test_headers)
  endif()
  if(GODWIT_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  endif()
  set(timeout 900)
  if(CMAKE_CROSSCOMPILING)
    set(timeout 3600)  # under emulation
  endif()
  math(EXPR last "${ARG_SHARDS} - 1")
  foreach(shard RANGE ${last})
    set(test ${name})
    if(last GREATER 0)
      string(APPEND test _${shard})
    endif()
    add_test(NAME ${test} COMMAND ${name})
    set_tests_properties(${test} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout} ENVIRONMENT
      "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${shard};GODWIT_TEST_REPORT=${PROJECT_BINARY_DIR}/test_reports/${test}")
  endforeach()
endfunction()
