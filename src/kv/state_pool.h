// StatePool: memory for the states of recurrent layers (state_layout.h), within the budget of the
// caches. A block is one part of a page, and has counted references. Blocks lie in memory, also
// where keys lie in a file: every token reads them.
//
// Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kv/kv_budget.h"
#include "ops/state_layout.h"
#include "tensor/buffer.h"

namespace godwit {

class StatePool;

// A reference to a block, or to none. Copies share the block.
class StateBlock {
 public:
  StateBlock() = default;
  ~StateBlock();
  StateBlock(const StateBlock& other);
  StateBlock(StateBlock&& other) noexcept;
  StateBlock& operator=(StateBlock other) noexcept;

  explicit operator bool() const { return pool_ != nullptr; }
  // 64-byte aligned.
  float* data() const { return data_; }
  // Whether there is another reference.
  bool IsShared() const;

 private:
  friend StatePool;

  std::shared_ptr<StatePool> pool_;
  uint32_t part_ = 0;
  uint32_t index_ = 0;
  float* data_ = nullptr;
};

class StatePool : public std::enable_shared_from_this<StatePool> {
 public:
  StatePool(const StateLayout& layout, std::shared_ptr<KvBudget> budget);
  StatePool(const StatePool&) = delete;
  StatePool& operator=(const StatePool&) = delete;

  const StateLayout& layout() const { return layout_; }
  const KvBudget& budget() const { return *budget_; }

  // Makes empty references to first parts of pages, [layers, state_stride], and to second ones,
  // [layers, kTileTokens, row_stride], refer to blocks of any contents. Throws Error(kMemory) with
  // the numbers, and takes none, if the budget or the machine has no memory for all of them.
  void Take(std::span<StateBlock> states, std::span<StateBlock> rows);

 private:
  friend StateBlock;

  struct Block {
    Buffer memory;
    uint32_t references = 0;
  };
  // Blocks of one size.
  struct Part {
    int64_t bytes;
    std::vector<Block> blocks = {};
    std::vector<uint32_t> unused = {};  // blocks without references, those with memory last
    int64_t spare = 0;                  // unused blocks with memory
  };

  void TakeOne(uint32_t part, StateBlock& block);

  std::shared_ptr<KvBudget> budget_;
  StateLayout layout_;
  mutable std::mutex mutex_;
  std::array<Part, 2> parts_;  // states, rows
};

}  // namespace godwit
