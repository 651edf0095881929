// Saved texts from which the same engine and later ones go on. The answers have the bits of a
// request that read all of its text itself.

#include "engine/saved_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "engine/engine_test_support.h"

namespace godwit::saved_texts_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

// Engines use one folder, one after the other.
class SavedTextsTest : public testing::Test {
 protected:
  Engine NewEngine(LoadOptions options = {}) {
    options.threads = 1;
    options.cache_dir = (temp_.path() / "cache").string();
    if (options.cache_every_tokens == LoadOptions().cache_every_tokens) {
      options.cache_every_tokens = 64;
    }
    options.on_cache_notice = [this](const std::string& notice) { notices_.push_back(notice); };
    return Engine(kTiny, options);
  }
  // The answer of an engine that saves nothing.
  static Answer Alone(const Tokens& prompt, const GenerateOptions& options,
                      const SessionOptions& session = {}) {
    return AnswerOf(Engine(kTiny, {.threads = 1}).NewSession(session).Generate(prompt, options));
  }
  GenerateResult GenerateInNewEngine(const Tokens& prompt, const GenerateOptions& options,
                                     const SessionOptions& session = {}) {
    return NewEngine().NewSession(session).Generate(prompt, options);
  }
  std::vector<fs::path> Files(const char* extension = ".kv") const {
    std::vector<fs::path> files;
    for (const auto& file : fs::directory_iterator(temp_.path() / "cache")) {
      if (file.path().extension() == extension) files.push_back(file.path());
    }
    std::ranges::sort(files);
    return files;
  }

  TempFolder temp_;
  std::vector<std::string> notices_;
};

void FlipBit(const fs::path& path, int64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(offset);
  const int byte = file.get();
  file.seekp(offset);
  file.put(static_cast<char>(byte ^ 1));
}

