#include "engine/served_model.h"

#include <utility>

#include "base/error.h"
#include "base/machine_memory.h"
#include "engine/policy_options.h"

namespace godwit {

KvPools::KvPools(const AttentionGeometry& geometry, std::shared_ptr<KvBudget> budget,
                 std::shared_ptr<KvFile> file)
    : geometry_(geometry),
      file_(std::move(file)),
      budget_(file_ == nullptr ? std::move(budget) : file_->budget()) {}

std::shared_ptr<KvPool> KvPools::Of(DType kv_type) const {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<KvPool>& pool = pools_[kv_type];
  if (pool == nullptr) {
    const KvLayout layout = LayoutOf(geometry_, kv_type);
    auto made =
        file_ ? std::make_shared<KvPool>(layout, file_) : std::make_shared<KvPool>(layout, budget_);
    const int64_t least = made->layout().BytesFor(1);
    if (least > budget_->bytes()) {
      Throw(ErrorKind::kMemory, "KV {} of {}, but the smallest KV cache, {} tokens in {}, takes {}",
            file_ ? "file" : "memory", FormatBytes(budget_->bytes()), kTileTokens, Name(kv_type),
            FormatBytes(least));
    }
    pool = std::move(made);
  }
  return pool;
}

PolicyOptions ServedModel::OptionsOf(const SessionOptions& session) const {
  PolicyOptions options = PolicyOptionsOf(session, spec, types);
  options.ranks = placement.context;
  options.rank_speeds = rank_speeds;
  return options;
}

}  // namespace godwit
