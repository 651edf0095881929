# godwit::godwit: the rooms up to the engine as one static library, with the headers of include/godwit
# and none of src/. docs/cpp.md tells how to use it.
get_property(rooms GLOBAL PROPERTY GODWIT_ROOMS)
add_library(godwit_library STATIC)
add_library(godwit::godwit ALIAS godwit_library)
foreach(room ${rooms})
  target_sources(godwit_library PRIVATE $<TARGET_OBJECTS:${room}>)
endforeach()
set_target_properties(godwit_library PROPERTIES OUTPUT_NAME godwit EXPORT_NAME godwit
                      LINKER_LANGUAGE CXX)
add_dependencies(godwit_library godwit_text_cargo)

file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/godwit/*.h)
target_sources(godwit_library PUBLIC FILE_SET HEADERS
               BASE_DIRS ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include
               FILES ${headers} ${PROJECT_BINARY_DIR}/include/godwit/version.h)
target_compile_features(godwit_library PUBLIC cxx_std_20)
# The property tells whether MPI works. The target does not: FindMPI may make it before it finds
# that nothing works.
get_property(GODWIT_HAS_MPI GLOBAL PROPERTY GODWIT_HAS_MPI)
if(NOT GODWIT_HAS_MPI)
  set(GODWIT_HAS_MPI 0)
else()
  target_link_libraries(godwit_library PRIVATE MPI::MPI_CXX)
endif()
target_link_libraries(godwit_library PRIVATE Threads::Threads fmt::fmt ${CMAKE_DL_LIBS}
                      PUBLIC $<BUILD_INTERFACE:godwit_text_program>
                             $<INSTALL_INTERFACE:godwit::text_program>)

if(GODWIT_INSTALL)
  include(GNUInstallDirs)
  include(CMakePackageConfigHelpers)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/godwit)
  install(TARGETS godwit_library EXPORT godwit COMPONENT godwit FILE_SET HEADERS COMPONENT godwit)
  install(EXPORT godwit NAMESPACE godwit:: DESTINATION ${package_dir} FILE godwit-targets.cmake
          COMPONENT godwit)
  install(PROGRAMS ${PROJECT_BINARY_DIR}/godwit-text DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}
          COMPONENT godwit_text)
  configure_package_config_file(
    ${PROJECT_SOURCE_DIR}/cmake/godwit-config.cmake.in ${PROJECT_BINARY_DIR}/godwit-config.cmake
    INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_LIBEXECDIR)
  # Until 1.0 a minor version may change the interface.
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/godwit-config-version.cmake
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/godwit-config.cmake
                ${PROJECT_BINARY_DIR}/godwit-config-version.cmake
                ${PROJECT_SOURCE_DIR}/cmake/text_program.cc.in
          DESTINATION ${package_dir} COMPONENT godwit)
endif()
