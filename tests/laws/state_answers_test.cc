// Answers of a model with recurrent layers do not depend on what an engine did in between. That may
// be drafts, pauses, cancelled requests, other texts, saved texts, damage.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "dist/local.h"
#include "engine/engine_impl.h"
#include "engine/engine_test_support.h"
#include "engine/generation_impl.h"
#include "tests/hybrid_model.h"
#include "tests/laws/answers_test_support.h"
#include "tests/session_of.h"

namespace godwit::state_answers_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

// Only steps of a text take time, the same for any number of rows. So draft tokens pay.
std::atomic<double> test_ms = 0;

class TimedModel : public LanguageModel {
 public:
  int64_t vocab_size() const override { return model_->vocab_size(); }
  int64_t hidden_size() const override { return model_->hidden_size(); }
  void Forward(const Exec& exec, std::span<const Segment> segments,
               MatrixView<float> hidden) const override {
    model_->Forward(exec, segments, hidden);
    // A step of a draft over a part of the cache takes no time.
    if (segments.front().text->policy().facts().name == "dense") test_ms += 0.5;
  }
  void Logits(const Exec& exec, MatrixView<const float> hidden,
              MatrixView<float> logits) const override {
    model_->Logits(exec, hidden, logits);
  }
  void NormedLogits(const Exec& exec, MatrixView<const float> normed,
                    MatrixView<float> logits) const override {
    model_->NormedLogits(exec, normed, logits);
  }

 private:
  std::unique_ptr<Decoder> model_ = HybridDecoder();
};

class StateAnswers : public AnswersTest {
 protected:
  std::unique_ptr<Engine::Impl> MakeEngine(const LoadOptions& options) override {
    return std::make_unique<Engine::Impl>(std::make_unique<TimedModel>(), HybridSpec(), nullptr,
                                          SpecialTokens{}, options, [] { return test_ms.load(); });
  }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& file : fs::directory_iterator(folder_.path() / "cache")) {
      if (file.path().extension() == ".kv") files.push_back(file.path());
    }
    std::ranges::sort(files);
    return files;
  }
  Generation Submit(const Engine::Impl& engine, const Tokens& prompt,
                    const GenerateOptions& options, const SessionOptions& session = {}) {
    const std::shared_ptr<const Engine::Impl> borrowed(std::shared_ptr<void>(), &engine);
    return SubmitTo(borrowed, prompt, options, session);
  }
};

TEST_F(StateAnswers, DraftsAndChunksChangeNothing) {
  const Tokens prompt = Join(Words(1, 300), Words(1, 300));  // repeats itself, which drafts need
  const Answer alone = Alone(prompt, 200);
  const auto engine = NewEngine();
  for (const int64_t chunk : {1, 50, 512}) {
    for (const char* draft : {"", "ngram", "partial:budget=256"}) {
      GenerateOptions options = GreedyWithLogprobs(200);
      options.draft = draft;
      Session session = SessionOf(*engine, {.chunk_tokens = chunk});
      const auto result = session.Generate(prompt, options);
      EXPECT_EQ(AnswerOf(result), alone) << chunk << draft;
      if (result.drafts) {
        EXPECT_GT(result.drafts->draft_tokens, 0) << draft;
      }
    }
  }
}

TEST_F(StateAnswers, KeysInAFileChangeNothing) {
  const Tokens prompt = Words(1, 900);
  const KvLayout layout = LayoutOf(Geometry(HybridSpec()), DType::kF32);
  const auto engine = NewEngine({.kv_memory_bytes = layout.states.BytesFor(1000) + (1 << 16),
                                 .kv_file = folder_.path().string(),
                                 .kv_file_bytes = 1 << 28});
  const auto result = SessionOf(*engine).Generate(prompt, GreedyWithLogprobs(50));
  EXPECT_EQ(AnswerOf(result), Alone(prompt, 50));
  ASSERT_TRUE(result.kv.file);
  EXPECT_GT(result.kv.file->in_memory_bytes, layout.states.rows_bytes());
  const auto cramped = NewEngine({.kv_memory_bytes = 2 * layout.states.rows_bytes(),
                                  .kv_file = folder_.path().string(),
                                  .kv_file_bytes = 1 << 28});
  const std::string refusal = ErrorOf(
      ErrorKind::kMemory, [&] { SessionOf(*cramped).Generate(prompt, GreedyWithLogprobs(50)); });
  EXPECT_THAT(refusal, HasSubstr("states of recurrent layers for 900 tokens take"));
}

