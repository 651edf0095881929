// Texts are read with one policy and asked with another. The answer has the bits of a request
// alone, whether the text was cached, shared or paused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "base/error.h"
#include "base/test_support.h"
#include "engine/engine_test_support.h"

namespace godwit::prefill_test {
namespace {

using testing::HasSubstr;
const SessionOptions kByWindow = {.prefill = "window:9"};

Answer Alone(const Engine& engine, const Tokens& prompt, const GenerateOptions& options,
             const SessionOptions& session = kByWindow) {
  return AnswerOf(engine.NewSession(session).Generate(prompt, options));
}

TEST(Prefill, ChangesTheResultUnlessTheWindowHoldsTheContext) {
  const Engine engine(kTiny, {.threads = 1});
  const Tokens prompt = Prompt(1, 300);
  const Answer dense = Alone(engine, prompt, GreedyWithLogprobs(20), {});
  EXPECT_NE(Alone(engine, prompt, GreedyWithLogprobs(20)), dense);
  EXPECT_EQ(Alone(engine, prompt, GreedyWithLogprobs(20), {.prefill = "window:298"}), dense);
  EXPECT_NE(Alone(engine, prompt, GreedyWithLogprobs(20), {.prefill = "window:297"}), dense);
  EXPECT_EQ(Alone(engine, prompt, GreedyWithLogprobs(20, 300)), dense)
      << "all of it is the question";
  EXPECT_EQ(Alone(engine, prompt, GreedyWithLogprobs(20, 1000)), dense);
  EXPECT_NE(Alone(engine, prompt, GreedyWithLogprobs(20, 40)),
            Alone(engine, prompt, GreedyWithLogprobs(20, 1)));
}

TEST(Prefill, ChunksChangeNothing) {
  const Engine engine(kTiny, {.threads = 2});
  const Tokens prompt = Prompt(2, 200);
  for (const char* kv : {"dense", "sinks:2+30"}) {
    const auto answer = [&](int64_t chunk) {
      return Alone(engine, prompt, GreedyWithLogprobs(20, 33),
                   {.kv = kv, .prefill = "window:9", .chunk_tokens = chunk});
    };
    const Answer expected = answer(1);
    for (const int64_t chunk : {7, 64, 200}) EXPECT_EQ(answer(chunk), expected) << kv << chunk;
  }
}

// One context has questions of many lengths. The part that two of them read alike is read once.
TEST(Prefill, RequestsShareWhatBothReadAlike) {
  const Engine engine(kTiny, {.threads = 1, .step_tokens = 30});
  const Tokens context = Prompt(3, 200);
  for (const char* kv : {"dense", "sinks:2+300"}) {
    const SessionOptions session{.kv = kv, .prefill = "window:9"};
    std::vector<Tokens> prompts;
    std::vector<GenerateOptions> options;
    std::vector<Generation> generations;
    for (int i = 0; i < 5; ++i) {
      const Tokens question = Prompt(40 + i, 5 + 3 * i);
      prompts.push_back(context);
      prompts.back().insert(prompts.back().end(), question.begin(), question.end());
      options.push_back(GreedyWithLogprobs(10, std::ssize(question)));
      generations.push_back(engine.Submit(prompts.back(), options.back(), session));
    }
    int64_t read = 0, asked = 0;
    for (size_t i = 0; i < prompts.size(); ++i) {
      const GenerateResult result = generations[i].Wait();
      read += result.read_tokens;
      asked += options[i].query_tokens;
      EXPECT_EQ(AnswerOf(result), Alone(engine, prompts[i], options[i], session)) << kv << i;
    }
    EXPECT_EQ(read, std::ssize(context) + asked) << kv;

    // The same tokens are asked from another place, or read in another way.
    for (const int64_t query : {1, 100, 150}) {
      const GenerateResult result =
          engine.Submit(context, GreedyWithLogprobs(5, query), session).Wait();
      EXPECT_EQ(result.cached_tokens, 200 - query < 64 ? 0 : 200 - query) << kv;
      EXPECT_EQ(AnswerOf(result), Alone(engine, context, GreedyWithLogprobs(5, query), session))
          << kv;
    }
    const SessionOptions plain{.kv = kv};
    const GenerateResult other = engine.Submit(context, GreedyWithLogprobs(5), plain).Wait();
    EXPECT_EQ(other.cached_tokens, 0);
    EXPECT_EQ(AnswerOf(other), Alone(engine, context, GreedyWithLogprobs(5), plain)) << kv;
  }
}

// Another question has another tail.
TEST(Prefill, ATailIsReadAgainForAnotherQuestion) {
  const Engine engine(kTiny, {.threads = 1, .step_tokens = 30});
  const Tokens context = Prompt(3, 200);
  const SessionOptions session{.prefill = "star:block=32,anchor=8,tail=25"};
  Session one = engine.NewSession(session);
  int64_t shared = 0;
  for (const int64_t query : {20, 1, 40, 100}) {
    const Answer alone = Alone(engine, context, GreedyWithLogprobs(5, query), session);
    const GenerateResult result =
        engine.Submit(context, GreedyWithLogprobs(5, query), session).Wait();
    EXPECT_EQ(result.cached_tokens, shared) << query;
    EXPECT_EQ(AnswerOf(result), alone) << query;
    EXPECT_EQ(AnswerOf(one.Generate(context, GreedyWithLogprobs(5, query))), alone) << query;
    shared = query == 20 ? 200 - 20 - 25 : query == 1 ? 200 - 40 - 25 : 200 - 100 - 25;
  }
}

TEST(Prefill, APausedTextIsReadAgainAsItWas) {
  const Engine unlimited(kTiny, {.threads = 1});
  Session measure = unlimited.NewSession({});
  measure.Generate(Prompt(0, 10), GreedyWithLogprobs(1));
  const int64_t page_set = measure.kv().bytes;  // of 64 tokens in all layers
  const Engine engine(kTiny, {.threads = 1, .kv_memory_bytes = 7 * page_set, .step_tokens = 64});
  std::vector<Generation> generations;
  for (int i = 0; i < 6; ++i) {
    generations.push_back(engine.Submit(Prompt(i, 40 + i), GreedyWithLogprobs(150, 7), kByWindow));
  }
  int64_t pauses = 0;
  for (int i = 0; i < 6; ++i) {
    const GenerateResult result = generations[i].Wait();
    EXPECT_EQ(AnswerOf(result), Alone(unlimited, Prompt(i, 40 + i), GreedyWithLogprobs(150, 7)))
        << i;
    pauses += result.pauses;
  }
  EXPECT_GT(pauses, 0);
}

// The question and answer of a turn are context in the next turn. They are read as by a session
// that gets all of it at once.
TEST(Prefill, ATurnHasTheBitsOfASessionThatReadsItAll) {
  const Engine engine(kTiny, {.threads = 1});
  for (const char* kv : {"dense", "sinks:2+500"}) {
    const SessionOptions options{.kv = kv, .prefill = "window:9"};
    Session session = engine.NewSession(options);
    Tokens text = Prompt(4, 100);
    int64_t context = 0;
    for (int turn = 0; turn < 3; ++turn) {
      const GenerateResult result = session.Generate(text, GreedyWithLogprobs(15, 10));
      EXPECT_EQ(result.cached_tokens, context) << kv;
      EXPECT_EQ(AnswerOf(result), Alone(engine, text, GreedyWithLogprobs(15, 10), options))
          << kv << turn;
      context = std::ssize(text) - 10;
      text.assign(session.tokens().begin(), session.tokens().end());
      // A fork gets another question about the same context.
      Tokens other(text.begin(), text.begin() + context);
      const Tokens question = Prompt(50 + turn, 4);
      other.insert(other.end(), question.begin(), question.end());
      const GenerateResult forked = session.Fork().Generate(other, GreedyWithLogprobs(5, 4));
      EXPECT_EQ(forked.cached_tokens, context) << kv;
      EXPECT_EQ(AnswerOf(forked), Alone(engine, other, GreedyWithLogprobs(5, 4), options)) << kv;
      for (const int32_t token : Prompt(60 + turn, 20)) text.push_back(token);
    }
  }
}

// A block of a quarter of the context is that of each prompt, also where the text grows.
TEST(Prefill, AQuarterIsThatOfEachContext) {
  const Engine engine(kTiny, {.threads = 1});
  const SessionOptions quarter{.prefill = "star:block=quarter"};
  Session session = engine.NewSession(quarter);
  for (const int64_t context : {300, 600, 280}) {
    const Tokens prompt = Prompt(5, context + 20);
    const int64_t block = 64 * ((context + 255) / 256);
    const GenerateOptions asked = GreedyWithLogprobs(9, 20);
    const Answer expected =
        Alone(engine, prompt, asked, {.prefill = fmt::format("star:block={}", block)});
    EXPECT_NE(expected, Alone(engine, prompt, asked, {}));
    EXPECT_EQ(Alone(engine, prompt, asked, quarter), expected);
    const GenerateResult grown = session.Generate(prompt, asked);
    EXPECT_EQ(AnswerOf(grown), expected) << context;
    EXPECT_EQ(grown.kv.prefill, fmt::format("star:block={0},anchor={0}", block));
    EXPECT_EQ(AnswerOf(engine.Submit(prompt, asked, quarter).Wait()), expected);
    Session reader = engine.NewSession(quarter), other = engine.NewSession(quarter);
    reader.ReadContext(std::span(prompt).first(context));
    ASSERT_TRUE(other.GoOnFrom(reader));
    const GenerateResult behind = other.Generate(prompt, asked);
    EXPECT_EQ(behind.cached_tokens, context);
    EXPECT_EQ(AnswerOf(behind), expected);
  }
}

// Policies that read a context alike go on from it, with the bits of a session that read it itself.
TEST(Prefill, AContextThatOnePolicyHasReadServesOthers) {
  const Engine engine(kTiny, {.threads = 1});
  const Tokens context = Prompt(3, 300);
  const auto ask = [&](int i) {
    Tokens prompt = context;
    for (const int32_t token : Prompt(40 + i, 12 + 5 * i)) prompt.push_back(token);
    return prompt;
  };
  constexpr const char* kFew = "blocks:initial=64,local_windows_len=64,second_block_count=1";
  for (const char* prefill : {"", "window:9", "star:block=64,anchor=64,tail=20"}) {
    const auto options = [&](const char* kv) {
      return SessionOptions{.kv = kv, .prefill = prefill};
    };
    for (const char* reader_kv : {"dense", kFew}) {
      Session reader = engine.NewSession(options(reader_kv));
      reader.ReadContext(context);
      EXPECT_EQ(std::ssize(reader.tokens()), 300);
      int i = 0;
      for (const char* kv : {"dense", kFew, "blocks"}) {
        const Tokens prompt = ask(++i);
        const GenerateOptions asked = GreedyWithLogprobs(9, 12 + 5 * i);
        const Answer alone = Alone(engine, prompt, asked, options(kv));
        Session other = engine.NewSession(options(kv));
        ASSERT_TRUE(other.GoOnFrom(reader)) << kv;
        const GenerateResult result = other.Generate(prompt, asked);
        EXPECT_EQ(result.cached_tokens, 300) << prefill << kv;
        EXPECT_EQ(AnswerOf(result), alone) << prefill << reader_kv << kv;
        // Questions and answers of another policy are not gone on from.
        Session third = engine.NewSession(options("dense"));
        ASSERT_TRUE(third.GoOnFrom(other));
        Tokens longer(other.tokens().begin(), other.tokens().end());
        const GenerateOptions again = GreedyWithLogprobs(5, 1);
        EXPECT_EQ(AnswerOf(third.Generate(longer, again)),
                  Alone(engine, longer, again, options("dense")))
            << prefill << kv;
      }
      Session forgets = engine.NewSession(options("sinks:2+100"));
      EXPECT_FALSE(forgets.GoOnFrom(reader));
      const SessionOptions in_f32{.kv = "dense", .prefill = prefill, .kv_type = "f32"};
      EXPECT_FALSE(engine.NewSession(in_f32).GoOnFrom(reader));
    }
  }
  Session own = engine.NewSession({.prefill = "window:8"});
  Session dense = engine.NewSession({});
  EXPECT_FALSE(own.GoOnFrom(dense));
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { dense.ReadContext({}); }),
              HasSubstr("the prompt is empty"));
}

