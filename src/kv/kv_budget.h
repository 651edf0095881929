// Bytes that the caches of an engine, or of a group of engines, may take together, whatever the
// types of their pools. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace godwit {

class KvBudget {
 public:
  // mapped_bytes: of the memory that the system says is free, what holds files that this process
  // has mapped and goes on reading.
  explicit KvBudget(int64_t bytes, int64_t mapped_bytes = 0)
      : bytes_(bytes), mapped_bytes_(mapped_bytes) {}

  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  int64_t mapped_bytes() const { return mapped_bytes_.load(std::memory_order_relaxed); }
  // Sets another limit. Bytes that are taken beyond it stay taken.
  void Resize(int64_t bytes) { bytes_.store(bytes, std::memory_order_relaxed); }
  // Counts more mapped bytes, or fewer where they are negative.
  void AddMapped(int64_t bytes) { mapped_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  // Less than 0 where a smaller limit was set meanwhile.
  int64_t free_bytes() const { return bytes() - used(); }
  // False, and nothing taken, if they exceed the budget.
  bool Take(int64_t bytes) {
    int64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > this->bytes() - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return true;
  }
  // The same, but throws Error(kMemory) with the numbers, as Refuse does.
  void TakeOrRefuse(int64_t bytes) {
    if (!Take(bytes)) Refuse(bytes);
  }
  [[noreturn]] void Refuse(int64_t bytes) const;
  void Release(int64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> bytes_;
  std::atomic<int64_t> mapped_bytes_;
  std::atomic<int64_t> used_{0};
};

}  // namespace godwit
