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
  // The same, where each matrix is two of Hugging Face's: the first half of its rows, and the
  // second. Both have an entry.
  kFirstHalves,
  kSecondHalves,
  // The matrices of all residual streams but one follow one another in one tensor.
  kStreams,
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
  // Set: the ending in GGUF of a tensor that has none in Hugging Face's files. A module may also
  // have an entry for each ending, and then one without for the others.
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
  bool convolution_bias = false;
  bool mamba_norm = false;
  std::vector<bool> keyless;             // [layers], GgufFamily::keyless_layers
  std::vector<int64_t> mlp_widths;       // [layers], GgufFamily::listed_widths
  std::vector<int64_t> listed_kv_heads;  // [layers], GgufFamily::unequal_kv_heads
  std::vector<float> rotary_factors;     // GgufFamily::own_rotary_factors
  bool keys_are_values = false;  // some layers have a projection for keys and none for values
  int64_t layer_rows = 0;        // of the table of layers' embeddings
  int64_t laurel_rank = 0;       // StreamsSpec::narrow
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
  // Further names of the layer that predicts one more token (Prediction); empty: the family has
  // none, and such layers of files are left out. Its other tensors have the names of `layers`, with
  // `predicting` in the place of "model.layers.{}".
  std::span<const GgufName> prediction = {};
  std::string_view predicting = "model.layers.{}";
  // Keys whose value is a list with one number for each layer, each of which is a tensor here. They
  // do not begin with the architecture.
  std::span<const GgufName> lists = {};
  // Whether layers have attn_norm_2; among two families with one architecture, the one with it
  // comes first.
  bool second_attention_norm = false;
  // Whether layers in which the list of KV heads has 0 have another mixer than attention (Mixer).
  bool keyless_layers = false;
  // Whether feed_forward_length may be a list of different widths, one for each layer.
  bool listed_widths = false;
  // Whether the list of KV heads may have different numbers.
  bool unequal_kv_heads = false;
  // Whether the family knows what rope_freqs.weight means, which divides frequencies.
  bool own_rotary_factors = false;
  // The reason why the family's files are read and not written, as the end of a sentence about a
  // model; empty: they are written.
  std::string_view read_only = {};
  // Tells the models of the family from others with the same architecture, of which the first that
  // fits counts. Null: all fit.
  bool (*fits)(const GgufMetadata& metadata) = nullptr;
  // Completes a config that has the common fields, by the names that Llama has for them.
  void (*complete)(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config);
};

}  // namespace godwit
