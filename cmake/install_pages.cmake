# Files that `cmake --install` puts beside the programs: a small model, the manual page, completions,
# licences; and the package that CPack makes of it (packaging/build). The programs write their pages themselves, so a
# build for another machine has none.
if(NOT GODWIT_INSTALL OR NOT GODWIT_BUILD_CLI OR GODWIT_SANITIZE)
  return()
endif()
include(GNUInstallDirs)
set(pages ${PROJECT_BINARY_DIR}/pages)
set(docdir ${CMAKE_INSTALL_DATADIR}/doc/godwit)
install(FILES ${PROJECT_SOURCE_DIR}/packaging/copyright ${PROJECT_SOURCE_DIR}/CHANGELOG.md
        DESTINATION ${docdir} COMPONENT godwit_cli)
install(FILES ${PROJECT_SOURCE_DIR}/packaging/godwit-server.service
        DESTINATION ${docdir}/examples COMPONENT godwit_cli)
# The small model that answers without -m.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models/stories-3m
        DESTINATION ${CMAKE_INSTALL_DATADIR}/godwit/models COMPONENT godwit_cli
        PATTERN training.jsonl EXCLUDE)
# Debian has the text of this licence in one place for all packages.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${docdir} COMPONENT godwit_license)

find_program(GODWIT_GZIP gzip)
if(NOT CMAKE_CROSSCOMPILING AND GODWIT_GZIP)
  set(godwit $<TARGET_FILE:godwit_cli_main>)
  add_custom_command(
    OUTPUT ${pages}/godwit.1.gz ${pages}/godwit ${pages}/_godwit ${pages}/godwit.fish
    COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}
    COMMAND ${godwit} man > ${pages}/godwit.1
    COMMAND ${GODWIT_GZIP} -9nf ${pages}/godwit.1
    COMMAND ${godwit} completions bash > ${pages}/godwit
    COMMAND ${godwit} completions zsh > ${pages}/_godwit
    COMMAND ${godwit} completions fish > ${pages}/godwit.fish
    DEPENDS godwit_cli_main godwit_lab_main
    COMMENT "Writing the manual page and completions" VERBATIM)
  add_custom_target(godwit_pages ALL DEPENDS ${pages}/godwit.1.gz)
  foreach(page "godwit.1.gz man/man1" "godwit bash-completion/completions"
               "_godwit zsh/site-functions" "godwit.fish fish/vendor_completions.d")
    string(REPLACE " " ";" page ${page})
    list(GET page 0 file)
    list(GET page 1 folder)
    install(FILES ${pages}/${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder}
            COMPONENT godwit_cli)
  endforeach()
endif()

if(PROJECT_IS_TOP_LEVEL)
  include(packaging/deb.cmake)
endif()
