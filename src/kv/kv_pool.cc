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

// The layout of pages in a file, beside which states lie in memory.
KvLayout InFile(KvLayout layout) {
  layout.page_alignment = KvFile::kAlignment;
  layout.states = {};
  return layout;
}

}  // namespace

KvPool::KvPool(const KvLayout& layout, std::shared_ptr<KvBudget> budget)
    : layout_(layout),
      budget_(budget ? std::move(budget) : std::make_shared<KvBudget>(INT64_MAX)),
      pages_per_slab_(
          static_cast<uint32_t>(std::max<int64_t>(1, kSlabBytes / layout.page_bytes()))) {
  for (int64_t layer = 0; layer < layout.layers; ++layer) {
    const int64_t head_dim = layout.OfLayer(layer).head_dim;
    if (head_dim <= kMaxHeadDim) continue;
    Throw(ErrorKind::kUnsupported, "head_dim {} is larger than the {} that the KV cache supports",
          head_dim, kMaxHeadDim);
  }
  if (layout.states.layers > 0) states_ = std::make_shared<StatePool>(layout.states, budget_);
}

KvPool::KvPool(const KvLayout& layout, std::shared_ptr<KvFile> file)
    : KvPool(InFile(layout), file->budget()) {
  in_memory_ = std::make_shared<KvPool>(layout, file->memory());
  file_ = std::move(file);
}

void KvPool::Take(std::span<PageId> ids, std::span<PageData> data) {
  assert(ids.size() == data.size());
  const int64_t bytes = std::ssize(ids) * layout_.page_bytes();
  budget_->TakeOrRefuse(bytes);
  const std::lock_guard lock(mutex_);
  size_t taken = 0;
  try {
    RequireSlabs(std::ssize(ids));
    for (; taken < ids.size(); ++taken) ids[taken] = TakeOne();
    if (file_) file_->WillWrite(FilePagesOf(ids));
  } catch (...) {
    for (const PageId id : ids.first(taken)) FreeSlot(id);
    budget_->Release(bytes);
    throw;
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    data[i] = SlabOf(ids[i]).data().Behind(ids[i] % pages_per_slab_ * layout_.page_bytes());
  }
  in_use_ += std::ssize(ids);
}

void KvPool::Restore(const std::shared_ptr<const Snapshot>& snapshot, int64_t begin, int64_t end,
                     std::span<PageId> ids, std::span<PageData> data) {
  const int64_t of_tile = layout_.pages(), pages = (end - begin) * of_tile;
  assert(std::ssize(ids) == pages && ids.size() == data.size());
  const int64_t bytes = pages * layout_.page_bytes();
  budget_->TakeOrRefuse(bytes);
  const std::lock_guard lock(mutex_);
  for (int64_t page = 0; page < pages; page += pages_per_slab_) {
    const size_t index = SlabWithout();
    Slab& slab = slabs_[index];
    slab.snapshot = snapshot;
    slab.first_page = begin * of_tile + page;
    slab.free.clear();
    const auto count = static_cast<uint32_t>(std::min<int64_t>(pages - page, pages_per_slab_));
    for (uint32_t slot = 0; slot < count; ++slot) {
      const auto at = static_cast<size_t>(page + slot);
      ids[at] = static_cast<PageId>(index) * pages_per_slab_ + slot;
      data[at] = snapshot->Page((page + slot) % of_tile, begin + (page + slot) / of_tile);
      slab.references[slot] = 1;
    }
  }
  restored_ += pages;
}

// The index of a slab that has no memory yet, or no longer.
size_t KvPool::SlabWithout() {
  const auto none = [](const Slab& slab) { return !slab.data() && slab.snapshot == nullptr; };
  const auto found = std::ranges::find_if(slabs_, none);
  if (found != slabs_.end()) return static_cast<size_t>(found - slabs_.begin());
  return AddSlab();
}

void KvPool::Require(int64_t pages) const {
  const int64_t bytes = CheckedMul(pages, layout_.page_bytes()).value_or(INT64_MAX);
  if (bytes > budget_->free_bytes()) budget_->Refuse(bytes);
  const std::lock_guard lock(mutex_);
  RequireSlabs(pages);
}

void KvPool::RequireSlabs(int64_t pages) const {
  int64_t held = 0;
  for (const Slab& slab : slabs_) held += slab.data() ? pages_per_slab_ : 0;
  const int64_t more = pages - (held - in_use_);
  if (more <= 0) return;
  const int64_t slabs = (more - 1) / pages_per_slab_ + 1;
  const int64_t bytes = CheckedMul(slabs, slab_bytes()).value_or(INT64_MAX);
  if (file_) return file_->RequireSpace(bytes);
  RequireMemory(ReadMachineMemoryBeside(budget_->mapped_bytes()), bytes,
                "a KV cache of {} that grows takes another",
                FormatBytes(in_use_ * layout_.page_bytes()));
}

