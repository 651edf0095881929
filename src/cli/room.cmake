# The program godwit, and the places where an installed one finds godwit-lab and godwit-text.
include(GNUInstallDirs)
file(RELATIVE_PATH libexec ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBEXECDIR})
target_compile_definitions(godwit_cli PRIVATE GODWIT_INSTALLED_LAB="${libexec}/godwit-lab")

# godwit_program(<target> <name> <godwit-text, as an installed program sees it>)
function(godwit_program target name GODWIT_TEXT_PROGRAM)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}
                        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  # This source replaces the one in godwit_text_program, which knows the build folder.
  set(source ${PROJECT_BINARY_DIR}/installed_text_program_of_${name}.cc)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/text_program.cc.in ${source} @ONLY)
  target_sources(${target} PRIVATE ${source})
endfunction()

add_executable(godwit_cli_main ${dir}/main.cc)
target_link_libraries(godwit_cli_main PRIVATE godwit_cli)
godwit_program(godwit_cli_main godwit ${libexec}/godwit-text)
if(GODWIT_INSTALL)
  install(TARGETS godwit_cli_main COMPONENT godwit_cli)
endif()
