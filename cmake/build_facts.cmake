# Writes the source with the facts of `godwit --version` about the build: at each build, because only
# git knows the commit. A source that would stay the same is left alone. There is no time in it, so that
# the same sources make the same program.
#
#   cmake -DSOURCE=<root> -DCOMMIT=<commit, or empty> -DCOMPILER=<name> -DBUILD_TYPE=<name>
#         -DTEMPLATE=<file> -DOUT=<file> -P build_facts.cmake
set(GODWIT_COMMIT "${COMMIT}")
find_program(git git)
if(NOT GODWIT_COMMIT AND git AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --short=12 HEAD
                  OUTPUT_VARIABLE GODWIT_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${git} -C ${SOURCE} --no-optional-locks status --porcelain
                          --untracked-files=no
                  OUTPUT_VARIABLE changes ERROR_QUIET)
  if(GODWIT_COMMIT AND changes)
    string(APPEND GODWIT_COMMIT " with changes")
  endif()
endif()
if(NOT GODWIT_COMMIT)
  set(GODWIT_COMMIT unknown)
endif()
configure_file(${TEMPLATE} ${OUT} @ONLY)
