// A model cut short: what goes into a decoder layer depends on none behind it, so who only looks at
// the first ones loads and computes no more than these.
#pragma once

#include <cstdint>
#include <memory>

#include "model/loader.h"

namespace godwit::quant {

// As LoadDecoder, of the first `layers` decoder layers. The source holds those of the whole spec
// and has been checked: of what is not asked for, nothing is said. storage: as there.
std::unique_ptr<Decoder> LoadFirstLayers(DecoderSpec spec, const WeightSource& source,
                                         int64_t layers, ThreadPool& pool, const LoadHooks& hooks,
                                         std::optional<DType> storage = std::nullopt);

}  // namespace godwit::quant
