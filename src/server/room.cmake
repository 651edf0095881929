# The web page is embedded in the program.
file(GLOB page CONFIGURE_DEPENDS ${dir}/page/*.html ${dir}/page/*.css ${dir}/page/*.js)
list(JOIN page "," files)
set(embedded ${PROJECT_BINARY_DIR}/page_files.cc)
add_custom_command(
  OUTPUT ${embedded}
  COMMAND ${CMAKE_COMMAND} -DOUT=${embedded} -DFILES=${files}
          -P ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
  DEPENDS ${page} ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
  VERBATIM)
target_sources(godwit_server PRIVATE ${embedded})