Tokens Join(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_F(SavedTextsTest, ALaterProcessGoesOn) {
  const Tokens prompt = Prompt(1, 300);
  const Answer alone = Alone(prompt, GreedyWithLogprobs(20));
  const auto first = GenerateInNewEngine(prompt, GreedyWithLogprobs(20));
  EXPECT_EQ(AnswerOf(first), alone);
  EXPECT_EQ(first.cached_tokens, 0);
  const auto second = GenerateInNewEngine(prompt, GreedyWithLogprobs(20));
  EXPECT_EQ(AnswerOf(second), alone);
  EXPECT_EQ(second.cached_tokens, 256);
  EXPECT_EQ(second.disk_tokens, 256);
  EXPECT_EQ(second.read_tokens, 44);
  // Prompts with another question after the same context, and with the first answer.
  const Tokens other = Join({prompt.begin(), prompt.begin() + 200}, Prompt(7, 60));
  const auto third = GenerateInNewEngine(other, GreedyWithLogprobs(20));
  EXPECT_EQ(AnswerOf(third), Alone(other, GreedyWithLogprobs(20)));
  EXPECT_EQ(third.disk_tokens, 192);
  Tokens longer = Join(prompt, first.tokens);
  longer.resize(320 + 1);
  EXPECT_EQ(GenerateInNewEngine(longer, GreedyWithLogprobs(5)).disk_tokens, 256)
      << "the answer ended within a tile";
  EXPECT_THAT(notices_, IsEmpty());
}

// A context that was read for later questions is saved, also for policies that read it alike.
TEST_F(SavedTextsTest, AContextIsSavedForLaterQuestions) {
  const Tokens context = Prompt(1, 300), prompt = Join(context, Prompt(7, 30));
  for (const char* prefill : {"", "star:block=quarter"}) {
    int64_t expected = 0;
    for (const char* kv : {"dense", "blocks"}) {
      const SessionOptions options{.kv = kv, .prefill = prefill};
      const Engine engine = NewEngine();
      Session session = engine.NewSession(options);
      int64_t from_disk = -1;
      session.ReadContext(
          context, [&](const PromptProgress& progress) { from_disk = progress.cached_tokens; });
      EXPECT_EQ(from_disk, expected) << prefill << kv;
      expected = 256;
      const GenerateResult result = session.Generate(prompt, GreedyWithLogprobs(9, 30));
      EXPECT_EQ(result.cached_tokens, 300);
      EXPECT_EQ(AnswerOf(result), Alone(prompt, GreedyWithLogprobs(9, 30), options));
    }
  }
}

// Policies and types that can be saved give the bits of a request that read everything.
struct Case {
  const char* name;
  SessionOptions session;
  int64_t query_tokens;
  int64_t disk_tokens;  // of a prompt of 300 tokens, asked again
};
class EverySession : public SavedTextsTest, public testing::WithParamInterface<Case> {};
INSTANTIATE_TEST_SUITE_P(
    SavedTexts, EverySession,
    testing::Values(
        Case{"F32", {.kv_type = "f32"}, 1, 256}, Case{"F16", {.kv_type = "f16"}, 1, 256},
        Case{"Bf16", {.kv_type = "bf16"}, 1, 256}, Case{"Int8", {.kv_type = "int8"}, 1, 256},
        Case{"Int8Widened", {.kv_type = "int8", .int8_attention = false}, 1, 256},
        Case{"Sinks", {.kv = "sinks:4+124"}, 1, 256}, Case{"Blocks", {.kv = "blocks"}, 40, 256},
        Case{"FewBlocks",
             {.kv = "blocks:initial=64,local_windows_len=64,second_block_count=1"},
             40,
             256},
        Case{"Quest",
             {.kv = "blocks:quest,initial=64,local_windows_len=64,second_block_count=1"},
             80,
             192},
        Case{"Window", {.prefill = "window:50"}, 30, 256},
        Case{"Star", {.prefill = "star:block=64,anchor=64"}, 30, 256},
        Case{"StarWithTail", {.prefill = "star:block=64,anchor=64,tail=100"}, 30, 128},
        Case{"Dynamic",
             {.kv = "blocks:representative_type=DYNAMIC,initial=64,local_windows_len=64,"
                    "second_block_count=1"},
             40,
             0}),
    [](const auto& test) { return test.param.name; });

TEST_P(EverySession, GoesOnWithTheSameBits) {
  const Tokens prompt = Prompt(2, 300);
  const auto& [name, session, query_tokens, disk_tokens] = GetParam();
  const Answer alone = Alone(prompt, GreedyWithLogprobs(40, query_tokens), session);
  EXPECT_EQ(AnswerOf(GenerateInNewEngine(prompt, GreedyWithLogprobs(40, query_tokens), session)),
            alone);
  const auto again = GenerateInNewEngine(prompt, GreedyWithLogprobs(40, query_tokens), session);
  EXPECT_EQ(AnswerOf(again), alone);
  EXPECT_EQ(again.disk_tokens, disk_tokens);
  // Another prompt parts earlier and has another question.
  const Tokens other = Join({prompt.begin(), prompt.begin() + 150}, Prompt(9, 170));
  const auto parted = GenerateInNewEngine(other, GreedyWithLogprobs(40, query_tokens), session);
  EXPECT_EQ(AnswerOf(parted), Alone(other, GreedyWithLogprobs(40, query_tokens), session));
  EXPECT_THAT(notices_, IsEmpty());
}

// The index of the blocks is saved beside their keys. A damaged index is made anew.
TEST_F(SavedTextsTest, TheIndexOfBlocksIsSaved) {
  const Tokens prompt = Prompt(2, 400);
  for (const char* const kind : {"SIGN", "MEANSTD", "QUEST"}) {
    const SessionOptions session{
        .kv = fmt::format(
            "blocks:representative_type={},initial=64,local_windows_len=64,second_block_count=1",
            kind)};
    const Answer alone = Alone(prompt, GreedyWithLogprobs(20, 40), session);
    fs::remove_all(temp_.path() / "cache");
    const auto indexes = [&] { return Files(".index"); };
    EXPECT_EQ(AnswerOf(GenerateInNewEngine(prompt, GreedyWithLogprobs(20, 40), session)), alone);
    ASSERT_EQ(indexes().size(), 1u);
    const auto written = fs::last_write_time(indexes()[0]);
    EXPECT_EQ(AnswerOf(GenerateInNewEngine(prompt, GreedyWithLogprobs(20, 40), session)), alone);
    EXPECT_EQ(fs::last_write_time(indexes()[0]), written) << "it is not written again";
    EXPECT_THAT(notices_, IsEmpty());

    FlipBit(indexes()[0], static_cast<int64_t>(fs::file_size(indexes()[0])) / 2);
    EXPECT_EQ(AnswerOf(GenerateInNewEngine(prompt, GreedyWithLogprobs(20, 40), session)), alone);
    EXPECT_THAT(notices_, ElementsAre(HasSubstr("has another checksum")));
    notices_.clear();
    EXPECT_EQ(indexes().size(), 1u) << "made anew";
    EXPECT_EQ(AnswerOf(GenerateInNewEngine(prompt, GreedyWithLogprobs(20, 40), session)), alone);
    EXPECT_THAT(notices_, IsEmpty());
  }
}

// Facts tell texts with values inside their keys from texts saved with separate values.
TEST_F(SavedTextsTest, LatentAttentionSavesKeysAlone) {
  const fs::path golden = GODWIT_SOURCE_DIR "/tests/golden/deepseek_v2/lite";
  const TempFolder model;
  for (const fs::path& file :
       {golden / "config.json", golden / "model.safetensors", fs::path(kTiny) / "tokenizer.json"}) {
    fs::copy_file(file, model.path() / file.filename());
  }
  Tokens prompt = Prompt(1, 100);
  for (int32_t& token : prompt) token %= 51;
  LoadOptions options{.threads = 1, .cache_every_tokens = 64};
  for (const std::string kv_type : {"bf16", "int8"}) {
    const SessionOptions session{.kv_type = kv_type};
    auto alone = Engine(model.path().string(), options).NewSession(session);
    const Answer expected = AnswerOf(alone.Generate(prompt, GreedyWithLogprobs(20)));
    LoadOptions saving = options;
    saving.cache_dir = (temp_.path() / "cache").string();
    for (const int64_t disk_tokens : {0, 64}) {
      const auto result = Engine(model.path().string(), saving)
                              .NewSession(session)
                              .Generate(prompt, GreedyWithLogprobs(20));
      EXPECT_EQ(AnswerOf(result), expected) << kv_type;
      EXPECT_EQ(result.disk_tokens, disk_tokens) << kv_type;
    }
  }
  ASSERT_EQ(Files().size(), 2u);
  const Snapshot snapshot(Files()[0]);
  EXPECT_EQ(FactNamed(snapshot.info().facts, "values"), "in keys");
  EXPECT_TRUE(snapshot.info().layout.values_in_keys);
}

// The context that blocks reads densely was also read by dense.
TEST_F(SavedTextsTest, PoliciesThatReadAlikeShare) {
  const Tokens prompt = Prompt(3, 300);
  const SessionOptions blocks{.kv = "blocks:initial=64,local_windows_len=64,second_block_count=1"};
  GenerateInNewEngine(prompt, GreedyWithLogprobs(5));
  const auto result = GenerateInNewEngine(prompt, GreedyWithLogprobs(20, 40), blocks);
  EXPECT_EQ(result.disk_tokens, 256);
  EXPECT_EQ(AnswerOf(result), Alone(prompt, GreedyWithLogprobs(20, 40), blocks));
}

TEST_F(SavedTextsTest, TextOfOtherOptionsIsReadAgain) {
  const Tokens prompt = Prompt(4, 300);
  GenerateInNewEngine(prompt, GreedyWithLogprobs(5));
  const SessionOptions others[] = {
      {.kv = "sinks:4+600"}, {.prefill = "window:600"}, {.kv_type = "int8"}, {.owner = "somebody"}};
  for (const SessionOptions& other : others) {
    EXPECT_EQ(GenerateInNewEngine(prompt, GreedyWithLogprobs(5), other).disk_tokens, 0)
        << other.kv << other.kv_type;
  }
  // Notices tell the owner why a text is read again.
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("256 tokens of this text are saved with other "
                                              "settings (read by dense, not sinks:4+600), so"),
                                    HasSubstr("read by dense, not window:600"),
                                    HasSubstr("kv type BF16, not I8 (rotated), attention none, "
                                              "not int8")));
  EXPECT_EQ(GenerateInNewEngine(prompt, GreedyWithLogprobs(5), {.owner = "somebody"}).disk_tokens,
            256);
  EXPECT_EQ(
      GenerateInNewEngine(prompt, GreedyWithLogprobs(5), {.owner = "somebody else"}).disk_tokens,
      0);
  EXPECT_EQ(GenerateInNewEngine(prompt, GreedyWithLogprobs(5), {.context_tokens = 400}).disk_tokens,
            256);
  const Engine scalar = NewEngine({.isa = "scalar"});
  EXPECT_EQ(scalar.NewSession({}).Generate(prompt, GreedyWithLogprobs(5)).disk_tokens, 0);
}

