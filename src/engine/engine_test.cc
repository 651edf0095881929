#include "godwit/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <future>

#include "base/file.h"
#include "base/json.h"
#include "base/test_folder.h"
#include "base/test_support.h"

namespace godwit::engine_test {
namespace {

using testing::HasSubstr;

const std::string kFolder = GODWIT_SOURCE_DIR "/tests/data/tiny-llama";

// Copies the model into `folder`, with another chat template.
void CopyTiny(const TempFolder& folder, std::string_view chat_template) {
  std::filesystem::copy(kFolder, folder.path());
  folder.Write("chat_template.jinja", chat_template);
}

class EngineTest : public testing::Test {
 protected:
  GenerateOptions Greedy(int64_t max_tokens) const {
    GenerateOptions options;
    options.max_tokens = max_tokens;
    options.sampler.temperature = 0;
    return options;
  }

  Engine engine_{kFolder, {.threads = 1}};
};

TEST_F(EngineTest, ContinuesAsHuggingFaceDoes) {
  const auto expected =
      ParseJson(ReadTextFile(kFolder + "/expected.json", 1 << 20), "expected.json");
  ASSERT_FALSE(expected["complete"].empty());
  for (const auto& sample : expected["complete"]) {
    const auto prompt = engine_.Tokenize(sample["prompt"].get<std::string>());
    EXPECT_EQ(prompt, sample["tokens"].get<std::vector<int32_t>>());
    const auto ids = sample["new_tokens"].get<std::vector<int32_t>>();
    std::string streamed;
    GenerateOptions options = Greedy(static_cast<int64_t>(ids.size()));
    options.on_text = [&](std::string_view text) { streamed += text; };
    const GenerateResult result = engine_.NewSession({}).Generate(prompt, options);
    EXPECT_EQ(result.tokens, ids);
    EXPECT_EQ(result.text, sample["new_text"].get<std::string>());
    EXPECT_EQ(streamed, result.text);
    EXPECT_EQ(result.prompt_tokens, static_cast<int64_t>(prompt.size()));
  }
}

TEST_F(EngineTest, AMappedCopyOfItsWeightsChangesNothing) {
  const TempFolder folder;
  std::filesystem::copy(kFolder, folder.path());
  const std::filesystem::path copy = folder.path() / "model.int8.godwit";
  const auto prompt = engine_.Tokenize("Once upon a time");
  const auto tokens = [&](const LoadOptions& options) {
    const Engine engine(folder.path(), options);
    return engine.NewSession({}).Generate(prompt, Greedy(20)).tokens;
  };
  const auto expected = tokens({.threads = 1, .weights = "int8"});
  EXPECT_FALSE(std::filesystem::exists(copy));
  EXPECT_EQ(tokens({.threads = 1, .weights = "int8", .pack = true}), expected);
  EXPECT_TRUE(std::filesystem::exists(copy));
  int64_t read_bytes = 0;
  const auto note = [&](int64_t done, int64_t /*total*/) { read_bytes = done; };
  EXPECT_EQ(tokens({.threads = 1, .weights = "int8", .on_progress = note}), expected);
  EXPECT_EQ(read_bytes, 0);
  std::vector<std::string> stages;
  const auto note_stage = [&](std::string_view stage) { stages.emplace_back(stage); };
  EXPECT_EQ(tokens({.threads = 1, .weights = "int8", .on_stage = note_stage}), expected);
  EXPECT_THAT(stages, testing::ElementsAre("reading the tokenizer", "mapping the packed copy"));
  const LoadOptions none{.threads = 1, .weights = "int8", .packed = "none", .on_progress = note};
  EXPECT_EQ(tokens(none), expected);
  EXPECT_GT(read_bytes, 0);
  stages.clear();
  LoadOptions told = none;
  told.on_stage = note_stage;
  EXPECT_EQ(tokens(told), expected);
  EXPECT_THAT(stages, testing::ElementsAre("reading the tokenizer", "packing the weights"));
  LoadOptions both = none;
  both.pack = true;
  EXPECT_EQ(ErrorOf(ErrorKind::kInput, [&] { tokens(both); }),
            "making a packed copy and using none exclude each other");
}

TEST_F(EngineTest, TwoSessionsInTwoThreadsGiveTheBitsOfOneAfterTheOther) {
  const Engine engine(kFolder, {.threads = 2});
  struct Output {
    std::vector<std::vector<int32_t>> tokens;
    std::vector<float> logits;
    bool operator==(const Output&) const = default;
  };
  const auto output = [&](const std::string& text) {
    Output result;
    Session session = engine.NewSession({.chunk_tokens = 5});
    const auto prompt = engine.Tokenize(text);
    GenerateOptions options;
    options.max_tokens = 8;
    for (options.sampler.seed = 0; options.sampler.seed < 10; ++options.sampler.seed) {
      result.tokens.push_back(session.Generate(prompt, options).tokens);
    }
    session.Logits(prompt, [&](int64_t, std::span<const float> row) {
      result.logits.insert(result.logits.end(), row.begin(), row.end());
    });
    return result;
  };
  const std::string texts[] = {"Once upon a time there was", "The godwit flies over the sea"};
  const Output alone[] = {output(texts[0]), output(texts[1])};
  auto other = std::async(std::launch::async, output, texts[1]);
  EXPECT_EQ(output(texts[0]), alone[0]);
  EXPECT_EQ(other.get(), alone[1]);
  EXPECT_NE(alone[0], alone[1]);
}

TEST_F(EngineTest, ReportsTheRecommendedSampling) {
  EXPECT_EQ(engine_.sampler_defaults().choices.temperature, 0) << "do_sample is false";
  EXPECT_FALSE(engine_.sampler_defaults().choices.top_p);
}

TEST_F(EngineTest, ACacheHitShowsInTheCountAndNowhereElse) {
  Session session = engine_.NewSession({.chunk_tokens = 7});
  auto text = engine_.Tokenize("The godwit flies over the sea");
  const auto first = session.Generate(text, Greedy(20));
  EXPECT_EQ(first.cached_tokens, 0);
  text.assign(session.tokens().begin(), session.tokens().end());
  for (const int32_t token : engine_.Tokenize(" and the wind", false)) text.push_back(token);

  const auto cached = session.Generate(text, Greedy(20));
  EXPECT_EQ(cached.cached_tokens,
            first.prompt_tokens + static_cast<int64_t>(first.tokens.size()) - 1);
  const auto fresh = engine_.NewSession({}).Generate(text, Greedy(20));
  EXPECT_EQ(fresh.cached_tokens, 0);
  EXPECT_EQ(cached.tokens, fresh.tokens);

  // Going back to a shorter text, as regenerating an answer does.
  const std::vector<int32_t> shorter(text.begin(), text.begin() + 5);
  const auto back = session.Generate(shorter, Greedy(20));
  EXPECT_EQ(back.cached_tokens, 4);
  EXPECT_EQ(back.tokens, engine_.NewSession({}).Generate(shorter, Greedy(20)).tokens);
}

TEST_F(EngineTest, SeedsRepeatAndSequencesDiffer) {
  const auto prompt = engine_.Tokenize("The");
  GenerateOptions options;
  options.max_tokens = 40;
  options.ignore_eos = true;
  options.sampler = {.temperature = 3, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 11};
  const auto generate = [&] { return engine_.NewSession({}).Generate(prompt, options).tokens; };
  const auto first = generate();
  EXPECT_EQ(generate(), first);
  options.sequence = 1;
  EXPECT_NE(generate(), first);
  options.sequence = 0;
  options.sampler.seed = 12;
  EXPECT_NE(generate(), first);
}

TEST_F(EngineTest, StopStringsEndTheTextBeforeThem) {
  const auto prompt = engine_.Tokenize("The godwit");
  const auto whole = engine_.NewSession({}).Generate(prompt, Greedy(30)).text;
  ASSERT_GT(whole.size(), 12u);
  GenerateOptions options = Greedy(30);
  options.stop = {whole.substr(6, 3)};
  const auto cut = engine_.NewSession({}).Generate(prompt, options);
  EXPECT_EQ(cut.finish_reason, FinishReason::kStop);
  EXPECT_EQ(cut.text, whole.substr(0, whole.find(options.stop[0])));
  EXPECT_EQ(cut.stop, options.stop[0]);
}

TEST_F(EngineTest, AnOverlongPromptIsRefusedWithTheNumbers) {
  const std::vector<int32_t> prompt(30, 5);
  Session session = engine_.NewSession({.context_tokens = 20});
  const Error error = ErrorOf([&] { session.Generate(prompt, Greedy(1)); });
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  EXPECT_THAT(error.what(), HasSubstr("30 tokens"));
  EXPECT_THAT(error.what(), HasSubstr("context holds 20"));
  EXPECT_EQ(error.data().code, ErrorCode::kPromptTooLong);
  EXPECT_EQ(error.data().found, 30);
  EXPECT_EQ(error.data().limit, 20);
  EXPECT_EQ(session.kv().seen, 0);
}

TEST_F(EngineTest, OutputEndsWhereTheContextDoes) {
  const auto prompt = engine_.Tokenize("The godwit");
  GenerateOptions options = Greedy(-1);
  options.ignore_eos = true;
  const auto n = static_cast<int64_t>(prompt.size());
  const auto result = engine_.NewSession({.context_tokens = n + 9}).Generate(prompt, options);
  EXPECT_EQ(result.tokens.size(), 9u);
  EXPECT_EQ(result.finish_reason, FinishReason::kContextFull);
  options.max_tokens = 9;
  EXPECT_EQ(engine_.NewSession({.context_tokens = n + 9}).Generate(prompt, options).finish_reason,
            FinishReason::kLength);
}

TEST_F(EngineTest, StreamingGoesPastTheContextAndSaysWhatItDropped) {
  GenerateOptions options = Greedy(engine_.max_context() + 100);
  options.ignore_eos = true;
  const auto prompt = engine_.Tokenize("The");
  const auto result = engine_.NewSession({.kv = "sinks:4+60"}).Generate(prompt, options);
  EXPECT_EQ(static_cast<int64_t>(result.tokens.size()), options.max_tokens);
  EXPECT_EQ(result.kv.policy, "sinks:4+60");
  EXPECT_EQ(result.kv.kept, 64);
  EXPECT_EQ(result.kv.seen, static_cast<int64_t>(prompt.size() + result.tokens.size()) - 1);
}

TEST_F(EngineTest, CancelEndsTheCallAndKeepsTheSession) {
  Session session = engine_.NewSession({.kv = "sinks:4+60"});  // has no end of its own
  const auto prompt = engine_.Tokenize("The godwit");
  GenerateOptions options = Greedy(-1);
  options.ignore_eos = true;
  int pieces = 0;
  options.on_text = [&](std::string_view) {
    if (++pieces == 5) session.Cancel();
  };
  const auto cancelled = session.Generate(prompt, options);
  EXPECT_EQ(cancelled.finish_reason, FinishReason::kCancelled);
  EXPECT_GE(cancelled.tokens.size(), 5u);

  const auto again = session.Generate(prompt, Greedy(20));
  EXPECT_EQ(again.tokens, engine_.NewSession({}).Generate(prompt, Greedy(20)).tokens);
}

TEST_F(EngineTest, CancelBetweenCallsTouchesNone) {
  Session session = engine_.NewSession({});
  const auto prompt = engine_.Tokenize("The godwit");
  session.Cancel();
  const auto first = session.Generate(prompt, Greedy(5));
  EXPECT_EQ(first.finish_reason, FinishReason::kLength);
  EXPECT_EQ(first.tokens.size(), 5u);
  session.Cancel();
  EXPECT_EQ(session.Generate(prompt, Greedy(5)).tokens, first.tokens);
  session.Cancel();
  int64_t rows = 0;
  session.Logits(prompt, [&](int64_t, std::span<const float>) { ++rows; });
  EXPECT_EQ(rows, std::ssize(prompt));
}

TEST_F(EngineTest, CancelledLogitsLeaveTheSessionUsable) {
  Session session = engine_.NewSession({.chunk_tokens = 8});
  const std::vector<int32_t> tokens(100, 7);
  int64_t rows = 0;
  const auto count = [&](int64_t, std::span<const float>) {
    if (++rows == 3) session.Cancel();
  };
  ErrorOf(ErrorKind::kCancelled, [&] { session.Logits(tokens, count); });
  EXPECT_LT(rows, 100);
  rows = 3;
  session.Logits(tokens, count);
  EXPECT_EQ(rows, 103);
}

TEST_F(EngineTest, ProgressCountsThePrompt) {
  const std::vector<int32_t> prompt(50, 7);
  std::vector<int64_t> done;
  GenerateOptions options = Greedy(1);
  options.on_progress = [&](const PromptProgress& progress) {
    EXPECT_EQ(progress.total_tokens, 50);
    done.push_back(progress.done_tokens);
  };
  engine_.NewSession({.chunk_tokens = 20}).Generate(prompt, options);
  ASSERT_FALSE(done.empty());
  EXPECT_EQ(done.back(), 50);
  // A late reader sees the latest progress.
  EXPECT_TRUE(std::ranges::includes(std::vector<int64_t>{20, 40, 50}, done));

  done.clear();
  int64_t rows = 0;
  const auto count_row = [&](int64_t, std::span<const float>) { ++rows; };
  engine_.NewSession({.chunk_tokens = 20})
      .Logits(prompt, count_row, /*first=*/30, [&](const PromptProgress& progress) {
        options.on_progress(progress);
        EXPECT_EQ(progress.left_ms.value() == 0, progress.done_tokens == 50);
        EXPECT_EQ(rows, std::max<int64_t>(0, progress.done_tokens - 30));
      });
  EXPECT_EQ(done, (std::vector<int64_t>{20, 40, 50}));
}

TEST_F(EngineTest, LogitsComeRowByRowWhateverTheChunk) {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 150; ++i) tokens.push_back(3 + i % 200);
  const auto collect = [&](int64_t chunk) {
    std::vector<float> all;
    int64_t next = 0;
    engine_.NewSession({.kv_type = "f32", .chunk_tokens = chunk})
        .Logits(tokens, [&](int64_t position, std::span<const float> row) {
          EXPECT_EQ(position, next++);
          EXPECT_EQ(static_cast<int64_t>(row.size()), engine_.vocab_size());
          all.insert(all.end(), row.begin(), row.end());
        });
    EXPECT_EQ(next, 150);
    return all;
  };
  EXPECT_EQ(collect(150), collect(13));
}

TEST_F(EngineTest, LogitsFromAPositionAreThoseOfTheWholeText) {
  using Rows = std::vector<std::pair<int64_t, std::vector<float>>>;
  const auto rows = [](Session& session, std::span<const int32_t> tokens, int64_t first) {
    Rows all;
    session.Logits(
        tokens,
        [&](int64_t position, std::span<const float> row) {
          all.emplace_back(position, std::vector<float>(row.begin(), row.end()));
        },
        first);
    return all;
  };
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 150; ++i) tokens.push_back(3 + i % 200);
  for (const char* kv : {"dense", "sinks:4+60"}) {
    Session whole = engine_.NewSession({.kv = kv, .kv_type = "f32"});
    const Rows all = rows(whole, tokens, 0);
    Session session = engine_.NewSession({.kv = kv, .kv_type = "f32", .chunk_tokens = 13});
    // The second call goes on from the first, the third begins with other tokens, and the last asks
    // for more than new tokens.
    for (const int64_t first : {100, 149, 77, 3, 0}) {
      if (first == 77) rows(session, std::vector<int32_t>{5, 6}, 1);
      EXPECT_EQ(rows(session, tokens, first), Rows(all.begin() + first, all.end())) << first;
    }
  }
  Session session = engine_.NewSession({});
  for (const int64_t first : {-1, 150, 151}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { rows(session, tokens, first); }),
                HasSubstr(fmt::format("position {} ", first)));
  }
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { rows(session, {}, 0); }), HasSubstr("empty"));
}

