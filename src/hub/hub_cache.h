// The cache that programs share for models of the Hugging Face hub. Each model has a folder:
// "blobs" has files by their content, "refs" the commits of branches. "snapshots" has, for each
// commit, links by the files' names.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace godwit::hub {

// The cache's folder: HF_HUB_CACHE, HF_HOME/hub or ~/.cache/huggingface/hub.
std::filesystem::path CacheFolder();

// The hub's home folder: HF_HOME or ~/.cache/huggingface.
std::filesystem::path HomeFolder();

// The folder's name for a model: "models--org--name" for "org/name".
std::string RepositoryFolder(const std::string& repository);
// The model of a folder's name, "org/name". Nullopt for other folders.
std::optional<std::string> RepositoryOf(std::string_view folder);

// The snapshot of branch "main" in a model's folder.
std::optional<std::filesystem::path> MainSnapshot(const std::filesystem::path& folder);

// Whether a file of this name, folders included, stays inside the folder that it is put into, for
// any origin of the name.
bool IsSafeFileName(std::string_view name);

}  // namespace godwit::hub
