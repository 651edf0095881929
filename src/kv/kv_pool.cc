#include "kv/kv_pool.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/machine_memory.h"
#include "ops/attention_state.h"

namespace godwit {
namespace {

constexpr int64_t kSlabBytes = int64_t{16} << 20;

[[noreturn]] void RefuseBudget(const KvBudget& budget, int64_t bytes) {
  Throw(ErrorKind::kMemory, "the KV cache needs another {}, and {} of its {} are taken",
        FormatBytes(bytes), FormatBytes(budget.used()), FormatBytes(budget.bytes()));
}

}  // namespace

bool KvBudget::Take(int64_t bytes) {
  int64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > bytes_ - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

KvPool::KvPool(const KvLayout& layout, std::shared_ptr<KvBudget> budget)
    : layout_(layout),
      budget_(budget ? std::move(budget) : std::make_shared<KvBudget>(INT64_MAX)),
      pages_per_slab_(
          static_cast<uint32_t>(std::max<int64_t>(1, kSlabBytes / layout.page_bytes()))) {
  if (layout.head_dim > kernels::kMaxHeadDim) {
    Throw(ErrorKind::kUnsupported, "head_dim {} is larger than the {} that the KV cache supports",
          layout.head_dim, kernels::kMaxHeadDim);
  }
}

void KvPool::Take(std::span<PageId> ids, std::span<std::byte*> data) {
  assert(ids.size() == data.size());
  const int64_t bytes = std::ssize(ids) * layout_.page_bytes();
  if (!budget_->Take(bytes)) RefuseBudget(*budget_, bytes);
  const std::lock_guard lock(mutex_);
  size_t taken = 0;
  try {
    RequireSlabs(std::ssize(ids));
    for (; taken < ids.size(); ++taken) ids[taken] = TakeOne();
  } catch (...) {
    for (const PageId id : ids.first(taken)) FreeSlot(id);
    budget_->GiveBack(bytes);
    throw;
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    data[i] = SlabOf(ids[i]).memory.data() + ids[i] % pages_per_slab_ * layout_.page_bytes();
  }
  in_use_ += std::ssize(ids);
}

void KvPool::Require(int64_t pages) const {
  const int64_t bytes = CheckedMul(pages, layout_.page_bytes()).value_or(INT64_MAX);
  if (bytes > budget_->bytes() - budget_->used()) RefuseBudget(*budget_, bytes);
  const std::lock_guard lock(mutex_);
  RequireSlabs(pages);
}

void KvPool::RequireSlabs(int64_t pages) const {
  int64_t held = 0;
  for (const Slab& slab : slabs_) held += slab.memory.bytes() == 0 ? 0 : pages_per_slab_;
  const int64_t more = pages - (held - in_use_);
  if (more <= 0) return;
  const int64_t slabs = (more - 1) / pages_per_slab_ + 1;
  RequireMemory(CheckedMul(slabs, slab_bytes()).value_or(INT64_MAX),
                "a KV cache of {} that grows takes another",
                FormatBytes(in_use_ * layout_.page_bytes()));
}

KvPool::PageId KvPool::TakeOne() {
  while (first_with_room_ < slabs_.size() && slabs_[first_with_room_].free.empty()) {
    ++first_with_room_;
  }
  if (first_with_room_ == slabs_.size()) {
    Slab slab;
    slab.references.resize(pages_per_slab_);
    slab.free.resize(pages_per_slab_);
    std::iota(slab.free.rbegin(), slab.free.rend(), 0u);
    slabs_.push_back(std::move(slab));
  }
  Slab& slab = slabs_[first_with_room_];
  if (slab.memory.bytes() == 0) {
    slab.memory = Buffer(slab_bytes());
  } else if (slab.free.size() == pages_per_slab_) {
    --empty_slabs_;
  }
  const uint32_t slot = slab.free.back();
  slab.free.pop_back();
  slab.references[slot] = 1;
  return static_cast<PageId>(first_with_room_) * pages_per_slab_ + slot;
}

void KvPool::Share(std::span<const PageId> ids) {
  const std::lock_guard lock(mutex_);
  for (const PageId id : ids) ++References(id);
}

void KvPool::Release(std::span<const PageId> ids) noexcept {
  const std::lock_guard lock(mutex_);
  for (const PageId id : ids) {
    assert(References(id) > 0);
    if (--References(id) > 0) continue;
    FreeSlot(id);
    --in_use_;
    budget_->GiveBack(layout_.page_bytes());
  }
}

void KvPool::FreeSlot(PageId id) noexcept {
  const size_t index = id / pages_per_slab_;
  Slab& slab = slabs_[index];
  slab.references[id % pages_per_slab_] = 0;
  slab.free.push_back(id % pages_per_slab_);  // of a capacity for all
  first_with_room_ = std::min(first_with_room_, index);
  if (slab.free.size() < pages_per_slab_) return;
  if (empty_slabs_ > 0) {
    slab.memory = Buffer();
  } else {
    ++empty_slabs_;
  }
}

bool KvPool::IsShared(PageId id) const {
  const std::lock_guard lock(mutex_);
  return const_cast<KvPool*>(this)->References(id) > 1;
}

int64_t KvPool::pages_in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

}  // namespace godwit