TEST_F(EngineTest, ATextTooLongIsRefusedBeforeAllOfItIsTokens) {
  std::string text;
  while (text.size() < size_t{300} << 10) text += "There was a small bird. ";
  const int64_t all = std::ssize(engine_.Tokenize(text));
  const int64_t most = engine_.max_context();
  const auto begin = engine_.Tokenize(text, /*add_special=*/true, most);
  EXPECT_GT(std::ssize(begin), most);
  EXPECT_LT(std::ssize(begin), all / 2);

  // The number of tokens is told, unless there are very many.
  const std::string has = fmt::format("the prompt has {} tokens and the context", all);
  for (const int64_t context : {int64_t{0}, most - 10}) {
    const Session session = engine_.NewSession({.context_tokens = context});
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { session.Tokenize(text); }), HasSubstr(has));
  }
  std::string longer;
  while (std::ssize(longer) * all < 300'000 * std::ssize(text)) longer += text;
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { engine_.NewSession({}).Tokenize(longer); }),
              HasSubstr("has more than 250000 tokens"));
  const Session larger = engine_.NewSession({.context_tokens = all});
  EXPECT_EQ(std::ssize(larger.Tokenize(text)), all);
  const Session endless = engine_.NewSession({.kv = "sinks:4+60"});
  EXPECT_EQ(std::ssize(endless.Tokenize(text)), all);
  // Texts that a larger context holds are counted, so that the refusal can name the size.
  const Session small = engine_.NewSession({.context_tokens = 10});
  EXPECT_EQ(std::ssize(small.Tokenize(text.substr(0, 600))),
            std::ssize(engine_.Tokenize(text.substr(0, 600))));
}

