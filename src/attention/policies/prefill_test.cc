#include "attention/policies/prefill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/attention_test_support.h"
#include "attention/policies/prefill_spec.h"
#include "base/test_support.h"

namespace godwit::prefill_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kTokens = 150, kQuestionBegin = 90, kWindow = 13;
const std::vector<int64_t> kModelWindows = {0, 5, 14, 100};

std::unique_ptr<TextCache> Make(const AttentionGeometry& geometry, const PolicyOptions& options,
                                int64_t question_begin = kQuestionBegin) {
  auto text = NewText(geometry, options);
  text->SetQuestion(question_begin);
  return text;
}

PolicyOptions ReadByWindow(std::string kv, int64_t context = kTokens) {
  return {.spec = std::move(kv),
          .kv_type = DType::kF32,
          .context = context,
          .prefill = fmt::format("window:{}", kWindow)};
}

// asked(t, of_model): the keys that a row behind the context sees in a layer with window
// `of_model`.
template <typename Asked>
void ExpectContextSeesItsWindow(const AttentionGeometry& geometry, const std::string& kv,
                                const Asked& asked) {
  const TestText text(geometry, kTokens, 1);
  for (const int64_t chunk : {1, 40, 150}) {
    const auto out = ReadText(*Make(geometry, ReadByWindow(kv)), text, kTokens, chunk);
    size_t index = 0;
    for (int64_t t = 0; t < kTokens; ++t) {
      for (int64_t layer = 0; layer < geometry.layers; ++layer) {
        const int64_t window = kModelWindows[layer];
        const int64_t of_model = window == 0 ? INT64_MAX : window;
        std::vector<SeenKey> keys;
        int64_t place = t;
        if (t < kQuestionBegin) {
          for (int64_t key = 0; key <= t; ++key) {
            if (t - key <= kWindow && t - key < of_model) keys.push_back({key, key});
          }
        } else {
          place = asked(t, of_model, keys);
        }
        for (int64_t head = 0; head < 4; ++head) {
          for (const double expected : text.Attend(layer, head, t, place, keys)) {
            ASSERT_NEAR(out[index++], expected, 2e-6)
                << kv << ", token " << t << ", window " << of_model;
          }
        }
      }
    }
  }
}

TEST(PrefillPolicyTest, TheContextSeesAWindowAndWhatFollowsAllOfIt) {
  const AttentionGeometry rotary = TestGeometry(4, 2, 12, 8, kModelWindows);
  for (const AttentionGeometry& geometry : {rotary, WithAlibi(rotary, /*in_bf16=*/false)}) {
    ExpectContextSeesItsWindow(geometry, "dense",
                               [](int64_t t, int64_t of_model, std::vector<SeenKey>& keys) {
                                 for (int64_t key = 0; key <= t; ++key) {
                                   if (t - key < of_model) keys.push_back({key, key});
                                 }
                                 return t;
                               });
    ExpectContextSeesItsWindow(geometry, "sinks:3+20",
                               [](int64_t t, int64_t of_model, std::vector<SeenKey>& keys) {
                                 for (int64_t place = 0; place <= 23; ++place) {
                                   if (23 - place < of_model)
                                     keys.push_back({place < 3 ? place : t - 23 + place, place});
                                 }
                                 return int64_t{23};
                               });
  }
}

