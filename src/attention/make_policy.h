// Making policies from --kv. make_policy.cc holds the only list of policies.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attention/core/geometry.h"
#include "attention/core/policy.h"
#include "attention/core/text_cache.h"
#include "attention/ranks/rank_speed.h"
#include "attention/ranks/text_placement.h"
#include "dist/communicator.h"
#include "kv/kv_pool.h"
#include "tensor/dtype.h"

namespace godwit {

struct PolicyOptions {
  std::string spec = "dense";    // one of AllPolicies(), with its arguments
  DType kv_type = DType::kBF16;  // one of kKvTypes (ops/kv_layout.h)
  bool int8_products = false;    // as ops::AttentionSource has it; only if kv_type is I8
  int64_t context = 0;           // tokens that a policy which keeps everything may hold
  // The way in which the context of a text is read (policies/prefill_spec.h), whatever `spec` shows
  // to question and answer; empty: by `spec`. "auto": as policies/choose_prefill.h has it for a
  // context that fills this one.
  std::string prefill;
  // The tokens to whose keys a GPU attends for each token (policies/near_on_gpu.h); 0: none.
  int64_t gpu_window = 0;
  // The ranks that share every text, of which this is one; null or one: no other. They share no
  // memory, and all make the same steps behind a text's context.
  std::shared_ptr<Communicator> ranks = {};
  std::vector<RankSpeed> rank_speeds = {};  // the same on all of them; empty: unknown
};

struct PolicyKind {
  std::string_view name;
  std::string_view usage;        // "sinks:S+W"
  std::string_view description;  // one line for people
  // Examples for tests that hold for every policy: the smallest and an ample spec, as the policy
  // spells its name.
  std::string_view tight_example;
  std::string_view ample_example;
  std::array<std::string_view, 13> other_examples = {};  // of other modes
  std::unique_ptr<AttentionPolicy> (*make)(const AttentionGeometry& geometry,
                                           const PolicyOptions& options,
                                           std::string_view arguments);
};

std::span<const PolicyKind> AllPolicies();

struct PlacedPolicy {
  std::unique_ptr<AttentionPolicy> policy;
  TextPlacement placement;
};

// Makes a policy, and places its text on options.ranks. Throws Error(kInput) with the usages when
// the spec is not understood, or for int8 products of keys that are not stored as int8. Throws
// Error(kUnsupported) when the policy cannot serve this model.
PlacedPolicy MakePlacedPolicy(const AttentionGeometry& geometry, const PolicyOptions& options);
std::unique_ptr<AttentionPolicy> MakePolicy(const AttentionGeometry& geometry,
                                            const PolicyOptions& options);

// The facts about a policy that hold for every model: all but numbers of tokens. Throws as
// MakePolicy does.
PolicyFacts PolicyFactsOf(const std::string& spec);

// Whether a model's keys and values can be stored in that type: values that are numbers of keys
// (latent attention) have no 4 bits.
bool CanBeStored(const AttentionGeometry& geometry, DType kv_type);
// The layout of a model's cache. Throws Error(kUnsupported) unless CanBeStored.
KvLayout LayoutOf(const AttentionGeometry& geometry, DType kv_type);

// The memory of a model's recurrent layers, in a sentence for people; empty: it has none.
std::string ExplainStates(const AttentionGeometry& geometry);

// An empty text, in pages of `pool`, whose layout is that of the geometry and options.kv_type;
// null: of a pool of its own. Throws as MakePolicy does.
std::unique_ptr<TextCache> MakeTextCache(const AttentionGeometry& geometry,
                                         const PolicyOptions& options,
                                         std::shared_ptr<KvPool> pool = nullptr);

}  // namespace godwit
