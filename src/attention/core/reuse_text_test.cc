#include "attention/core/reuse_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "attention/attention_test_support.h"
#include "base/test_support.h"

namespace godwit::reuse_text_test {
namespace {

using testing::HasSubstr;

// A passage of the text, which another text has read from position 3 on.
constexpr int64_t kBegin = 70, kEnd = 190, kPlace = 3, kTokens = 260;

struct Case {
  const char* spec;
  DType kv_type;
  double error;
};

class ReuseText : public testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<TextCache> New(const AttentionGeometry& geometry) const {
    auto text = NewText(
        geometry, {.spec = GetParam().spec, .kv_type = GetParam().kv_type, .context = kTokens});
    text->SetQuestion(kEnd);
    return text;
  }
  // The results of the tokens behind the passage. reused: the passage comes from another text.
  std::vector<float> ResultsOf(const AttentionGeometry& geometry, bool reused) {
    const TestText text(geometry, kTokens, 9);
    const auto cache = New(geometry);
    if (reused) {
      runner_.Read(*cache, text, RowRange(0, kBegin), 50);
      const auto other = New(geometry);
      runner_.Read(*other, text, RowRange(0, kPlace), 50);
      runner_.Read(*other, text, RowRange(kBegin, kEnd), 50);
      ReuseTokens(runner_.exec(), *other, kPlace, 50, *cache);
      ReuseTokens(runner_.exec(), *other, kPlace + 50, kEnd - kBegin - 50, *cache);
    } else {
      runner_.Read(*cache, text, RowRange(0, kEnd), 50);
    }
    EXPECT_EQ(cache->length(), kEnd);
    return runner_.Read(*cache, text, RowRange(kEnd, kTokens), 1);
  }
  StepRunner runner_{2};
};

// Keys and values of these texts depend on their tokens alone, so that reading gives the same ones.
TEST_P(ReuseText, HasTheKeysOfReading) {
  const AttentionGeometry geometries[] = {
      TestGeometry(4, 2, 32, 24, {0, 0}), TestGeometry(4, 2, 32, 0, {0}),
      WithAlibi(TestGeometry(4, 2, 32, 0, {0}), /*in_bf16=*/false)};
  for (const AttentionGeometry& geometry : geometries) {
    const auto read = ResultsOf(geometry, false), reused = ResultsOf(geometry, true);
    double most = 0;
    for (size_t i = 0; i < read.size(); ++i) {
      most = std::max(most, std::abs(double{read[i]} - double{reused[i]}));
    }
    EXPECT_LE(most, GetParam().error);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, ReuseText,
    testing::Values(Case{"dense", DType::kF32, 1e-5}, Case{"dense", DType::kF16, 2e-3},
                    Case{"dense", DType::kBF16, 2e-2}, Case{"dense", DType::kI8, 4e-2},
                    Case{"sinks:4+60", DType::kF32, 1e-5},
                    Case{"blocks:initial=0,local_windows_len=64,second_block_count=1", DType::kF32,
                         1e-5}),
    [](const auto& test) { return "Case" + std::to_string(test.index); });

// At their own place nothing is turned, and each number is stored as it was.
TEST(ReuseTokens, HaveTheirBitsAtTheirPlace) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 32, 24, {0, 0});
  const TestText text(geometry, kTokens, 9);
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    StepRunner runner;
    std::vector<std::vector<float>> results;
    for (const bool reused : {false, true}) {
      const auto read = NewText(geometry, {.spec = "dense", .kv_type = type, .context = kTokens});
      runner.Read(*read, text, RowRange(0, kEnd), 64);
      const auto other = NewText(geometry, {.spec = "dense", .kv_type = type, .context = kTokens});
      runner.Read(*other, text, RowRange(0, kBegin), 64);
      ReuseTokens(runner.exec(), *read, kBegin, kEnd - kBegin, *other);
      results.push_back(runner.Read(reused ? *other : *read, text, RowRange(kEnd, kTokens), 1));
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

TEST(ReuseTokens, RefusesWhatHasMoreThanKeys) {
  const auto refused = [](const AttentionGeometry& geometry, DType type, int64_t end = 80) {
    const TestText text(geometry, kTokens, 9);
    StepRunner runner;
    const auto options = PolicyOptions{.spec = "dense", .kv_type = type, .context = 100};
    const auto from = NewText(geometry, options), to = NewText(geometry, options);
    ReadText(*from, text, 80, 80);
    ReadText(*to, text, 30, 30);
    const std::string error =
        ErrorOf([&] { ReuseTokens(runner.exec(), *from, 0, end, *to); }).what();
    EXPECT_EQ(to->length(), 30);
    return error;
  };
  const AttentionGeometry plain = TestGeometry(4, 2, 32, 24, {0});
  EXPECT_THAT(refused(plain, DType::kF32), HasSubstr("30 tokens and 80 more exceed the context"));
  AttentionGeometry learned = plain;
  learned.learned_positions = 200;
  EXPECT_THAT(refused(learned, DType::kF32), HasSubstr("has learned its positions"));
  AttentionGeometry centred = plain;
  centred.key_means = true;
  EXPECT_THAT(refused(centred, DType::kI8), HasSubstr("lie around the centre of their place"));
}

TEST(ReuseTokens, RefusesForgottenOnes) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 32, 24, {0});
  const TestText text(geometry, 400, 9);
  const PolicyOptions options{.spec = "sinks:4+60", .kv_type = DType::kF32, .context = 400};
  const auto from = NewText(geometry, options), to = NewText(geometry, options);
  ReadText(*from, text, 400, 50);
  StepRunner runner;
  EXPECT_THAT(
      ErrorOf(ErrorKind::kUnsupported, [&] { ReuseTokens(runner.exec(), *from, 100, 50, *to); }),
      HasSubstr("of a text that has forgotten some of them"));
  EXPECT_EQ(to->length(), 0);
}

}  // namespace
}  // namespace godwit::reuse_text_test
