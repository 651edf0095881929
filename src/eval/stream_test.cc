// Streams, on a model whose answers are known.

#include "eval/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"
#include "eval/stream_test_support.h"

namespace godwit::eval::stream_test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int64_t kChunk = 16;

std::unique_ptr<const Engine::Impl> EngineThatSays(const std::string& answer) {
  return EngineThatAnswers(std::make_unique<AnsweringModel>(
      "?", /*sinks=*/0, [answer](const std::string&, int64_t) { return answer; }));
}

void Ignore(int64_t) {}

std::string TextOf(const Session& session) {
  return FakeTokenizer().Decode(session.tokens(), /*skip_special_tokens=*/true);
}

// Asks three times and returns the text that the model has read.
std::string ThreeQuestions(const Engine::Impl& engine, Session& session, Feed feed) {
  const StreamCoder coder = ByteCoder();
  Stream stream(session, coder, {.feed = feed, .max_new_tokens = 8});
  for (const char* question : {"one?", "two?", "three?"}) {
    stream.Append(EncodeInside(coder.encode, question));
    EXPECT_EQ(stream.Ask(" gold", Ignore), " yes");
  }
  return ReadsOf(engine).text;
}

TEST(StreamTest, FeedsAnswerGoldOrNothing) {
  for (const char* kv : {"dense", "sinks:2+10"}) {
    for (const auto& [feed, between] :
         {std::pair{Feed::kAnswer, " yes\n"}, {Feed::kGold, " gold\n"}, {Feed::kNothing, "\n"}}) {
      const auto engine = EngineThatSays(" yes");
      Session session = NewSession(*engine, {.kv = kv, .chunk_tokens = kChunk});
      ThreeQuestions(*engine, session, feed);
      const std::string expected = fmt::format("one?{0}two?{0}three?", between);
      EXPECT_TRUE(TextOf(session).starts_with(expected)) << kv << ": " << TextOf(session);
    }
  }
}

// The text that was appended last is the question, with all of its tokens.
TEST(StreamTest, KnowsItsQuestion) {
  const auto engine = EngineThatSays(" yes");
  const StreamCoder coder = ByteCoder();
  for (const int64_t query_tokens : {0, 4}) {
    Session session = NewSession(*engine, {.prefill = "window:9"});
    Stream stream(session, coder, {.max_new_tokens = 8, .query_tokens = query_tokens});
    for (const std::string question : {"one?", "number two?", "three?"}) {
      stream.Append(EncodeInside(coder.encode, question));
      const int64_t asked = query_tokens > 0 ? query_tokens : std::ssize(question);
      const int64_t expected = stream.tokens() - asked;
      (void)stream.Ask("", Ignore);
      EXPECT_EQ(session.kv().context_tokens, expected) << question;
    }
  }
}

TEST(StreamTest, ReadsNoTokenTwice) {
  for (const char* kv : {"dense", "sinks:2+10"}) {
    const auto engine = EngineThatSays(" yes");
    Session session = NewSession(*engine, {.kv = kv, .chunk_tokens = kChunk});
    const std::string text = ThreeQuestions(*engine, session, Feed::kAnswer);
    EXPECT_EQ(text, "\x01one? yes\ntwo? yes\nthree? yes");
    EXPECT_THAT(ReadsOf(*engine).times, Each(1)) << kv;
  }
}

