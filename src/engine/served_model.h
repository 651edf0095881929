// ServedModel: the model of an engine as its texts know it, the memory for their caches, and the
// ranks among which they lie. It is this rank's part of the model. Immutable once the engine has
// been made, but for the pools.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "attention/core/geometry.h"
#include "attention/make_policy.h"
#include "attention/ranks/rank_speed.h"
#include "dist/placement.h"
#include "godwit/engine.h"
#include "kv/kv_budget.h"
#include "kv/kv_file.h"
#include "kv/kv_pool.h"
#include "kv/snapshot_header.h"
#include "model/decoder.h"
#include "model/spec.h"

namespace godwit {

// The pools of all texts, one for each type of keys and values, which share a budget. Thread-safe.
class KvPools {
 public:
  // file: the file in which caches lie, whose budget is used; null: they lie in memory.
  KvPools(const AttentionGeometry& geometry, std::shared_ptr<KvBudget> budget,
          std::shared_ptr<KvFile> file);

  // The bytes that the caches of all texts may take together.
  int64_t bytes() const { return budget_->bytes(); }
  // The pool for texts of that type. Throws Error(kMemory) if the smallest cache does not fit, and
  // as LayoutOf does.
  std::shared_ptr<KvPool> Of(DType kv_type) const;

 private:
  AttentionGeometry geometry_;
  std::shared_ptr<KvFile> file_;
  std::shared_ptr<KvBudget> budget_;
  mutable std::mutex mutex_;
  mutable std::map<DType, std::shared_ptr<KvPool>> pools_;
};

struct ServedModel {
  DecoderSpec spec;
  WeightTypes types{.layers = DType::kF32, .head = DType::kF32};
  std::string name;  // for people
  // The facts on which cached keys and values depend, besides how texts are read; empty unless
  // texts are saved.
  SnapshotFacts facts;

  std::unique_ptr<const KvPools> pools;

  // The ranks that share weights and texts, and the speeds of those that share texts; empty:
  // unknown.
  Placement placement;
  std::vector<RankSpeed> rank_speeds;
  // Whether a GPU attends for contexts that are read so (LoadOptions::gpu_attention).
  bool gpu_attends = false;
  // LoadOptions::gpu_window.
  int64_t gpu_window = 0;
  // Whether queries that see the same keys are on several ranks, each of which has the keys.
  bool spreads_kv_heads = false;

  AttentionGeometry geometry() const { return Geometry(spec); }
  // PolicyOptionsOf (policy_options.h) on the ranks that share texts.
  PolicyOptions OptionsOf(const SessionOptions& session) const;
};

}  // namespace godwit
