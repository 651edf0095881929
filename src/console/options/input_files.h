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

// Reads texts in the order of `names`: paths, folders, patterns, or "-" for standard input. Files
// of a folder, subfolders included, and of a pattern are ordered by name. A pattern counts if no
// file has its name. Hidden files of a folder are not read; files that are no text are left out,
// and standard error says so. Throws as ReadInputFile does, and Error(kIo) for a folder without a
// text and a pattern without a file. Throws Error(kInput) for a second "-" and for more than 1 GiB
// together.
std::vector<NamedText> ReadInputFiles(std::span<const std::string> names, bool lossy);

// ReadInputFiles, with the texts joined into one.
std::string ReadJoinedFiles(std::span<const std::string> names, bool lossy);

// The files as messages name them: "a.txt", "a.txt and 2 more".
std::string NamesOf(std::span<const std::string> names);

}  // namespace godwit::console
