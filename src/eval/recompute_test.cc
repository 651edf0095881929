#include "eval/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/test_support.h"
#include "eval/stream.h"
#include "eval/stream_test_support.h"
#include "tests/session_of.h"

namespace godwit::eval::recompute_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kFolder = GODWIT_SOURCE_DIR "/tests/data/tiny-llama";

std::vector<int32_t> Tokens(int64_t count) {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < count; ++i) tokens.push_back(3 + 7 * i % 200);
  return tokens;
}

std::vector<float> LastRow(Session& session, std::span<const int32_t> tokens) {
  std::vector<float> last;
  session.Logits(
      tokens, [&](int64_t, std::span<const float> row) { last.assign(row.begin(), row.end()); },
      std::ssize(tokens) - 1);
  return last;
}

std::vector<int64_t> Spans(const KvReport& kv) {
  std::vector<int64_t> spans;
  for (const KvSpan& span : kv.dropped) spans.insert(spans.end(), {span.begin, span.end});
  return spans;
}

// Each row equals that of a text of the last 20 tokens, for any chunks.
TEST(RecomputeTest, ReadsTheLastTokensAnewForEveryToken) {
  const Engine engine(kFolder, {.threads = 1});
  constexpr int64_t kWindow = 20;
  const auto tokens = Tokens(50);
  Session windows = engine.NewSession(WindowSession({.chunk_tokens = 7}, kWindow));
  const Reader recompute = Recompute(windows, engine, kWindow);
  std::vector<std::vector<float>> rows;
  std::vector<int64_t> progress;
  recompute.logits(
      tokens,
      [&](int64_t i, std::span<const float> row) {
        EXPECT_EQ(i, std::ssize(rows));
        rows.emplace_back(row.begin(), row.end());
      },
      0, [&](const PromptProgress& p) { progress.push_back(p.done_tokens); });
  ASSERT_EQ(rows.size(), tokens.size());
  Session dense = engine.NewSession({});
  for (size_t i = 0; i < tokens.size(); ++i) {
    const size_t first = i < kWindow ? 0 : i + 1 - kWindow;
    EXPECT_EQ(rows[i], LastRow(dense, std::span(tokens).subspan(first, i + 1 - first))) << i;
  }
  // The first window is read at once, later tokens one by one.
  ASSERT_EQ(std::ssize(progress), 31);
  EXPECT_EQ(progress.front(), kWindow);
  EXPECT_EQ(progress.back(), 50);

  // Scoring begins before and behind the end of the first window.
  for (const int64_t first : {5, 19, 20, 49}) {
    std::vector<int64_t> positions;
    recompute.logits(tokens,
                     [&](int64_t i, std::span<const float> row) {
                       EXPECT_TRUE(std::ranges::equal(row, rows[i])) << i;
                       positions.push_back(i);
                     },
                     first, {});
    EXPECT_EQ(positions.front(), first);
    EXPECT_EQ(std::ssize(positions), 50 - first);
  }
  EXPECT_EQ(recompute.kv().policy, "recompute:20");
  EXPECT_EQ(recompute.kv().seen, 50);
  EXPECT_EQ(recompute.kv().kept, kWindow);
  EXPECT_THAT(Spans(recompute.kv()), ElementsAre(0, 30));
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { recompute.logits({}, {}, 0, {}); }),
              HasSubstr("empty"));
}

TEST(RecomputeTest, ContinuesATextByWhatItsWindowSays) {
  const Engine engine(kFolder, {.threads = 1});
  constexpr int64_t kWindow = 20;
  Session windows = engine.NewSession(WindowSession({}, kWindow, /*generates=*/true));
  const Reader recompute = Recompute(windows, engine, kWindow);
  GenerateOptions options;
  options.max_tokens = 5;
  options.sampler.temperature = 0;
  options.ignore_eos = true;
  for (const int64_t prompt : {1, 18, 20, 50}) {
    auto text = Tokens(prompt);
    const GenerateResult result = recompute.generate(text, options);
    Session dense = engine.NewSession({});
    for (int i = 0; i < 5; ++i) {
      const auto logits =
          LastRow(dense, std::span(text).last(std::min(text.size(), size_t{kWindow})));
      text.push_back(static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin()));
    }
    EXPECT_EQ(result.tokens, std::vector<int32_t>(text.end() - 5, text.end())) << prompt;
    EXPECT_EQ(result.finish_reason, FinishReason::kLength);
    EXPECT_EQ(result.prompt_tokens, prompt);
    EXPECT_EQ(result.kv.seen, prompt + 4) << "the last one has not been read";
    EXPECT_EQ(result.kv.kept, std::min(prompt + 4, kWindow));
  }
}

