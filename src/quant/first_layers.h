// A model cut short. The input of a decoder layer depends on no layer behind it, so a look at the
// first layers loads and computes only these.
#pragma once

#include <cstdint>
#include <memory>

#include "model/loader.h"

namespace godwit::quant {

// Loads the first `layers` decoder layers as LoadDecoder does. `source` has the tensors of the
// whole spec and has been checked, so no message is given for tensors of other layers.
std::unique_ptr<Decoder> LoadFirstLayers(DecoderSpec spec, const WeightSource& source,
                                         int64_t layers, ThreadPool& pool, const LoadHooks& hooks,
                                         std::optional<DType> storage = std::nullopt);

}  // namespace godwit::quant
