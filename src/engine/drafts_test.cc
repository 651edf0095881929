// Requests with drafts keep every promise of a request when a step accepts many tokens.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/test_support.h"
#include "engine/draft_shape.h"
#include "engine/engine_impl.h"
#include "engine/engine_test_support.h"
#include "engine/storage_types.h"
#include "tests/fake_model.h"
#include "tests/session_of.h"
#include "text/fake_tokenizer.h"

namespace godwit::drafts_test {
namespace {

using testing::HasSubstr;

constexpr int64_t kVocab = FakeTokenizer::kEos + 1;

// Only steps take time, the same for any number of rows, so that draft tokens pay.
std::atomic<double> test_ms = 0;

// The text repeats "abcdefghijklmnopqrstuvwxyz\n", and ends behind position `eos`.
std::unique_ptr<Engine::Impl> Alphabet(int64_t eos = INT64_MAX, int64_t kv_memory_bytes = 0) {
  auto model = std::make_unique<FakeModel>(kVocab, [eos](int32_t token, int64_t position) {
    if (position == eos) return int32_t{FakeTokenizer::kEos};
    return token == 'z' ? '\n' : token == '\n' ? 'a' : token + 1;
  });
  model->on_step = [steps = model.get()] {
    // A step of a draft over a part of the cache takes no time.
    if (steps->segments().front().text->policy().facts().name != "dense") return;
    test_ms += 0.5;
  };
  return std::make_unique<Engine::Impl>(
      std::move(model), FakeModel::Spec(kVocab, 800), std::make_unique<FakeTokenizer>(),
      SpecialTokens{.eos_ids = {FakeTokenizer::kEos}},
      LoadOptions{.threads = 1, .kv_memory_bytes = kv_memory_bytes}, [] { return test_ms.load(); });
}

// The first `tokens` tokens of the text, because `partial` needs some.
Tokens Beginning(int64_t tokens = 540) {
  Tokens text;
  for (int64_t i = 0; i < tokens; ++i) {
    text.push_back(i % 27 == 26 ? '\n' : static_cast<int32_t>('a' + i % 27));
  }
  return text;
}

GenerateOptions With(GenerateOptions options, const char* draft) {
  options.draft = draft;
  return options;
}

// Results with and without drafts, each from its own session.
struct Both {
  GenerateResult plain, drafted;
  Tokens plain_text, drafted_text;
};
Both Generate(const Engine::Impl& engine, const GenerateOptions& options, const char* draft) {
  Both both;
  const Tokens prompt = Beginning();
  Session plain = SessionOf(engine), drafted = SessionOf(engine);
  both.plain = plain.Generate(prompt, options);
  both.drafted = drafted.Generate(prompt, With(options, draft));
  both.plain_text.assign(plain.tokens().begin(), plain.tokens().end());
  both.drafted_text.assign(drafted.tokens().begin(), drafted.tokens().end());
  EXPECT_EQ(drafted.kv().seen, plain.kv().seen);
  return both;
}

void ExpectSame(const Both& both) {
  EXPECT_EQ(both.drafted.tokens, both.plain.tokens);
  EXPECT_EQ(both.drafted.text, both.plain.text);
  EXPECT_EQ(both.drafted.stop, both.plain.stop);
  EXPECT_EQ(both.drafted.finish_reason, both.plain.finish_reason);
  EXPECT_EQ(both.drafted_text, both.plain_text);
  EXPECT_FALSE(both.plain.drafts);
  ASSERT_TRUE(both.drafted.drafts);
}

// The part has few tokens, so that texts may be short.
constexpr const char* kPartial = "partial:budget=256";
constexpr const char* kBothSources = "ngram,partial:budget=256";

class EverySource : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Drafts, EverySource,
                         testing::Values("ngram", kPartial, kBothSources,
                                         "partial:budget=256:block=1",
                                         "partial:budget=256:gradual"),
                         [](const auto& test) { return "Sources" + std::to_string(test.index); });

TEST_P(EverySource, EndWhereTheTextEnds) {
  int64_t accepted = 0;
  for (int64_t end = 650; end < 665; ++end) {  // at all places of a path
    const auto engine = Alphabet(end);
    GenerateOptions options = Greedy(1000);
    options.ignore_eos = false;
    const Both both = Generate(*engine, options, GetParam());
    ExpectSame(both);
    EXPECT_EQ(both.drafted.finish_reason, FinishReason::kStop);
    accepted += both.drafted.drafts->accepted;
  }
  EXPECT_GT(accepted, 500) << "or this shows nothing";
}

TEST_P(EverySource, EndAtStopStringsAndLimits) {
  const auto engine = Alphabet();
  for (const char* stop : {"mn", "z\na", "q"}) {
    GenerateOptions options = Greedy(1000);
    options.stop = {stop};
    ExpectSame(Generate(*engine, options, GetParam()));
  }
  for (int64_t tokens = 100; tokens < 112; ++tokens) {
    const Both both = Generate(*engine, Greedy(tokens), GetParam());
    ExpectSame(both);
    EXPECT_EQ(std::ssize(both.drafted.tokens), tokens);
  }
  const Both full = Generate(*engine, Greedy(-1), GetParam());
  ExpectSame(full);
  EXPECT_EQ(full.drafted.finish_reason, FinishReason::kContextFull);
}

// Tokens behind the end are not in the session's cache: the next turn goes on as without drafts.
TEST(Drafts, TheNextTurnGoesOnFromTheSameText) {
  const Engine engine(kTiny, {.threads = 1});
  const std::pair<const char*, const char*> cases[] = {
      {"dense", "ngram"}, {"sinks:4+124", "ngram"}, {"dense", kBothSources}};
  for (const auto& [kv, draft] : cases) {
    Session plain = engine.NewSession({.kv = kv}), drafted = engine.NewSession({.kv = kv});
    Tokens text = Prompt(1, draft == kBothSources ? 500 : 100);
    for (int turn = 0; turn < 4; ++turn) {
      const auto a = plain.Generate(text, Greedy(60 + turn));
      const auto b = drafted.Generate(text, With(Greedy(60 + turn), draft));
      EXPECT_EQ(a.tokens, b.tokens) << kv << turn;
      EXPECT_EQ(a.cached_tokens, b.cached_tokens) << kv << turn;
      text.assign(drafted.tokens().begin(), drafted.tokens().end());
      text.insert(text.end(), {5, 6, 7});
    }
  }
}

TEST_P(EverySource, AForkGoesOnFromTheSameText) {
  const auto engine = Alphabet();
  Session plain = SessionOf(*engine), drafted = SessionOf(*engine);
  plain.Generate(Beginning(), Greedy(60));
  drafted.Generate(Beginning(), With(Greedy(60), GetParam()));
  Session fork = drafted.Fork();
  const Tokens text(plain.tokens().begin(), plain.tokens().end());
  const auto expected = plain.Generate(text, Greedy(70));
  for (Session* session : {&drafted, &fork}) {
    const auto result = session->Generate(text, With(Greedy(70), GetParam()));
    EXPECT_EQ(result.tokens, expected.tokens);
    EXPECT_EQ(result.cached_tokens, expected.cached_tokens);
    EXPECT_GT(result.drafts->accepted, 20) << "or this shows nothing";
  }
}

TEST_P(EverySource, EveryTokenHasItsLogprobs) {
  const auto engine = Alphabet();
  GenerateOptions options = Greedy(300);
  options.top_logprobs = 1;
  const Both both = Generate(*engine, options, GetParam());
  ExpectSame(both);
  EXPECT_GT(both.drafted.drafts->accepted, 50) << "or this shows nothing";
  ASSERT_EQ(both.drafted.logprobs.size(), both.drafted.tokens.size());
  for (size_t i = 0; i < both.drafted.tokens.size(); ++i) {
    EXPECT_EQ(both.drafted.logprobs[i].top[0].token, both.drafted.tokens[i]) << i;
    EXPECT_EQ(both.drafted.logprobs[i].logprob, both.plain.logprobs[i].logprob) << i;
  }
}

TEST(Drafts, ManyRequestsHaveTreesOfTheirOwn) {
  const Engine engine(kTiny, {.threads = 2, .step_tokens = 40});
  const auto prompt = [](int i) { return Prompt(i, i % 3 == 2 ? 600 : 1 + 23 * i); };
  const auto draft = [](int i) { return i % 3 == 0 ? "" : i % 3 == 1 ? "ngram" : kBothSources; };
  std::vector<Generation> generations;
  for (int i = 0; i < 9; ++i) {
    generations.push_back(engine.Submit(prompt(i), With(Greedy(150 + i), draft(i))));
  }
  for (int i = 0; i < 9; ++i) {
    const auto result = generations[i].Wait();
    Session alone = engine.NewSession({});
    EXPECT_EQ(result.tokens, alone.Generate(prompt(i), Greedy(150 + i)).tokens) << i;
    EXPECT_EQ(result.drafts.has_value(), i % 3 != 0);
  }
}

// Some requests sample their tokens. Others beside them are cancelled.
TEST_P(EverySource, ManyRequestsHaveTheTextsOfEachAlone) {
  const Engine engine(kTiny, {.threads = 2, .step_tokens = 60});
  const auto prompt = [](int i) { return Prompt(i % 4, 600 + i % 3); };
  const auto options = [](int i) {
    GenerateOptions options = Greedy(40 + i);
    if (i % 3 == 0) options.sampler = {.temperature = 1, .seed = static_cast<uint64_t>(i)};
    return options;
  };
  std::vector<Generation> generations;
  for (int i = 0; i < 24; ++i) {
    generations.push_back(engine.Submit(prompt(i), With(options(i), GetParam())));
  }
  for (int i = 1; i < 24; i += 2) {
    Generation& given_up = generations[i];
    for (int events = i; events > 0 && !given_up.Next().done;) --events;
    given_up.Cancel();
  }
  int64_t draft_tokens = 0;
  for (int i = 0; i < 24; ++i) {
    const auto result = generations[i].Wait();
    Tokens alone = engine.NewSession({}).Generate(prompt(i), options(i)).tokens;
    if (i % 2 == 1) alone.resize(result.tokens.size());
    EXPECT_EQ(result.tokens, alone) << i;
    draft_tokens += result.drafts->draft_tokens;
  }
  // Draft tokens of `partial` come when a clock says that they pay.
  if (std::string_view(GetParam()).starts_with("ngram")) {
    EXPECT_GT(draft_tokens, 20) << "or this shows nothing";
  }
}

// A step leaves out a tree without memory for its paths, and the text goes on. All followers that a
// token had in the prompt become draft tokens side by side, which takes pages.
TEST(Drafts, TextContinuesWithoutMemoryForPaths) {
  Tokens prompt = Beginning();
  for (size_t i = 0; i < prompt.size(); i += 2) {
    prompt[i] = static_cast<int32_t>('a' + i * 7 % 26);
  }
  const auto unlimited = Alphabet();
  Session alone = SessionOf(*unlimited);
  const auto plain = alone.Generate(prompt, Greedy(250));
  const auto engine = Alphabet(INT64_MAX, plain.kv.bytes);
  Session tight = SessionOf(*engine);
  const auto drafted = tight.Generate(prompt, With(Greedy(250), "ngram"));
  EXPECT_EQ(drafted.tokens, plain.tokens);
  EXPECT_EQ(drafted.pauses, 0);
  EXPECT_GT(drafted.drafts->steps_short_of_memory, 0);
  EXPECT_LT(drafted.drafts->steps_short_of_memory, drafted.drafts->steps);
}

// Draft tokens take free memory, and give it back to requests that need it.
TEST(Drafts, TextContinuesWithoutMemoryForAPartialCache) {
  const auto unlimited = Alphabet();
  Session alone = SessionOf(*unlimited);
  const auto plain = alone.Generate(Beginning(), Greedy(250));
  const auto engine = Alphabet(INT64_MAX, plain.kv.bytes);
  Session tight = SessionOf(*engine);
  const auto drafted = tight.Generate(Beginning(), With(Greedy(250), kPartial));
  EXPECT_EQ(drafted.tokens, plain.tokens);
  EXPECT_EQ(drafted.pauses, 0);
  EXPECT_GT(drafted.drafts->accepted, 20) << "before it was tight";
}

std::shared_ptr<Request> Submit(const Engine::Impl& engine, const GenerateOptions& options) {
  auto request =
      engine.NewRequest(std::make_shared<TextPlan>(engine.served, SessionOptions{}), Beginning(),
                        options, std::make_shared<Interrupt>(), RequestKind::kSubmitted);
  engine.scheduler->Submit(request);
  return request;
}

GenerateResult WaitFor(Request& request) {
  while (!request.done()) request.Next(std::nullopt);
  return request.TakeResult();
}

TEST(Drafts, EndedRequestHoldsNoPartialCache) {
  const auto engine = Alphabet();
  const auto request = Submit(*engine, With(Greedy(250), kPartial));
  const GenerateResult result = WaitFor(*request);
  EXPECT_GT(result.drafts->accepted, 100);
  const auto pool = engine->served.pools->Of(ChooseKvType("auto", engine->served.types));
  EXPECT_EQ(pool->pages_in_use() * pool->layout().page_bytes(), result.kv.bytes);
}

// The newer request waits, or is paused when both have grown.
TEST(Drafts, PausedRequestReleasesItsPartialCache) {
  const auto unlimited = Alphabet();
  const GenerateResult plain = WaitFor(*Submit(*unlimited, Greedy(250)));
  const auto engine = Alphabet(INT64_MAX, plain.kv.bytes * 15 / 13);
  const auto first = Submit(*engine, With(Greedy(250), kPartial));
  const auto second = Submit(*engine, With(Greedy(250), kPartial));
  for (Request* request : {first.get(), second.get()}) {
    const GenerateResult result = WaitFor(*request);
    EXPECT_EQ(result.tokens, plain.tokens);
    if (request != first.get()) continue;
    EXPECT_EQ(result.pauses, 0);
    EXPECT_GT(result.drafts->accepted, 0) << "before it was tight";
  }
}

// Where the tokens of a step share a scale, each depends on those that are computed with it.
TEST(Drafts, ModelsWithSharedInputScalesGetNoDrafts) {
  for (const char* name : {"tensor_dynamic", "tensor_static"}) {
    for (const bool step_scales : {false, true}) {
      const Engine engine(std::string(GODWIT_SOURCE_DIR "/tests/golden/int8/llama/") + name,
                          {.threads = 1, .step_scales = step_scales});
      Session session = engine.NewSession({});
      const auto generate = [&](const char* draft) {
        return session.Generate(Prompt(1, 3), With(Greedy(20), draft)).tokens;
      };
      if (step_scales && std::string_view(name) == "tensor_dynamic") {
        EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { generate("ngram"); }),
                    HasSubstr("leave draft tokens out, or give each token its own scale"));
      } else {
        EXPECT_EQ(generate("ngram"), generate("")) << name;
      }
    }
  }
}