TEST_F(SavedTextsTest, RequestsSaveAndGoOn) {
  const Tokens context = Prompt(5, 200);
  std::vector<Answer> alone;
  std::vector<Tokens> prompts;
  for (int i = 0; i < 4; ++i) {
    prompts.push_back(Join(context, Prompt(50 + i, 30 + i)));
    alone.push_back(Alone(prompts.back(), GreedyWithLogprobs(10)));
  }
  for (const int64_t least : {0, 192}) {
    const Engine engine = NewEngine();
    std::vector<Generation> generations;
    for (const Tokens& prompt : prompts)
      generations.push_back(engine.Submit(prompt, GreedyWithLogprobs(10)));
    for (size_t i = 0; i < prompts.size(); ++i) {
      const auto result = generations[i].Wait();
      EXPECT_EQ(AnswerOf(result), alone[i]);
      EXPECT_GE(result.cached_tokens, least);
      if (i == 0) {
        EXPECT_GE(result.disk_tokens, least);
      }
    }
  }
}

// Prompts begin alike and end in their own words. Two owners ask them in any order.
TEST_F(SavedTextsTest, ClientsThatShareABeginningHaveTheirOwnAnswers) {
  constexpr int kClients = 8, kPrompts = 200, kWords = 25;
  const Engine plain(kTiny, {.threads = 1}), engine = NewEngine();
  const auto prompt_of = [context = Prompt(5, 70)](int word) {
    return Join(context, Prompt(50 + word, 6));
  };
  std::vector<Answer> expected;
  std::set<std::vector<float>> different;
  for (int word = 0; word < kWords; ++word) {
    expected.push_back(
        AnswerOf(plain.NewSession({}).Generate(prompt_of(word), GreedyWithLogprobs(3))));
    different.insert(expected.back().logprobs);
  }
  EXPECT_EQ(different.size(), kWords) << "or another's answer might be right";
  std::vector<std::thread> clients;
  std::atomic<int> wrong = 0, cached = 0;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      const SessionOptions session{.owner = client % 2 == 0 ? "one" : "two"};
      for (int i = 0; i < kPrompts; ++i) {
        const int word = (i * (client + 3) + client) % kWords;
        const auto result = engine.Submit(prompt_of(word), GreedyWithLogprobs(3), session).Wait();
        wrong += AnswerOf(result) != expected[word];
        cached += result.cached_tokens >= 64;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(cached, kClients * kPrompts * 9 / 10);
}

// Branches from the same place keep the answers of the first round for tens of rounds.
TEST_F(SavedTextsTest, BranchesThatReturnStayAsTheyWere) {
  const Tokens base = Prompt(4, 150);
  const Tokens branches[] = {Join(base, Prompt(41, 40)), Join(base, Prompt(42, 90)), base};
  std::vector<Answer> alone;
  for (const Tokens& branch : branches) alone.push_back(Alone(branch, GreedyWithLogprobs(10)));
  const Engine engine = NewEngine();
  Session session = engine.NewSession({});
  for (int round = 0; round < 40; ++round) {
    for (size_t i = 0; i < std::size(branches); ++i) {
      const auto result = session.Generate(branches[i], GreedyWithLogprobs(10));
      EXPECT_EQ(AnswerOf(result), alone[i]) << round;
      EXPECT_EQ(AnswerOf(engine.Submit(branches[i], GreedyWithLogprobs(10), {}).Wait()), alone[i])
          << round;
      EXPECT_GE(result.cached_tokens, round > 0 ? 149 : 0) << round;
    }
  }
  EXPECT_EQ(AnswerOf(GenerateInNewEngine(branches[1], GreedyWithLogprobs(10))), alone[1])
      << "a later process";
  EXPECT_THAT(notices_, IsEmpty());
}

// Sessions of one engine go on from texts in memory: to the token, not to the tile.
TEST_F(SavedTextsTest, SessionsOfAnEngineShareMemory) {
  const Tokens context = Prompt(6, 200);
  const Engine engine = NewEngine();
  engine.NewSession({}).Generate(Join(context, Prompt(60, 20)), GreedyWithLogprobs(5));
  const auto second =
      engine.NewSession({}).Generate(Join(context, Prompt(61, 20)), GreedyWithLogprobs(5));
  EXPECT_EQ(second.cached_tokens, 200);
  EXPECT_EQ(second.disk_tokens, 0);
  EXPECT_EQ(AnswerOf(second), Alone(Join(context, Prompt(61, 20)), GreedyWithLogprobs(5)));
}

// A session does not share its text if there is no place to save it.
TEST_F(SavedTextsTest, SessionsShareNothingWithoutAFolder) {
  const Engine engine(kTiny, {.threads = 1});
  engine.NewSession({}).Generate(Prompt(6, 200), GreedyWithLogprobs(5));
  EXPECT_EQ(engine.NewSession({}).Generate(Prompt(6, 200), GreedyWithLogprobs(5)).cached_tokens, 0);
}

// A prompt is saved while it is read: a cancelled or killed reader loses one piece of it.
TEST_F(SavedTextsTest, CancelledPromptIsSavedAsFarAsItWasRead) {
  const Tokens prompt = Prompt(7, 400);
  {
    const Engine engine = NewEngine();
    Session session = engine.NewSession({.chunk_tokens = 50});
    GenerateOptions options = GreedyWithLogprobs(5);
    options.on_progress = [&](const PromptProgress& progress) {
      if (progress.done_tokens >= 250) session.Cancel();
    };
    EXPECT_EQ(session.Generate(prompt, options).finish_reason, FinishReason::kCancelled);
  }
  const auto result = GenerateInNewEngine(prompt, GreedyWithLogprobs(5));
  EXPECT_GE(result.disk_tokens, 192);
  EXPECT_LT(result.disk_tokens, 400);
  EXPECT_EQ(AnswerOf(result), Alone(prompt, GreedyWithLogprobs(5)));
}

// Any bit may change, and any file may be cut. The answer is that of a request that read everything
// again. The damage is reported once, and later snapshots are sound.
TEST_F(SavedTextsTest, DamageIsReadAgain) {
  const Tokens prompt = Prompt(8, 200);
  const Answer alone = Alone(prompt, GreedyWithLogprobs(5));
  for (int step = 0; step < 40; ++step) {
    GenerateInNewEngine(prompt, GreedyWithLogprobs(5));
    const auto files = Files();
    ASSERT_FALSE(files.empty());
    const fs::path& file = files[static_cast<size_t>(step) % files.size()];
    const auto size = static_cast<int64_t>(fs::file_size(file));
    const int64_t at = size * step / 40;
    if (step % 4 == 3) {
      fs::resize_file(file, static_cast<uintmax_t>(at));
    } else {
      FlipBit(file, at);
    }
    const SnapshotFolder before(temp_.path() / "cache", 1 << 30);
    const size_t wrong = const_cast<SnapshotFolder&>(before).Verify().size();
    notices_.clear();
    EXPECT_EQ(AnswerOf(GenerateInNewEngine(prompt, GreedyWithLogprobs(5))), alone) << step;
    if (wrong > 0) {
      EXPECT_EQ(notices_.size(), 1u) << step;
    }
    EXPECT_THAT(SnapshotFolder(temp_.path() / "cache", 1 << 30).Verify(), IsEmpty()) << step;
  }
}

// Damage does not change later answers, to the same text or to one that begins alike.
TEST_F(SavedTextsTest, DamageSpoilsNoLaterAnswer) {
  const Tokens prompt = Prompt(8, 200);
  const Tokens other = Join({prompt.begin(), prompt.begin() + 150}, Prompt(9, 40));
  const Answer alone = Alone(prompt, GreedyWithLogprobs(5)),
               other_alone = Alone(other, GreedyWithLogprobs(5));
  for (int step = 0; step < 12; ++step) {
    GenerateInNewEngine(prompt, GreedyWithLogprobs(5));
    const auto files = Files();
    const fs::path& file = files[static_cast<size_t>(step) % files.size()];
    FlipBit(file, static_cast<int64_t>(fs::file_size(file)) * step / 12);
    const Engine engine = NewEngine();
    for (int time = 0; time < 2; ++time) {
      EXPECT_EQ(AnswerOf(engine.NewSession({}).Generate(prompt, GreedyWithLogprobs(5))), alone)
          << step;
      EXPECT_EQ(AnswerOf(engine.NewSession({}).Generate(other, GreedyWithLogprobs(5))), other_alone)
          << step;
    }
  }
}

TEST_F(SavedTextsTest, RequestsThatMeetDamageTogetherAllReadAgain) {
  const Tokens context = Prompt(9, 256);
  GenerateInNewEngine(context, GreedyWithLogprobs(1));
  for (const fs::path& file : Files()) {
    FlipBit(file, static_cast<int64_t>(fs::file_size(file)) - 5000);
  }
  const Engine engine = NewEngine();
  std::vector<Generation> generations;
  std::vector<Tokens> prompts;
  for (int i = 0; i < 4; ++i) {
    prompts.push_back(Join(context, Prompt(90 + i, 20)));
    generations.push_back(engine.Submit(prompts.back(), GreedyWithLogprobs(8)));
  }
  for (size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(AnswerOf(generations[i].Wait()), Alone(prompts[i], GreedyWithLogprobs(8)));
  }
}

TEST_F(SavedTextsTest, AFolderThatIsTooSmallIsToldOnce) {
  const Tokens prompt = Prompt(1, 400);
  {
    const Engine engine = NewEngine({.cache_bytes = 1000});
    const auto result = engine.NewSession({}).Generate(prompt, GreedyWithLogprobs(5));
    EXPECT_EQ(AnswerOf(result), Alone(prompt, GreedyWithLogprobs(5)));
  }
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_THAT(notices_[0], HasSubstr("a text could not be saved: "));
  EXPECT_THAT(Files(), IsEmpty());
}

// Requests can take the memory of saved texts and of the last texts.
TEST_F(SavedTextsTest, FreeTheirMemoryForRequests) {
  const Tokens prompt = Prompt(1, 300);
  const auto alone = Alone(prompt, GreedyWithLogprobs(10));
  const int64_t bytes = Engine(kTiny, {.threads = 1}).KvBytes(320, {});
  for (int i = 0; i < 3; ++i) {
    const Engine engine = NewEngine({.kv_memory_bytes = bytes * 5 / 4});
    for (int other = 0; other < 3; ++other) {
      Session session = engine.NewSession({});
      EXPECT_EQ(AnswerOf(session.Generate(Prompt(other, 300), GreedyWithLogprobs(10))),
                Alone(Prompt(other, 300), GreedyWithLogprobs(10)))
          << i << other;
    }
    EXPECT_EQ(AnswerOf(engine.NewSession({}).Generate(prompt, GreedyWithLogprobs(10))), alone);
  }
}

TEST_F(SavedTextsTest, TheAnswerIsSavedForTheNextTurn) {
  Tokens text = Prompt(2, 100);
  for (int turn = 0; turn < 4; ++turn) {
    const auto result = GenerateInNewEngine(text, GreedyWithLogprobs(70));
    EXPECT_EQ(AnswerOf(result), Alone(text, GreedyWithLogprobs(70))) << turn;
    EXPECT_EQ(result.disk_tokens, turn == 0 ? 0 : (std::ssize(text) - 4) / 64 * 64) << turn;
    text = Join(Join(text, result.tokens), {5, 6, 7});
  }
}

TEST_F(SavedTextsTest, OptionsThatMakeNoSenseAreRefused) {
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { NewEngine({.cache_bytes = -1}); }),
              HasSubstr("texts saved in -1 bytes"));
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { NewEngine({.cache_every_tokens = 0}); }),
              HasSubstr("every 0 tokens"));
}