// An answer whose window has not moved equals a session's: text, stop strings and end.
TEST(RecomputeTest, EndsAnAnswerAsASessionDoes) {
  const auto engine = EngineThatAnswers(std::make_unique<AnsweringModel>(
      "?", /*sinks=*/0, [](const std::string&, int64_t) { return " yes, it is"; }));
  const auto coder = ByteCoder();
  Session windows = SessionOf(*engine, WindowSession({}, 100, /*generates=*/true));
  const Reader recompute = Recompute(windows, {.window = 100, .decode = coder.decode});
  Session session = SessionOf(*engine);
  const auto prompt = coder.encode("is it?");
  for (const std::vector<std::string>& stop :
       {std::vector<std::string>{"\n"}, {"it", ","}, {"es", "yes"}, {}}) {
    for (const int64_t most : {3, 20}) {
      GenerateOptions options;
      options.max_tokens = most;
      options.stop = stop;
      options.sampler.temperature = 0;
      int64_t calls = 0;
      options.on_progress = [&](const PromptProgress& p) {
        EXPECT_EQ(p.done_tokens, p.total_tokens);
        ++calls;
      };
      const auto a = recompute.generate(prompt, options);
      EXPECT_EQ(calls, 1);
      options.on_progress = nullptr;
      const auto b = session.Generate(prompt, options);
      EXPECT_EQ(a.text, b.text);
      EXPECT_EQ(a.tokens, b.tokens);
      EXPECT_EQ(a.finish_reason, b.finish_reason);
      EXPECT_EQ(a.stop, b.stop);
    }
  }

  const auto ends = EngineThatAnswers(std::make_unique<FakeModel>(
      FakeTokenizer::kEos + 1, [](int32_t, int64_t) { return FakeTokenizer::kEos; }));
  Session ending = SessionOf(*ends, WindowSession({}, 4, /*generates=*/true));
  const auto result = Recompute(ending, {.window = 4, .decode = coder.decode}).generate(prompt, {});
  EXPECT_EQ(result.finish_reason, FinishReason::kStop);
  EXPECT_THAT(result.tokens, ElementsAre(FakeTokenizer::kEos));
  EXPECT_EQ(result.text, "");
}

TEST(RecomputeTest, AStreamCanBeAskedByIt) {
  for (const auto& [feed, between] :
       {std::pair{Feed::kAnswer, " yes\n"}, {Feed::kGold, " gold\n"}, {Feed::kNothing, "\n"}}) {
    const auto engine = EngineThatAnswers(std::make_unique<AnsweringModel>(
        "?", /*sinks=*/0, [](const std::string&, int64_t) { return " yes"; }));
    const auto coder = ByteCoder();
    Session windows = SessionOf(*engine, WindowSession({}, 8, /*generates=*/true));
    Stream stream(Recompute(windows, {.window = 8, .decode = coder.decode}), coder,
                  {.feed = feed, .max_new_tokens = 8});
    std::string expected = "\x01";
    for (const char* question : {"one?", "two?", "three?"}) {
      stream.Append(EncodeInside(coder.encode, question));
      EXPECT_EQ(stream.Ask(" gold", [](int64_t) {}), " yes");
      expected += question + std::string(between);
    }
    EXPECT_EQ(stream.tokens(), std::ssize(expected));
    // The stream's windows have 8 tokens.
    for (const auto& read : static_cast<const FakeModel&>(*engine->model).reads()) {
      EXPECT_LE(read.position + std::ssize(read.tokens), 8);
      std::string text;
      for (const int32_t token : read.tokens) text += token < 256 ? static_cast<char>(token) : '\1';
      EXPECT_THAT(expected, HasSubstr(text.substr(0, text.rfind('?') + 1)));
    }
  }
}

