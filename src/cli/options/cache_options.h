// Flags for the folder of saved texts, so that a prefix that texts share is read once.
#pragma once

#include <cstdint>
#include <string>

#include "console/options/command_line.h"

namespace godwit::cli {

struct CacheOptions {
  std::string folder;  // empty: nothing is saved
  int64_t bytes = 0;   // LoadOptions::cache_bytes
};

// Adds --cache, --cache-dir and --cache-size, for a verb that reads texts.
void AddCacheFlags(console::CommandLine& line, CacheOptions& options);
// Adds only --cache-dir, for a verb about saved texts.
void AddCacheFolderFlag(console::CommandLine& line, CacheOptions& options);

// The folder for packed copies of models whose own folders cannot be written; empty: there is no
// HOME.
std::string PackedFolder();

// The folder of saved texts in the user's folder of caches. Throws Error(kInput) if there is no
// such folder.
std::string UserCacheFolder();
// The same, but empty if there is no such folder.
std::string UserCacheFolderIfAny();

}  // namespace godwit::cli
