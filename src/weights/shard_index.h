// model.safetensors.index.json: which shard of a model holds which tensor.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace godwit {

// Tensor name -> the name of its shard. Every shard name is a plain file name, so that it cannot
// lead out of the model's folder. Throws Error(kFormat) that lists every bad entry.
using ShardIndex = std::map<std::string, std::string, std::less<>>;
ShardIndex ParseShardIndex(std::string_view text, const std::string& file_name);

}  // namespace godwit