TEST(LearnedPositionsTest, AreForTextsAsLongAsTheirTable) {
  const Engine engine(GODWIT_SOURCE_DIR "/tests/golden/opt/whole_table", {.threads = 1});
  EXPECT_EQ(engine.max_context(), 64);
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 70; ++i) tokens.push_back(5 * i % 51);
  const auto last_row = [](Session session, std::span<const int32_t> text) {
    std::vector<float> last;
    session.Logits(
        text, [&](int64_t, std::span<const float> row) { last.assign(row.begin(), row.end()); },
        std::ssize(text) - 1);
    return last;
  };
  const auto refusal = [&](ErrorKind kind, const SessionOptions& options) {
    return ErrorOf(kind, [&] { last_row(engine.NewSession(options), tokens); });
  };
  EXPECT_THAT(refusal(ErrorKind::kInput, {}),
              testing::AllOf(HasSubstr("the prompt has 70 tokens and the context holds 64"),
                             testing::Not(HasSubstr("sinks"))));
  EXPECT_EQ(ErrorOf([&] { last_row(engine.NewSession({}), tokens); }).data().learned_positions, 64);
  EXPECT_THAT(refusal(ErrorKind::kInput, {.context_tokens = 70}), HasSubstr("positions for 64"));
  EXPECT_THAT(refusal(ErrorKind::kUnsupported, {.kv = "sinks:4+8"}),
              HasSubstr("learned positions"));
  EXPECT_THAT(refusal(ErrorKind::kUnsupported, {.kv = "window:8"}), HasSubstr("learned positions"));
}

