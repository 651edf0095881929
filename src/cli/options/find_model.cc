#include "cli/options/find_model.h"

#include <filesystem>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "checkpoint/gguf_choice.h"
#include "checkpoint/model_folder.h"
#include "cli/options/pull_model.h"
#include "hub/hub_cache.h"
#include "hub/hub_name.h"

namespace godwit::cli {
namespace {

namespace fs = std::filesystem;

using hub::HubName;

std::string PullCommand(const HubName& wanted) {
  return "godwit pull " + hub::Spelling(wanted.repository, wanted.quant);
}

// The models' names, such as "org/name:Q4_K_M and org/name:Q8_0".
std::string Spellings(const std::string& name, const std::vector<fs::path>& models) {
  constexpr int64_t kShown = 24;  // more than quantizers publish of one model
  return FirstNames(
      Names(GgufWords(models),
            [&](const std::string& word) { return QuoteUnlessPlain(name + ":" + word); }),
      kShown);
}

// The model in `folder`, which the user calls wanted.repository. help: the remedy if there is none.
std::string ChooseIn(const fs::path& folder, const HubName& wanted, bool in_folders,
                     const std::string& help) {
  const std::string& name = wanted.repository;
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
    Throw(ErrorKind::kInput, "{}:{} matches {} GGUF models, expected one: choose one of {}", name,
          wanted.quant, found.size(), Spellings(name, found));
  }
  Throw(ErrorKind::kIo, "{}:{}: no such GGUF model in {}{}{}", name, wanted.quant,
        QuoteUnlessPlain(folder.native()),
        models.empty() ? ", which has none" : "; there is " + Spellings(name, models), help);
}

// "org/name" of a snapshot in the cache, or of a file in it.
std::optional<std::string> PlaceInCache(const fs::path& path) {
  for (fs::path place = path; place.has_relative_path(); place = place.parent_path()) {
    const fs::path snapshots = place.parent_path();
    if (snapshots.filename() != "snapshots") continue;
    if (auto name = hub::RepositoryOf(snapshots.parent_path().filename().native())) return name;
  }
  return std::nullopt;
}

std::string FindInCache(const HubName& wanted) {
  const std::string help = "; to download it: " + PullCommand(wanted);
  const fs::path cached = hub::CacheFolder() / hub::RepositoryFolder(wanted.repository);
  if (const auto snapshot = hub::MainSnapshot(cached)) {
    return ChooseIn(*snapshot, wanted, /*in_folders=*/true, help);
  }
  Throw(ErrorKind::kIo,
        "{}: no such file or folder, and no model of this name in the Hugging Face cache {}{}",
        wanted.repository, hub::CacheFolder().native(), help);
}

}  // namespace

std::string FindModel(const std::string& name) {
  const fs::path path = name;
  if (fs::is_directory(path)) {
    // A folder of the cache itself, for one model.
    if (const auto snapshot = hub::MainSnapshot(path);
        snapshot && !IsListed(path / "config.json")) {
      return ChooseIn(*snapshot, {.repository = name, .quant = ""}, /*in_folders=*/true, "");
    }
    return ChooseIn(path, {.repository = name, .quant = ""}, /*in_folders=*/false, "");
  }
  const HubName wanted = hub::SplitHubName(name);
  if (!fs::exists(path) && !wanted.quant.empty() && fs::is_directory(wanted.repository)) {
    return ChooseIn(hub::MainSnapshot(wanted.repository).value_or(wanted.repository), wanted,
                    /*in_folders=*/true, "");
  }
  if (fs::exists(path) || IsListed(path) || !hub::IsHubName(wanted.repository) ||
      IsGgufName(wanted.repository)) {
    return ModelFolder(name).path();  // GGUF, or refused
  }
  try {
    return FindInCache(wanted);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kIo || !OfferPull(wanted)) throw;
  }
  return FindInCache(wanted);
}

std::string ModelName(const std::string& model) {
  const fs::path path = fs::absolute(fs::path(model) / "").parent_path();
  const auto name = PlaceInCache(path);
  if (!name) return path.filename();
  return IsGgufName(path) ? fmt::format("{}:{}", *name, GgufWords({path}).front()) : *name;
}

}  // namespace godwit::cli
