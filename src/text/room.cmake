# The Rust crate in ffi/, built by cargo, linked into godwit_text.
find_program(GODWIT_CARGO cargo REQUIRED)
# Several build folders may share one: the crate is the same under every preset.
set(GODWIT_CARGO_DIR ${CMAKE_BINARY_DIR}/cargo CACHE PATH "Where cargo builds the Rust crate")
set(ffi_dir ${CMAKE_CURRENT_LIST_DIR}/ffi)
set(ffi_library ${GODWIT_CARGO_DIR}/release/libgodwit_text.a)

execute_process(COMMAND ${GODWIT_CARGO} --version OUTPUT_VARIABLE cargo_version)
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" cargo_version "${cargo_version}")
if(cargo_version VERSION_LESS 1.85)
  message(FATAL_ERROR "cargo ${cargo_version} is too old, 1.85 is needed: install Debian's cargo-web")
endif()

file(GLOB ffi_sources CONFIGURE_DEPENDS ${ffi_dir}/src/*.rs)
add_custom_command(
  OUTPUT ${ffi_library}
  COMMAND ${GODWIT_CARGO} build --release --locked --quiet
          --manifest-path ${ffi_dir}/Cargo.toml --target-dir ${GODWIT_CARGO_DIR}
  # cargo leaves an up-to-date library untouched, which ninja would take for never built.
  COMMAND ${CMAKE_COMMAND} -E touch ${ffi_library}
  DEPENDS ${ffi_sources} ${ffi_dir}/Cargo.toml ${ffi_dir}/Cargo.lock
  COMMENT "Building the Rust crate of src/text"
  USES_TERMINAL VERBATIM)
add_custom_target(godwit_text_cargo DEPENDS ${ffi_library})

add_library(godwit_text_ffi STATIC IMPORTED GLOBAL)
set_target_properties(godwit_text_ffi PROPERTIES
  IMPORTED_LOCATION ${ffi_library}
  INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
add_dependencies(godwit_text_ffi godwit_text_cargo)
add_dependencies(godwit_text godwit_text_cargo)
target_link_libraries(godwit_text PRIVATE godwit_text_ffi)
