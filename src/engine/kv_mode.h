// What --kv asks for: a policy, or to read without a cache.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "attention/make_policy.h"
#include "generate/recompute.h"

namespace godwit {

// The spec of KvMode that is no policy's, and what it does, for people.
inline constexpr std::string_view kRecomputeUsage = "recompute:W";
inline constexpr std::string_view kRecomputeDescription =
    "read the last W tokens anew for every token: slow, the oracle of streaming";

// What a session computes with.
class KvMode {
 public:
  // options.spec: one of AllPolicies(), or "recompute:W". The model is borrowed. Throws as
  // MakePolicy does.
  KvMode(const LanguageModel& model, const AttentionGeometry& geometry, PolicyOptions options);

  const LanguageModel& model() const { return recompute_ ? *recompute_ : model_; }
  // For one text.
  std::unique_ptr<AttentionPolicy> NewPolicy() const;

 private:
  const LanguageModel& model_;
  AttentionGeometry geometry_;
  PolicyOptions options_;
  std::unique_ptr<Recompute> recompute_;
};

// How many tokens options.spec keeps at most. Throws what KvMode would, without a model.
int64_t MostKept(const AttentionGeometry& geometry, const PolicyOptions& options);

}  // namespace godwit
