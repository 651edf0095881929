#include "train/train_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "train/train_test_support.h"

namespace godwit::train::train_heads_test {
namespace {

using testing::HasSubstr;

constexpr int64_t kHeads = 3;
constexpr HeadTraining kShort{.steps = 60, .warmup = 6, .batch = 64, .rate = 0.02};

struct Trained {
  HeadProgress progress;
  std::vector<HeadScore> scores;  // on other text
};

// stop_after: steps before the training stops and continues from a file; 0: no stop.
Trained Train(const HeadTraining& training, int64_t stop_after = 0) {
  const Bench bench;
  const HiddenStates states = bench.Read(Circles(8, 30), kHeads);
  HeadGradient gradient(bench.exec, *bench.decoder, 11, DType::kF32);
  HeadProgress progress = NewHeads(kHeads, bench.decoder->hidden_size(), 11);
  if (stop_after > 0) {
    try {
      TrainHeads(bench.exec, gradient, states, training, progress, [&] {
        if (progress.optimizer.steps == stop_after) Throw(ErrorKind::kCancelled, "stopped");
      });
    } catch (const Error&) {
    }
    const TempFolder folder;
    const auto file = folder.path() / "unfinished";
    std::ofstream(file, std::ios::binary) << HeadProgressFile(progress, 7);
    progress = ReadHeadProgress(file, NewHeads(kHeads, bench.decoder->hidden_size(), 11), 7, 60);
    EXPECT_EQ(progress.optimizer.steps, stop_after);
  }
  TrainHeads(bench.exec, gradient, states, training, progress, [] {});
  const HiddenStates other = bench.Read(Circles(11, 25), kHeads);
  auto scores = ScoreHeads(bench.exec, gradient, other, progress.parameters);
  return {.progress = std::move(progress), .scores = std::move(scores)};
}

TEST(TrainHeads, LearnWhatFollows) {
  const Trained trained = Train({.steps = 300, .warmup = 30, .batch = 64, .rate = 0.02});
  EXPECT_LT(trained.progress.losses.back(), 0.5 * trained.progress.losses.front());
  for (const HeadScore& score : trained.scores) {
    EXPECT_GT(score.rows, 100);
    EXPECT_GT(score.first, 0.8 * static_cast<double>(score.rows));
    EXPECT_GE(score.among_ten, score.first);
  }
}

TEST(TrainHeads, GoOnToTheSameBits) {
  const Trained whole = Train(kShort);
  for (const int64_t stop : {1, 29}) {
    const Trained parts = Train(kShort, stop);
    EXPECT_TRUE(
        std::ranges::equal(parts.progress.parameters.values(), whole.progress.parameters.values()));
    EXPECT_EQ(parts.progress.losses, whole.progress.losses);
  }
}

TEST(TrainHeads, RefuseAnotherTrainingsFile) {
  const TempFolder folder;
  const auto file = folder.path() / "unfinished";
  const auto write = [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
  };
  const auto read = [&] { ReadHeadProgress(file, NewHeads(2, 16, 11), 7, 60); };
  write(HeadProgressFile(NewHeads(2, 16, 11), 7));
  read();
  write(HeadProgressFile(NewHeads(2, 16, 11), 8));
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, read), HasSubstr("another model, text or settings"));
  write(HeadProgressFile(NewHeads(1, 16, 11), 7));
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, read), HasSubstr("damaged"));
  HeadProgress far = NewHeads(2, 16, 11);
  far.optimizer.steps = 1'000'000'000'000;
  write(HeadProgressFile(far, 7));
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, read), HasSubstr("damaged"));
  write("nothing");
  ErrorOf(ErrorKind::kFormat, read);
}

TEST(TrainHeads, RatesRiseAndFall) {
  const HeadTraining training{.steps = 100, .warmup = 10, .rate = 1};
  EXPECT_NEAR(RateOf(training, 0), 0.1, 1e-9);
  EXPECT_NEAR(RateOf(training, 9), 1, 1e-9);
  EXPECT_NEAR(RateOf(training, 54), 0.5, 1e-9);
  EXPECT_NEAR(RateOf(training, 99), 0, 1e-9);
}

TEST(TrainHeads, FrequentTokensStandInFront) {
  std::vector<std::vector<int32_t>> pieces(1);
  for (int32_t i = 0; i < 990; ++i) pieces[0].push_back(i % 7 == 0 ? 1500 : i % 1000);
  for (int32_t i = 0; i < 10; ++i) pieces[0].push_back(70'000);
  EXPECT_EQ(FrequentTokens(pieces, 128'256), 2048);
  EXPECT_EQ(FrequentTokens(pieces, 70'001), 2048);
  pieces[0].push_back(70'000);
  EXPECT_EQ(FrequentTokens(pieces, 128'256), 69 * 1024);
  EXPECT_EQ(FrequentTokens(pieces, 70'001), 70'001);
}

}  // namespace
}  // namespace godwit::train::train_heads_test
