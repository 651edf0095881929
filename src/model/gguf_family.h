// The form in which GGUF files hold a family: names of tensors, and fields of a config.json beside
// those that all families share. Names are paired with those of Hugging Face. The file of a family
// (archs/*.cc) has its form beside its spec.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "weights/gguf_metadata.h"

namespace godwit {

// The changes that the tool that made the file made to the rows of a tensor.
enum class GgufRows {
  kAsTheyWere,
  // Rows of q or k in which the rotary pairs of a head, (i, i + half), lie side by side.
  kPairedQ,
  kPairedK,
  // All q, then all k, then all v, where Hugging Face has for each KV head its queries, its key and
  // its value.
  kUngrouped,
  // The matrices of all experts follow one another in one tensor.
  kExperts,
  // The rows are tensors, one for each head.
  kHeads,
  // The matrices of all heads follow one another in one tensor.
  kHeadMatrices,
  // A vector, which is a matrix in GGUF.
  kVector,
  // A matrix of one row, which may be a vector in GGUF.
  kOneRow,
  // The taps of a convolution, whose dimension of size 1 GGUF leaves out.
  kTaps,
  // One number, without a dimension.
  kNumber,
};

// A module's name; ".weight" and ".bias" are appended to both.
struct GgufName {
  std::string_view gguf;  // of one in a layer without its "blk.{}."
  std::string_view hf;    // "{}" is the layer, a second one the expert, or the head
  GgufRows rows = GgufRows::kAsTheyWere;
  // Set: the only ending in GGUF, of a tensor that has none in Hugging Face's files.
  std::string_view only_ending = {};
};

// Sizes that no key tells, but the tensors do.
struct GgufShape {
  int64_t vocab_size = 0;  // rows of the embedding, which may be more than there are tokens
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  bool tied_head = false;
  bool qkv_bias = false;
  bool attention_out_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;
  bool mlp_norm = false;
  bool second_attention_norm = false;
  std::vector<bool> keyless;  // [layers], GgufFamily::keyless_layers
  // Whether keys and values of latent attention are made by tensors of their own, [heads, ...].
  bool latent_heads_apart = false;
};

inline constexpr GgufName kLlamaGgufWhole[] = {
    {"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};

struct GgufFamily {
  std::string_view architecture;  // general.architecture
  std::string_view model_type;    // of config.json, unless `complete` sets another
  // Other model types of Hugging Face whose files have this architecture.
  std::array<std::string_view, 2> other_types = {};
  std::span<const GgufName> whole = kLlamaGgufWhole;
  std::span<const GgufName> layers;
  // Keys whose value is a list with one number for each layer, each of which is a tensor here. They
  // do not begin with the architecture.
  std::span<const GgufName> lists = {};
  // Whether layers have attn_norm_2; among two families with one architecture, the one with it
  // comes first.
  bool second_attention_norm = false;
  // Whether layers in which the list of KV heads has 0 have another mixer than attention (Mixer).
  bool keyless_layers = false;
  // Completes a config that has the common fields, by the names that Llama has for them.
  void (*complete)(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config);
};

}  // namespace godwit