TEST_F(StateAnswers, TurnsOfASessionGoOnFromItsText) {
  const auto engine = NewEngine();
  for (const char* draft : {"", "ngram"}) {
    Session session = SessionOf(*engine);
    Tokens text = Words(2, 200);
    for (int turn = 0; turn < 5; ++turn) {
      GenerateOptions options = GreedyWithLogprobs(30 + turn);
      options.draft = draft;
      const auto result = session.Generate(text, options);
      EXPECT_EQ(AnswerOf(result), Alone(text, 30 + turn)) << draft << turn;
      if (turn > 0) {
        EXPECT_GE(result.cached_tokens + 64, std::ssize(text) - 4) << turn;
      }
      text.assign(session.tokens().begin(), session.tokens().end());
      text.insert(text.end(), {5, 6, 7});
    }
    // The last answer once more, and another question in the first turn.
    text.resize(text.size() - 10);
    EXPECT_EQ(AnswerOf(session.Generate(text, GreedyWithLogprobs(20))), Alone(text, 20));
    const Tokens other = Join(Words(2, 130), Words(3, 30));
    EXPECT_EQ(AnswerOf(session.Generate(other, GreedyWithLogprobs(20))), Alone(other, 20));
  }
}

TEST_F(StateAnswers, RequestsCancelledAtEveryTokenLeaveNoTrace) {
  const auto engine = NewEngine();
  const Tokens base = Words(4, 120);
  const Tokens prompt = Join(base, Words(5, 50));
  const Answer alone = Alone(prompt, 40);
  for (int64_t after = 0; after < 24; ++after) {
    GenerateOptions endless = Greedy(-1);
    endless.draft = after % 2 == 0 ? "" : "ngram";
    Generation cancelled = Submit(*engine, Join(base, Words(6, 3 * after + 1)), endless);
    Generation other = Submit(*engine, prompt, GreedyWithLogprobs(40));
    int64_t tokens = 0;
    while (tokens < after) {
      const auto event = cancelled.Next();
      tokens += std::ssize(event.tokens);
    }
    cancelled.Cancel();
    EXPECT_EQ(AnswerOf(other.Wait()), alone) << after;
    cancelled.Wait();
    EXPECT_EQ(AnswerOf(Submit(*engine, prompt, GreedyWithLogprobs(40)).Wait()), alone) << after;
  }
}

// Keys that texts add outgrow the pages of states that make way. Half of what all texts take in the
// end holds some of them.
TEST_F(StateAnswers, PausedRequestsGoOn) {
  const KvLayout layout = LayoutOf(Geometry(HybridSpec()), DType::kF32);
  const int64_t page = layout.states.state_bytes() + layout.states.rows_bytes();
  std::vector<Tokens> prompts;
  int64_t begins = 0;
  for (int i = 0; i < 4; ++i) {
    prompts.push_back(Words(10 + i, 60 + 20 * i));
    const int64_t length = std::ssize(prompts.back());
    begins += layout.BytesFor(length) + layout.states.BytesFor(length);
  }
  int64_t tokens = 0, ends = 0;
  while (ends < begins + begins / 2) {
    tokens += 50;
    ends = (std::ssize(prompts) + 1) * page;
    for (const Tokens& prompt : prompts) ends += layout.BytesFor(std::ssize(prompt) + tokens);
  }
  const auto engine = NewEngine({.kv_memory_bytes = ends / 2});
  std::vector<Generation> generations;
  for (const Tokens& prompt : prompts) {
    generations.push_back(Submit(*engine, prompt, GreedyWithLogprobs(tokens)));
  }
  int64_t pauses = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto result = generations[i].Wait();
    EXPECT_EQ(AnswerOf(result), Alone(prompts[i], tokens)) << i;
    pauses += result.pauses;
  }
  EXPECT_GT(pauses, 0) << "or this shows nothing";
}