// The same prompt in steps of other sizes: the same bits, unless its tokens are to share a scale.
TEST(InputScales, DoNotDependOnStepsUnlessAskedTo) {
  constexpr int64_t kTokens = 60;
  Tokens text;
  for (int32_t i = 0; i < kTokens; ++i) text.push_back((7 * i * i + 3 * i) % 51);
  for (const bool step_scales : {false, true}) {
    const Engine engine(GODWIT_SOURCE_DIR "/tests/golden/int8/llama/tensor_dynamic",
                        {.threads = 1, .step_scales = step_scales});
    const auto logits = [&](int64_t chunk_tokens) {
      Session session = engine.NewSession({.chunk_tokens = chunk_tokens});
      std::vector<float> rows;
      session.Logits(text,
                     [&](int64_t, std::span<const float> row) {
                       rows.insert(rows.end(), row.begin(), row.end());
                     },
                     0, {});
      return rows;
    };
    const std::vector<float> at_once = logits(kTokens);
    ASSERT_EQ(std::ssize(at_once), kTokens * engine.vocab_size());
    for (const int64_t chunk_tokens : {1, 7, 32}) {
      const std::vector<float> chunked = logits(chunk_tokens);
      ASSERT_EQ(chunked.size(), at_once.size());
      const bool same =
          std::memcmp(chunked.data(), at_once.data(), at_once.size() * sizeof(float)) == 0;
      EXPECT_EQ(same, !step_scales) << chunk_tokens;
    }
  }
}

