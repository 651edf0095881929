// A hint to the core that its thread waits in a loop.
#pragma once

namespace godwit {

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace godwit
