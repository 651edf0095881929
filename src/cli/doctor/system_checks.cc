#include <fmt/format.h>
#include <linux/magic.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

#include "base/machine_memory.h"
#include "base/quote.h"
#include "base/split_text.h"
#include "cli/doctor/checks.h"

namespace godwit::cli {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// The kernel's word for spinning disks: "1", or "0" for others. Empty: unknown. A partition's queue
// is that of its disk, one folder up.
std::string Rotational(const MachineFacts& machine) {
  for (const char* below : {"", "/.."}) {
    const std::string word = KernelLine(
        machine, fmt::format("/sys/dev/block/{}{}/queue/rotational", machine.cache_device, below));
    if (!word.empty()) return word;
  }
  return "";
}

// Where `godwit run --cache` should write instead.
std::string OtherFolder(std::string_view where) {
  return fmt::format("export GODWIT_CACHE_DIR=FOLDER_ON_{}", where);
}

}  // namespace

std::string KernelLine(const MachineFacts& machine, std::string_view path) {
  std::ifstream file(fmt::format("{}{}", machine.root, path));
  std::string line;
  std::getline(file, line);
  return std::string(Stripped(line));
}

std::string_view Chosen(std::string_view line) {
  const size_t begin = line.find('[');
  const size_t end = line.find(']', std::min(begin, line.size()));
  if (end == std::string_view::npos) return {};
  return line.substr(begin + 1, end - begin - 1);
}

Finding ExamineDisk(const MachineFacts& machine) {
  if (machine.cache_free_bytes < 0) return Unknown("There is no folder for saved texts.");
  const std::string folder = QuoteUnlessPlain(machine.cache_folder);
  const std::string free = FormatBytes(machine.cache_free_bytes);
  switch (machine.cache_file_system) {
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
      return Advice(OtherFolder("A_DISK"),
                    "Saved texts go to {}, which lies in memory, and so take it from the weights.",
                    folder);
    case NFS_SUPER_MAGIC:
    case 0xff534d42:  // CIFS
    case 0xfe534d42:  // SMB2
      return Advice(OtherFolder("A_LOCAL_DISK"),
                    "Saved texts go to {}, which another machine serves.", folder);
    default:
      break;
  }
  if (machine.cache_free_bytes < 10 * kGiB) {
    return Advice("godwit cache list",
                  "Only {} are free for saved texts in {}, and a long text "
                  "takes gigabytes.",
                  free, folder);
  }
  const std::string rotational = Rotational(machine);
  if (rotational == "1") {
    return Advice(OtherFolder("AN_SSD"),
                  "Saved texts go to {}, on a disk that says that it spins; some virtual disks say "
                  "so, too.",
                  folder);
  }
  return Good("{} are free for saved texts in {}{}.", free, folder,
              rotational == "0" ? ", on a disk without moving parts" : "");
}

Finding ExamineOpenFiles(const MachineFacts& machine) {
  // godwit serve takes 1,024 connections, and raises the soft limit itself.
  constexpr int64_t kEnough = 2048;
  if (machine.most_files != 0 && machine.most_files < kEnough) {
    return Advice("sudo prlimit --nofile=65536 --pid $$",
                  "This process may open {} files, and godwit serve wants one for each of 1,024 "
                  "connections.",
                  machine.most_files);
  }
  return Good("The limit of open files is high enough for 1,024 connections of godwit serve.");
}

Finding ExamineMpi(const MachineFacts& machine) {
  if (!machine.has_mpi) {
    return Good("This godwit was built without MPI, which only work over several machines needs.");
  }
  if (!machine.has_mpirun) {
    return Advice("sudo apt-get install openmpi-bin",
                  "This godwit can work over several machines, but mpirun is not on the PATH.");
  }
  return Good("This godwit and mpirun are ready to work over several machines.");
}

Finding ExamineDownloads(const MachineFacts& machine) {
  if (!machine.no_downloads.empty()) {
    return Advice("sudo apt-get install libcurl4 ca-certificates", "godwit pull does not work: {}.",
                  machine.no_downloads);
  }
  return Good("libcurl is there for godwit pull.");
}

}  // namespace godwit::cli
