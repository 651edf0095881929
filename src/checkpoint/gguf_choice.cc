#include "checkpoint/gguf_choice.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "base/ascii.h"
#include "base/file.h"
#include "weights/gguf_files.h"

namespace godwit {
namespace {

namespace fs = std::filesystem;

bool IsSeparator(char c) { return c == '-' || c == '.' || c == '_' || c == '/'; }

// The file's name without .gguf and its part number.
std::string NameOfModel(const fs::path& file) {
  const std::string stem = file.stem();
  const auto parts = std::ssize(GgufParts(file));
  return parts == 1 ? stem : stem.substr(0, stem.rfind("-of-") - std::string_view("-00001").size());
}

// Whether a word is such as "q4_k_m", "iq4_xs", "bf16" or "mxfp4_moe".
bool LooksLikeQuant(std::string_view word) {
  for (const std::string_view begin : {"q", "iq", "tq"}) {
    if (word.starts_with(begin) && word.size() > begin.size() &&
        std::isdigit(static_cast<unsigned char>(word[begin.size()])) != 0) {
      return true;
    }
  }
  return word == "f16" || word == "f32" || word == "bf16" || word == "fp16" || word == "fp32" ||
         word.starts_with("mxfp4");
}

// The end of a name that looks like a quantization.
std::string QuantAtEnd(const std::string& name) {
  const std::string lower = Lower(name);
  const size_t dot = lower.find_last_of("-.");
  for (size_t at = dot == lower.npos ? 0 : dot + 1; at < lower.size(); ++at) {
    if (at > 0 && !IsSeparator(lower[at - 1])) continue;
    if (!LooksLikeQuant(std::string_view(lower).substr(at))) continue;
    // The prefix of Unsloth's own mixtures.
    constexpr std::string_view kDynamic = "ud-";
    const bool dynamic = std::string_view(lower).substr(0, at).ends_with(kDynamic);
    return name.substr(dynamic ? at - kDynamic.size() : at);
  }
  return "";
}

// Whether the name of the model, of its folder or of its file is this word or ends with it.
bool EndsWithWord(const fs::path& file, std::string_view word) {
  const fs::path folder = file.parent_path().filename();
  for (const std::string& name : {NameOfModel(file), folder.string(), file.filename().string()}) {
    const std::string lower = Lower(name);
    if (!lower.ends_with(word)) continue;
    if (lower.size() == word.size() || IsSeparator(lower[lower.size() - word.size() - 1])) {
      return true;
    }
  }
  return false;
}

// Whether a file's name is that of a model, and not of a further part of one.
bool IsModel(const fs::path& file) {
  const std::string name = Lower(file.filename().string());
  return IsGgufName(file) && GgufParts(file).front() == file && !name.starts_with("mmproj") &&
         !name.starts_with("imatrix");
}

void AddFiles(const fs::path& folder, std::vector<fs::path>& files) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
}

}  // namespace

bool IsGgufName(const fs::path& file) { return Lower(file.extension().string()) == ".gguf"; }

bool HoldsSafetensors(const fs::path& folder) {
  return IsListed(folder / "model.safetensors") ||
         IsListed(folder / "model.safetensors.index.json");
}

std::vector<fs::path> GgufModelsIn(const fs::path& folder, bool in_folders) {
  std::vector<fs::path> files;
  AddFiles(folder, files);
  if (in_folders) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.is_directory()) AddFiles(entry.path(), files);
    }
  }
  return GgufModelsAmong(std::move(files));
}

std::vector<fs::path> GgufModelsAmong(std::vector<fs::path> files) {
  files.erase(std::remove_if(files.begin(), files.end(),
                             [](const fs::path& file) { return !IsModel(file); }),
              files.end());
  std::sort(files.begin(), files.end());
  return files;
}

std::string QuantOf(const fs::path& file) {
  const std::string quant = QuantAtEnd(NameOfModel(file));
  return quant.empty() ? QuantAtEnd(file.parent_path().filename()) : quant;
}

std::vector<std::string> GgufWords(const std::vector<fs::path>& files) {
  std::vector<std::string> words;
  for (const fs::path& file : files) {
    std::string word = QuantOf(file);
    if (word.empty() || GgufCalled(word, files).size() != 1) word = NameOfModel(file);
    words.push_back(std::move(word));
  }
  return words;
}

std::vector<fs::path> GgufCalled(std::string_view word, const std::vector<fs::path>& files) {
  const std::string lower = Lower(word);
  std::vector<fs::path> found;
  if (lower.empty()) return found;
  std::ranges::copy_if(files, std::back_inserter(found), [&](const fs::path& file) {
    return Lower(QuantOf(file)) == lower || Lower(NameOfModel(file)) == lower;
  });
  if (!found.empty()) return found;
  std::ranges::copy_if(files, std::back_inserter(found),
                       [&](const fs::path& file) { return EndsWithWord(file, lower); });
  return found;
}

}  // namespace godwit
