# Only the line editor of `godwit chat` uses libedit.
find_path(LIBEDIT_INCLUDE_DIR histedit.h REQUIRED)
find_library(LIBEDIT_LIBRARY edit REQUIRED)
target_include_directories(godwit_console SYSTEM PRIVATE ${LIBEDIT_INCLUDE_DIR})
target_link_libraries(godwit_console PRIVATE ${LIBEDIT_LIBRARY})

# godwit/version.h, which CMake writes.
target_include_directories(godwit_console PUBLIC ${PROJECT_BINARY_DIR}/include)
