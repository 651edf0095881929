#include "attention/make_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/attention_test_support.h"

namespace godwit::make_policy_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Refusal(const char* spec) {
  const AttentionGeometry geometry = TestGeometry(2, 2, 8, 8, {0});
  return ErrorOf(ErrorKind::kInput, [&] { MakePolicy(geometry, {.spec = spec, .context = 64}); });
}

TEST(MakePolicyTest, AnUnknownNameListsTheUsages) {
  for (const char* spec : {"", ":", "denser", "sink:4+4", "SINKS:4+4"}) {
    const std::string message = Refusal(spec);
    EXPECT_THAT(message, HasSubstr(fmt::format("\"{}\"", spec)));
    for (const PolicyKind& kind : AllPolicies()) {
      EXPECT_THAT(message, HasSubstr(std::string(kind.usage)));
    }
  }
}

TEST(MakePolicyTest, ArgumentsThatMakeNoSenseAreNamed) {
  for (const char* arguments :
       {"1", "4", "4+", "+4", "4+0", "-1+4", "4+-4", "4+4x", "4+99999999999999999999", "a+b",
        "4 + 4", "9223372036854775807+1"}) {
    EXPECT_THAT(Refusal(fmt::format("dense:{}", arguments).c_str()), HasSubstr(arguments));
    EXPECT_THAT(Refusal(fmt::format("sinks:{}", arguments).c_str()), HasSubstr(arguments));
  }
  for (const char* spec : {"sinks", "sinks:"}) EXPECT_THAT(Refusal(spec), HasSubstr("sinks:S+W"));
  for (const char* spec :
       {"window", "window:", "window:0", "window:-1", "window:4+4", "window:x"}) {
    EXPECT_THAT(Refusal(spec), HasSubstr("window:W"));
  }
}

TEST(MakePolicyTest, Int8ProductsNeedAnInt8Cache) {
  const AttentionGeometry geometry = TestGeometry(2, 2, 8, 8, {0});
  for (const char* spec : {"dense", "sinks:4+4"}) {
    for (const DType type : {DType::kF32, DType::kBF16}) {
      const PolicyOptions options{
          .spec = spec, .kv_type = type, .int8_products = true, .context = 64};
      EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { MakePolicy(geometry, options); }),
                  HasSubstr(fmt::format("stored as int8, found {}", Name(type))));
    }
  }
}

TEST(MakePolicyTest, NothingElseChoosesBesideTheIndexOfAModel) {
  const AttentionGeometry geometry =
      WithKeyIndex(WithValuesInKeys(TestGeometry(4, 1, 16, 8, {0})), 30);
  const auto refusal = [&](const PolicyOptions& options) {
    return std::string(
        ErrorOf(ErrorKind::kUnsupported, [&] { MakePlacedPolicy(geometry, options); }));
  };
  for (const char* spec : {"sinks:4+4", "window:9", "blocks"}) {
    EXPECT_THAT(refusal({.spec = spec, .kv_type = DType::kF32, .context = 64}),
                HasSubstr(fmt::format("chooses the 30 keys that a token sees, among all keys of "
                                      "the text, so the KV policy \"{}\" cannot choose",
                                      spec)));
  }
  EXPECT_THAT(refusal({.context = 64, .prefill = "window:9"}),
              HasSubstr("so the prefill \"window:9\" cannot choose"));
  EXPECT_EQ(MakePolicy(geometry, {.context = 64, .prefill = "auto"})->facts().name, "dense");
}

TEST(MakePolicyTest, ValuesInKeysAreNotStoredInFourBits) {
  const AttentionGeometry geometry = WithValuesInKeys(TestGeometry(4, 1, 16, 8, {0}));
  for (const DType type : {DType::kI8I4, DType::kI4}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { LayoutOf(geometry, type); }),
                HasSubstr("use a KV cache of int8"));
  }
}

// The pool's layout comes from the geometry and the KV type.
TEST(MakePolicyTest, ATextTakesPagesOfThePoolItIsGiven) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 0, 0});
  const KvLayout layout = LayoutOf(geometry, DType::kF16);
  EXPECT_EQ(layout.layers, 3);
  EXPECT_EQ(layout.kv_heads, 2);
  EXPECT_EQ(layout.head_dim, 12);
  EXPECT_EQ(layout.dtype, DType::kF16);
  const auto pool = std::make_shared<KvPool>(layout);
  const PolicyOptions options{.kv_type = DType::kF16, .context = 64};
  const auto one = MakeTextCache(geometry, options, pool);
  const auto other = MakeTextCache(geometry, options, pool);
  const TestText text(geometry, 10, 1);
  ReadText(*one, text, 10, 10);
  ReadText(*other, text, 10, 10);
  EXPECT_EQ(pool->pages_in_use(), 6);
  EXPECT_EQ(MakeTextCache(geometry, options)->cache().pool().pages_in_use(), 0);
  EXPECT_EQ(ErrorOf([&] { MakeTextCache(geometry, {.spec = "no"}); }).kind(), ErrorKind::kInput);
}

