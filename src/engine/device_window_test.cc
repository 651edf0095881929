// Engines whose emulated GPU attends to near keys while the CPU attends to the others: answers,
// caches, snapshots, drafts, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "engine/engine_test_support.h"
#include "godwit/engine.h"

namespace godwit::device_window_test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kBlocks = "blocks:initial=64,local_windows_len=64,second_block_count=1";

LoadOptions Options(int64_t window = 128) {
  return {.threads = 2,
          .weights = "bf16",
          .device = "emulated",
          .gpu_window = window,
          .step_tokens = 64};
}

GenerateOptions Ask(int64_t query_tokens = 20) { return GreedyWithLogprobs(8, query_tokens); }

// Nothing tells a question from its context: all tokens have the window.
TEST(DeviceWindowTest, DenseTextsHaveBitsAndAPlaceOfTheirOwn) {
  LoadOptions options = Options();
  const TempFolder saved;
  options.cache_dir = saved.path();
  options.cache_every_tokens = 64;
  const Tokens prompt = Prompt(1, 200);
  const SessionOptions with{.gpu_window = 128};
  Answer expected;
  {
    const Engine engine(kTiny, options);
    EXPECT_GT(engine.device().window_bytes, 0);
    const GenerateResult there = engine.NewSession(with).Generate(prompt, Ask());
    expected = AnswerOf(there);
    const GenerateResult here = engine.NewSession({}).Generate(prompt, Ask());
    EXPECT_EQ(here.cached_tokens, 0) << "texts that were read in another way share nothing";
    ExpectNear(there, here, 0.05);
    EXPECT_NE(AnswerOf(here), expected);
    for (const int64_t chunk : {1, 7, 64}) {
      const SessionOptions chunked{.gpu_window = 128, .chunk_tokens = chunk, .owner = "another"};
      EXPECT_EQ(AnswerOf(engine.NewSession(chunked).Generate(prompt, Ask())), expected) << chunk;
    }
    // Requests at once, more than the GPU has places for, one of them with a shorter window.
    Generation other = engine.Submit(Prompt(7, 150), Ask(), with);
    Generation shorter = engine.Submit(prompt, Ask(), {.gpu_window = 64});
    Generation same = engine.Submit(prompt, Ask(), {.gpu_window = 128, .owner = "a third"});
    EXPECT_EQ(AnswerOf(same.Wait()), expected);
    EXPECT_NE(AnswerOf(shorter.Wait()), expected);
    other.Wait();
    Session session = engine.NewSession(with);
    const GenerateResult hit = session.Generate(prompt, Ask());
    EXPECT_GT(hit.cached_tokens, 150);
    EXPECT_EQ(AnswerOf(hit), expected);
    session.Save();
  }
  const Engine engine(kTiny, options);
  const GenerateResult restored = engine.NewSession(with).Generate(prompt, Ask());
  EXPECT_GT(restored.cached_tokens, 100);
  EXPECT_EQ(AnswerOf(restored), expected);
}

// The context of a question is what it is without a window, and is shared with such texts.
TEST(DeviceWindowTest, ContextsOfQuestionsAreSharedWithTextsWithoutIt) {
  LoadOptions options = Options();
  const TempFolder saved;
  options.cache_dir = saved.path();
  options.cache_every_tokens = 64;
  const Engine engine(kTiny, options);
  const Tokens prompt = Prompt(2, 330);
  const SessionOptions with{.kv = kBlocks, .gpu_window = 128};
  const GenerateResult alone = engine.NewSession(with).Generate(prompt, Ask());
  Session read = engine.NewSession({.owner = "o"});
  EXPECT_EQ(read.Generate(prompt, Ask()).cached_tokens, 0);
  read.Save();
  const GenerateResult here =
      engine.NewSession({.kv = kBlocks, .owner = "o"}).Generate(prompt, Ask());
  const GenerateResult hit =
      engine.NewSession({.kv = kBlocks, .gpu_window = 128, .owner = "o"}).Generate(prompt, Ask());
  EXPECT_GE(hit.cached_tokens, 256);
  EXPECT_LE(hit.cached_tokens, 310);
  EXPECT_EQ(AnswerOf(hit), AnswerOf(alone));
  ExpectNear(alone, here, 0.05);
  EXPECT_NE(AnswerOf(alone), AnswerOf(here));
  // Answers go on in the session, whose question was another one.
  Session chat = engine.NewSession(with);
  Tokens text = prompt;
  const GenerateResult first = chat.Generate(text, Ask());
  text.insert(text.end(), first.tokens.begin(), first.tokens.end());
  const Tokens more = Prompt(9, 30);
  text.insert(text.end(), more.begin(), more.end());
  EXPECT_EQ(AnswerOf(chat.Generate(text, Ask())),
            AnswerOf(engine.NewSession({.kv = kBlocks, .gpu_window = 128, .owner = "another"})
                         .Generate(text, Ask())));
}

TEST(DeviceWindowTest, DraftTokensChangeNoBit) {
  const Engine engine(kTiny, Options());
  const Tokens prompt = Prompt(4, 190);
  for (const char* const draft : {"ngram", "partial"}) {
    const SessionOptions with{.gpu_window = 64, .owner = draft};
    GenerateOptions options = GreedyWithLogprobs(24);
    const Answer expected = AnswerOf(engine.NewSession(with).Generate(prompt, options));
    options.draft = draft;
    EXPECT_EQ(AnswerOf(engine.NewSession(with).Generate(prompt, options)), expected) << draft;
  }
}

TEST(DeviceWindowTest, RefusesWhatCannotHaveIt) {
  const auto refusal = [](ErrorKind kind, const LoadOptions& options,
                          const SessionOptions& session) {
    return ErrorOf(kind, [&] { Engine(kTiny, options).NewSession(session); });
  };
  LoadOptions here = Options();
  here.device = "cpu";
  EXPECT_EQ(refusal(ErrorKind::kInput, here, {}),
            "attention on a GPU is set, and the model computes on the CPU alone");
  EXPECT_EQ(refusal(ErrorKind::kUnsupported, Options(0), {.gpu_window = 64}),
            "a GPU window needs a model that was loaded with one, and this one was not");
  EXPECT_EQ(refusal(ErrorKind::kMemory, Options(), {.gpu_window = 192}),
            "a GPU window of 192 tokens: the model was loaded with one of 128, which has keys and "
            "values of 128 tokens in bf16");
  EXPECT_THAT(refusal(ErrorKind::kMemory, Options(), {.gpu_window = 128, .kv_type = "f32"}),
              HasSubstr("of 64 tokens in f32"));
  EXPECT_THAT(refusal(ErrorKind::kInput, Options(), {.gpu_window = 100}),
              HasSubstr("a multiple of 64 tokens, found 100"));
  EXPECT_THAT(refusal(ErrorKind::kUnsupported, Options(), {.kv = "sinks:4+60", .gpu_window = 64}),
              HasSubstr("keeps every token"));
  EXPECT_THAT(refusal(ErrorKind::kUnsupported, Options(), {.gpu_window = 64, .kv_type = "int8"}),
              HasSubstr("f32, f16 or bf16, found int8"));
  EXPECT_THAT(refusal(ErrorKind::kInput, Options(100), {}), HasSubstr("a multiple of 64 tokens"));
  LoadOptions narrow = Options(1 << 20);
  narrow.gpu_memory_bytes = 1 << 20;
  EXPECT_THAT(refusal(ErrorKind::kMemory, narrow, {}),
              HasSubstr(", and keys and values that it keeps "));
}

}  // namespace
}  // namespace godwit::device_window_test
