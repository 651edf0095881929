// The GGUF models of a folder, and the short words that choose among them.
//
// Repositories hold one model in several quantizations, each a file or a folder of parts, whose
// names end with the quantization: NAME-Q4_K_M.gguf, NAME.Q8_0-00001-of-00002.gguf,
// UD-Q4_K_XL/NAME.gguf.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace godwit {

// Whether the name ends in .gguf, in whatever letters.
bool IsGgufName(const std::filesystem::path& file);

// Whether the weights of the folder's model are safetensors, which come before GGUF.
bool HoldsSafetensors(const std::filesystem::path& folder);

// The models in a folder, each by its first part, sorted. in_folders: also those in folders of the
// folder. Files beside models (mmproj, which sees pictures, and imatrix) are none.
std::vector<std::filesystem::path> GgufModelsIn(const std::filesystem::path& folder,
                                                bool in_folders = false);

// The models among files that are named somewhere and need not exist.
std::vector<std::filesystem::path> GgufModelsAmong(std::vector<std::filesystem::path> files);

// "Q4_K_M", as the file's name spells it; empty: its name tells none.
std::string QuantOf(const std::filesystem::path& file);

// A word for each of these files that means no other: QuantOf, or else its name without .gguf.
std::vector<std::string> GgufWords(const std::vector<std::filesystem::path>& files);

// The files that `word` means, in whatever letters: those of this quantization, else those whose
// names end so.
std::vector<std::filesystem::path> GgufCalled(std::string_view word,
                                              const std::vector<std::filesystem::path>& files);

}  // namespace godwit
