# How tests are built, and who runs them.
enable_testing()
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
target_compile_options(godwit_test_headers PUBLIC $<$<CONFIG:Release>:-O1> $<$<CONFIG:Sanitized>:-O0>
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-maybe-uninitialized>)
target_compile_definitions(godwit_test_headers
                           PUBLIC GODWIT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

# These compute for minutes.
if(GODWIT_SANITIZE)
  file(GLOB_RECURSE computing CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/attention/*_test.cc
       ${PROJECT_SOURCE_DIR}/src/kernels/*_test.cc)
  list(APPEND computing ${PROJECT_SOURCE_DIR}/src/ops/attention_test.cc
       ${PROJECT_SOURCE_DIR}/src/kv/kv_accuracy_test.cc)
  set_source_files_properties(${computing} PROPERTIES COMPILE_OPTIONS "${GODWIT_ORACLE_OPTIONS}"
                              SKIP_PRECOMPILE_HEADERS ON)
endif()

# godwit_test(<name> SOURCES <files> LINK <targets>): a test program, whose tests carry its name as label.
function(godwit_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} godwit_test_headers GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM godwit_test_headers)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 120 PROPERTIES LABELS ${name})
endfunction()
