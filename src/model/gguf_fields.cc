#include "model/gguf_fields.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
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
