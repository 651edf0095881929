// Draws: the random choices of one sample, one after the other.
//
// A sample draws by its seed and index alone, so the same key is hidden at every length and depth.
// Lengths, depths and policies are then compared on the same questions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace godwit::eval {

class Draws {
 public:
  // what: names a stream; two streams of one sample need different names.
  Draws(uint64_t seed, int64_t index, std::string_view what);

  // Uniform over 0 to count - 1; count: 1 to 2^53.
  int64_t Below(int64_t count);

  double Percent();  // uniform in [0, 100)

  template <typename Items>
  const auto& OneOf(const Items& items) {
    return items[Below(std::ssize(items))];
  }

  template <typename T>
  void Shuffle(std::vector<T>& items) {
    for (int64_t i = std::ssize(items) - 1; i > 0; --i) {
      std::swap(items[i], items[Below(i + 1)]);
    }
  }

  // The number i times[i] times, for all i, in any order.
  std::vector<size_t> Copies(const std::vector<int64_t>& times);

  // `chosen` different numbers of 0 to count - 1, in the order in which they were drawn.
  std::vector<int64_t> Different(int64_t chosen, int64_t count);

 private:
  const uint64_t seed_;
  const uint64_t sequence_;
  int64_t drawn_ = 0;
};

}  // namespace godwit::eval
