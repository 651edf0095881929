#include <utility>

#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with a sliding window in every layer.
DecoderSpec DescribeMistral(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaLike(config);
  ReadWindows(config, /*first_windowed=*/0, spec);
  return spec;
}

// Mistral Small 3.1 and 3.2, without what sees. Whether the head is tied is said in either object.
DecoderSpec DescribeMistral3(const HfConfig& config) {
  const HfConfig text = NeedObject(config, "text_config");
  if (text.model_type() != "mistral") text.Refuse("model_type", "mistral", ErrorKind::kUnsupported);
  DecoderSpec spec = DescribeMistral(text);
  spec.tied_head = text.BoolOr("tie_word_embeddings", config.BoolOr("tie_word_embeddings", false));
  return BesideVision(config, std::move(spec));
}

}  // namespace godwit
