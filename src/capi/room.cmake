# libgodwit.so: the C API (godwit/godwit.h), with all that it needs of the rooms below. It exports
# the names of symbols.txt and no others, so that C++ and other libraries inside it meet no others
# of the same name in a program.
if(GODWIT_BUILD_C AND NOT GODWIT_SANITIZE)
  include(GNUInstallDirs)
  set(symbols_file ${CMAKE_CURRENT_LIST_DIR}/symbols.txt)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${symbols_file})
  file(STRINGS ${symbols_file} symbols)
  list(JOIN symbols "; " symbols)
  # The name GODWIT_0 changes when a function changes that programs already call.
  set(version_script ${PROJECT_BINARY_DIR}/libgodwit.map)
  file(WRITE ${version_script}.new "GODWIT_0 { global: ${symbols}; local: *; };\n")
  file(COPY_FILE ${version_script}.new ${version_script} ONLY_IF_DIFFERENT)

  # This source replaces the one in godwit_text_program: the library looks beside itself.
  file(RELATIVE_PATH libexec ${CMAKE_INSTALL_FULL_LIBDIR} ${CMAKE_INSTALL_FULL_LIBEXECDIR})
  set(GODWIT_TEXT_PROGRAM ${libexec}/godwit-text)
  set(text_program ${PROJECT_BINARY_DIR}/text_program_of_library.cc)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/text_program_of_library.cc.in ${text_program} @ONLY)

  add_library(godwit_c SHARED $<TARGET_OBJECTS:godwit_capi> ${text_program})
  add_library(godwit::c ALIAS godwit_c)
  # The folder of headers for those who link it; rooms include theirs from src.
  target_include_directories(
    godwit_c INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                       $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(godwit_c PRIVATE godwit_chat)
  set_target_properties(godwit_c PROPERTIES
    OUTPUT_NAME godwit EXPORT_NAME c VERSION ${PROJECT_VERSION} SOVERSION 0
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} LINK_DEPENDS ${version_script}
    CXX_VISIBILITY_PRESET hidden)
  target_link_options(godwit_c PRIVATE -Wl,--version-script=${version_script} -Wl,--no-undefined
                      -Wl,--gc-sections)

  if(GODWIT_INSTALL)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/godwit.pc.in ${PROJECT_BINARY_DIR}/godwit.pc @ONLY)
    install(TARGETS godwit_c EXPORT godwit COMPONENT godwit)
    install(FILES ${PROJECT_BINARY_DIR}/godwit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
            COMPONENT godwit)
  endif()
  # The parts of the Python package that are compiled (pyproject.toml).
  install(FILES $<TARGET_FILE:godwit_c> DESTINATION godwit/lib RENAME libgodwit.so.0
          COMPONENT godwit_python EXCLUDE_FROM_ALL)
  install(PROGRAMS ${PROJECT_BINARY_DIR}/godwit-text DESTINATION godwit/lib
          COMPONENT godwit_python EXCLUDE_FROM_ALL)
endif()
