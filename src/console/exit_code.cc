#include "console/exit_code.h"

namespace godwit::console {

int ExitCode(ErrorKind kind) {
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

}  // namespace godwit::console
