// The cache that programs share which read the Hugging Face hub: for each model a folder with the
// files by what is in them (blobs), what branches are at (refs), and for each commit links by the
// files' names (snapshots).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace godwit::hub {

// HF_HUB_CACHE, HF_HOME/hub or ~/.cache/huggingface/hub.
std::filesystem::path CacheFolder();

// HF_HOME or ~/.cache/huggingface.
std::filesystem::path HomeFolder();

// "models--org--name", of "org/name".
std::string RepositoryFolder(const std::string& repository);
// The way back. Nullopt for other folders.
std::optional<std::string> RepositoryOf(std::string_view folder);

// The snapshot that branch "main" is at, in a model's folder.
std::optional<std::filesystem::path> MainSnapshot(const std::filesystem::path& folder);

// Whether a file of this name, with its folders, lies in the folder that it is put into, whoever
// chose the name.
bool IsSafeFileName(std::string_view name);

}  // namespace godwit::hub
