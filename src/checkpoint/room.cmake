# godwit/version.h, which CMake writes: a packed copy names the version that made it.
target_include_directories(godwit_checkpoint PUBLIC ${PROJECT_BINARY_DIR}/include)
