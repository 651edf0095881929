// StreamEval on a model that looks the line up in the tokens that its policy keeps. It is right
// within the cache and wrong beyond, exact to the token.

#include "eval/stream_eval.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/test_support.h"
#include "eval/register_lines.h"
#include "eval/stream_test_support.h"

namespace godwit::eval::stream_eval_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSinks = 4;

// " <value>" of the line that the query asks for, if the whole line is visible, else " <0>".
std::string LookUp(const std::string& text, int64_t visible) {
  const size_t query = text.rfind("Query: ");
  if (query == std::string::npos || query < text.rfind('\n')) return "x";
  const std::string line = text.substr(query + 7) + " <";
  const size_t begin = text.find("\n" + line) + 1;
  if (static_cast<int64_t>(begin) < visible) return " <0>";
  const size_t value = begin + line.size();
  return " <" + text.substr(value, text.find('>', value) - value) + ">";
}

std::unique_ptr<const Engine::Impl> EngineThatLooksUp(int64_t sinks = kSinks,
                                                      int64_t max_context = 1 << 20) {
  return EngineThatAnswers(std::make_unique<AnsweringModel>(" is", sinks, LookUp), max_context);
}

struct Measured {
  StreamEvalResult result;
  std::vector<StreamQuery> queries;
  Reads reads;
};

// sinks: those that the policy keeps.
Measured Measure(const SessionOptions& session_options, StreamEvalOptions options,
                 int64_t sinks = kSinks) {
  const auto engine = EngineThatLooksUp(sinks);
  Session session = NewSession(*engine, session_options);
  Measured run;
  options.on_query = [&](const StreamQuery& query) { run.queries.push_back(query); };
  run.result = MeasureStreamEval(session, ByteCoder(), options);
  run.reads = ReadsOf(*engine);
  return run;
}

TEST(StreamEvalTest, TheTextIsTheFigures) {
  const Measured run = Measure({}, {.lines = 32, .distances = {20}, .seed = 5});
  std::string expected = "\x01" + std::string(kRegisterHeader);
  for (int64_t line = 0; line < 32; ++line) {
    expected += RegisterLine(line, RegisterValue(5, 0, line));
    if (line != 20 && line != 30) continue;
    expected += RegisterQuery(line - 20) + RegisterAnswer(RegisterValue(5, 0, line - 20)) + "\n";
  }
  // Text behind the last answer is not read, because no question follows.
  const size_t end = expected.rfind("\nThe REGISTER_CONTENT in line 31");
  EXPECT_EQ(run.reads.text, expected.substr(0, end));
  EXPECT_EQ(run.result.tokens, std::ssize(expected));
}

TEST(StreamEvalTest, EveryQueryIsReported) {
  const Measured run = Measure({}, {.lines = 32, .distances = {20}, .seed = 5});
  ASSERT_EQ(run.queries.size(), 2u);
  const StreamQuery& query = run.queries[1];
  EXPECT_EQ(query.sample, 0);
  EXPECT_EQ(query.line, 10);
  EXPECT_EQ(query.distance_lines, 20);
  EXPECT_EQ(query.expected, fmt::format("{}", RegisterValue(5, 0, 10)));
  EXPECT_EQ(query.answer, fmt::format("<{}>", RegisterValue(5, 0, 10)));
  EXPECT_TRUE(query.right);
  const std::string& text = run.reads.text;
  const auto line = static_cast<int64_t>(text.find("\nThe REGISTER_CONTENT in line 10 ")) + 1;
  const std::string asked = "Query: The REGISTER_CONTENT in line 10 is";
  const auto last = static_cast<int64_t>(text.find(asked)) + std::ssize(asked) - 1;
  EXPECT_EQ(query.position, last);
  EXPECT_EQ(query.distance_tokens, last - line);

  const DistanceResult& result = run.result.distances.front();
  EXPECT_EQ(result.queries, 2);
  EXPECT_EQ(result.right, 2);
  EXPECT_EQ(result.distance_tokens,
            static_cast<double>(run.queries[0].distance_tokens + query.distance_tokens) / 2);
}

