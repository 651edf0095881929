// The memory that this process holds. Only *_test.cc files include it.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace godwit {

// Whether a sanitizer runs, whose own records take more and more memory.
#ifdef GODWIT_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

inline int64_t ResidentBytes() {
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Forgets the earlier peak.
inline void ResetPeakResidentBytes() { std::ofstream("/proc/self/clear_refs") << 5; }

// The value of a line in /proc/self/status, which counts in KiB.
inline int64_t StatusBytes(const char* name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == name && status >> kib) return kib << 10;
  }
  return 0;
}

// The peak since the process began, or since ResetPeakResidentBytes.
inline int64_t PeakResidentBytes() { return StatusBytes("VmHWM:"); }

// The resident bytes that no file backs.
inline int64_t AnonymousBytes() { return StatusBytes("RssAnon:"); }

}  // namespace godwit