TEST_F(StateAnswers, MemoryThatCannotHoldThePromptIsRefused) {
  const KvLayout layout = LayoutOf(Geometry(HybridSpec()), DType::kF32);
  const auto engine =
      NewEngine({.kv_memory_bytes = layout.BytesFor(640) + layout.states.BytesFor(640)});
  EXPECT_EQ(AnswerOf(Submit(*engine, Words(1, 600), GreedyWithLogprobs(5)).Wait()),
            Alone(Words(1, 600), 5));
  EXPECT_EQ(ErrorOf([&] { Submit(*engine, Words(1, 700), Greedy(5)).Wait(); }).kind(),
            ErrorKind::kMemory);
}

// Branches from the same place keep the answers of the first round.
TEST_F(StateAnswers, BranchesThatReturnStayAsTheyWere) {
  const Tokens base = Words(4, 150);
  const Tokens branches[] = {Join(base, Words(41, 40)), Join(base, Words(42, 90)), base};
  std::vector<Answer> alone;
  for (const Tokens& branch : branches) alone.push_back(Alone(branch, 10));
  const auto engine = NewSavingEngine();
  Session session = SessionOf(*engine);
  for (int round = 0; round < 20; ++round) {
    for (size_t i = 0; i < std::size(branches); ++i) {
      const auto result = session.Generate(branches[i], GreedyWithLogprobs(10));
      ASSERT_EQ(AnswerOf(result), alone[i]) << round;
      ASSERT_EQ(AnswerOf(Submit(*engine, branches[i], GreedyWithLogprobs(10)).Wait()), alone[i])
          << round;
      EXPECT_GE(result.cached_tokens, round > 0 ? 128 : 0) << round;
    }
  }
  EXPECT_THAT(notices_, IsEmpty());
}

TEST_F(StateAnswers, ALaterProcessGoesOn) { ExpectALaterProcessGoesOn(); }

// A changed byte of any state or page: the answer is right, its cause is told once, and what is
// saved anew is sound.
TEST_F(StateAnswers, DamageIsReadAgain) {
  const Tokens prompt = Words(8, 300);
  const Answer alone = Alone(prompt, 10);
  const auto generate = [&] {
    const auto engine = NewSavingEngine();
    return SessionOf(*engine).Generate(prompt, GreedyWithLogprobs(10));
  };
  generate();
  const int64_t files = std::ssize(Files());
  for (int64_t i = 0; i < files; ++i) {
    for (const int64_t part : {1, 2, 9, 10}) {  // of ten: the last is a state
      const fs::path path = Files()[i];
      const auto size = static_cast<int64_t>(fs::file_size(path));
      const int64_t at = part == 10 ? size - 4096 : size / 10 * part;
      {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(at);
        const int byte = file.get();
        file.seekp(at);
        file.put(static_cast<char>(byte ^ 1));
      }
      notices_.clear();
      EXPECT_EQ(AnswerOf(generate()), alone) << i << ", " << part;
      EXPECT_EQ(AnswerOf(generate()), alone) << i << ", " << part;
      EXPECT_LE(notices_.size(), 1u);
      if (part == 10) {
        EXPECT_THAT(notices_, testing::ElementsAre(HasSubstr("the state of")));
      }
    }
  }
  notices_.clear();
  EXPECT_EQ(generate().disk_tokens, 256);
  EXPECT_THAT(notices_, IsEmpty());
}

TEST_F(StateAnswers, RanksCannotShareSuchAText) {
  LocalWorld world(2);
  const std::string refusal = ErrorOf(ErrorKind::kUnsupported, [&] {
    MakePolicy(Geometry(HybridSpec()), {.context = 100, .ranks = world.Rank(0)});
  });
  EXPECT_THAT(refusal, HasSubstr("5 layers of this model are recurrent"));
}

}  // namespace
}  // namespace godwit::state_answers_test