TEST(StreamEvalTest, QueriesComeAtRegularDistances) {
  const Measured run = Measure({}, {.lines = 12, .distances = {0, 3}, .every = 4, .samples = 2});
  std::vector<std::vector<int64_t>> asked;
  for (const StreamQuery& query : run.queries) {
    asked.push_back({query.sample, query.distance_lines, query.line});
  }
  EXPECT_THAT(asked, ElementsAre(ElementsAre(0, 0, 0), ElementsAre(0, 0, 4), ElementsAre(0, 0, 8),
                                 ElementsAre(0, 3, 0), ElementsAre(0, 3, 4), ElementsAre(0, 3, 8),
                                 ElementsAre(1, 0, 0), ElementsAre(1, 0, 4), ElementsAre(1, 0, 8),
                                 ElementsAre(1, 3, 0), ElementsAre(1, 3, 4), ElementsAre(1, 3, 8)));
  // A sample has the same lines at every distance; another sample has others.
  EXPECT_EQ(run.queries[0].expected, run.queries[3].expected);
  EXPECT_NE(run.queries[0].expected, run.queries[6].expected);
  ASSERT_EQ(run.result.distances.size(), 2u);
  EXPECT_EQ(run.result.distances[0].queries, 6);
  EXPECT_EQ(run.result.distances[1].queries, 6);
}

// The token at t sees t - W and all tokens behind it (and the sinks). A wrong answer is shorter
// than the right one, so with kAnswer the distances depend on the answers.
void ExpectRightUpTo(int64_t window, int64_t sinks, const StreamEvalOptions& options) {
  const std::string kv =
      sinks > 0 ? fmt::format("sinks:{}+{}", sinks, window) : fmt::format("window:{}", window);
  SCOPED_TRACE(kv);
  const Measured run = Measure({.kv = kv, .chunk_tokens = 32}, options, sinks);
  int64_t right = 0;
  int64_t at_the_edge = 0;
  for (const StreamQuery& query : run.queries) {
    const bool evicted = query.position > sinks + window;
    EXPECT_EQ(query.right, !evicted || query.distance_tokens <= window) << query.distance_tokens;
    EXPECT_EQ(query.right, query.answer != "<0>");
    if (query.right) ++right;
    if (query.distance_tokens == window || query.distance_tokens == window + 1) ++at_the_edge;
  }
  EXPECT_GE(at_the_edge, 1);
  EXPECT_GT(right, 3);
  EXPECT_LT(right, std::ssize(run.queries) - 3);
  EXPECT_EQ(run.result.distances[0].right, right);
  EXPECT_EQ(run.result.kv.kept, sinks + window);
}

TEST(StreamEvalTest, AnswersAreRightExactlyWithinTheWindow) {
  for (const Feed feed : {Feed::kAnswer, Feed::kGold, Feed::kNothing}) {
    StreamEvalOptions options{.lines = 120, .distances = {5}, .every = 3};
    options.stream.feed = feed;
    const Measured whole = Measure({}, options);
    EXPECT_EQ(whole.result.distances[0].right, whole.result.distances[0].queries);
    // Distances differ by a few tokens, because numbers have one to five digits. Some query has the
    // median distance: the larger window answers it, the smaller does not.
    std::vector<int64_t> distances;
    for (const StreamQuery& query : whole.queries) distances.push_back(query.distance_tokens);
    std::sort(distances.begin(), distances.end());
    const int64_t median = distances[distances.size() / 2];
    for (const int64_t sinks : {kSinks, int64_t{0}}) {
      ExpectRightUpTo(median, sinks, options);
      ExpectRightUpTo(median - 1, sinks, options);
    }
  }
}