TEST_F(SavedTextsTest, TextsAreKeptByName) {
  const Tokens book = Prompt(3, 200), other = Prompt(4, 150);
  {
    const Engine engine = NewEngine();
    GenerateOptions options = GreedyWithLogprobs(5);
    options.keep_as = "the-book";
    engine.NewSession({}).Generate(book, options);
    Session session = engine.NewSession({});
    session.Generate(other, GreedyWithLogprobs(1));
    EXPECT_EQ(session.Save(), 128);
  }
  const Engine engine = NewEngine();
  std::vector<std::string> names;
  int64_t longest = 0;
  for (const SavedText& text : engine.ListSaved()) {
    EXPECT_EQ(text.model, "tiny-llama");
    EXPECT_GT(text.bytes, 0);
    longest = std::max(longest, text.tokens);
    names.insert(names.end(), text.names.begin(), text.names.end());
  }
  EXPECT_EQ(longest, 192);
  EXPECT_THAT(names, ElementsAre("the-book"));
  Session session = engine.NewSession({});
  EXPECT_EQ(session.Load("the-book"), 192);
  EXPECT_TRUE(std::ranges::equal(session.tokens(), std::span(book).first(192)));
  EXPECT_EQ(session.kv().seen, 192);
  const Tokens asked = Join(book, Prompt(8, 20));
  const auto result = session.Generate(asked, GreedyWithLogprobs(10));
  EXPECT_EQ(result.cached_tokens, 192);
  EXPECT_EQ(AnswerOf(result), Alone(asked, GreedyWithLogprobs(10)));
  const auto no_text = [&](const SessionOptions& options, const char* name) {
    Session another = engine.NewSession(options);
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { another.Load(name); }),
                HasSubstr("no saved text is pinned as"));
  };
  no_text({}, "a-film");
  no_text({.kv_type = "int8"}, "the-book");
  EXPECT_TRUE(engine.StopKeeping("the-book"));
  EXPECT_FALSE(engine.StopKeeping("the-book"));
  no_text({}, "the-book");
  for (const SavedText& text : engine.ListSaved()) engine.RemoveSaved(text.id);
  EXPECT_THAT(engine.ListSaved(), IsEmpty());
}

