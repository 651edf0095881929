// The facts of a machine that make godwit slow, and the commands that change them: for `godwit
// doctor`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::cli {

// The facts of a machine that no file below its root tells, and where the others lie.
struct MachineFacts {
  std::string root;          // of proc and sys; "" is this machine
  std::string isa;           // the instruction set in use
  std::string best_isa;      // the best of this processor
  std::vector<int> cpus;     // logical CPUs that the process may use, ascending
  int64_t most_files = 0;    // the hard limit of open files; 0: none
  bool has_mpi = false;      // whether godwit was built with MPI
  bool has_mpirun = false;   // whether mpirun is on the PATH
  std::string no_downloads;  // why downloads do not work; empty: they do
  // The folder of saved texts, or the nearest folder above it that exists.
  std::string cache_folder;
  std::string cache_device;       // "259:1", of its block device
  int64_t cache_free_bytes = -1;  // that this user may write; -1: unknown
  int64_t cache_file_system = 0;  // f_type of statfs(2)
};

// This machine. cache_folder: need not exist.
MachineFacts ThisMachine(const std::string& cache_folder);

struct Finding {
  enum class Status { kGood, kAdvice, kUnknown };

  Status status = Status::kGood;
  std::string text;     // one sentence
  std::string command;  // for advice: what to enter into a shell
};

// "good", "advice", "unknown".
std::string_view NameOf(Finding::Status status);

// One subject of the examination.
struct Check {
  std::string_view name;  // "huge pages"
  Finding (*examine)(const MachineFacts& machine);
};

// Every check, in the order of the report.
std::span<const Check> AllChecks();

}  // namespace godwit::cli