TEST_F(EngineTest, RefusesWhatMakesNoSense) {
  const auto prompt = engine_.Tokenize("The");
  Session session = engine_.NewSession({});
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { session.Generate({}, {}); }), HasSubstr("empty"));
  const std::vector<int32_t> unknown = {1, 100000};
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { session.Generate(unknown, {}); }),
              HasSubstr("100000"));
  GenerateOptions bad;
  bad.sampler.top_p = -1;
  ErrorOf(ErrorKind::kInput, [&] { session.Generate(prompt, bad); });
  ErrorOf(ErrorKind::kInput, [&] { session.Generate(prompt, {.stop = {""}}); });
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { session.Generate(prompt, {.max_tokens = -2}); }),
              HasSubstr("max_tokens"));
  ErrorOf(ErrorKind::kInput, [&] { engine_.NewSession({.kv = "none"}); });
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { engine_.NewSession({.kv_type = "f8"}); }),
              HasSubstr("KV type"));
  ErrorOf(ErrorKind::kInput, [&] { engine_.NewSession({.context_tokens = -1}); });
  ErrorOf(ErrorKind::kInput, [&] { engine_.NewSession({.chunk_tokens = 0}); });
  ErrorOf(ErrorKind::kMemory, [&] { engine_.NewSession({.kv = "sinks:4+900000000000"}); });
}

