// Exit codes: the way in which the program ended.
#pragma once

#include <string_view>

#include "godwit/error.h"

namespace godwit::console {

constexpr int kExitOk = 0;
constexpr int kExitInternalError = 1;
constexpr int kExitSomeFailed = 7;   // the rest is done
constexpr int kExitCancelled = 130;  // as a shell reports a program ended by Ctrl-C

constexpr int ExitCode(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInput:
      return 2;
    case ErrorKind::kIo:
      return 3;
    case ErrorKind::kFormat:
      return 4;
    case ErrorKind::kUnsupported:
      return 5;
    case ErrorKind::kMemory:
      return 6;
    case ErrorKind::kCancelled:
      return kExitCancelled;
  }
  return kExitInternalError;
}

// The exit codes as the help explains them.
constexpr std::string_view kExitCodes =
    "Exit codes: 0 done, 1 internal error, 2 bad input or usage, 3 input/output (without a "
    "message: the reader of a pipe has ended), 4 bad file format, 5 unsupported, 6 out of memory, "
    "7 some requests of a batch failed or probe found a fault, 130 cancelled by Ctrl-C.";

}  // namespace godwit::console
