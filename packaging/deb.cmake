# Debian's package, by `cpack -G DEB`: the programs without the C++ library. packaging/build makes it.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME godwit)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL godwit_cli godwit_text)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(GODWIT_MAINTAINER "" CACHE STRING "The maintainer of the package: NAME <ADDRESS>")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${GODWIT_MAINTAINER}")
# The oldest glibc that packaging/build links for.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.28)")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libcurl4 | libcurl4t64, ca-certificates")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "language models over long texts, on ordinary processors")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"godwit continues texts, chats, and serves OpenAI's API with language models.
It reads GGUF files and folders as Hugging Face stores them, needs no GPU, and
works on very long texts with a fixed budget of memory. It never truncates a
text, and computes the same bits for the same input.")
# The changelog has the name and form that Debian expects, from CHANGELOG.md (packaging/build).
set(GODWIT_DEBIAN_CHANGELOG "" CACHE FILEPATH "The compressed changelog of the package")
if(GODWIT_DEBIAN_CHANGELOG)
  install(FILES ${GODWIT_DEBIAN_CHANGELOG} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/godwit
          COMPONENT godwit_cli)
  install(FILES ${CMAKE_CURRENT_LIST_DIR}/lintian-overrides
          DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME godwit COMPONENT godwit_cli)
endif()
include(CPack)
