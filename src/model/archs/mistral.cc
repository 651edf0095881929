#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with a sliding window in every layer.
DecoderSpec DescribeMistral(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaLike(config);
  ReadWindows(config, /*first_windowed=*/0, spec);
  return spec;
}

}  // namespace godwit
