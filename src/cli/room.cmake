# The program godwit, and the places where an installed one finds godwit-lab and godwit-text.
include(GNUInstallDirs)
file(RELATIVE_PATH libexec ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBEXECDIR})
file(RELATIVE_PATH data ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_DATADIR}/godwit)
target_compile_definitions(godwit_cli PRIVATE GODWIT_INSTALLED_LAB="${libexec}/godwit-lab"
                                              GODWIT_INSTALLED_DATA="${data}")

# The facts of `godwit --version` lie in a library of their own: a commit compiles one file and links
# the programs again.
set(GODWIT_COMMIT "" CACHE STRING "The commit of these sources; empty: git knows it")
set(facts ${PROJECT_BINARY_DIR}/build_facts.cc)
set(write_facts ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DCOMMIT=${GODWIT_COMMIT}
    "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
    -DBUILD_TYPE=${CMAKE_BUILD_TYPE} -DTEMPLATE=${PROJECT_SOURCE_DIR}/cmake/build_facts.cc.in
    -DOUT=${facts} -P ${PROJECT_SOURCE_DIR}/cmake/build_facts.cmake)
add_custom_target(godwit_write_build_facts COMMAND ${write_facts} BYPRODUCTS ${facts} VERBATIM)
add_library(godwit_build_facts STATIC ${facts})
add_dependencies(godwit_build_facts godwit_write_build_facts)
target_include_directories(godwit_build_facts PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(godwit_cli PRIVATE godwit_build_facts)

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
