// The source files of a packed copy, and whether these are still the same.
//
// A start asks the system for size and times of each, which takes microseconds. Writing into a
// file, replacing it or setting its time back changes the time of its last change, which cannot be
// set. Where times differ and sizes do not (a model that was copied, unpacked or moved to another
// disk), its whole content is compared.
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

// The sources of a model's weights, without checksums. Throws Error(kIo).
std::vector<PackedSource> StampSources(const ModelFolder& model);

// The sources, taken so late that any change of one of them from now on gives it another time. The
// clock of a file system stands still for 10 ms at most.
std::vector<PackedSource> StampSettledSources(const ModelFolder& model);

// With the checksums of all of their content: reads them. Throws Error(kIo).
void AddChecksums(const ModelFolder& model, ThreadPool& pool, const OnReadBytes& on_read,
                  std::vector<PackedSource>& sources);

// The checksum of the content of config.json; 0: the model has none.
uint64_t ConfigChecksum(const ModelFolder& model);

// The change since a copy of this description was made ("config.json has changed"); nothing: the
// copy matches the model. read_all: read the sources even if their times are the same.
std::optional<std::string> ChangeSince(const PackedInfo& info, const ModelFolder& model,
                                       ThreadPool& pool, bool read_all, const OnReadBytes& on_read);

}  // namespace godwit
