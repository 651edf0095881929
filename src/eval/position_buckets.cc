#include "eval/position_buckets.h"

#include <algorithm>
#include <bit>

namespace godwit::eval {
namespace {

constexpr int64_t kFirst = 128;

}  // namespace

size_t PositionBuckets::IndexOf(int64_t position) const {
  if (tokens_ > 0) return static_cast<size_t>(position / tokens_);
  return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(position / kFirst)));
}

int64_t PositionBuckets::BeginOf(size_t index) const {
  const auto i = static_cast<int64_t>(index);
  if (tokens_ > 0) return i * tokens_;
  return i == 0 ? 0 : kFirst << (i - 1);
}

PositionBuckets::Sum& PositionBuckets::At(int64_t position) {
  const size_t index = IndexOf(position);
  if (index >= sums_.size()) sums_.resize(index + 1);
  return sums_[index];
}

void PositionBuckets::Add(int64_t position, double nll) {
  Sum& sum = At(position);
  ++sum.tokens;
  sum.nll += nll;
  end_ = std::max(end_, position + 1);
}

void PositionBuckets::AddTime(int64_t begin, int64_t end, double ms) {
  const double each = ms / static_cast<double>(end - begin);
  for (int64_t position = begin; position < end; ++position) At(position).ms += each;
}

std::vector<Bucket> PositionBuckets::Table() const {
  std::vector<Bucket> table;
  for (size_t i = 0; i < sums_.size(); ++i) {
    if (sums_[i].tokens == 0) continue;
    table.push_back({.begin = BeginOf(i),
                     .end = i + 1 == sums_.size() ? end_ : BeginOf(i + 1),
                     .tokens = sums_[i].tokens,
                     .nll = sums_[i].nll / static_cast<double>(sums_[i].tokens),
                     .ms = sums_[i].ms});
  }
  return table;
}

}  // namespace godwit::eval
