// For which files a packed copy was made, and whether these are still the same.
//
// A start asks the system for size and times of each, which takes microseconds. Who writes into a
// file, replaces it or sets its time back changes the time of its last change, which nobody sets.
// Where times differ and sizes do not (a model that was copied, unpacked or moved to another disk),
// its content tells, all of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "checkpoint/model_folder.h"
#include "model/packed_header.h"

namespace godwit {

// Bytes that were read, and that will be. Called from the thread that asks.
using OnReadBytes = std::function<void(int64_t done_bytes, int64_t total_bytes)>;

// Of the weights' files of a model, without checksums. Throws Error(kIo).
std::vector<PackedSource> StampSources(const ModelFolder& model);

// The same, so late that whoever changes one of them from now on gives it another time: the clock
// of a file system stands still for 10 ms at most.
std::vector<PackedSource> StampSourcesForGood(const ModelFolder& model);

// With the checksums of all of their content: reads them. Throws Error(kIo).
void AddChecksums(const ModelFolder& model, ThreadPool& pool, const OnReadBytes& on_read,
                  std::vector<PackedSource>& sources);

// Of the content of config.json; 0: the model has none.
uint64_t ConfigChecksum(const ModelFolder& model);

// What has changed since a copy of this description was made ("config.json has changed"); nothing:
// it is a copy of the model as it is. read_all: of the sources, even if their times are the same.
std::optional<std::string> ChangeSince(const PackedInfo& info, const ModelFolder& model,
                                       ThreadPool& pool, bool read_all, const OnReadBytes& on_read);

}  // namespace godwit