// Table 3 of Star Attention: anchors in other places and of tokens that are no part of the text.
TEST(PrefillPolicyTest, AnAnchorMayBeMovedOrForeign) {
  constexpr int64_t kBlock = 20;
  const AttentionGeometry rotary = TestGeometry(4, 2, 12, 8, {0, 0});
  for (const char* how : {"at=previous", "at=random", "foreign", "foreign,at=previous"}) {
    const PrefillSpec spec = ParsePrefill(fmt::format("star:block={},{}", kBlock, how));
    const int64_t hidden = spec.foreign ? kBlock : 0;
    PolicyOptions options = ReadByWindow("dense");
    options.prefill = spec.ToString();
    for (const AttentionGeometry& geometry : {rotary, WithAlibi(rotary, /*in_bf16=*/false)}) {
      const TestText read(geometry, kTokens, 1);
      const auto whole = ReadText(*Make(geometry, options), read, kTokens, kTokens);
      for (const int64_t chunk : {1, 7, 64}) {
        const auto out = ReadText(*Make(geometry, options), read, kTokens, chunk);
        EXPECT_EQ(out, whole) << how << ", chunks of " << chunk;
        size_t index = 0;
        for (int64_t t = 0; t < kTokens; ++t) {
          std::vector<SeenKey> keys;
          const bool asks = t >= kQuestionBegin;
          const int64_t moved = t - spec.AnchorPlace(t);
          if (!asks && t >= spec.anchored_from()) {
            for (int64_t key = 0; key < kBlock; ++key) keys.push_back({key, key + moved});
          }
          const int64_t begin = asks ? hidden : t - t % kBlock;
          for (int64_t key = begin; key <= t; ++key) keys.push_back({key, key});
          for (int64_t layer = 0; layer < geometry.layers; ++layer) {
            for (int64_t head = 0; head < 4; ++head) {
              for (const double expected : read.Attend(layer, head, t, t, keys)) {
                ASSERT_NEAR(out[index++], expected, 2e-6) << how << ", token " << t;
              }
            }
          }
        }
      }
    }
  }
  const auto refused = [&](const AttentionGeometry& geometry, const char* kv, const char* how) {
    PolicyOptions options = ReadByWindow(kv);
    options.prefill = fmt::format("star:block=20,{}", how);
    return ErrorOf(ErrorKind::kUnsupported, [&] { Make(geometry, options); });
  };
  const char* const kNeeds = "need the KV policy dense";
  EXPECT_THAT(refused(rotary, "sinks:3+20", "foreign"), HasSubstr(kNeeds));
  EXPECT_THAT(refused(TestGeometry(4, 2, 12, 8, {0, 5}), "dense", "foreign"), HasSubstr(kNeeds));
}

// A text without context is read as without a prefill setting.
TEST(PrefillPolicyTest, WithoutAContextNothingChanges) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, kModelWindows);
  const TestText text(geometry, kTokens, 2);
  for (const char* kv : {"dense", "sinks:3+20"}) {
    const auto plain = NewText(geometry, {.spec = kv, .kv_type = DType::kF32, .context = kTokens});
    EXPECT_EQ(ReadText(*Make(geometry, ReadByWindow(kv), 0), text, kTokens, 40),
              ReadText(*plain, text, kTokens, 40));
  }
}

// Reading costs n * W, not n * n: a row reads no more as the text grows.
TEST(PrefillPolicyTest, ReadingALongContextCostsTheWindow) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 12, {0});
  const TestText text(geometry, 2001, 3);
  const auto cache = Make(geometry, ReadByWindow("dense", 2001), 2000);
  const int64_t row = LayoutOf(geometry, DType::kF32).page_bytes() / 64;
  for (int64_t length = 100; length <= 2000; length += 100) {
    ReadText(*cache, text, length, 100);
    const int64_t before = std::min(length - 100, kWindow);
    EXPECT_EQ(cache->Stats().read_bytes, (before + 100) * row);
  }
  ReadText(*cache, text, 2001, 1);
  EXPECT_EQ(cache->Stats().read_bytes, 2001 * row) << "the question sees all of it";
}