TEST_F(SavedTextsTest, WithoutAFolderNothingIsSaved) {
  const Engine engine(kTiny, {.threads = 1});
  Session session = engine.NewSession({});
  for (const auto& call : {std::function<void()>([&] { session.Save(); }),
                           std::function<void()>([&] { session.Load("x"); })}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, call),
                HasSubstr("no folder of saved texts is set"));
  }
  EXPECT_THAT(engine.ListSaved(), IsEmpty());
  EXPECT_FALSE(engine.RemoveSaved("x"));
  GenerateOptions options = GreedyWithLogprobs(1);
  options.keep_as = "a/b";
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { session.Generate(Prompt(1, 5), options); }),
              HasSubstr("\"a/b\": expected a name"));
}

// Texts to keep stay when memory is short, and other texts go.
TEST_F(SavedTextsTest, KeptTextStaysInMemory) {
  const int64_t bytes = Engine(kTiny, {.threads = 1}).KvBytes(320, {});
  const Engine engine(kTiny, {.threads = 1, .kv_memory_bytes = bytes * 5 / 2});
  GenerateOptions kept = GreedyWithLogprobs(5);
  kept.keep_as = "system";
  engine.Submit(Prompt(0, 300), kept, {}).Wait();
  for (int i = 1; i < 5; ++i) engine.Submit(Prompt(i, 300), GreedyWithLogprobs(5), {}).Wait();
  EXPECT_EQ(engine.Submit(Prompt(0, 300), GreedyWithLogprobs(5), {}).Wait().cached_tokens, 299);
  EXPECT_EQ(engine.Submit(Prompt(1, 300), GreedyWithLogprobs(5), {}).Wait().cached_tokens, 0);
  engine.StopKeeping("system");
  for (int i = 1; i < 5; ++i) engine.Submit(Prompt(i, 300), GreedyWithLogprobs(5), {}).Wait();
  EXPECT_EQ(engine.Submit(Prompt(0, 300), GreedyWithLogprobs(5), {}).Wait().cached_tokens, 0);
}

// Small requests come and go. The long text stays, because reading it costs much.
TEST_F(SavedTextsTest, SmallRequestEvictsNoLongText) {
  const int64_t page = Engine(kTiny, {.threads = 1}).KvBytes(64, {});
  const Engine engine(kTiny, {.threads = 1, .kv_memory_bytes = page * 14});
  engine.Submit(Prompt(0, 500), GreedyWithLogprobs(1), {}).Wait();
  for (int i = 1; i < 20; ++i) engine.Submit(Prompt(i, 100), GreedyWithLogprobs(1), {}).Wait();
  EXPECT_EQ(engine.Submit(Prompt(0, 500), GreedyWithLogprobs(1), {}).Wait().cached_tokens, 499);
}

}  // namespace
}  // namespace godwit::saved_texts_test
