# The program itself. libedit does not leave the line editor of `godwit chat`.
find_path(LIBEDIT_INCLUDE_DIR histedit.h REQUIRED)
find_library(LIBEDIT_LIBRARY edit REQUIRED)
target_include_directories(godwit_cli SYSTEM PRIVATE ${LIBEDIT_INCLUDE_DIR})
target_link_libraries(godwit_cli PRIVATE ${LIBEDIT_LIBRARY})

add_executable(godwit_cli_main ${dir}/main.cc)
target_link_libraries(godwit_cli_main PRIVATE godwit_cli)
set_target_properties(godwit_cli_main PROPERTIES
  OUTPUT_NAME godwit
  RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})

# Once installed, it starts the godwit-text of its own installation. This source takes the place of
# the one in godwit_text_program, which knows the build folder.
include(GNUInstallDirs)
file(RELATIVE_PATH GODWIT_TEXT_PROGRAM ${CMAKE_INSTALL_FULL_BINDIR}
     ${CMAKE_INSTALL_FULL_LIBEXECDIR}/godwit-text)
configure_file(${PROJECT_SOURCE_DIR}/cmake/text_program.cc.in
               ${PROJECT_BINARY_DIR}/installed_text_program.cc @ONLY)
target_sources(godwit_cli_main PRIVATE ${PROJECT_BINARY_DIR}/installed_text_program.cc)
if(GODWIT_INSTALL)
  install(TARGETS godwit_cli_main COMPONENT godwit_cli)
endif()