TEST(EngineLoad, RefusesFoldersThatAreNoModel) {
  ErrorOf(ErrorKind::kIo, [] { Engine("/no/such/folder", {}); });
  ErrorOf(ErrorKind::kInput, [] { Engine(kFolder + "/config.json", {}); });
  ErrorOf(ErrorKind::kIo, [] { Engine(GODWIT_SOURCE_DIR, {}); });
  ErrorOf(ErrorKind::kInput, [] { Engine(kFolder, {.threads = -1}); });
  ErrorOf(ErrorKind::kInput, [] { Engine(kFolder, {.weights = "int2"}); });
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [] { Engine(kFolder, {.isa = "sse9"}); }),
              HasSubstr("scalar"));
}

TEST_F(EngineTest, ChatIsWrappedInTheModelsTemplate) {
  const Message messages[] = {{"user", "Hello"}};
  const std::string text = engine_.ApplyChatTemplate(messages);
  EXPECT_THAT(text, HasSubstr("Hello"));
  EXPECT_THAT(text, HasSubstr("<|im_start|>assistant"));
  EXPECT_EQ(text, engine_.ApplyChatTemplate(messages, /*open=*/false) + "<|im_start|>assistant\n");
}

TEST_F(EngineTest, TemplateVariablesReachTheTemplate) {
  const TempFolder folder;
  CopyTiny(folder, "{{ enable_thinking }}{{ add_generation_prompt }}");
  const Engine engine(folder.path(), {.threads = 1});
  EXPECT_EQ(engine.ApplyChatTemplate({}, true, R"({"enable_thinking": false})"), "FalseTrue");
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { engine_.ApplyChatTemplate({}, true, "5"); }),
              HasSubstr("a JSON object"));
}

