#include "cli/options/cache_options.h"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.h"

namespace godwit::cli {

namespace {

std::optional<std::string> FindCacheFolder() {
  for (const auto& [variable, below] : {std::pair{"XDG_CACHE_HOME", ""}, {"HOME", ".cache"}}) {
    const char* const value = std::getenv(variable);
    if (value == nullptr || *value != '/') continue;  // the specification ignores relative paths
    return (std::filesystem::path(value) / below / "godwit").string();
  }
  return std::nullopt;
}

}  // namespace

std::string UserCacheFolder() {
  if (auto folder = FindCacheFolder()) return *std::move(folder);
  Throw(ErrorKind::kInput,
        "there is no HOME in which to save texts: name a folder, --cache-dir PATH");
}

std::string PackedFolder() {
  const auto folder = FindCacheFolder();
  return folder ? *folder + "/packed" : "";
}

void AddCacheFolderFlag(console::CommandLine& line, CacheOptions& options) {
  line.Add({.names = "--cache-dir",
            .value = "FOLDER",
            .help = "where texts are saved",
            .fallback = "godwit in the user's folder of caches"},
           options.folder);
}

void AddCacheFlags(console::CommandLine& line, CacheOptions& options) {
  line.Group("Saved texts");
  line.Add(
      {.names = "--cache",
       .value = "",
       .help = "save what is read of texts on the disk while it is read, and go on from what "
               "was saved: what texts have in common is read once, by this program and later "
               "ones, even if one is killed; the same result. godwit cache shows what is there"},
      [&options](const std::string& value) {
        if (!console::ParseBool(value)) return options.folder.clear();
        if (options.folder.empty()) options.folder = UserCacheFolder();
      });
  line.Add({.names = "--cache-dir",
            .value = "FOLDER",
            .help = "where; --cache is not needed then",
            .fallback = "godwit in the user's folder of caches"},
           options.folder);
  line.Add({.names = "--cache-size",
            .value = "BYTES",
            .help = "what all saved texts may take together, as 20G; what is worth least is "
                    "removed first",
            .fallback = "half of what the disk has left"},
           [&options](const std::string& value) { options.bytes = console::ParseBytes(value); });
  line.Needs("--cache-size", {"--cache", "--cache-dir"});
}

}  // namespace godwit::cli
