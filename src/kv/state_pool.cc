#include "kv/state_pool.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/error.h"
#include "base/machine_memory.h"

namespace godwit {

StateBlock::~StateBlock() {
  constexpr int64_t kMostSpare = 2;  // a text that grows gives back a block and takes another
  if (pool_ == nullptr) return;
  const std::lock_guard lock(pool_->mutex_);
  StatePool::Part& part = pool_->parts_[part_];
  StatePool::Block& block = part.blocks[index_];
  assert(block.references > 0);
  if (--block.references > 0) return;
  pool_->budget_->Release(part.bytes);
  if (part.spare < kMostSpare) {
    ++part.spare;
    part.unused.push_back(index_);  // has capacity
  } else {
    block.memory = Buffer();
    part.unused.insert(part.unused.begin(), index_);
  }
}

StateBlock::StateBlock(const StateBlock& other)
    : pool_(other.pool_), part_(other.part_), index_(other.index_), data_(other.data_) {
  if (pool_ == nullptr) return;
  const std::lock_guard lock(pool_->mutex_);
  ++pool_->parts_[part_].blocks[index_].references;
}

StateBlock::StateBlock(StateBlock&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      part_(other.part_),
      index_(other.index_),
      data_(std::exchange(other.data_, nullptr)) {}

StateBlock& StateBlock::operator=(StateBlock other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(part_, other.part_);
  std::swap(index_, other.index_);
  std::swap(data_, other.data_);
  return *this;
}

bool StateBlock::IsShared() const {
  const std::lock_guard lock(pool_->mutex_);
  return pool_->parts_[part_].blocks[index_].references > 1;
}

StatePool::StatePool(const StateLayout& layout, std::shared_ptr<KvBudget> budget)
    : budget_(std::move(budget)),
      layout_(layout),
      parts_{Part{.bytes = layout.state_bytes()}, Part{.bytes = layout.rows_bytes()}} {}

void StatePool::Take(std::span<StateBlock> states, std::span<StateBlock> rows) {
  const std::span<StateBlock> wanted[] = {states, rows};
  int64_t bytes = 0, new_bytes = 0;
  for (size_t i = 0; i < parts_.size(); ++i) bytes += std::ssize(wanted[i]) * parts_[i].bytes;
  if (bytes == 0) return;
  budget_->TakeOrRefuse(bytes);
  int64_t taken = 0;
  try {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < parts_.size(); ++i) {
      new_bytes += std::max<int64_t>(0, std::ssize(wanted[i]) - parts_[i].spare) * parts_[i].bytes;
    }
    if (new_bytes > 0) {
      RequireMemory(ReadMachineMemoryBeside(budget_->mapped_bytes()), new_bytes,
                    "the states of recurrent layers take another");
    }
    for (uint32_t i = 0; i < parts_.size(); ++i) {
      for (StateBlock& block : wanted[i]) {
        TakeOne(i, block);
        taken += parts_[i].bytes;
      }
    }
  } catch (...) {
    budget_->Release(bytes - taken);
    for (const auto blocks : wanted) std::ranges::fill(blocks, StateBlock());
    throw;
  }
}

void StatePool::TakeOne(uint32_t part_index, StateBlock& block) {
  Part& part = parts_[part_index];
  if (part.unused.empty()) {
    part.blocks.emplace_back();
    part.unused.reserve(part.blocks.capacity());  // the end of a reference must not throw
    part.unused.push_back(static_cast<uint32_t>(part.blocks.size() - 1));
  }
  const uint32_t index = part.unused.back();
  Block& found = part.blocks[index];
  if (found.memory.bytes() == 0) {
    found.memory = Buffer(part.bytes);
  } else {
    --part.spare;
  }
  found.references = 1;
  part.unused.pop_back();
  block.pool_ = shared_from_this();
  block.part_ = part_index;
  block.index_ = index;
  block.data_ = reinterpret_cast<float*>(found.memory.data());
}

}  // namespace godwit