TEST(Drafts, ShapesOfTrees) {
  const Engine engine(kTiny, {.threads = 1});
  Session session = engine.NewSession({});
  const auto generate = [&](const char* draft, const std::string& shape) {
    GenerateOptions options = With(Greedy(200), draft);
    options.draft_tree = shape;
    return session.Generate(Prompt(1, 60), options);
  };
  const Tokens plain = generate("", "").tokens;
  for (const char* source : {"ngram", "ngram-table", "ngram-table:n=3:k=4:lag=20"}) {
    for (const char* shape : {"", "1,3,3,3", "3x1", "rows=4,children=2", "depth=1"}) {
      const GenerateResult result = generate(source, shape);
      EXPECT_EQ(result.tokens, plain) << source << " " << shape;
      const auto& drafts = *result.drafts;
      if (shape == std::string("rows=4,children=2")) {
        EXPECT_LE(drafts.draft_tokens, 3 * drafts.steps) << source;
      }
      if (shape == std::string("1,3,3,3")) {
        EXPECT_GT(drafts.draft_tokens, drafts.steps) << source << ": it is read whatever it costs";
      }
    }
  }
  EXPECT_EQ(ParseDraftShape("1,3,2").fixed, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(ParseDraftShape("3x2").fixed, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(ParseDraftShape("depth=3").depth, 3);
  EXPECT_TRUE(ParseDraftShape("").fixed.empty());
  const auto refused = [](const char* shape) {
    return ErrorOf(ErrorKind::kInput, [&] { ParseDraftShape(shape); });
  };
  EXPECT_THAT(refused("3,3,3"), HasSubstr("begins with 3, expected 1"));
  EXPECT_EQ(
      refused("1,9,9,9"),
      "the shape of a draft tree \"1,9,9,9\" has 820 rows with the text's last token, expected "
      "64 at the most, as many as a step reads");
  EXPECT_THAT(refused("9x9x9"), HasSubstr("has 820 rows"));
  EXPECT_THAT(refused("64"), HasSubstr("has 65 rows"));
  EXPECT_THAT(refused("1,64,64,64,64,64,64,64,64,64,64,64"), HasSubstr("over a million rows"));
  EXPECT_EQ(ParseDraftShape("1,63").fixed, (std::vector<int64_t>{63}));
  EXPECT_THAT(refused("width=3"), HasSubstr("found \"width=3\""));
  for (const char* shape : {"3x", "0x3", "1,65", "rows=0", "a"}) {
    EXPECT_THAT(refused(shape), HasSubstr("expected 1 to 64")) << shape;
  }
}

TEST(Drafts, SourcesThatMakeNoSenseAreRefused) {
  const Engine engine(kTiny, {.threads = 1});
  Session session = engine.NewSession({});
  const auto refused = [&](const char* draft) {
    return ErrorOf(ErrorKind::kInput,
                   [&] { session.Generate(Prompt(1, 3), With(Greedy(3), draft)); });
  };
  EXPECT_THAT(refused("eagle"), HasSubstr("unknown draft source \"eagle\"; there are: ngram, "
                                          "ngram-table, model, mtp, eagle3, heads, partial, "
                                          "triforce"));
  EXPECT_THAT(refused("ngram:3"), HasSubstr("unknown draft source \"ngram:3\""));
  EXPECT_THAT(refused("partial,ngram,partial:budget=1K"), HasSubstr("\"partial\" is named twice"));
  for (const char* draft : {"partial:4096", "partial:budget=255", "partial:budget=4Kx",
                            "partial:block=3", "partial:budget=512:block=128"}) {
    EXPECT_THAT(refused(draft),
                HasSubstr("takes budget=N, the number of tokens that it reads, 256 or more"));
  }
  for (const char* draft : {"ngram-table:n=1", "ngram-table:k=65", "ngram-table:lag=x"}) {
    EXPECT_THAT(refused(draft), HasSubstr("the draft source \"ngram-table\": "));
  }
  EXPECT_THAT(refused("ngram-table:w=1"), HasSubstr("expected n=N, k=N or lag=N, found \"w=1\""));
  EXPECT_THAT(refused("triforce"), HasSubstr("the draft source \"triforce\" needs a draft model"));
  EXPECT_THAT(refused("ngram,"), HasSubstr("unknown draft source \"\""));
  EXPECT_THAT(refused("ngram,ngram"), HasSubstr("named twice"));
  for (const char* kv : {"sinks:4+124", "blocks"}) {
    Session sparse = engine.NewSession({.kv = kv});
    EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                        [&] { sparse.Generate(Prompt(1, 3), With(Greedy(3), kPartial)); }),
                HasSubstr(std::string(kv) +
                          " shows a part of the text itself: leave it out, or use dense"));
  }
}

}  // namespace
}  // namespace godwit::drafts_test
