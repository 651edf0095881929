#include "base/system/self.h"

#include <system_error>

#ifdef __APPLE__
#include <mach-o/dyld.h>

#include <climits>
#include <cstdint>
#endif

namespace godwit {

std::filesystem::path ThisProgram() {
  std::error_code failed;
#ifdef __APPLE__
  char path[PATH_MAX];
  uint32_t bytes = sizeof(path);
  if (_NSGetExecutablePath(path, &bytes) != 0) return {};
  return std::filesystem::canonical(path, failed);
#else
  return std::filesystem::read_symlink("/proc/self/exe", failed);
#endif
}

}  // namespace godwit