TEST(PrefillPolicyTest, UnseenTilesAreDropped) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 12, {0});
  const TestText text(geometry, 600, 4);
  const auto kept_after = [&](const std::string& kv, int64_t length) {
    const auto cache = Make(geometry, ReadByWindow(kv, 600), 500);
    ReadText(*cache, text, length, 50);
    EXPECT_EQ(cache->Stats().policy, kv + ", read by window:13");
    EXPECT_GE(cache->policy().facts().max_kept_tokens, cache->Stats().kept);
    return cache->Stats().kept;
  };
  EXPECT_EQ(kept_after("dense", 400), 400);
  EXPECT_EQ(kept_after("dense", 600), 600);
  EXPECT_EQ(kept_after("sinks:3+20", 400), 23);
  EXPECT_EQ(kept_after("sinks:3+20", 600), 23);
  EXPECT_EQ(kept_after("sinks:3+5", 400), 3 + kWindow);
  EXPECT_EQ(MakePolicy(geometry, ReadByWindow("sinks:3+20"))->facts().max_kept_tokens, 23);
  EXPECT_EQ(MakePolicy(geometry, ReadByWindow("sinks:3+5"))->facts().max_kept_tokens, 3 + kWindow);
  EXPECT_EQ(MakePolicy(geometry, ReadByWindow("dense"))->facts().max_kept_tokens, kTokens);
}

// The text becomes a longer context, and misses no key that it sees.
TEST(PrefillPolicyTest, ATextThatWasAskedAboutBecomesTheContextOfAnother) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, kModelWindows);
  const TestText text(geometry, 400, 5);
  for (const char* kv : {"dense", "sinks:3+5", "sinks:3+20"}) {
    const auto cache = Make(geometry, ReadByWindow(kv, 400), 150);
    ReadText(*cache, text, 180, 50);
    ASSERT_TRUE(cache->CanTruncate(150)) << kv;
    cache->Truncate(150);
    cache->SetQuestion(390);
    const auto fresh = Make(geometry, ReadByWindow(kv, 400), 390);
    ReadText(*fresh, text, 150, 50);
    EXPECT_EQ(ReadText(*cache, text, 400, 50), ReadText(*fresh, text, 400, 60)) << kv;
  }
}

// The context sees what it would see by itself, computed elsewhere.
TEST(PrefillPolicyTest, LetsAGpuReadTheContext) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 12, {0, 9});
  const PolicyOptions options{.context = 100, .prefill = "gpu"};
  const auto policy = MakePolicy(geometry, options);
  EXPECT_EQ(policy->on_gpu_until(), 0) << "there is no context yet";
  policy->SetQuestion({.begin = 70, .answer = 80});
  EXPECT_EQ(policy->on_gpu_until(), 70);
  EXPECT_EQ(policy->Fork()->on_gpu_until(), 70);
  EXPECT_EQ(policy->facts().name, "dense, read by gpu");
  EXPECT_EQ(policy->facts().reading, "gpu");
  EXPECT_EQ(policy->ContextKeys(0, 50), 51);
  EXPECT_EQ(policy->ContextKeys(1, 50), 9);
  const auto dense = MakePolicy(geometry, {.context = 100});
  dense->SetQuestion({.begin = 70, .answer = 80});
  EXPECT_EQ(dense->on_gpu_until(), 0);
  EXPECT_NE(dense->facts().reading, policy->facts().reading) << "caches are told apart";
}

TEST(PrefillPolicyTest, AGpuReadsModelsWithChunks) {
  const AttentionGeometry geometry = InChunks(TestGeometry(4, 2, 12, 12, {0, 9}));
  const auto policy = MakePolicy(geometry, {.context = 100, .prefill = "gpu"});
  policy->SetQuestion({.begin = 70, .answer = 80});
  EXPECT_EQ(policy->on_gpu_until(), 70);
  EXPECT_EQ(policy->ContextKeys(0, 50), 51);
  EXPECT_EQ(policy->ContextKeys(1, 50), 50 % 9 + 1);
}