// An answer that does not stay is read and taken back. The text before it stays, even though the
// policy has long begun to evict it.
TEST(StreamTest, TakesBackAnAnswerAfterAnEviction) {
  // The common beginning of the answer " yes" and the fed text stays.
  struct Case {
    Feed feed;
    std::string fed;
    int64_t shared_tokens;
  };
  for (const auto& [feed, fed, shared] :
       {Case{Feed::kGold, " gold\n", 1}, {Feed::kNothing, "\n", 0}}) {
    const auto engine = EngineThatSays(" yes");
    Session session = NewSession(*engine, {.kv = "sinks:2+10", .chunk_tokens = kChunk});
    const StreamCoder coder = ByteCoder();
    Stream stream(session, coder, {.feed = feed, .max_new_tokens = 8});
    int64_t length = 1;
    for (int i = 0; i < 50; ++i) {
      stream.Append(EncodeInside(coder.encode, "is this the question?"));
      EXPECT_EQ(stream.Ask(" gold", Ignore), " yes");
      length = stream.tokens();
    }
    int64_t read = 0;
    for (const auto& step : static_cast<const FakeModel&>(*engine->model).reads()) {
      read += std::ssize(step.tokens);
    }
    const int64_t stream_tokens = length - std::ssize(fed);  // no question follows the last
    EXPECT_EQ(read, stream_tokens + 50 * 4 - 49 * shared);
    EXPECT_EQ(session.kv().kept, 12);
  }
}

TEST(StreamTest, AnAnswerEndsWithTheTextOrAtItsLongest) {
  const auto ends = EngineThatAnswers(std::make_unique<FakeModel>(
      FakeTokenizer::kEos + 1,
      [](int32_t token, int64_t) { return token == '?' ? 'y' : FakeTokenizer::kEos; }));
  const StreamCoder coder = ByteCoder();
  Session session = NewSession(*ends, {});
  Stream stream(session, coder, {});
  stream.Append(EncodeInside(coder.encode, "so?"));
  EXPECT_EQ(stream.Ask("", Ignore), "y");
  EXPECT_EQ(stream.tokens(), std::ssize(std::string("\x01so?y\n")));

  const auto engine = EngineThatSays("a long one");
  Session short_session = NewSession(*engine, {});
  Stream cut(short_session, coder, {.max_new_tokens = 3});
  cut.Append(EncodeInside(coder.encode, "so?"));
  EXPECT_EQ(cut.Ask("", Ignore), "a l");
  EXPECT_EQ(cut.tokens(), std::ssize(std::string("\x01so?a l\n")));
}

// Tokens of several bytes: "?" (0), ">\n" (1), ">" (2), "\n" (3), "y" (4), "\n\n" (5), "a" (6).
class PairTokenizer : public FakeTokenizer {
 public:
  static constexpr std::string_view kTexts[] = {"?", ">\n", ">", "\n", "y", "\n\n", "a"};

  std::vector<int32_t> EncodeUpTo(std::string_view text, bool, int64_t) const override {
    std::vector<int32_t> ids;
    while (!text.empty()) {
      for (const int32_t id : {1, 5, 0, 2, 3, 4, 6}) {
        const std::string_view spelling = kTexts[id];
        if (!text.starts_with(spelling)) continue;
        ids.push_back(id);
        text.remove_prefix(spelling.size());
        break;
      }
    }
    return ids;
  }
  std::string Decode(std::span<const int32_t> ids, bool) const override {
    std::string text;
    for (const int32_t id : ids) text += kTexts[id];
    return text;
  }
  std::unique_ptr<StreamDecoder> NewStream(bool, const CancelToken*) const override {
    class Plain : public StreamDecoder {
     public:
      std::string Push(int32_t id) override { return std::string(kTexts[id]); }
      std::string Flush() override { return ""; }
    };
    return std::make_unique<Plain>();
  }
};

