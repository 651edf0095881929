# godwit/version.h, which CMake writes.
target_include_directories(godwit_engine PUBLIC ${PROJECT_BINARY_DIR}/include)