TEST_F(EngineTest, MessagesThatTheTemplateIgnoresAreRefused) {
  const TempFolder folders[3];
  const auto engine_of = [](const TempFolder& folder, std::string_view chat_template) {
    CopyTiny(folder, chat_template);
    return Engine(folder.path(), {.threads = 1});
  };
  const auto lost = [](const Engine& engine, const std::vector<Message>& messages) {
    return ErrorOf(ErrorKind::kInput, [&] { engine.ApplyChatTemplate(messages); });
  };
  const Message user{"user", "Hello"}, robot{"robot", "Beep"}, tool{"tool", "\"7\""};
  EXPECT_THAT(lost(engine_, {user, robot}), HasSubstr("message 2: expected the role \"system\""));
  // The template has a role of its own, one that it leaves out, and one that it rewrites.
  const Engine engine = engine_of(
      folders[0],
      "{% for m in messages %}{% if m.role == 'robot' %}R{{ m.content }}{% elif m.role == 'user' "
      "%}U{{ m.content | trim }}{% elif m.role == 'tool' %}T{{ m.content | tojson }}{% elif m.role "
      "== 'system' and loop.first %}S{{ m.content }}{% endif %}{% endfor %}");
  EXPECT_EQ(engine.ApplyChatTemplate(std::vector{user, robot, tool}), R"(UHelloRBeepT"\"7\"")");
  EXPECT_THAT(lost(engine, {user, {"assistant", "Yes"}, user}),
              HasSubstr("message 2 of the role \"assistant\""));
  EXPECT_THAT(lost(engine, {user, {"system", "Be brief."}}),
              HasSubstr("message 2 of the role \"system\""));
  EXPECT_EQ(engine.ApplyChatTemplate(std::vector<Message>{{"developer", "a"}, user}), "SaUHello")
      << "of which it has never heard";
  EXPECT_EQ(engine_of(folders[1],
                      "{% for m in messages %}{% if m.role == 'developer' %}D{% endif %}{{ "
                      "m.content }}{% endfor %}")
                .ApplyChatTemplate(std::vector<Message>{{"developer", "a"}}),
            "Da");
  // Messages are not lost if the template acts on them, or forgets them only after later ones.
  const Engine forgets = engine_of(
      folders[2],
      "{% set ns = namespace(text='') %}{% for m in messages %}{% if m.content == 'Again.' %}{% "
      "set "
      "ns.text = '' %}{% else %}{% set ns.text = ns.text ~ m.content %}{% endif %}{% endfor %}>{{ "
      "ns.text }}");
  const Message again{"user", "Again."};
  EXPECT_EQ(forgets.ApplyChatTemplate(std::vector{again}), ">");
  EXPECT_EQ(forgets.ApplyChatTemplate(std::vector{user, {"assistant", "Yes"}, again}), ">");
  EXPECT_EQ(forgets.ApplyChatTemplate(std::vector{user, again, user}), ">Hello");
}

