#include <string>
#include <string_view>
#include <utility>

#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

// The rotation of a Ministral 3 config that states none.
constexpr std::string_view kMinistralRope =
    R"({"rope_parameters":{"rope_type":"yarn","rope_theta":1000000,"factor":16,"beta_fast":32,)"
    R"("beta_slow":1,"mscale":1,"mscale_all_dim":1,"llama_4_scaling_beta":0.1,)"
    R"("original_max_position_embeddings":16384}})";

}  // namespace

// Llama with a sliding window in every layer.
DecoderSpec DescribeMistral(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaLike(config);
  ReadWindows(config, /*first_windowed=*/0, spec);
  return spec;
}

void ReadQueryTemperature(const HfConfig& fields, DecoderSpec& spec) {
  spec.rotary.temperature = {
      .growth = fields.Float("llama_4_scaling_beta", {0, 100}),
      .tokens = fields.Int("original_max_position_embeddings", kContextRange)};
  fields.MarkAsRead("max_position_embeddings");  // stands there, too
}

// Llama with Llama 4's temperature on the queries of all layers.
DecoderSpec DescribeMinistral3(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaShape(config, {.default_head_dim = 128});
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  const HfConfig stated =
      RotaryFields(config) ? config : HfConfig::Parse(kMinistralRope, "ministral3");
  const int64_t context = spec.max_context;  // includes the scaling
  ReadRotary(stated, spec.head_dim, "rope_theta", spec);
  spec.max_context = context;
  ReadQueryTemperature(*RotaryFields(stated), spec);
  ReadStatedWindows(config, spec);
  return spec;
}

// Mistral Small 3.1 and 3.2, Ministral 3 or Mistral Small 4, without the vision part. Either object
// says whether the head is tied.
DecoderSpec DescribeMistral3(const HfConfig& config) {
  const HfConfig text = NeedObject(config, "text_config");
  const std::string type = text.model_type();
  ExpectOneOf(text, "model_type", type, {"mistral", "ministral3", "mistral4"});
  DecoderSpec spec = type == "mistral"      ? DescribeMistral(text)
                     : type == "ministral3" ? DescribeMinistral3(text)
                                            : DescribeMistral4(text);
  spec.tied_head = text.BoolOr("tie_word_embeddings", config.BoolOr("tie_word_embeddings", false));
  return BesideVision(config, std::move(spec));
}

}  // namespace godwit
