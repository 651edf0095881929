// Keys of Mamba2 layers in GGUF, which several families share.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "model/gguf_family.h"

namespace godwit {

// Sizes of Mamba2 layers, under keys that begin with "ssm.".
struct GgufMamba {
  int64_t width = 0;  // numbers of all heads
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t state = 0;  // numbers of B and C of a group
  int64_t taps = 0;
  int64_t groups = 0;
};
// Throws Error(kFormat) for a width that is no multiple of its heads.
GgufMamba ReadMambaSizes(const GgufMetadata& metadata);

// Sets the fields of ReadMamba (archs/mamba_fields.h), with rates of decay that are stored times
// -1.
void CompleteMamba(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config);

// The width of Mamba2 layers, as a multiple of the hidden size. Throws Error(kFormat) for another.
int64_t ReadMambaExpansion(const GgufMetadata& metadata);

// GgufShape::keyless. Throws Error(kFormat) where the file lists no KV heads.
const std::vector<bool>& ReadKeyless(const GgufMetadata& metadata, const GgufShape& shape);

}  // namespace godwit
