#include "engine/engine_group.h"

#include <string>

#include "base/cores.h"
#include "base/error.h"
#include "base/machine_memory.h"
#include "base/numa.h"
#include "engine/scheduler.h"

namespace godwit {
namespace {

int ThreadCount(int requested) {
  if (requested < 0 || requested > ThreadPool::kMaxThreads) {
    Throw(ErrorKind::kInput, "{} threads: expected 1 to {}, or 0 for one per core", requested,
          ThreadPool::kMaxThreads);
  }
  return ThreadsFor(requested);
}

std::vector<int> Cpus(const LoadOptions& options) {
  std::string report;
  auto cpus = PlaceThreads(ParseNuma(options.numa), ThreadCount(options.threads), &report);
  if (!report.empty() && options.on_warning) options.on_warning(report);
  return cpus;
}

std::shared_ptr<KvBudget> NewBudget(const LoadOptions& options) {
  for (const int64_t bytes : {options.kv_memory_bytes, options.kv_file_bytes}) {
    if (bytes >= 0) continue;
    Throw(ErrorKind::kInput,
          "KV memory of {} bytes, expected more than 0, or 0 for all free memory", bytes);
  }
  return std::make_shared<KvBudget>(
      options.kv_memory_bytes > 0 ? options.kv_memory_bytes : ReadMachineMemory().available_bytes);
}

}  // namespace

EngineGroup::Impl::Impl(const LoadOptions& options)
    : cpus(Cpus(options)),
      pool(ThreadCount(options.threads), cpus),
      budget(NewBudget(options)),
      file(options.kv_file.empty()
               ? nullptr
               : std::make_shared<KvFile>(options.kv_file, options.kv_file_bytes, budget)),
      takes_free_memory_(options.kv_memory_bytes == 0) {}

std::shared_ptr<EngineGroup::Impl> EngineGroup::Impl::Of(const LoadOptions& options) {
  return options.group == nullptr ? std::make_shared<Impl>(options) : options.group->impl_;
}

std::shared_ptr<void> EngineGroup::Impl::HoldMapped(int64_t bytes) {
  budget->AddMapped(bytes);
  std::shared_ptr<void> held(nullptr, [of = budget, bytes](void*) { of->AddMapped(-bytes); });
  if (takes_free_memory_) {
    budget->Resize(budget->used() +
                   ReadMachineMemoryBeside(budget->mapped_bytes()).available_bytes);
  }
  return held;
}

EngineGroup::EngineGroup(const LoadOptions& options) : impl_(std::make_shared<Impl>(options)) {}
EngineGroup::~EngineGroup() = default;

void EngineGroup::ForgetTexts() const {
  const StepTurns::Turn turn(impl_->turns);
  for (Scheduler* const scheduler : impl_->turns.schedulers()) scheduler->ForgetTexts();
}

int64_t EngineGroup::kv_memory_bytes() const {
  return (impl_->file ? impl_->file->budget() : impl_->budget)->bytes();
}

int64_t EngineGroup::used_kv_bytes() const { return impl_->budget->used(); }
int64_t EngineGroup::mapped_bytes() const { return impl_->budget->mapped_bytes(); }

}  // namespace godwit
