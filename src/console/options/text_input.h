// Text from the command line, a file or standard input.
#pragma once

#include <optional>
#include <string>

#include "console/options/command_line.h"

namespace godwit::console {

struct TextInput {
  std::optional<std::string> prompt;  // -p
  std::optional<std::string> file;    // -f
  bool escape = false;                // -e
  bool lossy = false;                 // --lossy
};

// what: "the text to continue". Adds to the current group.
void AddTextFlags(CommandLine& line, TextInput& input, const std::string& what);

void AddLossyFlag(CommandLine& line, bool& lossy);

// nullopt if there is neither -p nor -f. Always UTF-8, every byte as it is; what is not UTF-8
// becomes U+FFFD with --lossy. Throws Error(kInput) without it, and for more than 1 GiB, Error(kIo)
// for a file that cannot be read.
std::optional<std::string> ReadText(const TextInput& input);

// One file, as ReadText takes it; "-" is standard input.
std::string ReadInputFile(const std::string& path, bool lossy);

// As ReadText, but where there is none, standard input counts unless it is a terminal. Throws
// Error(kInput) for no text at all. RequirePrompt also refuses an empty
// text, which nobody means: most tokenizers would put a BOS in its place.
std::string RequireText(const TextInput& input);
std::string RequirePrompt(const TextInput& input);

}  // namespace godwit::console
