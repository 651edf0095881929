// Fields that several families of GGUF share, in the words of config.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "model/gguf_family.h"

namespace godwit {

// The range of sizes and counts. Readers of the config.json have ranges of their own; this one
// protects arithmetic before.
inline constexpr IntRange kSizeRange{1, int64_t{1} << 40};

// The rotated part of the dimensions of a head. It is a little more than the quotient, which is
// multiplied and cut off where it is read.
double RotatedPart(const GgufMetadata& metadata, const GgufShape& shape);

// Throws Error(kUnsupported) where a part of a head does not rotate.
void RequireWholeRotation(const GgufMetadata& metadata, const GgufShape& shape);

// Reads layer_types, where there is a window and attention.sliding_window_pattern says which layers
// have it. It says so for each layer, or by a period of which the last layer has none. Throws
// Error(kFormat) for a list that has not one for each layer.
void ReadWindowPattern(const GgufMetadata& metadata, nlohmann::json& config);

// The layers of a file, which counts those that predict more tokens, too.
struct GgufLayers {
  int64_t decoding = 0;
  int64_t predicting = 0;

  bool Predicts(int64_t layer) const { return decoding <= layer && layer < decoding + predicting; }
};
// Throws Error(kFormat) if no other layers are left.
GgufLayers ReadLayers(const GgufMetadata& metadata);

// A list of the architecture with a number for each layer, of which those that decode are returned.
// Throws Error(kFormat) for a list of another length.
std::vector<int64_t> ListOfLayers(const GgufMetadata& metadata, std::string_view key,
                                  IntRange range);

// A size or count of the architecture, whose key must be there, or has a default.
int64_t OwnInt(const GgufMetadata& metadata, std::string_view key);
int64_t OwnIntOr(const GgufMetadata& metadata, std::string_view key, int64_t fallback);

// Reads the experts of DeepSeek and families that have the same (archs/deepseek_experts.h).
// norm_unless_told: whether shares add up to 1 in a file that does not say.
void ReadDeepSeekExperts(const GgufMetadata& metadata, bool norm_unless_told,
                         nlohmann::json& config);

// The experts that serve all tokens, as a multiple of the width of one.
int64_t SharedExperts(const GgufMetadata& metadata);

// The value of expert_gating_func for experts that are chosen by sigmoids. 1 stands for a softmax.
inline constexpr int64_t kGgufSigmoid = 2;

}  // namespace godwit
