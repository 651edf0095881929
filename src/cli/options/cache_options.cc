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
        "HOME is not set, so there is no default folder for saved texts: name one with --cache-dir "
        "PATH");
}

std::string UserCacheFolderIfAny() { return FindCacheFolder().value_or(""); }

std::string PackedFolder() {
  const auto folder = FindCacheFolder();
  return folder ? *folder + "/packed" : "";
}

void AddCacheFolderFlag(console::CommandLine& line, CacheOptions& options) {
  line.Add({.names = "--cache-dir",
            .value = "FOLDER",
            .help = "the folder of saved texts",
            .fallback = "godwit in the user's cache folder"},
           options.folder);
}

void AddCacheFlags(console::CommandLine& line, CacheOptions& options) {
  line.Group("Saved texts");
  line.Add(
      {.names = "--cache",
       .value = "",
       .help =
           "save the KV cache of texts to disk while they are read, and continue from saved ones. "
           "A beginning that several texts share is computed once, by this and later runs, even if "
           "a run is killed; never changes the result. godwit cache lists saved texts"},
      [&options](const std::string& value) {
        if (!console::ParseBool(value)) return options.folder.clear();
        if (options.folder.empty()) options.folder = UserCacheFolder();
      });
  line.Add({.names = "--cache-dir",
            .value = "FOLDER",
            .help = "the folder of saved texts; implies --cache",
            .fallback = "godwit in the user's cache folder"},
           options.folder);
  line.Add({.names = "--cache-size",
            .value = "BYTES",
            .help = "the limit of disk space for all saved texts together, such as 20G; the least "
                    "useful texts are removed first",
            .fallback = "half of the free disk space"},
           [&options](const std::string& value) { options.bytes = console::ParseBytes(value); });
  line.Needs("--cache-size", {"--cache", "--cache-dir"});
}

}  // namespace godwit::cli
