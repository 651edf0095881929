#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with one q, k, v tensor grouped by KV head, and its own names.
DecoderSpec DescribeInternLm2(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaLike(config);
  spec.qkv_layout = QkvLayout::kGrouped;
  spec.qkv_bias = config.BoolOr("bias", true);
  spec.attention_out_bias = spec.qkv_bias;
  spec.names = {
      .embedding = "model.tok_embeddings",
      .final_norm = "model.norm",
      .head = "output",
      .attention_norm = "model.layers.{}.attention_norm",
      .qkv = "model.layers.{}.attention.wqkv",
      .attention_out = "model.layers.{}.attention.wo",
      .mlp_norm = "model.layers.{}.ffn_norm",
      .gate = "model.layers.{}.feed_forward.w1",
      .up = "model.layers.{}.feed_forward.w3",
      .down = "model.layers.{}.feed_forward.w2",
      .harmless = {".rotary_emb.inv_freq"},
  };
  return spec;
}

const GgufFamily kInternLm2Gguf = {.architecture = "internlm2",
                                   .model_type = "llama",
                                   .layers = kLlamaGgufLayers,
                                   .complete = CompleteLlama};

}  // namespace godwit
