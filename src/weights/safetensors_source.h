// A WeightSource over one safetensors file, or over the shards that an index lists.
#pragma once

#include <filesystem>
#include <memory>

#include "weights/weight_source.h"

namespace godwit {

std::unique_ptr<WeightSource> OpenSafetensors(const std::filesystem::path& file);

// Opens the shards of an index. Throws one Error(kFormat) with everything on which index and shards
// disagree. These are missing and broken shards, and tensors that are not where the index says, are
// in two shards, or are not in the index. Error(kIo) if the only problem is that shards cannot be
// read.
std::unique_ptr<WeightSource> OpenShardedSafetensors(const std::filesystem::path& index);

}  // namespace godwit
