#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "base/cores.h"
#include "cli/doctor/examine.h"
#include "dist/mpi.h"
#include "http/curl_presence.h"
#include "kernels/dispatch.h"

namespace godwit::cli {
namespace {

bool IsOnPath(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (access((std::string(rest.substr(0, end)) + "/" + program).c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

std::filesystem::path NearestFolder(std::filesystem::path folder) {
  std::error_code failed;
  while (folder.has_relative_path() && !std::filesystem::is_directory(folder, failed)) {
    folder = folder.parent_path();
  }
  return folder.empty() ? "." : folder;
}

void ReadDisk(const std::string& folder, MachineFacts& machine) {
  machine.cache_folder = NearestFolder(folder).string();
  struct stat place;
  struct statvfs space;
  struct statfs kind;
  if (stat(machine.cache_folder.c_str(), &place) == 0) {
    machine.cache_device = fmt::format("{}:{}", major(place.st_dev), minor(place.st_dev));
  }
  if (statvfs(machine.cache_folder.c_str(), &space) == 0) {
    machine.cache_free_bytes =
        static_cast<int64_t>(space.f_bavail) * static_cast<int64_t>(space.f_frsize);
  }
  if (statfs(machine.cache_folder.c_str(), &kind) == 0) {
    machine.cache_file_system = static_cast<int64_t>(kind.f_type) & 0xffffffff;
  }
}

}  // namespace

MachineFacts ThisMachine(const std::string& cache_folder) {
  MachineFacts machine{.root = "",
                       .isa = std::string(kernels::SelectIsa("").name),
                       .best_isa = std::string(kernels::BestIsa().name),
                       .cpus = AllowedCpus(),
                       .has_mpi = HasMpi(),
                       .has_mpirun = IsOnPath("mpirun"),
                       .no_downloads = WhyNoCurl()};
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max != RLIM_INFINITY) {
    machine.most_files = static_cast<int64_t>(files.rlim_max);
  }
  if (!cache_folder.empty()) ReadDisk(cache_folder, machine);
  return machine;
}

}  // namespace godwit::cli
