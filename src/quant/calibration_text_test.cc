#include "quant/calibration_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/test_support.h"
#include "text/fake_tokenizer.h"

namespace godwit::quant::calibration_text_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int32_t> Counting(int64_t n) {
  std::vector<int32_t> tokens(n);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

TEST(CutTokens, SpreadsPiecesOverTheText) {
  const auto text = CutTokens(Counting(9000), {}, {.samples = 3, .seq_len = 2});
  EXPECT_THAT(text.pieces,
              ElementsAre(ElementsAre(0, 1), ElementsAre(3000, 3001), ElementsAre(6000, 6001)));
  EXPECT_EQ(text.tokens, 6);
  EXPECT_FALSE(text.short_text);
}

TEST(CutTokens, APieceIsFramedWithinItsLength) {
  const int32_t frame[] = {7};
  const auto text = CutTokens(Counting(1000), frame, {.samples = 1, .seq_len = 3});
  EXPECT_THAT(text.pieces, ElementsAre(ElementsAre(7, 0, 1)));
  EXPECT_EQ(ErrorOf([&] { CutTokens(Counting(1000), frame, {.samples = 1, .seq_len = 1}); }).kind(),
            ErrorKind::kInput);
}

TEST(CutTokens, AShortTextIsTakenWhole) {
  const auto text = CutTokens(Counting(1001), {}, {.samples = 512, .seq_len = 500});
  EXPECT_TRUE(text.short_text);
  EXPECT_EQ(text.tokens, 1001);
  EXPECT_EQ(text.pieces.size(), 3);
  EXPECT_EQ(text.pieces[1].front(), 500);
  EXPECT_THAT(text.pieces[2], ElementsAre(1000));
  // Exactly enough tokens are no short text.
  EXPECT_FALSE(CutTokens(Counting(1000), {}, {.samples = 2, .seq_len = 500}).short_text);
}

TEST(CutTokens, LessThanAThousandTokensAreRefused) {
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [] { CutTokens(Counting(999), {}, {}); }),
              HasSubstr("has 999 tokens, expected at least 1000"));
}

TEST(CutCalibrationText, BeginsAsTheModelExpects) {
  DecoderSpec spec{.max_context = 512};
  const std::string text(2000, 'a');
  const CalibrationOptions options{.samples = 1, .seq_len = 3};
  EXPECT_THAT(CutCalibrationText(spec, FakeTokenizer(), text, options).pieces[0],
              ElementsAre(FakeTokenizer::kBos, 'a', 'a'));
  spec.sink_token = 9;
  EXPECT_THAT(CutCalibrationText(spec, FakeTokenizer(), text, options).pieces[0],
              ElementsAre(9, FakeTokenizer::kBos, 'a'));
  spec.sink_token = FakeTokenizer::kBos;
  EXPECT_THAT(CutCalibrationText(spec, FakeTokenizer(), text, options).pieces[0],
              ElementsAre(FakeTokenizer::kBos, 'a', 'a'));
}

// A tokenizer for which each "a" is a token. It records how many were asked for.
class CountingTokenizer : public FakeTokenizer {
 public:
  mutable int64_t asked_for = 0;

 private:
  std::vector<int32_t> EncodeUpTo(std::string_view text, bool, int64_t max_ids) const override {
    asked_for = max_ids;
    return std::vector<int32_t>(text.size(), 'a');
  }
};

TEST(CutCalibrationText, OnePieceNeedsOnlyTheBeginning) {
  const DecoderSpec spec{.max_context = 4096};
  const CountingTokenizer tokenizer;
  const std::string text(100'000, 'a');
  CutCalibrationText(spec, tokenizer, text, {.samples = 1, .seq_len = 2000});
  EXPECT_EQ(tokenizer.asked_for, 2000);
  CutCalibrationText(spec, tokenizer, text, {.samples = 2, .seq_len = 2000});
  EXPECT_GE(tokenizer.asked_for, 100'000);  // the second one lies in the middle
}

TEST(CutCalibrationText, NoLongerThanTheContext) {
  const DecoderSpec spec{.max_context = 64};
  EXPECT_THAT(ErrorOf(ErrorKind::kInput,
                      [&] {
                        CutCalibrationText(spec, FakeTokenizer(), std::string(2000, 'a'),
                                           {.samples = 1, .seq_len = 65});
                      }),
              HasSubstr("pieces of 65 tokens are too long: the model was made for up to 64"));
}

}  // namespace
}  // namespace godwit::quant::calibration_text_test
