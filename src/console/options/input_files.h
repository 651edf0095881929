// The files that -f names: one, several, those of a folder, or those of a pattern such as "*.md".
#pragma once

#include <span>
#include <string>
#include <vector>

namespace godwit::console {

struct NamedText {
  std::string name;  // a path, or kStandardInput
  std::string text;
};

inline constexpr const char* kStandardInput = "standard input";

// Texts in the order of `names`, which are paths, or "-" for standard input. Those of a folder,
// with the folders in it, and of a pattern are in the order of their own names. A pattern counts
// where no file has its name. Files of a folder that are hidden are not read; those that are no
// text are left out, and standard error says so. Throws besides what ReadInputFile does Error(kIo)
// for a folder without a text and a pattern without a file. Throws Error(kInput) for "-" named
// twice and for more than 1 GiB together.
std::vector<NamedText> ReadInputFiles(std::span<const std::string> names, bool lossy);

// Likewise, one behind the other, as one text.
std::string ReadJoinedFiles(std::span<const std::string> names, bool lossy);

// What messages call them: "a.txt", "a.txt and 2 more".
std::string NamesOf(std::span<const std::string> names);

}  // namespace godwit::console
