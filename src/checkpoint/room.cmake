# godwit/version.h, which CMake writes: a packed copy says who made it.
target_include_directories(godwit_checkpoint PUBLIC ${PROJECT_BINARY_DIR}/include)