TEST(EngineLoad, ABrokenChatTemplateStandsInTheWayOfChatsOnly) {
  const TempFolder folder;
  CopyTiny(folder, "{{ broken");
  const Engine engine(folder.path(), {.threads = 1});
  EXPECT_FALSE(engine.Tokenize("The").empty());
  for (int attempt = 0; attempt < 2; ++attempt) {
    ErrorOf(ErrorKind::kFormat, [&] { engine.has_chat_template(); });
    ErrorOf(ErrorKind::kFormat, [&] { engine.ApplyChatTemplate({}); });
  }
  const std::string file = folder.Write("mine.jinja", "{{ messages[0].role }}");
  const Engine other(folder.path(), {.threads = 1, .chat_template = file});
  EXPECT_TRUE(other.has_chat_template());
}

// A trained model, if the shared data lies beside the project.
class RealModelTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kShared)) GTEST_SKIP() << "no shared data beside the project";
  }

  const std::string kShared = GODWIT_SOURCE_DIR "/../shared/data/";
  const std::string kModel = kShared + "models/stories260K";
};

TEST_F(RealModelTest, TellsACoherentStory) {
  const Engine engine(kModel, {});
  GenerateOptions options;
  options.max_tokens = 60;
  options.sampler.temperature = 0;
  const auto result = engine.NewSession({}).Generate(engine.Tokenize("Once upon a time"), options);
  EXPECT_THAT(result.text, HasSubstr("there was a little girl named Lily"));
}

// The tokenizer is of the SentencePiece kind: the first word of a text has no space before it. The
// first word of a continuation has one.
TEST_F(RealModelTest, AContinuationKeepsItsFirstSpace) {
  const Engine engine(kModel, {});
  GenerateOptions options;
  options.max_tokens = 8;
  options.sampler.temperature = 0;
  const auto prompt = engine.Tokenize("Lily");
  const auto result = engine.NewSession({}).Generate(prompt, options);
  std::vector<int32_t> all = prompt;
  all.insert(all.end(), result.tokens.begin(), result.tokens.end());
  EXPECT_EQ("Lily" + result.text, engine.Detokenize(all, /*skip_special=*/true));
  EXPECT_TRUE(result.text.starts_with(' ')) << result.text;
}

TEST_F(RealModelTest, PredictsAStoryAsWellAsTheReference) {
  const Engine engine(kModel, {});
  const std::string text = ReadTextFile(kShared + "corpora/tinystories/cs336_sample.txt", 1 << 20);
  const size_t begin = text.find("Once");
  const auto tokens = engine.Tokenize(text.substr(begin, text.find("\n<|endoftext|>") - begin));
  ASSERT_EQ(tokens.size(), 374u);
  double nats = 0;
  engine.NewSession({}).Logits(tokens, [&](int64_t position, std::span<const float> logits) {
    const auto next = static_cast<size_t>(position) + 1;
    if (next == tokens.size()) return;
    double sum = 0;
    for (const float logit : logits) sum += std::exp(double{logit});
    nats += std::log(sum) - logits[tokens[next]];
  });
  EXPECT_NEAR(nats / 373, 1.3160, 5e-5);  // the reference figure has four digits
}

// Hidden states are the same bits however a text is read, and belong to the asked positions.
TEST_F(EngineTest, HiddenStatesDoNotDependOnChunks) {
  const Engine& engine = engine_;
  std::vector<int32_t> text;
  for (int32_t k = 0; k < 40; ++k) text.push_back(3 + k * k * 7 % 200);
  const auto states = [&](int64_t chunk, int64_t first) {
    Session session = engine.NewSession({.chunk_tokens = chunk});
    std::vector<float> all;
    int64_t next = first;
    session.HiddenStates(
        text,
        [&](int64_t position, std::span<const float> state) {
          EXPECT_EQ(position, next++);
          EXPECT_EQ(std::ssize(state), engine.hidden_size());
          all.insert(all.end(), state.begin(), state.end());
        },
        first);
    EXPECT_EQ(next, std::ssize(text));
    return all;
  };
  const std::vector<float> whole = states(512, 0);
  EXPECT_EQ(states(1, 0), whole);
  EXPECT_EQ(states(7, 0), whole);
  const std::vector<float> rest(whole.begin() + 9 * engine.hidden_size(), whole.end());
  EXPECT_EQ(states(7, 9), rest);
  Session session = engine.NewSession({});
  EXPECT_THROW(session.HiddenStates(
                   text, [](int64_t, std::span<const float>) {}, 40),
               Error);
}

}  // namespace
}  // namespace godwit::engine_test
