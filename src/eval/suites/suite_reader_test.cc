#include "eval/suites/suite_reader.h"

#include <gtest/gtest.h>

#include <memory>

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
  SuiteReader reader([&] { return NewSession(*engine, {}); });
  for (const double depth : kDepths) {
    const Sample sample = KvSample(depth);
    EXPECT_EQ(reader.Ask(sample, {}).text.substr(0, 36), sample.expected.front());
  }
  const auto times = ReadsOf(*engine).times;
  const auto shared = static_cast<size_t>(KvSample(0).shared_tokens);
  EXPECT_EQ(std::vector<int64_t>(times.begin(), times.begin() + static_cast<ptrdiff_t>(shared)),
            std::vector<int64_t>(shared, 1));
  EXPECT_EQ(times[shared], 3);
}

// A fork begins where the shared text ends, whatever its policy evicted of it.
TEST(SuiteReaderTest, APolicyFindsWhatItHasKept) {
  const auto engine = EngineThatLooksUp(/*sinks=*/4);
  SuiteReader reader([&] { return NewSession(*engine, {.kv = "sinks:4+300"}); });
  const Suite& suite = FindSuite("kv-retrieval", "kv-retrieval");
  std::vector<double> scores;
  for (const double depth : kDepths) {
    const Sample sample = KvSample(depth);
    scores.push_back(suite.score(reader.Ask(sample, {}).text, sample));
  }
  EXPECT_EQ(scores, (std::vector<double>{0, 0, 1}));
}

}  // namespace
}  // namespace godwit::eval::suite_reader_test
