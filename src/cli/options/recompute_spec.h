// recompute:W instead of a KV policy: it asks for the oracle of streaming (eval/recompute.h), in
// verbs that measure with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace godwit::cli {

inline constexpr std::string_view kRecomputeUsage = "recompute:W";
inline constexpr std::string_view kRecomputeDescription =
    "process the last W tokens again for every token: slow, the reference for streaming";

// The description in sentences.
std::string ExplainRecompute(int64_t window);

// W of "recompute:W". Nullopt if the spec is a policy's. Throws Error(kInput) for an invalid W.
std::optional<int64_t> RecomputeWindow(std::string_view spec);

// Throws Error(kInput), which explains recompute, if the spec is recompute.
void RefuseRecompute(std::string_view spec);

}  // namespace godwit::cli
