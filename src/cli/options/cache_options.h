// The flags that say where texts are saved, so that what they have in common is read once.
#pragma once

#include <cstdint>
#include <string>

#include "console/options/command_line.h"

namespace godwit::cli {

struct CacheOptions {
  std::string folder;  // empty: nothing is saved
  int64_t bytes = 0;   // LoadOptions::cache_bytes
};

// --cache, --cache-dir and --cache-size, for a verb that reads texts.
void AddCacheFlags(console::CommandLine& line, CacheOptions& options);
// Only --cache-dir, for a verb about what is there.
void AddCacheFolderFlag(console::CommandLine& line, CacheOptions& options);

// Where packed copies lie of models whose folders cannot be written; empty: there is no HOME.
std::string PackedFolder();

// The one in the user's folder of caches. Throws Error(kInput) if there is none to be found.
std::string UserCacheFolder();

}  // namespace godwit::cli
