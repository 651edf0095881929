// The members of an EngineGroup. An engine alone has a group of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/thread_pool.h"
#include "engine/step_turns.h"
#include "godwit/engine.h"
#include "kv/kv_budget.h"
#include "kv/kv_file.h"

namespace godwit {

class EngineGroup::Impl {
 public:
  explicit Impl(const LoadOptions& options);
  // The group that the options name, or a new one for one engine.
  static std::shared_ptr<Impl> Of(const LoadOptions& options);

  // Counts the bytes that an engine has mapped (Decoder::mapped_bytes), as long as the result
  // lives. Where no option limits the caches, free memory does, which is read again.
  [[nodiscard]] std::shared_ptr<void> HoldMapped(int64_t bytes);

  const std::vector<int> cpus;  // CPUs of the threads that compute, if they are pinned
  ThreadPool pool;
  const std::shared_ptr<KvBudget> budget;  // of memory
  const std::shared_ptr<KvFile> file;      // of all caches; null: they lie in memory
  StepTurns turns;

 private:
  bool takes_free_memory_;
};

}  // namespace godwit
