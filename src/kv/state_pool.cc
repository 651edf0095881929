#include "kv/state_pool.h"

#include <cassert>
#include <utility>

#include "base/error.h"
#include "base/machine_memory.h"

namespace godwit {

StatePool::StatePool(const StateLayout& layout, std::shared_ptr<KvBudget> budget)
    : budget_(std::move(budget)), layout_(layout) {}

void StatePool::Take(std::span<PageId> ids) {
  const int64_t page_bytes = layout_.page_bytes(), bytes = std::ssize(ids) * page_bytes;
  if (bytes == 0) return;
  budget_->TakeOrRefuse(bytes);
  const std::lock_guard lock(mutex_);
  size_t taken = 0;
  try {
    if (const int64_t more = std::ssize(ids) - spare_; more > 0) {
      RequireMemory(ReadMachineMemoryBeside(budget_->mapped_bytes()), more * page_bytes,
                    "the states of recurrent layers take another");
    }
    unused_.reserve(unused_.size() + ids.size());
    for (; taken < ids.size(); ++taken) {
      if (unused_.empty()) {
        pages_.emplace_back();
        unused_.reserve(pages_.capacity());  // Release must not throw
        unused_.push_back(static_cast<PageId>(pages_.size() - 1));
      }
      const PageId id = unused_.back();
      Page& page = pages_[id];
      if (page.memory.bytes() == 0) {
        page.memory = Buffer(page_bytes);
      } else {
        --spare_;
      }
      page.references = 1;
      unused_.pop_back();
      ids[taken] = id;
    }
  } catch (...) {
    for (const PageId id : ids.first(taken)) {
      pages_[id] = {};
      unused_.insert(unused_.begin(), id);
    }
    budget_->Release(bytes);
    throw;
  }
}

void StatePool::Share(PageId id) {
  const std::lock_guard lock(mutex_);
  ++pages_[id].references;
}

void StatePool::Release(PageId id) noexcept {
  constexpr int64_t kMostSpare = 2;  // a text that grows gives back a page and takes another
  const std::lock_guard lock(mutex_);
  Page& page = pages_[id];
  assert(page.references > 0);
  if (--page.references > 0) return;
  budget_->Release(layout_.page_bytes());
  if (spare_ < kMostSpare) {
    ++spare_;
    unused_.push_back(id);
  } else {
    page.memory = Buffer();
    unused_.insert(unused_.begin(), id);
  }
}

bool StatePool::IsShared(PageId id) const {
  const std::lock_guard lock(mutex_);
  return pages_[id].references > 1;
}

float* StatePool::Data(PageId id) const {
  const std::lock_guard lock(mutex_);
  return reinterpret_cast<float*>(pages_[id].memory.data());
}

}  // namespace godwit
