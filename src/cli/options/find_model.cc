#include "cli/options/find_model.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"

namespace godwit::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExpected =
    "expected the folder of a model: config.json, *.safetensors, tokenizer.json";
constexpr std::string_view kCacheBegin = "models--";
constexpr std::string_view kGguf =
    "GGUF is not supported; expected Hugging Face's files of the "
    "model: config.json, *.safetensors, tokenizer.json";

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// As huggingface_hub has it.
fs::path Cache() {
  if (const auto hub = Variable("HF_HUB_CACHE"); !hub.empty()) return hub;
  if (const auto home = Variable("HF_HOME"); !home.empty()) return fs::path(home) / "hub";
  const auto xdg = Variable("XDG_CACHE_HOME");
  const fs::path caches = xdg.empty() ? fs::path(Variable("HOME")) / ".cache" : fs::path(xdg);
  return caches / "huggingface" / "hub";
}

// Of a model's folder in the cache: the one that its branch "main" points to.
std::optional<fs::path> Snapshot(const fs::path& cached) {
  std::ifstream file(cached / "refs" / "main");
  std::string commit;
  if (!(file >> commit) || commit.find('/') != std::string::npos) return std::nullopt;
  const fs::path folder = cached / "snapshots" / commit;
  std::error_code error;
  return fs::is_directory(folder, error) ? std::optional(folder) : std::nullopt;
}

// "org/name", in the letters that Hugging Face allows; not "./name" or "/name".
bool IsHubName(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == name.npos || slash == 0 || slash + 1 == name.size()) return false;
  return name.front() != '.' &&
         std::ranges::all_of(name.substr(slash + 1),
                             [](unsigned char c) {
                               return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                             }) &&
         std::ranges::all_of(name.substr(0, slash), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
         });
}

bool IsGguf(const fs::path& path) {
  if (!fs::is_regular_file(path)) return false;
  char magic[4] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
  return std::string_view(magic, sizeof magic) == "GGUF";
}

[[noreturn]] void RefuseFile(const std::string& name) {
  if (IsGguf(name)) {
    Throw(ErrorKind::kUnsupported, "{} is a GGUF file: {}", name, kGguf);
  }
  const fs::path folder = fs::path(name).parent_path();
  if (IsListed(folder / "config.json")) {
    Throw(ErrorKind::kInput, "{}: not a folder; the model is its folder: -m {}", name,
          folder.empty() ? "." : folder.native());
  }
  Throw(ErrorKind::kInput, "{}: not a folder, {}", name, kExpected);
}

// Names of what is wanted in a folder, sorted.
template <typename Wanted>
std::vector<std::string> Entries(const fs::path& folder, const Wanted& wanted) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (wanted(entry.path())) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string BaseOf(const fs::path& adapter_config) {
  const auto json = nlohmann::json::parse(std::ifstream(adapter_config), nullptr,
                                          /*allow_exceptions=*/false);
  const auto base = json.is_object() ? json.find("base_model_name_or_path") : json.end();
  return json.is_object() && base != json.end() && base->is_string()
             ? " of " + Quote(base->get<std::string>())
             : "";
}

// A folder without config.json.
[[noreturn]] void RefuseFolder(const fs::path& folder) {
  const std::string& name = folder.native();
  if (IsListed(folder / "adapter_config.json")) {
    Throw(ErrorKind::kUnsupported,
          "{} is an adapter (LoRA){}: adapters are not supported; expected a whole model, such as "
          "merge_and_unload of peft makes of it",
          name, BaseOf(folder / "adapter_config.json"));
  }
  const auto gguf = Entries(folder, [](const fs::path& p) { return p.extension() == ".gguf"; });
  if (!gguf.empty()) {
    Throw(ErrorKind::kUnsupported, "{} holds {}: {}", name, Quote(gguf.front()), kGguf);
  }
  const auto models =
      Entries(folder, [](const fs::path& p) { return IsListed(p / "config.json"); });
  if (!models.empty()) {
    Throw(ErrorKind::kIo, "{}: no config.json there, but in a folder of it: -m {}", name,
          (folder / models.front()).native());
  }
  Throw(ErrorKind::kIo, "{}: no config.json there, {}", name, kExpected);
}

}  // namespace

std::string FindModel(const std::string& name) {
  const fs::path path = name;
  if (fs::is_directory(path)) {
    // The cache's own folder of a model.
    return IsListed(path / "config.json") ? name : Snapshot(path).value_or(path).string();
  }
  if (fs::exists(path)) RefuseFile(name);
  if (!IsHubName(name)) Throw(ErrorKind::kIo, "{}: no such folder, {}", name, kExpected);
  const size_t slash = name.find('/');
  const std::string cached =
      fmt::format("{}{}--{}", kCacheBegin, name.substr(0, slash), name.substr(slash + 1));
  if (const auto folder = Snapshot(Cache() / cached)) return folder->string();
  Throw(ErrorKind::kIo,
        "{0}: no such folder, and no model of this name in the Hugging Face cache {1}; to download "
        "it there: hf download {0}",
        name, Cache().native());
}

HfConfig LoadConfig(const std::string& folder) {
  const fs::path path = folder;
  if (!IsListed(path / "config.json") && fs::is_directory(path)) RefuseFolder(path);
  return HfConfig::Load(path / "config.json");
}

void RequireTokenizer(const std::string& folder) {
  const fs::path path = folder;
  if (IsListed(path / "tokenizer.json")) return;
  if (!IsListed(path / "config.json")) RefuseFolder(path);
  for (const char* other : {"tokenizer.model", "vocab.json", "vocab.txt", "spiece.model"}) {
    if (!IsListed(path / other)) continue;
    Throw(ErrorKind::kUnsupported,
          "{0} has no tokenizer.json, which text needs; AutoTokenizer.from_pretrained(\"{0}\")"
          ".save_pretrained(\"{0}\") of transformers makes one of its {1}",
          folder, other);
  }
  Throw(ErrorKind::kUnsupported,
        "{} has no tokenizer.json, which text needs; it comes from where the model came from",
        folder);
}

std::string ModelName(const std::string& folder) {
  const fs::path path = fs::absolute(fs::path(folder) / "").parent_path();
  const std::string cached = path.parent_path().parent_path().filename();
  if (path.parent_path().filename() != "snapshots" || !cached.starts_with(kCacheBegin)) {
    return path.filename();
  }
  const std::string name = cached.substr(kCacheBegin.size());
  const size_t dashes = name.find("--");
  return dashes == name.npos
             ? name
             : fmt::format("{}/{}", name.substr(0, dashes), name.substr(dashes + 2));
}

}  // namespace godwit::cli
