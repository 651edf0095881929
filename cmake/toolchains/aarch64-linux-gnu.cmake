# Builds for 64-bit Arm under Linux with Debian's cross compiler and its libraries of the foreign
# architecture (./setup --arm). Tests run under QEMU's emulation of a user's program.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# pkg-config, which some of CMake's modules ask, would name this machine's own libraries and headers.
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)

# The emulated processor, which has every instruction set. Another one: cmake --preset arm64
# -DGODWIT_ARM_CPU=cortex-a72. Pointers are signed in a way that is emulated soon.
set(GODWIT_ARM_CPU "max,pauth-impdef=on" CACHE STRING "Processor that qemu-aarch64 emulates")
find_program(GODWIT_QEMU qemu-aarch64)
if(GODWIT_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${GODWIT_QEMU} -cpu ${GODWIT_ARM_CPU})
endif()

# cargo's name of the target, and what links for it.
set(GODWIT_CARGO_TARGET aarch64-unknown-linux-gnu)
