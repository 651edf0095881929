// The weights of a model folder, whatever supported format they are in.
#pragma once

#include <filesystem>
#include <memory>

#include "weights/weight_source.h"

namespace godwit {

// Opens model.safetensors if it exists, else model.safetensors.index.json and its shards, which is
// the order of Hugging Face. Error(kIo) if the folder is missing or unreadable, kInput if it is a
// file. kUnsupported if it has weights only in other formats (named), kFormat for broken files.
std::unique_ptr<WeightSource> OpenWeights(const std::filesystem::path& folder);

// Whether a file of this name holds weights, in any format, or tells where they are.
bool HoldsWeights(const std::filesystem::path& name);

}  // namespace godwit