TEST(PrefillPolicyTest, RefusesWhatAGpuCannotRead) {
  const AttentionGeometry plain = TestGeometry(4, 2, 12, 12, {0});
  const auto refusal = [](const AttentionGeometry& geometry, PolicyOptions options) {
    options.context = 100;
    options.prefill = "gpu";
    return ErrorOf(ErrorKind::kUnsupported, [&] { MakePolicy(geometry, options); });
  };
  EXPECT_EQ(refusal(plain, {.spec = "sinks:3+20"}),
            "prefill gpu: a GPU reads a context if the KV policy keeps every token, found "
            "sinks:3+20");
  for (const DType dtype : {DType::kI8, DType::kI8I4, DType::kI4}) {
    EXPECT_THAT(refusal(plain, {.kv_type = dtype}), HasSubstr("f32, f16 or bf16, found "));
  }
  EXPECT_THAT(refusal(WithAlibi(plain, /*in_bf16=*/false), {}), HasSubstr("ALiBi"));
  AttentionGeometry unequal = plain;
  unequal.layer_shapes = {plain.shape};
  EXPECT_EQ(refusal(unequal, {}),
            "prefill gpu: a GPU reads a context if all layers have equal heads and no index of "
            "keys");
  EXPECT_EQ(
      MakePolicy(plain, {.spec = "blocks", .context = 100, .prefill = "gpu"})->facts().prefill,
      "gpu");
}

TEST(PrefillPolicyTest, ServesModelsWithLearnedPositions) {
  AttentionGeometry geometry = TestGeometry(2, 1, 8, 0, {0});
  geometry.learned_positions = 64;
  EXPECT_EQ(MakePolicy(geometry, ReadByWindow("dense", 64))->facts().limit_tokens, 64);
}

// Phase 1 of the paper, token by token: a row sees the anchor and its own block. The tail sees all.
TEST(PrefillPolicyTest, AStarSeesItsBlockAndTheAnchor) {
  const AttentionGeometry rotary = TestGeometry(4, 2, 12, 8, {0, 5, 40});
  constexpr int64_t kBlock = 32;
  struct Star {
    int64_t anchor, overlap, tail;
  };
  for (const auto& [anchor, overlap, tail] : std::vector<Star>{{0, 0, 0},
                                                               {7, 0, 0},
                                                               {32, 0, 0},
                                                               {7, 9, 0},
                                                               {30, 9, 0},
                                                               {32, 32, 0},
                                                               {0, 5, 0},
                                                               {7, 0, 1},
                                                               {30, 9, 31},
                                                               {0, 0, kQuestionBegin + 1}}) {
    for (const AttentionGeometry& geometry :
         {rotary, WithAlibi(rotary, /*in_bf16=*/false), InChunks(WithTemperatures(rotary))}) {
      const TestText text(geometry, kTokens, 6);
      const PolicyOptions options{
          .kv_type = DType::kF32,
          .context = kTokens,
          .prefill = fmt::format("star:block={},anchor={},overlap={},tail={}", kBlock, anchor,
                                 overlap, tail)};
      for (const int64_t chunk : {1, 40, 150}) {
        const auto out = ReadText(*Make(geometry, options), text, kTokens, chunk);
        size_t index = 0;
        for (int64_t t = 0; t < kTokens; ++t) {
          for (int64_t layer = 0; layer < geometry.layers; ++layer) {
            const int64_t of_model = geometry.windows[layer];
            const bool star = t < kQuestionBegin - tail && of_model == 0;
            std::vector<SeenKey> keys;
            for (int64_t key = 0; key <= t; ++key) {
              const bool seen = star ? key < anchor || key >= t / kBlock * kBlock - overlap
                                     : ModelShows(geometry, layer, t, key);
              if (seen) keys.push_back({key, key});
            }
            for (int64_t head = 0; head < 4; ++head) {
              for (const double expected : text.Attend(layer, head, t, t, keys)) {
                ASSERT_NEAR(out[index++], expected, 2e-6) << options.prefill << ", token " << t;
              }
            }
          }
        }
      }
    }
  }
}

