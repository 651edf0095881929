# The softmax that attention is held against is most of what sanitized tests take, not optimised.
if(GODWIT_SANITIZE)
  set_source_files_properties(${dir}/attention_test.cc PROPERTIES COMPILE_OPTIONS -O1
                              SKIP_PRECOMPILE_HEADERS ON)
endif()
