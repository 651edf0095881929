# 7.85: protocols are named by a string.
find_package(CURL 7.85 REQUIRED)
target_link_libraries(godwit_http PRIVATE CURL::libcurl)
