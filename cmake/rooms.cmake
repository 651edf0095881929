# godwit_room(<name> [THREADS] LINK <targets>): one static library `godwit_<name>` from src/<name>,
# and one test program `<name>_test` from the *_test.cc files beside the sources (testing.cmake).
# THREADS: the room shares data among threads, and TSan runs its tests. A folder may add its own
# settings in src/<name>/room.cmake.

# Unity builds: neighbouring sources of a room are compiled as one, because most of their time goes
# to the headers that they share. Names in anonymous namespaces are unique in a room for that
# reason. A batch has a dozen, so that a changed source compiles in seconds. Files with options of
# their own, the kernels of an instruction set, stay alone. `./check --full` compiles every source
# by itself and so finds a forgotten include.
option(GODWIT_UNITY "Compile sources of a room together" ON)
set(GODWIT_UNITY_BATCH 12)

# Rooms of text, which compute few numbers: -O1 compiles in two thirds of the time.
set(GODWIT_WORDY_ROOMS text checkpoint engine chat capi server console http journal hub cli eval lab)

# Options of oracles, which take minutes unless they are optimised. Under the sanitizers, the
# arithmetic of their indices is trusted.
set(GODWIT_ORACLE_OPTIONS -O1 -fno-sanitize=signed-integer-overflow,integer-divide-by-zero)

if(GODWIT_BUILD_TESTS)
  include(cmake/testing.cmake)
endif()

# Under the sanitizers, rooms that compute little are not optimised, and rooms that compute most are
# as ever. Headers that most sources include are compiled once for each room. A forgotten include is
# found without sanitizers.
set(GODWIT_UPPER_ROOMS console http journal hub checkpoint engine chat capi server cli eval bench lab)
set(GODWIT_COMPUTING_ROOMS ops kv)
set(GODWIT_COMMON_HEADERS <algorithm> <array> <cmath> <filesystem> <fstream> <functional> <map>
    <memory> <optional> <span> <string> <vector> <fmt/format.h> <nlohmann/json.hpp>)
function(godwit_compile_sooner name)
  if(name IN_LIST GODWIT_UPPER_ROOMS)
    target_compile_options(godwit_${name} PRIVATE -O0)
  elseif(name IN_LIST GODWIT_COMPUTING_ROOMS)
    target_compile_options(godwit_${name} PRIVATE -O2)
  endif()
  # kernels is compiled for many instruction sets.
  if(NOT name STREQUAL kernels)
    target_precompile_headers(godwit_${name} PRIVATE ${GODWIT_COMMON_HEADERS})
  endif()
endfunction()

function(godwit_room name)
  cmake_parse_arguments(ARG "THREADS" "" "LINK" ${ARGN})
  set(dir ${PROJECT_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  if(sources)
    add_library(godwit_${name} STATIC ${sources})
    set(scope PUBLIC)
    set_property(GLOBAL APPEND PROPERTY GODWIT_ROOMS godwit_${name})
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
  # The shared library (capi/room.cmake) takes the rooms' objects. Hidden names are as fast as those
  # of a program. Sanitized builds have no such library.
  if(sources AND NOT GODWIT_SANITIZE)
    set_target_properties(godwit_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON
                          CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  endif()
  if(sources AND GODWIT_UNITY)
    set_target_properties(godwit_${name} PROPERTIES UNITY_BUILD ON
                          UNITY_BUILD_BATCH_SIZE ${GODWIT_UNITY_BATCH})
    # GCC takes each source of a batch for a header, whose classes may not have hidden members.
    target_compile_options(godwit_${name} PRIVATE
                           $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
  if(sources AND GODWIT_SANITIZE)
    godwit_compile_sooner(${name})
  elseif(name IN_LIST GODWIT_WORDY_ROOMS)
    target_compile_options(godwit_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  if(EXISTS ${dir}/room.cmake)
    include(${dir}/room.cmake)
  endif()
  if(tests AND GODWIT_BUILD_TESTS)
    set(threads)
    if(ARG_THREADS)
      set(threads THREADS)
    endif()
    list(LENGTH tests files)
    math(EXPR shards "${files} / 8 + 1")
    godwit_test(${name}_test SOURCES ${tests} LINK godwit_${name} SHARDS ${shards} ${threads})
  endif()
endfunction()
