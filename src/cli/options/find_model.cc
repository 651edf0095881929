#include "cli/options/find_model.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/model_folder.h"

namespace godwit::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCacheBegin = "models--";

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

}  // namespace

std::string FindModel(const std::string& name) {
  const fs::path path = name;
  if (fs::is_directory(path)) {
    // The cache's own folder of a model.
    return IsListed(path / "config.json") ? name : Snapshot(path).value_or(path).string();
  }
  if (fs::exists(path) || !IsHubName(name)) return ModelFolder(name).path();  // GGUF, or refused
  const size_t slash = name.find('/');
  const std::string cached =
      fmt::format("{}{}--{}", kCacheBegin, name.substr(0, slash), name.substr(slash + 1));
  if (const auto folder = Snapshot(Cache() / cached)) return folder->string();
  Throw(ErrorKind::kIo,
        "{0}: no such folder, and no model of this name in the Hugging Face cache {1}; to download "
        "it there: hf download {0}",
        name, Cache().native());
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
