// StatePool: pages for the states of recurrent layers (state_layout.h), within the budget of the
// caches. Pages have counted references. They lie in memory, also where keys lie in a file: every
// token reads them.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kv/kv_budget.h"
#include "ops/state_layout.h"
#include "tensor/buffer.h"

namespace godwit {

class StatePool {
 public:
  using PageId = uint32_t;

  StatePool(const StateLayout& layout, std::shared_ptr<KvBudget> budget);
  StatePool(const StatePool&) = delete;
  StatePool& operator=(const StatePool&) = delete;

  const StateLayout& layout() const { return layout_; }
  const KvBudget& budget() const { return *budget_; }

  // Takes pages of any contents, with one reference each. Throws Error(kMemory) with the numbers,
  // and takes none, if the budget or the machine has no memory for all of them.
  void Take(std::span<PageId> ids);
  void Share(PageId id);
  void Release(PageId id) noexcept;
  // Whether the page has another reference.
  bool IsShared(PageId id) const;
  // [layers, layer_floats], 64-byte aligned, as long as the page has a reference.
  float* Data(PageId id) const;

 private:
  struct Page {
    Buffer memory;
    uint32_t references = 0;
  };

  std::shared_ptr<KvBudget> budget_;
  StateLayout layout_;
  mutable std::mutex mutex_;
  std::vector<Page> pages_;
  std::vector<PageId> unused_;  // pages without references, those with memory last
  int64_t spare_ = 0;           // unused pages with memory
};

}  // namespace godwit