// The anchor, the block and the model's windows may see keys that the sinks policy has forgotten.
TEST(PrefillPolicyTest, AStarKeepsWhatItSees) {
  const AttentionGeometry narrow = TestGeometry(4, 2, 12, 12, {0});
  const AttentionGeometry wide = TestGeometry(4, 2, 12, 12, {0, 200});
  const auto kept_after = [](const AttentionGeometry& geometry, int64_t length) {
    const TestText text(geometry, 700, 7);
    const PolicyOptions options{.spec = "sinks:3+5",
                                .kv_type = DType::kF32,
                                .context = 700,
                                .prefill = "star:block=128,anchor=64"};
    const auto cache = Make(geometry, options, 650);
    ReadText(*cache, text, length, 50);
    EXPECT_GE(cache->policy().facts().max_kept_tokens, cache->Stats().kept);
    return cache->Stats().kept;
  };
  EXPECT_EQ(kept_after(narrow, 639), 64 + 127);
  EXPECT_EQ(kept_after(narrow, 641), 64 + 5);
  EXPECT_EQ(kept_after(wide, 641), 64 + 199);
  EXPECT_EQ(kept_after(InChunks(wide), 641), 64 + 41);
  EXPECT_EQ(kept_after(InChunks(wide), 599), 64 + 199);
}

// Blocks are cut by position. The first two, with an anchor of one block, see all tokens before
// them.
TEST(PrefillPolicyTest, TwoBlocksWithTheirAnchorAreDense) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 16, 16, {0});
  const TestText text(geometry, 2060, 8);
  const PolicyOptions dense{.kv_type = DType::kBF16, .context = 2060};
  PolicyOptions star = dense;
  star.prefill = "star:block=1K";
  EXPECT_EQ(ReadText(*Make(geometry, star, 2048), text, 2060, 300),
            ReadText(*Make(geometry, dense, 2048), text, 2060, 300));
}

TEST(PrefillPolicyTest, ATailAsLongAsTheContextIsDense) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 16, 16, {0, 40});
  const TestText text(geometry, 320, 9);
  for (const char* kv : {"dense", "sinks:3+20", "blocks:initial=0,local_windows_len=1"}) {
    const PolicyOptions plain{.spec = kv, .kv_type = DType::kBF16, .context = 320};
    PolicyOptions star = plain;
    star.prefill = "star:block=32,anchor=8,tail=300";
    EXPECT_EQ(ReadText(*Make(geometry, star, 300), text, 320, 50),
              ReadText(*Make(geometry, plain, 300), text, 320, 50))
        << kv;
    star.prefill = "star:block=32,anchor=8,tail=200";
    EXPECT_NE(ReadText(*Make(geometry, star, 300), text, 320, 50),
              ReadText(*Make(geometry, plain, 300), text, 320, 50))
        << kv;
  }
}

TEST(PrefillPolicyTest, AStarReadsItsBlockAndTheAnchor) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 12, {0});
  const TestText text(geometry, 2000, 3);
  PolicyOptions options{.kv_type = DType::kF32, .context = 2000, .prefill = "star:block=200"};
  const auto cache = Make(geometry, options, 2000);
  const int64_t row = LayoutOf(geometry, DType::kF32).page_bytes() / 64;
  for (int64_t length = 100; length <= 2000; length += 100) {
    ReadText(*cache, text, length, 100);
    const int64_t anchor = length <= 200 ? 0 : 200;
    EXPECT_EQ(cache->Stats().read_bytes, (anchor + (length - 1) % 200 + 1) * row);
  }
  options.prefill += ",overlap=30";
  const auto overlapping = Make(geometry, options, 2000);
  for (int64_t length = 100; length <= 2000; length += 100) {
    ReadText(*overlapping, text, length, 100);
    const int64_t before = length <= 200 ? 0 : length <= 400 ? 200 : 230;
    EXPECT_EQ(overlapping->Stats().read_bytes, (before + (length - 1) % 200 + 1) * row);
  }
}

}  // namespace
}  // namespace godwit::prefill_test