// The angles of dynamic NTK depend on how long a text may become.
TEST(MakePolicyTest, DynamicFrequenciesAreThoseOfTheContext) {
  AttentionGeometry geometry = TestGeometry(2, 2, 8, 8, {0});
  const TestText text(geometry, 20, 1);
  const auto read = [&](int64_t context) {
    return ReadText(*MakeTextCache(geometry, {.kv_type = DType::kF32, .context = context}), text,
                    20, 20);
  };
  EXPECT_EQ(read(64), read(1000));
  geometry.rotaries[0].scaling = {
      .kind = RotaryScaling::Kind::kDynamic, .factor = 2, .original_context = 64};
  EXPECT_NE(read(64), read(1000));
}

// A streaming cache counts positions in the cache, but learned positions are fixed.
TEST(MakePolicyTest, LearnedPositionsAreNeitherCountedAnewNorContinued) {
  AttentionGeometry geometry = TestGeometry(2, 1, 8, 0, {0});
  geometry.learned_positions = 64;
  for (const char* spec : {"sinks:4+8", "sinks:0+64", "window:8"}) {
    const std::string refusal = ErrorOf(
        ErrorKind::kUnsupported, [&] { MakePolicy(geometry, {.spec = spec, .context = 64}); });
    EXPECT_THAT(refusal, HasSubstr(fmt::format("the KV policy {} changes the positions", spec)));
    EXPECT_THAT(refusal, HasSubstr("this model's 64 learned positions"));
  }
  EXPECT_EQ(MakePolicy(geometry, {.context = 64})->facts().limit_tokens, 64);
  EXPECT_THAT(
      ErrorOf(ErrorKind::kInput, [&] { MakePolicy(geometry, {.context = 65}); }),
      HasSubstr(
          "a context of 65 tokens is too long for this model, which has learned positions for 64"));
}

TEST(MakePolicyTest, FactsOfASpecNeedNoModel) {
  for (const PolicyKind& kind : AllPolicies()) {
    const PolicyFacts facts = PolicyFactsOf(std::string(kind.tight_example));
    EXPECT_EQ(facts.name, kind.tight_example);
    EXPECT_EQ(facts.shows_all, kind.name == "dense") << facts.name;
    EXPECT_EQ(facts.separates_question, kind.name == "blocks") << facts.name;
    EXPECT_EQ(facts.chosen_tokens, kind.name == "blocks" ? 64 : 1) << facts.name;
    EXPECT_EQ(facts.endless(), kind.name == "sinks" || kind.name == "window") << facts.name;
    EXPECT_EQ(facts.one_rank_reason.empty(), !facts.endless()) << facts.name;
    EXPECT_EQ(PolicyFactsOf(std::string(kind.ample_example)).name, kind.ample_example);
    for (const std::string_view other : kind.other_examples) {
      if (other.empty()) break;
      EXPECT_THAT(PolicyFactsOf(std::string(other)).name, StartsWith(kind.name));
    }
  }
}

// A text that is asked by the inner policy is limited by it, and its derived data is the inner
// one's.
TEST(MakePolicyTest, APolicyAroundAnotherHasItsFactsButForTheReading) {
  const AttentionGeometry geometry = TestGeometry(2, 1, 16, 16, {0});
  const auto facts = [&](const std::string& prefill) {
    return MakePolicy(geometry, {.spec = "blocks:infllm", .context = 640, .prefill = prefill})
        ->facts();
  };
  const PolicyFacts expected = facts("");
  EXPECT_EQ(expected.reading, "dense");
  EXPECT_FALSE(expected.keys_suffice);
  const PolicyFacts around = facts("star:block=64,anchor=32,tail=7");
  EXPECT_EQ(around.name, expected.name + ", read by star:block=64,anchor=32,tail=7");
  EXPECT_EQ(around.reading, "star:block=64,anchor=32,tail=7");
  EXPECT_EQ(around.prefill, around.reading);
  EXPECT_EQ(around.question_dependent_tokens, 7);
  EXPECT_EQ(around.limit_tokens, 640);
  EXPECT_EQ(around.chosen_tokens, expected.chosen_tokens);
  EXPECT_FALSE(around.keys_suffice);
}

}  // namespace
}  // namespace godwit::make_policy_test
