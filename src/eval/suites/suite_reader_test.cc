#include "eval/suites/suite_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "eval/suites/suite_test_support.h"

namespace godwit::eval::suite_reader_test {
namespace {

// Looks the key up in the object above, where that is still visible.
std::string LookUp(const std::string& text, int64_t visible) {
  const size_t key = text.rfind("Key: \"") + 6;
  const std::string entry = text.substr(key, text.find('"', key) - key) + "\": \"";
  const size_t value = text.find(entry);
  if (value == std::string::npos || static_cast<int64_t>(value) < visible) return "unknown";
  return text.substr(value + entry.size(), 36);
}

std::unique_ptr<const Engine::Impl> EngineThatLooksUp(int64_t sinks) {
  return EngineThatAnswers(std::make_unique<AnsweringModel>("key is: ", sinks, LookUp));
}

constexpr double kDepths[] = {0, 50, 100};

Sample KvSample(double depth) {
  return ByteSuite(FindSuite("kv-retrieval", "kv-retrieval"))
      .Make({.length_tokens = 1200, .depth = depth});
}

TEST(SuiteReaderTest, SharedBeginningIsReadOnce) {
  const auto engine = EngineThatLooksUp(/*sinks=*/0);
  SuiteReader reader([&](const std::string& kv) { return NewSession(*engine, {.kv = kv}); });
  for (const double depth : kDepths) {
    const Sample sample = KvSample(depth);
    EXPECT_EQ(reader.Ask(sample, "dense", {}).text.substr(0, 36), sample.expected.front());
  }
  const auto times = ReadsOf(*engine).times;
  const auto shared = static_cast<size_t>(KvSample(0).context_tokens);
  EXPECT_EQ(std::vector<int64_t>(times.begin(), times.begin() + static_cast<ptrdiff_t>(shared)),
            std::vector<int64_t>(shared, 1));
  EXPECT_EQ(times[shared], 3);
}

int64_t TimesRead(const Engine::Impl& engine, int64_t tokens) {
  const auto times = ReadsOf(engine).times;
  return std::accumulate(times.begin(), times.begin() + tokens, int64_t{0});
}

TEST(SuiteReaderTest, PoliciesThatReadAlikeShareAContext) {
  const auto engine = EngineThatLooksUp(/*sinks=*/0);
  SuiteReader reader([&](const std::string& kv) { return NewSession(*engine, {.kv = kv}); });
  const int64_t context = KvSample(0).context_tokens;
  for (const double depth : kDepths) {
    const Sample sample = KvSample(depth);
    for (const char* const kv : {"dense", "blocks", "blocks:initial=64"}) {
      EXPECT_EQ(reader.Ask(sample, kv, {}).text.substr(0, 36), sample.expected.front()) << kv;
    }
  }
  EXPECT_EQ(TimesRead(*engine, context), context);
  (void)reader.Ask(KvSample(0), "window:900", {});
  EXPECT_EQ(TimesRead(*engine, context), 2 * context) << "it reads in a way of its own";
}

// Every token of the question and of the answer's beginning is asked, unless the caller says how
// many are.
TEST(SuiteReaderTest, TheQuestionIsWhatFollowsTheContext) {
  const auto engine = EngineThatLooksUp(/*sinks=*/0);
  const Sample sample = KvSample(50);
  const auto context_of = [&](auto... query_tokens) {
    SuiteReader reader(
        [&](const std::string& kv) {
          return NewSession(*engine, {.kv = kv, .prefill = "window:200"});
        },
        query_tokens...);
    return reader.Ask(sample, "dense", {}).kv.context_tokens;
  };
  EXPECT_EQ(context_of(), sample.context_tokens);
  EXPECT_EQ(context_of(5), std::ssize(sample.prompt) - 5);
  EXPECT_EQ(context_of(1000), std::ssize(sample.prompt) - 1000);
}

// The text behind the place of the needle that differs is read again.
TEST(SuiteReaderTest, TextsThatBeginAlikeShareTheirBeginning) {
  ByteSuite suite(FindSuite("passkey", "passkey"));
  const Sample middle = suite.Make({.length_tokens = 1200, .depth = 50});
  const Sample end = suite.Make({.length_tokens = 1200, .depth = 100});
  const auto alike = std::ranges::mismatch(middle.prompt, end.prompt).in1 - middle.prompt.begin();
  ASSERT_GT(alike, 400);
  const auto engine = EngineThatLooksUp(/*sinks=*/0);
  SuiteReader reader([&](const std::string& kv) { return NewSession(*engine, {.kv = kv}); });
  (void)reader.Ask(middle, "dense", {});
  (void)reader.Ask(end, "dense", {});
  EXPECT_EQ(TimesRead(*engine, alike), alike);
  EXPECT_EQ(TimesRead(*engine, end.context_tokens) - alike, 2 * (end.context_tokens - alike));
}

// A fork begins where the shared text ends, whatever its policy evicted of it.
TEST(SuiteReaderTest, APolicyFindsWhatItHasKept) {
  const auto engine = EngineThatLooksUp(/*sinks=*/4);
  SuiteReader reader([&](const std::string& kv) { return NewSession(*engine, {.kv = kv}); });
  const Suite& suite = FindSuite("kv-retrieval", "kv-retrieval");
  std::vector<double> scores;
  for (const double depth : kDepths) {
    const Sample sample = KvSample(depth);
    scores.push_back(suite.score(reader.Ask(sample, "sinks:4+300", {}).text, sample));
  }
  EXPECT_EQ(scores, (std::vector<double>{0, 0, 1}));
}

}  // namespace
}  // namespace godwit::eval::suite_reader_test
