# Each instruction set has its own files, and only these are compiled for it: the rest of the
# library runs everywhere. dispatch.cc decides at run time which set is used.
#
# godwit_isa(PROCESSORS NAME FEATURE OPTION...): PROCESSORS matches those that may have the set.
# FEATURE is its last one, as Linux names it in /proc/cpuinfo.
function(godwit_isa processors name feature)
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*_${name}.cc ${dir}/*/*_${name}.cc)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "${processors}")
    set_source_files_properties(${sources} PROPERTIES HEADER_FILE_ONLY ON)
    return()
  endif()
  # Sanitizers find nothing in code that this machine cannot run, and take six times as long to
  # compile.
  if(machine_features AND NOT "${machine_features} " MATCHES " ${feature} ")
    list(APPEND ARGN -fno-sanitize=all)
  endif()
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "${ARGN}")
endfunction()

# The machine's features, for a build with sanitizers. Empty if they are unknown.
set(machine_features "")
if(GODWIT_SANITIZE AND EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo machine_features REGEX "^(flags|Features)" LIMIT_COUNT 1)
endif()
set(x86 "x86_64|AMD64")
set(avx2 -mavx2 -mfma -mf16c)
set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 warns about the undefined operand in its own AVX-512 header (_mm512_undefined_ps).
  list(APPEND avx512 -Wno-uninitialized -Wno-maybe-uninitialized)
endif()
godwit_isa(${x86} avx2 avx2 ${avx2})
godwit_isa(${x86} avx512 avx512vl ${avx512})
godwit_isa(${x86} avx512_vnni avx512_vnni ${avx512} -mavx512vnni)
godwit_isa(${x86} avx512_vbmi avx512vbmi ${avx512} -mavx512vnni -mavx512vbmi)
godwit_isa(${x86} avx512_amx amx_tile ${avx512} -mavx512bf16 -mamx-tile -mamx-int8 -mamx-bf16)
godwit_isa(${x86} avx512_bf16 avx512_bf16 ${avx512} -mavx512bf16 -mavx512vnni)

set(arm "aarch64|arm64|ARM64")
set(neon)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 would load operands of a register tile early, and give sums that go round a loop two
  # registers each. It would then keep some of them in memory.
  list(APPEND neon -fno-schedule-insns -fno-tree-coalesce-vars)
endif()
godwit_isa(${arm} neon asimd ${neon} -march=armv8-a)
godwit_isa(${arm} neon_dot asimddp ${neon} -march=armv8.2-a+dotprod)
godwit_isa(${arm} neon_i8mm i8mm ${neon} -march=armv8.2-a+dotprod+i8mm+bf16)

# Prefetching computes addresses behind an array on purpose, and tiles without inputs some from
# null.
if(GODWIT_SANITIZE MATCHES undefined)
  target_compile_options(godwit_kernels PRIVATE -fno-sanitize=pointer-overflow)
  # They take a quarter of the time to compile kernels, and ASan finds the same accesses.
  target_compile_options(godwit_kernels PRIVATE -fno-sanitize=object-size,null)
endif()
if(GODWIT_SANITIZE)
  file(GLOB scalar CONFIGURE_DEPENDS ${dir}/*scalar*.cc ${dir}/group_packing.cc)
  set_source_files_properties(${scalar} PROPERTIES COMPILE_OPTIONS "${GODWIT_ORACLE_OPTIONS}")
endif()
