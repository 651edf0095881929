// PositionBuckets: a mean for every stretch of a text's positions. It shows where a model does
// well, and where a policy breaks down or slows down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace godwit::eval {

struct Bucket {
  int64_t begin, end;  // positions
  int64_t tokens;      // scored
  double nll;          // mean negative log likelihood, in nats per token
  double ms;           // time spent on the positions
};

class PositionBuckets {
 public:
  // tokens: positions in a bucket. 0: the first bucket has 128, and each ends at twice the position
  // of the one before. Doubling shows a short text in detail and a text of millions of tokens on
  // one screen. Effects of a cache begin at its size, which may be any.
  explicit PositionBuckets(int64_t tokens) : tokens_(tokens) {}

  void Add(int64_t position, double nll);

  // Adds time spent on the positions [begin, end), in equal parts.
  void AddTime(int64_t begin, int64_t end, double ms);

  // The buckets with scored tokens, in order. The last one ends behind the last position.
  std::vector<Bucket> Table() const;

 private:
  struct Sum {
    int64_t tokens = 0;
    double nll = 0;
    double ms = 0;
  };

  Sum& At(int64_t position);
  size_t IndexOf(int64_t position) const;
  int64_t BeginOf(size_t index) const;

  const int64_t tokens_;
  std::vector<Sum> sums_;
  int64_t end_ = 0;  // behind the last position
};

}  // namespace godwit::eval
