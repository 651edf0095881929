# The program godwit-lab, which godwit looks for beside itself and then in the installed place.
add_executable(godwit_lab_main ${dir}/main.cc)
target_link_libraries(godwit_lab_main PRIVATE godwit_lab)
godwit_program(godwit_lab_main godwit-lab godwit-text)
if(GODWIT_INSTALL)
  install(TARGETS godwit_lab_main COMPONENT godwit_cli DESTINATION ${CMAKE_INSTALL_LIBEXECDIR})
endif()
