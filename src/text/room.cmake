# The Rust crate in ffi/, built by cargo: a program that godwit_text starts.
find_program(GODWIT_CARGO cargo REQUIRED)
# Several build folders may share one: the crate is the same under every preset.
set(GODWIT_CARGO_DIR ${CMAKE_BINARY_DIR}/cargo CACHE PATH "Where cargo builds the Rust crate")
set(ffi_dir ${CMAKE_CURRENT_LIST_DIR}/ffi)
set(text_program ${GODWIT_CARGO_DIR}/release/godwit-text)

execute_process(COMMAND ${GODWIT_CARGO} --version OUTPUT_VARIABLE cargo_version)
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" cargo_version "${cargo_version}")
if(cargo_version VERSION_LESS 1.85)
  message(FATAL_ERROR "cargo ${cargo_version} is too old, 1.85 is needed: install Debian's cargo-web")
endif()

file(GLOB ffi_sources CONFIGURE_DEPENDS ${ffi_dir}/src/*.rs)
add_custom_command(
  OUTPUT ${text_program}
  COMMAND ${GODWIT_CARGO} build --release --locked --quiet
          --manifest-path ${ffi_dir}/Cargo.toml --target-dir ${GODWIT_CARGO_DIR}
  # cargo leaves an up-to-date program untouched, which ninja would take for never built.
  COMMAND ${CMAKE_COMMAND} -E touch ${text_program}
  DEPENDS ${ffi_sources} ${ffi_dir}/Cargo.toml ${ffi_dir}/Cargo.lock
  COMMENT "Building the Rust crate of src/text"
  USES_TERMINAL VERBATIM)
add_custom_target(godwit_text_cargo DEPENDS ${text_program})

add_dependencies(godwit_text godwit_text_cargo)
target_compile_definitions(godwit_text PRIVATE GODWIT_TEXT_PROGRAM="${text_program}")
