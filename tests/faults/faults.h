// For tests: a system whose calls fail when they are told to. The program that links faults.cc has
// its own open, write and so on.
#pragma once

#include <cerrno>
#include <string>

namespace godwit::faults {

enum class Kind {
  kError,       // the call fails with an errno
  kShortWrite,  // a write takes a part; another call goes well
};

// The n-th call from now on, of those that may fail, does so: once, or from then on.
void FailCall(int n, Kind kind, int error, bool for_good);
// No call fails any more. The name of the first that did; empty: none was reached.
std::string StopFailing();

}  // namespace godwit::faults