size_t KvPool::AddSlab() {
  Slab slab;
  slab.references.resize(pages_per_slab_);
  slab.free.resize(pages_per_slab_);
  std::iota(slab.free.rbegin(), slab.free.rend(), 0u);
  slabs_.push_back(std::move(slab));
  return slabs_.size() - 1;
}

KvPool::PageId KvPool::TakeOne() {
  while (first_with_free_page_ < slabs_.size() && slabs_[first_with_free_page_].free.empty()) {
    ++first_with_free_page_;
  }
  if (first_with_free_page_ == slabs_.size()) AddSlab();
  Slab& slab = slabs_[first_with_free_page_];
  if (!slab.data()) {
    if (file_) {
      slab.file = std::make_unique<FilePages>(file_, pages_per_slab_, layout_.page_bytes());
    } else {
      slab.memory = Buffer(slab_bytes());
    }
  } else if (slab.free.size() == pages_per_slab_) {
    --empty_slabs_;
  }
  const uint32_t slot = slab.free.back();
  slab.free.pop_back();
  slab.references[slot] = 1;
  return static_cast<PageId>(first_with_free_page_) * pages_per_slab_ + slot;
}

void KvPool::Share(std::span<const PageId> ids) {
  const std::lock_guard lock(mutex_);
  for (const PageId id : ids) {
    if (id != kNoPage) ++References(id);
  }
}

void KvPool::Release(std::span<const PageId> ids) noexcept {
  const std::lock_guard lock(mutex_);
  for (const PageId id : ids) {
    if (id == kNoPage) continue;
    assert(References(id) > 0);
    if (--References(id) > 0) continue;
    if (SlabOf(id).snapshot != nullptr) {
      FreeSlab(id / pages_per_slab_);
    } else {
      FreeSlot(id);
      --in_use_;
    }
    budget_->Release(layout_.page_bytes());
  }
}

void KvPool::FreeSlot(PageId id) noexcept {
  const size_t index = id / pages_per_slab_;
  Slab& slab = slabs_[index];
  slab.references[id % pages_per_slab_] = 0;
  slab.free.push_back(id % pages_per_slab_);  // has capacity for all
  first_with_free_page_ = std::min(first_with_free_page_, index);
  if (slab.free.size() < pages_per_slab_) return;
  if (empty_slabs_ > 0) {
    slab.memory = Buffer();
    slab.file.reset();
  } else {
    ++empty_slabs_;
  }
}

// Gives up a page of a snapshot's slab. The slab goes with its last page.
void KvPool::FreeSlab(size_t index) noexcept {
  Slab& slab = slabs_[index];
  --restored_;
  if (std::ranges::any_of(slab.references, [](uint32_t count) { return count > 0; })) return;
  slab.snapshot = nullptr;
  slab.free.resize(pages_per_slab_);  // has capacity for all
  std::iota(slab.free.rbegin(), slab.free.rend(), 0u);
  first_with_free_page_ = std::min(first_with_free_page_, index);
}

bool KvPool::IsShared(PageId id) const {
  const std::lock_guard lock(mutex_);
  auto& self = const_cast<KvPool&>(*this);
  return self.References(id) > 1 || self.SlabOf(id).snapshot != nullptr;
}

std::vector<KvFile::Page*> KvPool::FilePagesOf(std::span<const PageId> ids) const {
  std::vector<KvFile::Page*> pages;
  pages.reserve(ids.size());
  for (const PageId id : ids) {
    if (id == kNoPage) continue;
    const Slab& slab = slabs_[id / pages_per_slab_];
    if (slab.file) pages.push_back(&(*slab.file)[id % pages_per_slab_]);
  }
  return pages;
}

std::vector<KvPool::SnapshotPages> KvPool::SnapshotPagesOf(std::span<const PageId> ids) const {
  std::vector<SnapshotPages> all;
  for (const PageId id : ids) {
    if (id == kNoPage) continue;
    const Slab& slab = slabs_[id / pages_per_slab_];
    if (slab.snapshot == nullptr) continue;
    if (all.empty() || all.back().snapshot != slab.snapshot) all.push_back({slab.snapshot, {}});
    all.back().pages.push_back(slab.first_page + id % pages_per_slab_);
  }
  return all;
}

int64_t KvPool::WillRead(std::span<const PageId> ids, int64_t begin, int64_t end) const {
  std::unique_lock lock(mutex_);
  const auto in_snapshots = SnapshotPagesOf(ids);
  const auto in_file = FilePagesOf(ids);
  lock.unlock();
  for (const auto& [snapshot, pages] : in_snapshots) snapshot->Verify(pages);
  return file_ ? file_->WillRead(in_file, begin, end) : 0;
}

int64_t KvPool::BytesInMemory(std::span<const PageId> ids) const {
  if (!file_) return (std::ssize(ids) - std::ranges::count(ids, kNoPage)) * layout_.page_bytes();
  std::unique_lock lock(mutex_);
  const auto pages = FilePagesOf(ids);
  lock.unlock();
  return file_->BytesInMemory(pages);
}

int64_t KvPool::pages_in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_ + restored_;
}

}  // namespace godwit
