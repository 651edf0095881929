#include "model/gguf_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace godwit {

using nlohmann::json;

double RotatedPart(const GgufMetadata& metadata, const GgufShape& shape) {
  const int64_t rotated = metadata.IntOr(metadata.ArchitectureKey("rope.dimension_count"),
                                         shape.head_dim, {0, shape.head_dim});
  return rotated == shape.head_dim
             ? 1
             : (static_cast<double>(rotated) + 0.5) / static_cast<double>(shape.head_dim);
}

void RequireWholeRotation(const GgufMetadata& metadata, const GgufShape& shape) {
  if (RotatedPart(metadata, shape) == 1) return;
  metadata.Refuse(metadata.ArchitectureKey("rope.dimension_count"),
                  fmt::format("{}, the size of a head", shape.head_dim), "fewer",
                  ErrorKind::kUnsupported);
}

int64_t OwnInt(const GgufMetadata& metadata, std::string_view key) {
  return metadata.Int(metadata.ArchitectureKey(key), kSizeRange);
}

int64_t OwnIntOr(const GgufMetadata& metadata, std::string_view key, int64_t fallback) {
  return metadata.IntOr(metadata.ArchitectureKey(key), fallback, {0, kSizeRange.max});
}

GgufLayers ReadLayers(const GgufMetadata& metadata) {
  const int64_t all = OwnInt(metadata, "block_count");
  const int64_t predicting = OwnIntOr(metadata, "nextn_predict_layers", 0);
  if (predicting >= all) {
    metadata.Refuse(metadata.ArchitectureKey("nextn_predict_layers"),
                    fmt::format("fewer than all {} layers", all), fmt::format("{}", predicting));
  }
  return {.decoding = all - predicting, .predicting = predicting};
}

std::vector<int64_t> ListOfLayers(const GgufMetadata& metadata, std::string_view key,
                                  IntRange range) {
  const std::string own = metadata.ArchitectureKey(key);
  const GgufLayers layers = ReadLayers(metadata);
  std::vector<int64_t> numbers = metadata.Ints(own, range);
  const int64_t all = layers.decoding + layers.predicting;
  if (std::ssize(numbers) != all) {
    metadata.Refuse(own, fmt::format("a list, one for each of {} layers", all),
                    fmt::format("{}", numbers.size()));
  }
  numbers.resize(static_cast<size_t>(layers.decoding));
  return numbers;
}

int64_t SharedExperts(const GgufMetadata& metadata) {
  const int64_t width = OwnIntOr(metadata, "expert_shared_feed_forward_length", 0);
  return OwnIntOr(metadata, "expert_shared_count",
                  width / OwnInt(metadata, "expert_feed_forward_length"));
}

void ReadDeepSeekExperts(const GgufMetadata& metadata, bool norm_unless_told, json& config) {
  config["n_routed_experts"] = OwnInt(metadata, "expert_count");
  config["num_experts_per_tok"] = OwnInt(metadata, "expert_used_count");
  config["moe_intermediate_size"] = OwnInt(metadata, "expert_feed_forward_length");
  config["n_shared_experts"] = SharedExperts(metadata);
  config["first_k_dense_replace"] = OwnIntOr(metadata, "leading_dense_block_count", 0);
  config["norm_topk_prob"] =
      metadata.BoolOr(metadata.ArchitectureKey("expert_weights_norm"), norm_unless_told);
  // Files say 0 for none.
  const double scale =
      metadata.FloatOr(metadata.ArchitectureKey("expert_weights_scale"), 0, {0, 1e6});
  config["routed_scaling_factor"] = scale == 0 ? 1 : scale;
  const int64_t groups = std::max<int64_t>(1, OwnIntOr(metadata, "expert_group_count", 1));
  config["n_group"] = groups;
  config["topk_group"] =
      groups == 1 ? 1 : std::max<int64_t>(1, OwnIntOr(metadata, "expert_group_used_count", 1));
}

void ReadWindowPattern(const GgufMetadata& metadata, json& config) {
  const std::string key = metadata.ArchitectureKey("attention.sliding_window_pattern");
  if (!metadata.Has(key) || config.value("sliding_window", json()).is_null()) return;
  // The limit is the families' own, so that a list of layers stays small.
  const int64_t layers = metadata.Int(metadata.ArchitectureKey("block_count"), {1, 4096});
  std::vector<bool> windowed;
  if (metadata.IsList(key)) {
    windowed = metadata.Bools(key);
  } else {
    const int64_t period = metadata.Int(key, {1, 4096});
    for (int64_t i = 0; i < layers; ++i) windowed.push_back((i + 1) % period != 0);
  }
  if (std::ssize(windowed) != layers) {
    metadata.Refuse(key, fmt::format("one for each of {} layers", layers),
                    fmt::format("{}", windowed.size()));
  }
  for (const bool has_window : windowed) {
    config["layer_types"].push_back(has_window ? "sliding_attention" : "full_attention");
  }
}

}  // namespace godwit
