// For tests: system calls that fail on demand. A program that links faults.cc has its own open,
// write and so on.
#pragma once

#include <cerrno>
#include <string>

namespace godwit::faults {

enum class Kind {
  kError,       // the call fails with an errno
  kShortWrite,  // a write takes a part; other calls succeed
};

// Lets n calls that may fail pass, and makes the next one fail: once, or from then on.
void FailCall(int n, Kind kind, int error, bool for_good);
// Ends all failures. Returns the name of the first call that failed; empty: none was reached.
std::string StopFailing();

}  // namespace godwit::faults
