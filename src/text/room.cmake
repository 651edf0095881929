# The Rust crate in worker/, built by cargo: a program that godwit_text starts. godwit_text looks
# for it beside the running program, where `./godwit` has it, and then where godwit_text_program
# says.
find_program(GODWIT_CARGO cargo REQUIRED)
# Several build folders may share one: the crate is the same under every preset.
set(GODWIT_CARGO_DIR ${PROJECT_BINARY_DIR}/cargo CACHE PATH "Where cargo builds the Rust crate")
set(crate_dir ${CMAKE_CURRENT_LIST_DIR}/worker)
set(cargo_program ${GODWIT_CARGO_DIR}/release/godwit-text)
set(cargo ${GODWIT_CARGO})
set(cargo_options --release --locked --quiet)
# A toolchain file may name another target, for which its compiler links.
if(CMAKE_CROSSCOMPILING AND GODWIT_CARGO_TARGET)
  set(cargo_program ${GODWIT_CARGO_DIR}/${GODWIT_CARGO_TARGET}/release/godwit-text)
  list(APPEND cargo_options --target ${GODWIT_CARGO_TARGET})
  string(TOUPPER CARGO_TARGET_${GODWIT_CARGO_TARGET}_LINKER linker)
  string(REPLACE "-" "_" linker ${linker})
  set(cargo ${CMAKE_COMMAND} -E env ${linker}=${CMAKE_C_COMPILER} ${GODWIT_CARGO})
endif()
set(text_program ${PROJECT_BINARY_DIR}/godwit-text)

execute_process(COMMAND ${GODWIT_CARGO} --version OUTPUT_VARIABLE cargo_version)
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" cargo_version "${cargo_version}")
if(cargo_version VERSION_LESS 1.85)
  message(FATAL_ERROR "cargo ${cargo_version} is too old, 1.85 is needed: install Debian's cargo-web")
endif()

file(GLOB crate_sources CONFIGURE_DEPENDS ${crate_dir}/src/*.rs)
add_custom_command(
  OUTPUT ${text_program}
  COMMAND ${cargo} build ${cargo_options}
          --manifest-path ${crate_dir}/Cargo.toml --target-dir ${GODWIT_CARGO_DIR}
  # The file is renamed, not overwritten: the old one may be running.
  COMMAND ${CMAKE_COMMAND} -E copy ${cargo_program} ${text_program}.new
  COMMAND ${CMAKE_COMMAND} -E rename ${text_program}.new ${text_program}
  DEPENDS ${crate_sources} ${crate_dir}/Cargo.toml ${crate_dir}/Cargo.lock
  COMMENT "Building the Rust crate of src/text" VERBATIM)
add_custom_target(godwit_text_cargo DEPENDS ${text_program})

set(GODWIT_TEXT_PROGRAM ${text_program})
configure_file(${PROJECT_SOURCE_DIR}/cmake/text_program.cc.in ${PROJECT_BINARY_DIR}/text_program.cc
               @ONLY)
add_library(godwit_text_program STATIC ${PROJECT_BINARY_DIR}/text_program.cc)
target_link_libraries(godwit_text PUBLIC godwit_text_program)
# Only linking waits for the crate: any program that starts it links this library.
set_property(TARGET godwit_text_program APPEND PROPERTY INTERFACE_LINK_DEPENDS ${text_program})
