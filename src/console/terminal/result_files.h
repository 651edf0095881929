// The files that a verb writes beside what it reads: nothing of the user's is replaced by mistake.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::console {

struct NamedFile {
  std::string_view flag;            // "--jsonl"
  std::optional<std::string> path;  // none: the flag was not given
  bool appended = false;            // a result that goes on where an earlier run has ended
};

// Before anything is loaded, for what is written at the end. `results` are files, or folders to
// come; an input that is a folder is a model's. Throws Error(kInput) for a result that is an input
// or another result, by whatever name (a link, another spelling), that lies in a model's folder or
// is "-", since standard output has a result already; Error(kIo) for what cannot be written.
// Devices, pipes and sockets may be named more than once.
void CheckResultFiles(const std::vector<NamedFile>& results, const std::vector<NamedFile>& inputs);

}  // namespace godwit::console
