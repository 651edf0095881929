// Tests that need a model and a tokenizer with known contents. engine_test.cc has the others.

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>

#include "base/test_support.h"
#include "engine/engine_impl.h"
#include "tests/fake_model.h"
#include "text/fake_tokenizer.h"

namespace godwit::session_test {
namespace {

constexpr int64_t kVocab = FakeTokenizer::kEos + 1;

// An engine that writes `output`, byte for byte, after a prompt of one token.
std::shared_ptr<const Engine::Impl> EngineThatWrites(const std::string& output,
                                                     std::optional<int32_t> sink_token = {}) {
  DecoderSpec spec = FakeModel::Spec(kVocab, 100);
  spec.sink_token = sink_token;
  auto model = std::make_unique<FakeModel>(kVocab, [output](int32_t, int64_t position) {
    return static_cast<int32_t>(static_cast<uint8_t>(output.at(position)));
  });
  return std::make_shared<const Engine::Impl>(std::move(model), spec,
                                              std::make_unique<FakeTokenizer>(), SpecialTokens{},
                                              LoadOptions{.threads = 1});
}

// A decoder holds back text that a later token could change, here half a character.
TEST(SessionTest, AStopStringInTheTextHeldBackIsAStop) {
  const auto engine = EngineThatWrites("ab\xC3");
  Session::Impl session(engine, SessionOptions{});
  const std::vector<int32_t> prompt = {'x'};
  GenerateOptions options;
  options.max_tokens = 3;
  options.sampler.temperature = 0;
  const auto whole = session.Generate(prompt, options);
  EXPECT_EQ(whole.text, "ab\uFFFD");
  EXPECT_EQ(whole.finish_reason, FinishReason::kLength);

  options.stop = {"b\uFFFD"};
  const auto stopped = session.Generate(prompt, options);
  EXPECT_EQ(stopped.text, "a");
  EXPECT_EQ(stopped.tokens.size(), 3u);
  EXPECT_EQ(stopped.finish_reason, FinishReason::kStop);
}

FakeModel& ModelOf(const Engine::Impl& engine) {
  return const_cast<FakeModel&>(static_cast<const FakeModel&>(*engine.model));
}

// The result of `second`, which is told to stop during a long step of `first`.
template <typename Call>
auto CancelledWhileItWaits(const Engine::Impl& engine, Session& first, Session& second,
                           const Call& call) {
  std::future<decltype(call())> waiting;
  ModelOf(engine).on_step = [&] {  // the step ends when this returns
    if (waiting.valid()) return;
    waiting = std::async(std::launch::async, call);
    // Cancel is repeated, because one that comes before the call is erased.
    for (int i = 0; i < 1000; ++i) {
      if (waiting.wait_for(std::chrono::milliseconds(10)) == std::future_status::ready) return;
      second.Cancel();
    }
    ADD_FAILURE() << "the call waits for the other session's";
  };
  GenerateOptions options;
  options.max_tokens = 3;
  options.sampler.temperature = 0;
  first.Generate(std::vector<int32_t>{'x'}, options);
  ModelOf(engine).on_step = nullptr;
  return waiting.get();
}

TEST(SessionTest, CancelEndsACallThatWaitsForAnotherSessions) {
  const auto engine = EngineThatWrites("abcdef");
  Session first(std::make_unique<Session::Impl>(engine, SessionOptions{}));
  Session second(std::make_unique<Session::Impl>(engine, SessionOptions{}));
  const std::vector<int32_t> prompt = {'x'};
  GenerateOptions options;
  options.max_tokens = 2;
  options.sampler.temperature = 0;
  const GenerateResult result = CancelledWhileItWaits(
      *engine, first, second, [&] { return second.Generate(prompt, options); });
  EXPECT_EQ(result.finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(result.prompt_tokens, 1);
  EXPECT_TRUE(result.tokens.empty());
  EXPECT_EQ(ErrorOf([&] {
              CancelledWhileItWaits(*engine, first, second, [&] {
                second.Logits(prompt, [](int64_t, std::span<const float>) {});
                return 0;
              });
            }).kind(),
            ErrorKind::kCancelled);
  EXPECT_EQ(second.Generate(prompt, options).text, "ab") << "nothing is left of it";
}

TEST(SessionTest, ACancelledPromptCountsWhatWasRead) {
  const auto engine = EngineThatWrites(std::string(100, 'y'));
  Session session(std::make_unique<Session::Impl>(engine, SessionOptions{.chunk_tokens = 20}));
  const std::vector<int32_t> prompt(90, 'x');
  GenerateOptions options;
  options.max_tokens = 1;
  int steps = 0;
  ModelOf(*engine).on_step = [&] {
    if (++steps == 3) session.Cancel();
  };
  const auto cancelled = session.Generate(prompt, options);
  EXPECT_EQ(cancelled.finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(cancelled.prompt_tokens, 90);
  EXPECT_EQ(cancelled.read_tokens, 40);

  const auto whole = session.Generate(prompt, options);
  EXPECT_EQ(whole.cached_tokens, 40);
  EXPECT_EQ(whole.read_tokens, 50);
  options.max_tokens = 0;
  Session other(std::make_unique<Session::Impl>(engine, SessionOptions{}));
  EXPECT_EQ(other.Generate(prompt, options).read_tokens, 0);
}

// The fake model answers by position, so a token in front changes its text.
TEST(SessionTest, ASinkTokenStandsOnceInFrontOfEveryText) {
  const auto engine = EngineThatWrites("abcdef", /*sink_token=*/'#');
  Session session(std::make_unique<Session::Impl>(engine, SessionOptions{}));
  GenerateOptions options;
  options.max_tokens = 2;
  options.sampler.temperature = 0;
  const std::vector<int32_t> prompt = {'x', 'y'};
  const auto result = session.Generate(prompt, options);
  EXPECT_EQ(result.text, "cd");
  EXPECT_EQ(result.prompt_tokens, 3);
  const std::vector<int32_t> text(session.tokens().begin(), session.tokens().end());
  EXPECT_EQ(text, (std::vector<int32_t>{'#', 'x', 'y', 'c', 'd'}));

  const auto again = session.Generate(text, options);
  EXPECT_EQ(again.prompt_tokens, 5);
  EXPECT_EQ(again.cached_tokens, 4);

  std::vector<int64_t> positions;
  session.Logits(prompt, [&](int64_t position, std::span<const float> logits) {
    positions.push_back(position);
    EXPECT_GT(logits["bcd"[position]], logits['z']);
  });
  EXPECT_EQ(positions, (std::vector<int64_t>{0, 1}));

  positions.clear();
  session.Logits(
      prompt,
      [&](int64_t position, std::span<const float> logits) {
        positions.push_back(position);
        EXPECT_GT(logits['c'], logits['z']);
      },
      /*first=*/1);
  EXPECT_EQ(positions, (std::vector<int64_t>{1}));
  EXPECT_EQ(session.limit_tokens(), 99);
}

std::vector<FakeModel::Read> ReadsOf(const Engine::Impl& engine) {
  return static_cast<const FakeModel&>(*engine.model).reads();
}

// Extending a text needs no going back, so a policy that cannot go back works.
TEST(SessionTest, ATextThatIsExtendedIsReadOnceThoughThePolicyForgets) {
  const auto engine = EngineThatWrites(std::string(100, 'y'));
  Session::Impl session(engine, SessionOptions{.kv = "sinks:1+3"});
  GenerateOptions options;
  options.max_tokens = 2;
  options.sampler.temperature = 0;
  std::vector<int32_t> text = {'a', 'b'};
  int64_t position = 0;
  for (int call = 0; call < 5; ++call) {
    const auto result = session.Generate(text, options);
    EXPECT_EQ(result.cached_tokens, position);
    // Everything but the last token of the output has been read.
    position = result.prompt_tokens + 1;
    text.assign(session.tokens().begin(), session.tokens().end());
    text.insert(text.end(), {'c', 'd', 'e'});
  }
  int64_t next = 0;
  for (const FakeModel::Read& read : ReadsOf(*engine)) {
    EXPECT_EQ(read.position, next);
    next += std::ssize(read.tokens);
  }
  EXPECT_EQ(next, position);
}

}  // namespace
}  // namespace godwit::session_test