TEST(StreamEvalTest, DistancesBeyondTheCacheScoreNothing) {
  // A line has at most 44 bytes, a query 42, an answer 9.
  const Measured run =
      Measure({.kv = "sinks:4+1000"},
              {.lines = 400, .distances = {10, 60, 100}, .every = 10, .samples = 3});
  EXPECT_EQ(run.result.distances[0].right, run.result.distances[0].queries);
  for (size_t i = 1; i < 3; ++i) EXPECT_EQ(run.result.distances[i].right, 0);
}

TEST(StreamEvalTest, AStreamIsReadOnce) {
  for (const char* kv : {"dense", "sinks:4+300"}) {
    const Measured run = Measure({.kv = kv, .chunk_tokens = 64}, {.lines = 100, .distances = {5}});
    EXPECT_THAT(run.reads.times, Each(1)) << kv;
  }
}

TEST(StreamEvalTest, ChunksChangeNothing) {
  StreamEvalOptions options{.lines = 100, .distances = {3, 8}, .every = 4, .samples = 2};
  for (const Feed feed : {Feed::kAnswer, Feed::kGold}) {
    options.stream.feed = feed;
    const auto answers = [&](int64_t chunk) {
      std::vector<std::string> lines;
      for (const auto& query :
           Measure({.kv = "sinks:4+330", .chunk_tokens = chunk}, options).queries) {
        lines.push_back(fmt::format("{} {} {} {}", query.line, query.position,
                                    query.distance_tokens, query.answer));
      }
      return lines;
    };
    const auto reference = answers(512);
    EXPECT_EQ(answers(7), reference);
    EXPECT_EQ(answers(2), reference);
    EXPECT_THAT(reference, Not(Each(HasSubstr("<0>"))));
    EXPECT_THAT(reference, testing::Contains(HasSubstr("<0>")));
  }
}

TEST(StreamEvalTest, ProgressEndsAtTheTotal) {
  const auto engine = EngineThatLooksUp();
  Session session = NewSession(*engine, {.chunk_tokens = 64});
  StreamEvalOptions options{.lines = 31, .distances = {20, 10}, .samples = 2};
  int64_t last = 0;
  int64_t total = 0;
  int calls = 0;
  options.on_progress = [&](int64_t done_tokens, int64_t total_tokens) {
    EXPECT_GE(done_tokens, last);
    EXPECT_LE(done_tokens, total_tokens);
    last = done_tokens;
    total = total_tokens;
    ++calls;
  };
  MeasureStreamEval(session, ByteCoder(), options);
  EXPECT_GE(calls, 10) << "at least one for every query";
  EXPECT_GT(last, total * 99 / 100);
}

TEST(StreamEvalTest, Refusals) {
  const auto engine = EngineThatLooksUp(kSinks, /*max_context=*/1000);
  Session session = NewSession(*engine, {});
  const auto refusal = [&](const StreamEvalOptions& options) {
    return ErrorOf(ErrorKind::kInput, [&] { MeasureStreamEval(session, ByteCoder(), options); });
  };
  EXPECT_THAT(refusal({.lines = 0}), HasSubstr("lines of a stream"));
  EXPECT_THAT(refusal({.lines = 20, .distances = {20}}), HasSubstr("expected 0 to 19"));
  EXPECT_THAT(refusal({.distances = {-1}}), HasSubstr("distance -1: "));
  EXPECT_THAT(refusal({.distances = {}}), HasSubstr("no distance"));
  EXPECT_THAT(refusal({.every = 0}), HasSubstr("from one query to the next"));
  EXPECT_THAT(refusal({.samples = 0}), HasSubstr("samples"));
  EXPECT_THAT(refusal({.stream = {.max_new_tokens = 0}}), HasSubstr("tokens of an answer"));
  EXPECT_THAT(refusal({.lines = 40}), HasSubstr("context holds 1000"));
  EXPECT_EQ(session.kv().seen, 0);
}

}  // namespace
}  // namespace godwit::eval::stream_eval_test
