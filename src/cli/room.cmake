# The program itself. libedit does not leave the line editor of `godwit chat`.
find_path(LIBEDIT_INCLUDE_DIR histedit.h REQUIRED)
find_library(LIBEDIT_LIBRARY edit REQUIRED)
target_include_directories(godwit_cli SYSTEM PRIVATE ${LIBEDIT_INCLUDE_DIR})
target_link_libraries(godwit_cli PRIVATE ${LIBEDIT_LIBRARY})
target_compile_definitions(godwit_cli PRIVATE GODWIT_VERSION="${PROJECT_VERSION}")

add_executable(godwit_cli_main ${dir}/main.cc)
target_link_libraries(godwit_cli_main PRIVATE godwit_cli)
set_target_properties(godwit_cli_main PROPERTIES
  OUTPUT_NAME godwit
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
