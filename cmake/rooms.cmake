# godwit_room(<name> LINK <targets>): one static library `godwit_<name>` from src/<name>, and one
# test program `<name>_test` from the *_test.cc files that stand beside the sources.
# A folder may add what is special about it in src/<name>/room.cmake.
find_package(GTest REQUIRED)
include(GoogleTest)

# What every test includes, compiled once, and how tests are compiled: they need no speed of their own.
# Together that halves the time that they take to build.
add_library(godwit_test_headers OBJECT ${PROJECT_SOURCE_DIR}/tests/test_headers.cc)
target_precompile_headers(godwit_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>
                          <fmt/format.h> <algorithm> <filesystem> <fstream> <functional> <memory>
                          <span> <string> <vector>)
target_link_libraries(godwit_test_headers PUBLIC godwit_base GTest::gmock)
target_include_directories(godwit_test_headers PUBLIC ${PROJECT_SOURCE_DIR})
# GCC 12 sees both warnings where there is no reason, inside std::string and std::map.
target_compile_options(godwit_test_headers PUBLIC $<$<CONFIG:Release>:-O1>
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-maybe-uninitialized>)
target_compile_definitions(godwit_test_headers
                           PUBLIC GODWIT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

# godwit_test(<name> SOURCES <files> LINK <targets>): a test program, whose tests carry its name as label.
function(godwit_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} godwit_test_headers GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM godwit_test_headers)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 120 PROPERTIES LABELS ${name})
endfunction()

function(godwit_room name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  set(dir ${PROJECT_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  if(sources)
    add_library(godwit_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(godwit_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(godwit_${name} ${scope} ${PROJECT_SOURCE_DIR}/src
                             ${PROJECT_SOURCE_DIR}/include)
  foreach(link ${ARG_LINK})
    if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/src/${link})
      set(link godwit_${link})
    endif()
    target_link_libraries(godwit_${name} ${scope} ${link})
  endforeach()
  if(EXISTS ${dir}/room.cmake)
    include(${dir}/room.cmake)
  endif()
  if(tests)
    godwit_test(${name}_test SOURCES ${tests} LINK godwit_${name})
  endif()
endfunction()