// said: the model's tokens after "?"; answer: its text; fed: the tokens that stay in the text.
void ExpectFed(const std::vector<int32_t>& said, const std::string& answer,
               const std::vector<int32_t>& fed) {
  DecoderSpec spec = FakeModel::Spec(7, 100);
  const Engine::Impl engine(std::make_unique<FakeModel>(
                                7, [said](int32_t, int64_t position) { return said.at(position); }),
                            spec, std::make_unique<PairTokenizer>(), SpecialTokens{},
                            LoadOptions{.threads = 1});
  const StreamCoder coder{
      .frame = {},
      .encode = [](std::string_view text) { return PairTokenizer().Encode(text, false); },
      .decode =
          [](std::span<const int32_t> tokens) { return PairTokenizer().Decode(tokens, false); }};
  Session session = NewSession(engine, {});
  Stream stream(session, coder, {});
  stream.Append(std::vector<int32_t>{0});
  EXPECT_EQ(stream.Ask("", Ignore), answer);
  EXPECT_EQ(stream.tokens(), 1 + std::ssize(fed));
  // The next question's prompt is the text so far, and shows the fed tokens.
  stream.Append(std::vector<int32_t>{0});
  std::vector<int32_t> expected = {0};
  expected.insert(expected.end(), fed.begin(), fed.end());
  expected.push_back(0);
  try {
    stream.Ask("", Ignore);
  } catch (const std::out_of_range&) {  // the script is over
  }
  const auto tokens = session.tokens();
  EXPECT_EQ(std::vector<int32_t>(tokens.begin(), tokens.begin() + std::ssize(expected)), expected);
}

TEST(StreamTest, TheLastTokenOfAnAnswerMayHoldMoreThanANewline) {
  ExpectFed({4, 3}, "y", {4, 3});   // "y", "\n"
  ExpectFed({4, 1}, "y>", {4, 1});  // "y", ">\n"
  ExpectFed({4, 5}, "y", {4, 3});   // "y", "\n\n": one newline belongs to the answer
  ExpectFed({2, 4, 5}, ">y", {2, 4, 3});
}

TEST(StreamTest, EncodesATextWhereItStands) {
  // SentencePiece puts a space in front of a text.
  const Encoder dummy_prefix = [](std::string_view text) {
    return FakeTokenizer().Encode(" " + std::string(text), false);
  };
  const auto bytes = [](std::string_view text) { return FakeTokenizer().Encode(text, false); };
  EXPECT_EQ(EncodeInside(dummy_prefix, "The"), bytes("The"));
  EXPECT_EQ(EncodeInside(dummy_prefix, " <1>\n"), bytes(" <1>\n"));
  EXPECT_EQ(EncodeInside(dummy_prefix, "\n"), bytes("\n"));
  const Encoder joins = [](std::string_view text) {
    return std::vector<int32_t>{static_cast<int32_t>(text.size())};
  };
  EXPECT_EQ(EncodeInside(joins, "abc"), std::vector<int32_t>{3});
}

TEST(StreamTest, OverlongStreamIsRefusedWithTheNumbers) {
  const auto engine = EngineThatSays("");
  Session dense = NewSession(*engine, {.context_tokens = 100});
  CheckStreamFits(dense, 100);
  const Error error = ErrorOf([&] { CheckStreamFits(dense, 101); });
  EXPECT_THAT(error.what(), AllOf(HasSubstr("101"), HasSubstr("context holds 100")));
  EXPECT_EQ(error.data().code, ErrorCode::kStreamTooLong);
  EXPECT_EQ(error.data().found, 101);
  EXPECT_EQ(error.data().limit, 100);
  Session endless = NewSession(*engine, {.kv = "sinks:1+5"});
  CheckStreamFits(endless, 1 << 30);
  Reader learned(dense);
  learned.learned_positions = 200;
  EXPECT_EQ(ErrorOf([&] { CheckStreamFits(learned, 101); }).data().learned_positions, 200);
}

TEST(StreamTest, CancelEndsIt) {
  const auto engine = EngineThatSays(" yes");
  Session session = NewSession(*engine, {.chunk_tokens = 4});
  const StreamCoder coder = ByteCoder();
  Stream stream(session, coder, {});
  stream.Append(EncodeInside(coder.encode, "a rather long question?"));
  ErrorOf(ErrorKind::kCancelled, [&] { stream.Ask("", [&](int64_t) { session.Cancel(); }); });
}

}  // namespace
}  // namespace godwit::eval::stream_test
