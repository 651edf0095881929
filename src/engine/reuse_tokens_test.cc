#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "engine/engine_test_support.h"
#include "godwit/engine.h"

namespace godwit::reuse_tokens_test {
namespace {

using testing::HasSubstr;

const Tokens kHead = Prompt(1, 40), kFirst = Prompt(2, 90), kSecond = Prompt(3, 70),
             kQuestion = Prompt(4, 12);

Tokens Joined(std::initializer_list<Tokens> parts) {
  Tokens all;
  for (const Tokens& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

class ReusedTokens : public testing::Test {
 protected:
  // A session that has read the head and both passages, each of them behind the head alone.
  Session Join(const Engine& engine, bool first_in_front = true) const {
    Session text = engine.NewSession(options_);
    text.ReadContext(kHead);
    const std::vector<Tokens> passages =
        first_in_front ? std::vector{kFirst, kSecond} : std::vector{kSecond, kFirst};
    for (const Tokens& passage : passages) {
      Session alone = engine.NewSession(options_);
      alone.ReadContext(Joined({kHead, passage}));
      text.ReuseTokens(alone, std::ssize(kHead), std::ssize(kHead) + std::ssize(passage));
    }
    return text;
  }

  TempFolder folder_;
  SessionOptions options_;
  Engine engine_{kTiny, {.threads = 2}};
};

TEST_F(ReusedTokens, TheFirstPassageIsAsIfRead) {
  Session read = engine_.NewSession(options_), reused = engine_.NewSession(options_);
  const Tokens prompt = Joined({kHead, kFirst, kQuestion});
  Session alone = engine_.NewSession(options_);
  alone.ReadContext(Joined({kHead, kFirst}));
  reused.ReadContext(kHead);
  reused.ReuseTokens(alone, std::ssize(kHead), std::ssize(kHead) + std::ssize(kFirst));
  const GenerateResult result = reused.Generate(prompt, GreedyWithLogprobs(20));
  EXPECT_EQ(AnswerOf(result), AnswerOf(read.Generate(prompt, GreedyWithLogprobs(20))));
  EXPECT_EQ(result.cached_tokens, std::ssize(kHead) + std::ssize(kFirst));
}

TEST_F(ReusedTokens, LaterPassagesGiveTheSameAnswerEachTime) {
  const Tokens prompt = Joined({kHead, kFirst, kSecond, kQuestion});
  Session text = Join(engine_);
  EXPECT_EQ(Tokens(text.tokens().begin(), text.tokens().end()), Joined({kHead, kFirst, kSecond}));
  Session fork = text.Fork();
  const Answer answer = AnswerOf(text.Generate(prompt, GreedyWithLogprobs(20)));
  EXPECT_EQ(AnswerOf(fork.Generate(prompt, GreedyWithLogprobs(20))), answer);
  const Engine other(kTiny, {.threads = 1});
  EXPECT_EQ(AnswerOf(Join(other).Generate(prompt, GreedyWithLogprobs(20))), answer);
  // The second passage has not seen the first one.
  Session read = engine_.NewSession(options_);
  EXPECT_NE(AnswerOf(read.Generate(prompt, GreedyWithLogprobs(20))).logprobs, answer.logprobs);
}

TEST_F(ReusedTokens, ThePromptOfAnotherOrderIsReadFromTheHeadOn) {
  Session text = Join(engine_);
  const Tokens other = Joined({kHead, kSecond, kFirst, kQuestion});
  const GenerateResult result = text.Generate(other, GreedyWithLogprobs(5));
  EXPECT_EQ(result.cached_tokens, std::ssize(kHead));
  Session read = engine_.NewSession(options_);
  EXPECT_EQ(AnswerOf(result), AnswerOf(read.Generate(other, GreedyWithLogprobs(5))));
}

TEST_F(ReusedTokens, NobodyElseGetsThem) {
  const Engine saving(kTiny, {.threads = 1, .cache_dir = folder_.path().string()});
  const Tokens prompt = Joined({kHead, kFirst, kSecond, kQuestion});
  Session text = Join(saving);
  text.Generate(prompt, Greedy(5));
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { text.Save(); }), HasSubstr("is not saved"));
  Session other = saving.NewSession(options_), plain = engine_.NewSession(options_);
  const GenerateResult result = other.Generate(prompt, GreedyWithLogprobs(5));
  EXPECT_LE(result.cached_tokens, std::ssize(kHead) + std::ssize(kFirst));
  EXPECT_EQ(AnswerOf(result), AnswerOf(plain.Generate(prompt, GreedyWithLogprobs(5))));
}

// The text that ReadPassages makes, step by step.
TEST_F(ReusedTokens, PassagesAreReadBehindTheHead) {
  const Tokens prompt = Joined({kHead, kFirst, kSecond, kQuestion});
  Session text = Join(engine_), passages = engine_.NewSession(options_);
  const std::vector<Tokens> both = {kFirst, kSecond};
  std::vector<int64_t> done;
  const PassagesRead read =
      passages.ReadPassages(kHead, both, /*read_anew=*/0, [&](const PromptProgress& p) {
        EXPECT_EQ(p.total_tokens, std::ssize(kHead) + std::ssize(kFirst) + std::ssize(kSecond));
        done.push_back(p.done_tokens);
      });
  EXPECT_EQ(read.tokens, Joined({kHead, kFirst, kSecond}));
  EXPECT_EQ(read.reused_tokens, std::ssize(kSecond));
  EXPECT_EQ(read.anew_tokens, 0);
  EXPECT_TRUE(std::ranges::is_sorted(done));
  EXPECT_EQ(done.back(), std::ssize(read.tokens));
  const GenerateResult result = passages.Generate(prompt, GreedyWithLogprobs(20));
  EXPECT_EQ(AnswerOf(result), AnswerOf(text.Generate(prompt, GreedyWithLogprobs(20))));
  EXPECT_EQ(result.cached_tokens, std::ssize(read.tokens));
}

TEST_F(ReusedTokens, PassagesThatAreReadAnewAreAsIfRead) {
  const Tokens prompt = Joined({kHead, kFirst, kSecond, kQuestion});
  Session passages = engine_.NewSession(options_), plain = engine_.NewSession(options_);
  const PassagesRead read = passages.ReadPassages(kHead, std::vector{kFirst, kSecond}, 1000);
  EXPECT_EQ(read.anew_tokens, std::ssize(kSecond));
  EXPECT_EQ(read.reused_tokens, 0);
  EXPECT_EQ(AnswerOf(passages.Generate(prompt, GreedyWithLogprobs(20))),
            AnswerOf(plain.Generate(prompt, GreedyWithLogprobs(20))));
}

// More of them than a prompt has, and without a folder for saved texts.
TEST_F(ReusedTokens, ManyPassagesStayInMemory) {
  constexpr int kPassages = 100;
  std::vector<Tokens> passages;
  for (int i = 0; i < kPassages; ++i) passages.push_back(Prompt(100 + i, 40));
  for (const bool again : {false, true}) {
    for (const Tokens& passage : passages) {
      Session text = engine_.NewSession(options_);
      const int64_t cached = text.ReadPassages(kHead, std::vector{kFirst, passage}).cached_tokens;
      const int64_t passages_tokens = std::ssize(kFirst) + 40;  // a head below a tile is read again
      // The last token of each text is read again.
      EXPECT_TRUE(!again || cached >= passages_tokens - 2) << cached;
    }
  }
}

TEST_F(ReusedTokens, PassagesAreReadOnceForAllOrders) {
  const LoadOptions saving{.threads = 1, .cache_dir = folder_.path().string()};
  const std::vector<Tokens> both = {kFirst, kSecond}, turned = {kSecond, kFirst};
  {
    const Engine engine(kTiny, saving);
    Session text = engine.NewSession(options_);
    EXPECT_EQ(text.ReadPassages(kHead, both).cached_tokens, 0);
  }
  const Engine later(kTiny, saving);
  Session text = later.NewSession(options_), fresh = engine_.NewSession(options_);
  const PassagesRead read = text.ReadPassages(kHead, turned);
  // Texts are saved in whole pages.
  EXPECT_GE(read.cached_tokens, 64);
  fresh.ReadPassages(kHead, turned);
  const Tokens prompt = Joined({kHead, kSecond, kFirst, kQuestion});
  EXPECT_EQ(AnswerOf(text.Generate(prompt, GreedyWithLogprobs(20))),
            AnswerOf(fresh.Generate(prompt, GreedyWithLogprobs(20))));
}

// Without a folder of saved texts, too: the texts in memory serve, and only those of the owner.
TEST_F(ReusedTokens, PassagesInMemoryServeOtherOrders) {
  const std::vector<Tokens> both = {kFirst, kSecond}, turned = {kSecond, kFirst};
  const Tokens prompt = Joined({kHead, kSecond, kFirst, kQuestion});
  Session fresh = engine_.NewSession({.owner = "another"});
  fresh.ReadPassages(kHead, turned);
  const Answer expected = AnswerOf(fresh.Generate(prompt, GreedyWithLogprobs(20)));

  Session first = engine_.NewSession(options_), text = engine_.NewSession(options_);
  EXPECT_EQ(first.ReadPassages(kHead, both).cached_tokens, 0);
  const PassagesRead read = text.ReadPassages(kHead, turned);
  // The last token of each is always read.
  EXPECT_EQ(read.cached_tokens, std::ssize(kFirst) + std::ssize(kSecond) - 2);
  const GenerateResult result = text.Generate(prompt, GreedyWithLogprobs(20));
  EXPECT_EQ(AnswerOf(result), expected);
  ASSERT_TRUE(result.passages);
  EXPECT_EQ(result.passages->cached_tokens, read.cached_tokens);
  EXPECT_EQ(result.passages->anew_tokens, 32);
  EXPECT_EQ(result.passages->reused_tokens, std::ssize(kFirst) - 32);
  // Another prompt of the session is not made of them.
  EXPECT_FALSE(text.Generate(Joined({kHead, kQuestion}), Greedy(2)).passages);
  // A submitted prompt goes on from what the first passage is behind the head, and nothing else.
  const GenerateResult plain = engine_.Submit(prompt, GreedyWithLogprobs(20), options_).Wait();
  EXPECT_FALSE(plain.passages);
  EXPECT_GE(plain.cached_tokens, 64);
  EXPECT_LE(plain.cached_tokens, std::ssize(kHead) + std::ssize(kSecond));
  Session read_plainly = Engine(kTiny, {.threads = 1}).NewSession(options_);
  EXPECT_EQ(AnswerOf(plain), AnswerOf(read_plainly.Generate(prompt, GreedyWithLogprobs(20))));
}

// Each passage is a context behind the head, and blocks and anchors are those of its text there.
TEST_F(ReusedTokens, PassagesAreReadByAPrefill) {
  const Tokens prompt = Joined({kHead, kFirst, kSecond, kQuestion});
  const std::vector<Tokens> both = {kFirst, kSecond};
  GenerateOptions ask = GreedyWithLogprobs(20);
  ask.query_tokens = std::ssize(kQuestion);
  std::vector<Answer> answers;
  for (const char* prefill : {"star:block=48,anchor=16", "star:block=32,anchor=8,overlap=8",
                              "window:16", "star:block=48,anchor=16,at=previous"}) {
    options_.prefill = prefill;
    SCOPED_TRACE(prefill);
    Session joined = Join(engine_), passages = engine_.NewSession(options_);
    const PassagesRead read = passages.ReadPassages(kHead, both, /*read_anew=*/0);
    EXPECT_EQ(read.reused_tokens, std::ssize(kSecond));
    const GenerateResult result = passages.Generate(prompt, ask);
    EXPECT_EQ(result.cached_tokens, std::ssize(read.tokens));
    EXPECT_EQ(result.kv.context_tokens, std::ssize(read.tokens));
    EXPECT_EQ(AnswerOf(result), AnswerOf(joined.Generate(prompt, ask)));
    answers.push_back(AnswerOf(result));
    // All of them read anew give what the prefill itself gives.
    Session anew = engine_.NewSession(options_), plain = engine_.NewSession(options_);
    EXPECT_EQ(anew.ReadPassages(kHead, both, 1000).reused_tokens, 0);
    const Answer own = AnswerOf(plain.Generate(prompt, ask));
    EXPECT_EQ(AnswerOf(anew.Generate(prompt, ask)), own);
    EXPECT_NE(answers.back().logprobs, own.logprobs);
    // Some of them are some way between, the same each time.
    Session some = engine_.NewSession(options_), again = engine_.NewSession(options_);
    some.ReadPassages(kHead, both, 20);
    again.ReadPassages(kHead, both, 20);
    const Answer between = AnswerOf(some.Generate(prompt, ask));
    EXPECT_EQ(AnswerOf(again.Generate(prompt, ask)), between);
    EXPECT_NE(between.logprobs, answers.back().logprobs);
  }
  EXPECT_NE(answers[0].logprobs, answers[2].logprobs);
}

TEST_F(ReusedTokens, RefusesPassagesBeforeAnyIsRead) {
  const std::vector<Tokens> both = {kFirst, kSecond};
  const auto refused = [&](const SessionOptions& options) {
    Session text = engine_.NewSession(options);
    std::string error = ErrorOf(ErrorKind::kUnsupported, [&] { text.ReadPassages(kHead, both); });
    EXPECT_EQ(text.tokens().size(), 0u);
    return error;
  };
  EXPECT_THAT(refused({.prefill = "star:block=48,anchor=16,tail=8"}), HasSubstr("(tail)"));
  EXPECT_THAT(refused({.prefill = "star:block=quarter"}), HasSubstr("star:block=quarter"));
  EXPECT_THAT(refused({.prefill = "auto"}), HasSubstr("in another way in each prompt"));
  EXPECT_THAT(refused({.kv = "sinks:4+60"}), HasSubstr("sinks:4+60, which forgets tokens"));
  Session one = engine_.NewSession({.kv = "sinks:4+60"});
  EXPECT_EQ(one.ReadPassages(kHead, std::vector<Tokens>{kFirst}).reused_tokens, 0);
}

TEST_F(ReusedTokens, Refusals) {
  Session text = engine_.NewSession(options_), alone = engine_.NewSession(options_);
  alone.ReadContext(kFirst);
  const auto refused = [&](const Session& from, int64_t begin, int64_t end) {
    return ErrorOf(ErrorKind::kInput, [&] { text.ReuseTokens(from, begin, end); });
  };
  EXPECT_THAT(refused(alone, 0, 91), HasSubstr("[0, 91) of a text of"));
  EXPECT_THAT(refused(alone, 5, 4), HasSubstr("cannot be taken"));
  EXPECT_THAT(refused(text, 0, 0), HasSubstr("fork it first"));
  const Engine other(kTiny, {.threads = 1});
  EXPECT_THAT(refused(other.NewSession(options_), 0, 0), HasSubstr("of the same engine"));
  EXPECT_THAT(refused(engine_.NewSession({.prefill = "window:16"}), 0, 0),
              HasSubstr("and the same options"));
}

}  // namespace
}  // namespace godwit::reuse_tokens_test
