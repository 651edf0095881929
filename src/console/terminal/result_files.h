// Checks of the files that a verb writes, so that no file of the user is replaced by mistake.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::console {

struct NamedFile {
  std::string_view flag;            // "--jsonl"
  std::optional<std::string> path;  // none: the flag was not given
  bool appended = false;            // a result that continues an earlier run's
};

// Checks, before anything is loaded, the files to be written. `results` are files, or folders to
// come; an input folder is a model's. Throws Error(kInput) for a result that is an input or another
// result under any name (a link, another spelling), or lies in a model's folder. Also throws it for
// "-", because standard output has a result already. Throws Error(kIo) for a file that cannot be
// written. Devices, pipes and sockets may be named more than once.
void CheckResultFiles(const std::vector<NamedFile>& results, const std::vector<NamedFile>& inputs);

}  // namespace godwit::console
