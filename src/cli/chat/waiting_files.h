// Files that stand before a question, in its message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/file_tokens.h"
#include "console/options/input_files.h"

namespace godwit::cli {

struct WaitingFiles {
  std::string text;  // as it stands in the message
  size_t bytes = 0;  // of it
  std::vector<std::string> names;
  int64_t tokens = 0;

  bool empty() const { return names.empty(); }
  // "a.txt, b.txt and 7 more"
  std::string Names() const;

  // Files come behind those that are there. counts: of each of them.
  void Append(std::span<const console::NamedText> files, std::span<const FileTokens> counts);
  // Files come in front of those that are there.
  void Prepend(WaitingFiles files);
};

}  // namespace godwit::cli
