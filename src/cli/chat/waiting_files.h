// WaitingFiles: files that stand before a question, in its message.
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
  std::string text;  // as in the message
  size_t bytes = 0;  // of the text
  std::vector<std::string> names;
  int64_t tokens = 0;

  bool empty() const { return names.empty(); }
  // "a.txt, b.txt and 7 more"
  std::string Names() const;

  // Adds files behind the present ones. counts: the tokens of each new file.
  void Append(std::span<const console::NamedText> files, std::span<const FileTokens> counts);
  // Adds files in front of the present ones.
  void Prepend(WaitingFiles files);
};

}  // namespace godwit::cli
