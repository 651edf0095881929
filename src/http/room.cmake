# libcurl's headers alone: the library is loaded when it is needed (curl_library.h). Since 7.85 a
# string names protocols.
find_package(CURL 7.85 REQUIRED)
target_include_directories(godwit_http SYSTEM PRIVATE
                           $<TARGET_PROPERTY:CURL::libcurl,INTERFACE_INCLUDE_DIRECTORIES>)
target_link_libraries(godwit_http PRIVATE ${CMAKE_DL_LIBS})
