#include "engine/reading_pace.h"

#include <algorithm>

namespace godwit {
namespace {

// A slope through fewer chunks is mostly noise. Chunks predict at most kFarthest times their own
// length.
constexpr int kFewestChunks = 3;
constexpr double kFarthest = 4;

}  // namespace

void ReadingPace::BeginAt(int64_t tokens, double ms) {
  if (tokens == tokens_) return;
  tokens_ = tokens;
  ms_ = ms;
}

void ReadingPace::EndAt(int64_t tokens, double ms) {
  const int64_t begin = tokens_;
  const double took_ms = ms - ms_;
  tokens_ = tokens;
  ms_ = ms;
  if (begin < 0 || tokens <= begin || took_ms < 0) return;
  if (++chunks_ == 2) sums_ = {};
  const auto count = static_cast<double>(tokens - begin);
  const double middle = static_cast<double>(begin + tokens) / 2;
  sums_.weight += count;
  sums_.position += count * middle;
  sums_.square += count * middle * middle;
  sums_.cost += took_ms;
  sums_.product += took_ms * middle;
  read_ += count;
}

std::optional<double> ReadingPace::LeftMs(int64_t total) const {
  if (chunks_ == 0) return std::nullopt;
  const auto left = static_cast<double>(total - tokens_);
  if (left <= 0) return 0;
  if (chunks_ < kFewestChunks && left > kFarthest * read_) return std::nullopt;
  const double position = sums_.position / sums_.weight, cost = sums_.cost / sums_.weight;
  const double spread = sums_.square / sums_.weight - position * position;
  const double together = sums_.product / sums_.weight - position * cost;
  const double b = chunks_ >= kFewestChunks && spread > 0 ? std::max(0.0, together / spread) : 0;
  const double middle = static_cast<double>(tokens_ + total) / 2;
  return left * (cost + b * (middle - position));
}

}  // namespace godwit