// The tokens before the first position with logits are the context.
TEST(Prefill, LogitsAreAskedOfTheTokensBefore) {
  const Engine engine(kTiny, {.threads = 1});
  const Tokens text = Prompt(6, 120);
  const auto logits = [&](Session asked, int64_t first) {
    std::vector<std::vector<float>> rows;
    asked.Logits(
        text,
        [&](int64_t, std::span<const float> row) { rows.emplace_back(row.begin(), row.end()); },
        first);
    return rows;
  };
  EXPECT_EQ(logits(engine.NewSession(kByWindow), 0), logits(engine.NewSession({}), 0));
  const auto asked = logits(engine.NewSession(kByWindow), 80);
  EXPECT_NE(asked.back(), logits(engine.NewSession({}), 80).back());
  for (const int64_t first : {119, 60, 80}) {
    Session session_of_many = engine.NewSession(kByWindow);
    session_of_many.Generate(text, GreedyWithLogprobs(3, 50));
    EXPECT_EQ(logits(std::move(session_of_many), first),
              logits(engine.NewSession(kByWindow), first));
  }
}

TEST(Prefill, ResultsNameThePrefill) {
  const Engine engine(kTiny, {.threads = 1});
  for (const char* kv : {"dense", "sinks:2+30"}) {
    Session session = engine.NewSession({.kv = kv, .prefill = "window:9"});
    const KvReport report = session.Generate(Prompt(1, 80), GreedyWithLogprobs(2, 20)).kv;
    EXPECT_EQ(report.policy, fmt::format("{}, read by window:9", kv));
    EXPECT_EQ(report.prefill, "window:9");
    EXPECT_EQ(report.context_tokens, 60);
    EXPECT_EQ(session.Fork().kv().context_tokens, 60);
  }
  EXPECT_EQ(
      engine.NewSession({}).Generate(Prompt(1, 80), GreedyWithLogprobs(2, 20)).kv.context_tokens,
      0);
}

TEST(Prefill, InvalidOptionsAreRefused) {
  const Engine engine(kTiny, {.threads = 1});
  for (const char* spec : {"window:0", "dense", "window"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { engine.NewSession({.prefill = spec}); }),
                HasSubstr(fmt::format("found \"{}\"", spec)));
  }
  for (const int64_t query : {0, -1}) {
    EXPECT_THAT(
        ErrorOf(ErrorKind::kInput,
                [&] { engine.Submit(Prompt(0, 9), GreedyWithLogprobs(1, query), kByWindow); }),
        HasSubstr("query_tokens must be at least 1"));
  }
}

}  // namespace
}  // namespace godwit::prefill_test
