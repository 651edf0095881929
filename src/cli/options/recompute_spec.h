// recompute:W in the place of a KV policy: how the oracle of streaming (eval/recompute.h) is asked
// for, by the verbs that measure with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace godwit::cli {

inline constexpr std::string_view kRecomputeUsage = "recompute:W";
inline constexpr std::string_view kRecomputeDescription =
    "read the last W tokens anew for every token: slow, the oracle of streaming";

// The description, in sentences.
std::string ExplainRecompute(int64_t window);

// W of "recompute:W"; nothing if the spec is a policy's. Throws Error(kInput) for a W that is none.
std::optional<int64_t> RecomputeWindow(std::string_view spec);

// Throws Error(kInput) that says what it is for if the spec is recompute.
void RefuseRecompute(std::string_view spec);

}  // namespace godwit::cli