// A window begins with the model's sink token, once, as one of its W tokens.
TEST(RecomputeTest, AWindowBeginsWithTheModelsSinkToken) {
  constexpr int32_t kVocab = 30, kSink = 29;
  DecoderSpec spec = FakeModel::Spec(kVocab, 100);
  spec.sink_token = kSink;
  const Engine::Impl engine(
      std::make_unique<FakeModel>(kVocab, [](int32_t token, int64_t) { return token; }), spec,
      nullptr, SpecialTokens{}, {.threads = 1});
  const auto read_for = [&](std::vector<int32_t> tokens) {
    const auto& reads = static_cast<const FakeModel&>(*engine.model).reads();
    const size_t before = reads.size();
    Session windows = SessionOf(engine, WindowSession({}, 4));
    const Reader recompute = Recompute(windows, {.window = 4, .sink_token = kSink});
    std::vector<int64_t> rows;
    recompute.logits(tokens, [&](int64_t i, std::span<const float>) { rows.push_back(i); }, 0, {});
    EXPECT_EQ(std::ssize(rows), std::ssize(tokens));
    EXPECT_TRUE(std::ranges::is_sorted(rows));
    EXPECT_EQ(recompute.kv().seen, std::ssize(tokens) + (tokens.front() == kSink ? 0 : 1));
    EXPECT_EQ(recompute.kv().kept, 4);
    EXPECT_THAT(Spans(recompute.kv()), ElementsAre(1, recompute.kv().seen - 3));
    std::vector<std::vector<int32_t>> read;
    for (size_t i = before; i < reads.size(); ++i) {
      read.push_back(reads[i].tokens);
      // Windows share a beginning, which is read once.
      if (reads[i].position == 1) read.back().insert(read.back().begin(), kSink);
      EXPECT_EQ(read.back().size(), 4u);
    }
    return read;
  };
  using T = std::vector<int32_t>;
  EXPECT_THAT(read_for({1, 2, 3, 4, 5}),
              ElementsAre(T{kSink, 1, 2, 3}, T{kSink, 2, 3, 4}, T{kSink, 3, 4, 5}));
  EXPECT_THAT(read_for({kSink, 1, 2, 3, 4, 5}),
              ElementsAre(T{kSink, 1, 2, 3}, T{kSink, 2, 3, 4}, T{kSink, 3, 4, 5}));

  Session windows = SessionOf(engine, WindowSession({}, 1));
  EXPECT_THAT(
      ErrorOf(ErrorKind::kInput, [&] { Recompute(windows, {.window = 1, .sink_token = kSink}); }),
      HasSubstr("use recompute:2 at least"));
}

// A window is a text of its own, so its positions begin at the table's first row.
TEST(RecomputeTest, LearnedPositionsBeginAnewInEveryWindow) {
  const Engine engine(GODWIT_SOURCE_DIR "/tests/golden/opt/whole_table", {.threads = 1});
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 70; ++i) tokens.push_back(5 * i % 51);
  Session windows = engine.NewSession(WindowSession({}, 9));
  std::vector<float> last;
  Recompute(windows, {.window = 9})
      .logits(tokens,
              [&](int64_t, std::span<const float> row) { last.assign(row.begin(), row.end()); }, 69,
              {});
  Session dense = engine.NewSession({});
  EXPECT_EQ(last, LastRow(dense, std::span(tokens).last(9)));
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { engine.NewSession(WindowSession({}, 65)); }),
              HasSubstr("positions for 64"));
}

TEST(RecomputeTest, CancelEndsIt) {
  auto model =
      std::make_unique<FakeModel>(FakeTokenizer::kEos + 1, [](int32_t, int64_t) { return 'x'; });
  Session* session = nullptr;
  int steps = 0;
  model->on_step = [&] {
    if (++steps % 3 == 0) session->Cancel();
  };
  const auto engine = EngineThatAnswers(std::move(model));
  Session windows = SessionOf(*engine, WindowSession({}, 4, /*generates=*/true));
  session = &windows;
  const Reader recompute = Recompute(windows, {.window = 4, .decode = ByteCoder().decode});
  const auto tokens = ByteCoder().encode("a text of some length");
  int64_t rows = 0;
  ErrorOf(ErrorKind::kCancelled, [&] {
    recompute.logits(tokens, [&](int64_t, std::span<const float>) { ++rows; }, 0, {});
  });
  EXPECT_EQ(rows, 5) << "the first window and one more";
  GenerateOptions options;
  options.max_tokens = 9;
  const auto result = recompute.generate(tokens, options);
  EXPECT_EQ(result.finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(result.text, "xx");
}

}  // namespace
}  // namespace godwit::eval::recompute_test
