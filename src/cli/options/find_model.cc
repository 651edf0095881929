#include "cli/options/find_model.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ascii.h"
#include "base/error.h"
#include "base/file.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "checkpoint/gguf_choice.h"
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

// "NAME:QUANT", or a name alone.
struct Wanted {
  std::string name;
  std::string quant;
};

Wanted Split(const std::string& name) {
  const size_t colon = name.rfind(':');
  if (colon == name.npos || name.find('/', colon) != name.npos) return {.name = name, .quant = ""};
  return {.name = name.substr(0, colon), .quant = name.substr(colon + 1)};
}

std::string DownloadCommand(const Wanted& wanted) {
  if (!wanted.quant.empty()) {
    return fmt::format("hf download {} --include '*{}*'", wanted.name, wanted.quant);
  }
  const bool has_quants = Lower(wanted.name).ends_with("gguf");
  return fmt::format("hf download {}{}", wanted.name, has_quants ? " --include '*Q4_K_M*'" : "");
}

// "org/name:Q4_K_M and org/name:Q8_0"
std::string Spellings(const std::string& name, const std::vector<fs::path>& models) {
  constexpr int64_t kShown = 24;  // more than quantizers publish of one model
  return FirstNames(
      Names(GgufWords(models),
            [&](const std::string& word) { return QuoteUnlessPlain(name + ":" + word); }),
      kShown);
}

// In `folder`, which people call wanted.name. help: what to do where nothing is so called.
std::string ChooseIn(const fs::path& folder, const Wanted& wanted, bool in_folders,
                     const std::string& help) {
  const std::string& name = wanted.name;
  if (wanted.quant.empty() && HoldsSafetensors(folder)) return folder.string();
  const std::vector<fs::path> models = GgufModelsIn(folder, in_folders);
  if (wanted.quant.empty()) {
    if (models.size() > 1) {
      Throw(ErrorKind::kInput, "{} has {} GGUF models, expected one: choose one of {}", name,
            models.size(), Spellings(name, models));
    }
    return models.empty() || !in_folders ? folder.string() : models.front().string();
  }
  const std::vector<fs::path> found = GgufCalled(wanted.quant, models);
  if (found.size() == 1) return found.front().string();
  if (found.size() > 1) {
    Throw(ErrorKind::kInput, "{}:{} may be {} GGUF models, expected one: choose one of {}", name,
          wanted.quant, found.size(), Spellings(name, found));
  }
  Throw(ErrorKind::kIo, "{}:{}: no such GGUF model in {}{}{}", name, wanted.quant,
        QuoteUnlessPlain(folder.native()),
        models.empty() ? ", which has none" : "; there is " + Spellings(name, models), help);
}

// The model's folder in the cache, or a file in it.
std::optional<fs::path> PlaceInCache(const fs::path& path) {
  for (fs::path place = path; place.has_relative_path(); place = place.parent_path()) {
    const fs::path snapshots = place.parent_path();
    if (snapshots.filename() != "snapshots") continue;
    const fs::path cached = snapshots.parent_path().filename();
    if (cached.native().starts_with(kCacheBegin)) return cached;
  }
  return std::nullopt;
}

}  // namespace

std::string FindModel(const std::string& name) {
  const fs::path path = name;
  if (fs::is_directory(path)) {
    // The cache's own folder of a model.
    if (const auto snapshot = Snapshot(path); snapshot && !IsListed(path / "config.json")) {
      return ChooseIn(*snapshot, {.name = name, .quant = ""}, /*in_folders=*/true, "");
    }
    return ChooseIn(path, {.name = name, .quant = ""}, /*in_folders=*/false, "");
  }
  const Wanted wanted = Split(name);
  if (!fs::exists(path) && !wanted.quant.empty() && fs::is_directory(wanted.name)) {
    return ChooseIn(Snapshot(wanted.name).value_or(wanted.name), wanted, /*in_folders=*/true, "");
  }
  if (fs::exists(path) || IsListed(path) || !IsHubName(wanted.name) || IsGgufName(wanted.name)) {
    return ModelFolder(name).path();  // GGUF, or refused
  }
  const size_t slash = wanted.name.find('/');
  const std::string cached = fmt::format("{}{}--{}", kCacheBegin, wanted.name.substr(0, slash),
                                         wanted.name.substr(slash + 1));
  const std::string help = "; to download it there: " + DownloadCommand(wanted);
  if (const auto folder = Snapshot(Cache() / cached)) {
    return ChooseIn(*folder, wanted, /*in_folders=*/true, help);
  }
  Throw(ErrorKind::kIo,
        "{}: no such file or folder, and no model of this name in the Hugging Face cache {}{}",
        wanted.name, Cache().native(), help);
}

std::string ModelName(const std::string& model) {
  const fs::path path = fs::absolute(fs::path(model) / "").parent_path();
  const auto cached = PlaceInCache(path);
  if (!cached) return path.filename();
  std::string name = cached->native().substr(kCacheBegin.size());
  if (const size_t dashes = name.find("--"); dashes != name.npos) name.replace(dashes, 2, "/");
  return IsGgufName(path) ? fmt::format("{}:{}", name, GgufWords({path}).front()) : name;
}

}  // namespace godwit::cli
