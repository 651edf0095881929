#include "engine/reading_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace godwit::reading_pace_test {
namespace {

// A reader of a text. A token at a position takes cost_ms(position).
class Reader {
 public:
  explicit Reader(std::function<double(int64_t position)> cost_ms, int64_t begin = 0)
      : cost_ms_(std::move(cost_ms)), tokens_(begin) {
    pace.BeginAt(tokens_, ms);
  }

  double Cost(int64_t begin, int64_t end) const {
    double sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += cost_ms_(i);
    return sum;
  }

  void ReadTo(int64_t end, int64_t chunk = 512) {
    while (tokens_ < end) {
      const int64_t next = std::min(end, tokens_ + chunk);
      pace.BeginAt(tokens_, ms);
      ms += Cost(tokens_, next);
      pace.EndAt(next, ms);
      tokens_ = next;
    }
  }

  ReadingPace pace;
  double ms = 100;

 private:
  std::function<double(int64_t)> cost_ms_;
  int64_t tokens_;
};

double Dense(int64_t position) { return 2 + 0.0005 * static_cast<double>(position); }

TEST(ReadingPace, PredictsThatLaterTokensCostMore) {
  Reader reader(Dense);
  EXPECT_FALSE(reader.pace.LeftMs(20'000).has_value());
  for (const int64_t done : {2048, 5000, 10'000, 19'000}) {
    reader.ReadTo(done);
    const double left = reader.Cost(done, 20'000);
    EXPECT_NEAR(reader.pace.LeftMs(20'000).value(), left, 0.001 * left) << done;
  }
  reader.ReadTo(20'000);
  EXPECT_EQ(reader.pace.LeftMs(20'000), 0);
}

TEST(ReadingPace, BoundedReadingHasAnEvenPace) {
  Reader reader([](int64_t position) { return 2 + 0.001 * std::min<double>(position, 1024); });
  reader.ReadTo(16'384);
  const double left = reader.Cost(16'384, 32'768);
  EXPECT_NEAR(reader.pace.LeftMs(32'768).value(), left, 0.15 * left);
}

// The first chunk waits for the disk, and later other work ends.
TEST(ReadingPace, FallingCostsAreNotPredictedToReachZero) {
  Reader reader([](int64_t position) { return position < 512 ? 9 : position < 1024 ? 3 : 1; });
  reader.ReadTo(1024);
  EXPECT_DOUBLE_EQ(reader.pace.LeftMs(2048).value(), 1024 * 3);
  reader.ReadTo(1536);
  EXPECT_DOUBLE_EQ(reader.pace.LeftMs(2048).value(), 512 * 2);
}

// Measured: processor time of a 0.5 B model in 4 bits, which took 55 s for 14,512 tokens.
TEST(ReadingPace, AColdFirstChunkDoesNotHideThatTheOthersRise) {
  constexpr double kCosts[] = {5.41, 2.25, 2.44, 2.58, 2.73, 2.89, 2.95};
  ReadingPace pace;
  double ms = 0;
  pace.BeginAt(0, ms);
  for (int64_t i = 0; i < std::ssize(kCosts); ++i) {
    pace.EndAt(512 * (i + 1), ms += 512 * kCosts[i]);
  }
  EXPECT_NEAR(ms + pace.LeftMs(14'512).value(), 55'000, 0.15 * 55'000);
}

TEST(ReadingPace, GoesOnFromACache) {
  Reader reader(Dense, 8192);
  reader.ReadTo(10'000);
  const double left = reader.Cost(10'000, 20'000);
  EXPECT_NEAR(reader.pace.LeftMs(20'000).value(), left, 0.001 * left);
}

// Time between readings does not count. The text may begin anew.
TEST(ReadingPace, PausesDoNotCount) {
  Reader reader(Dense);
  reader.ReadTo(8192);
  reader.pace.BeginAt(0, reader.ms += 1e6);
  reader.pace.EndAt(512, reader.ms += reader.Cost(0, 512));
  const double left = reader.Cost(512, 20'000);
  EXPECT_NEAR(reader.pace.LeftMs(20'000).value(), left, 0.001 * left);
}

TEST(ReadingPace, FewChunksPredictAFewMore) {
  Reader reader(Dense);
  reader.ReadTo(512);
  EXPECT_FALSE(reader.pace.LeftMs(512 + 4 * 512 + 1).has_value());
  EXPECT_NEAR(reader.pace.LeftMs(512 + 4 * 512).value(), 4 * reader.Cost(0, 512), 1e-6);
  reader.ReadTo(1024);
  EXPECT_FALSE(reader.pace.LeftMs(1024 + 4 * 1024 + 1).has_value());
  EXPECT_NEAR(reader.pace.LeftMs(1024 + 4 * 1024).value(), 8 * reader.Cost(512, 1024), 1e-6);
}

}  // namespace
}  // namespace godwit::reading_pace_test
