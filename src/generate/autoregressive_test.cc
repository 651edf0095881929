#include "generate/autoregressive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "generate/step_together.h"
#include "kernels/dispatch.h"
#include "tests/fake_model.h"

namespace godwit::autoregressive_test {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kVocab = 100;

int32_t Script(int32_t token, int64_t position) {
  return static_cast<int32_t>((31 * token + 7 * position + 3) % kVocab);
}

std::vector<int32_t> Prompt(int64_t tokens) {
  std::vector<int32_t> prompt;
  for (int64_t i = 0; i < tokens; ++i) prompt.push_back(static_cast<int32_t>(i * i % kVocab));
  return prompt;
}

// The prompt and its continuation by the script.
std::vector<int32_t> Continued(std::vector<int32_t> text, int64_t tokens) {
  for (int64_t i = 0; i < tokens; ++i) {
    text.push_back(Script(text.back(), std::ssize(text) - 1));
  }
  return text;
}

class AutoregressiveTest : public testing::Test {
 protected:
  static Sequence NewSequence(int64_t prompt, const std::string& kv = "dense",
                              const SamplerOptions& sampler = {.temperature = 0}, uint64_t id = 0) {
    return {.tokens = Prompt(prompt),
            .cache = MakeTextCache(FakeModel::Geometry(), {.spec = kv, .context = 500}),
            .sampler = Sampler(sampler, kVocab),
            .id = id};
  }

  Exec On(const CancelToken* cancel = nullptr) {
    return {.pool = pool_,
            .kernels = *kernels::SelectIsa("").table,
            .workspace = workspace_,
            .cancel = cancel};
  }

  // Runs a step of this text alone, of up to max_tokens rows. Returns the accepted tokens.
  static std::vector<int32_t> Step(const LanguageModel& model, const Exec& exec, Sequence& sequence,
                                   int64_t max_tokens) {
    Autoregressive strategy;
    Participant one{.sequence = &sequence, .strategy = &strategy, .max_tokens = max_tokens};
    StepTogether(model, exec, {&one, 1});
    if (one.error) std::rethrow_exception(one.error);
    return {one.accepted.begin(), one.accepted.end()};
  }
  std::vector<int32_t> Step(Sequence& sequence, int64_t max_tokens = 10,
                            const CancelToken* cancel = nullptr) {
    return Step(model_, On(cancel), sequence, max_tokens);
  }

  // Runs steps until `tokens` have been accepted.
  void Generate(Sequence& sequence, int64_t tokens, int64_t chunk) {
    while (tokens > 0) tokens -= std::ssize(Step(sequence, chunk));
  }

  FakeModel model_{kVocab, Script};
  ThreadPool pool_{1};
  Workspace workspace_;
};

TEST_F(AutoregressiveTest, ReadsThePromptInChunksAndThenContinuesIt) {
  Sequence sequence = NewSequence(25);
  EXPECT_EQ(sequence.pending(), 25);
  EXPECT_TRUE(Step(sequence).empty());
  EXPECT_EQ(sequence.pending(), 15);
  EXPECT_TRUE(Step(sequence).empty());
  EXPECT_EQ(sequence.pending(), 5);
  EXPECT_EQ(sequence.tokens, Prompt(25)) << "no token before the prompt has been read";

  const auto expected = Continued(Prompt(25), 4);
  for (size_t i = 25; i < 29; ++i) {
    EXPECT_THAT(Step(sequence), ElementsAre(expected[i]));
    EXPECT_EQ(sequence.tokens.size(), i + 1);
    EXPECT_EQ(sequence.pending(), 1);
  }
  EXPECT_EQ(sequence.tokens, expected);

  // Every token was read once, in its place.
  std::vector<int64_t> sizes;
  int64_t position = 0;
  for (const FakeModel::Read& read : model_.reads()) {
    EXPECT_EQ(read.position, position);
    for (const int32_t token : read.tokens) {
      EXPECT_EQ(token, expected[position++]);
    }
    sizes.push_back(std::ssize(read.tokens));
  }
  EXPECT_THAT(sizes, ElementsAre(10, 10, 5, 1, 1, 1));
}

TEST_F(AutoregressiveTest, ChunksChangeNothing) {
  for (const char* kv : {"dense", "sinks:4+8"}) {
    for (const int64_t prompt : {1, 15, 16, 17, 64}) {
      for (const int64_t chunk : {1, 3, 16, 1000}) {
        Sequence sequence = NewSequence(prompt, kv);
        Generate(sequence, 20, chunk);
        EXPECT_EQ(sequence.tokens, Continued(Prompt(prompt), 20))
            << kv << ", prompt of " << prompt << ", chunks of " << chunk;
      }
    }
  }
}

// A step says what its rows are for.
TEST_F(AutoregressiveTest, ProposesThePromptAndThenOneTokenAtATime) {
  Autoregressive strategy;
  Sequence sequence = NewSequence(25);
  const Proposal first = strategy.Propose(sequence, 10);
  EXPECT_EQ(first.segment.tokens.data(), sequence.tokens.data());
  EXPECT_EQ(first.segment.tokens.size(), 10u);
  EXPECT_EQ(first.segment.text, sequence.cache.get());
  EXPECT_EQ(first.segment.phase, Phase::kPrompt);
  EXPECT_TRUE(first.segment.parents.empty());
  EXPECT_EQ(first.logit_rows, 0);
  EXPECT_EQ(strategy.Propose(sequence, 1000).segment.tokens.size(), 25u);
  EXPECT_EQ(strategy.Propose(sequence, 25).logit_rows, 1);
  Step(sequence, 25);
  const Proposal next = strategy.Propose(sequence, 10);
  EXPECT_EQ(next.segment.tokens.size(), 1u);
  EXPECT_EQ(next.segment.tokens[0], sequence.tokens.back());
  EXPECT_EQ(next.segment.phase, Phase::kDecode);
  EXPECT_EQ(next.logit_rows, 1);
}

TEST_F(AutoregressiveTest, ACancelledStepLeavesTheSequenceAsItWas) {
  CancelToken cancel;
  Sequence sequence = NewSequence(25);
  const auto expected = Continued(Prompt(25), 6);
  for (int64_t steps = 0; std::ssize(sequence.tokens) < 31; ++steps) {
    const auto tokens = sequence.tokens;
    const int64_t length = sequence.cache->length();
    model_.on_step = [&] { cancel.Cancel(); };
    try {
      Step(sequence, 10, &cancel);
      ADD_FAILURE() << "not cancelled at step " << steps;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kCancelled);
    }
    EXPECT_EQ(sequence.tokens, tokens);
    EXPECT_EQ(sequence.cache->length(), length);
    EXPECT_GT(sequence.pending(), 0);
    model_.on_step = nullptr;
    cancel.Reset();
    Step(sequence, 10, &cancel);
  }
  EXPECT_EQ(sequence.tokens, expected);
}

// A step between the model's last layer and the sampler cannot be cancelled. The tokens have been
// read, and a policy need not be able to remove them.
TEST_F(AutoregressiveTest, CancelAfterTheModelHasReadWaitsForTheNextStep) {
  class LateCanceller : public FakeModel {
   public:
    LateCanceller(CancelToken& cancel) : FakeModel(kVocab, Script), cancel_(cancel) {}
    void Forward(const Exec& exec, std::span<const Segment> segments,
                 MatrixView<float> hidden) const override {
      FakeModel::Forward(exec, segments, hidden);
      cancel_.Cancel();
    }

   private:
    CancelToken& cancel_;
  };
  CancelToken cancel;
  LateCanceller model(cancel);
  Sequence sequence = NewSequence(5);
  EXPECT_EQ(Step(model, On(&cancel), sequence, 10).size(), 1u);
  EXPECT_EQ(sequence.tokens, Continued(Prompt(5), 1));
  EXPECT_EQ(sequence.pending(), 1);
  EXPECT_THROW(Step(model, On(&cancel), sequence, 10), Error);
  EXPECT_EQ(sequence.pending(), 1);
}

TEST_F(AutoregressiveTest, AnErrorOfTheModelLeavesTheSequenceAsItWas) {
  Sequence sequence = NewSequence(5);
  sequence.tokens[3] = kVocab;
  EXPECT_THROW(Step(sequence), Error);
  EXPECT_EQ(sequence.pending(), 5);
  sequence.tokens = Prompt(501);
  EXPECT_THROW(Step(sequence, 1000), Error) << "beyond the context";
  EXPECT_EQ(sequence.pending(), 501);
  EXPECT_EQ(sequence.tokens.size(), 501u);
}

// The sampler's draw at a position, asked for directly.
int32_t DrawAt(const SamplerOptions& options, const FakeModel& model,
               const std::vector<int32_t>& tokens, size_t position, uint64_t id) {
  std::vector<float> logits(kVocab, model.other_logits);
  logits[Script(tokens[position - 1], static_cast<int64_t>(position) - 1)] = 0;
  return Sampler(options, kVocab)
      .Sample(logits, std::span(tokens).first(position), id, static_cast<int64_t>(position));
}

TEST_F(AutoregressiveTest, DrawsAreKeyedBySeedSequenceAndPosition) {
  model_.other_logits = -2;
  SamplerOptions options{.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 11};
  const auto run = [&](const SamplerOptions& sampler, uint64_t id, int64_t chunk) {
    Sequence sequence = NewSequence(20, "dense", sampler, id);
    Generate(sequence, 40, chunk);
    return sequence.tokens;
  };
  const auto reference = run(options, 5, 7);
  EXPECT_EQ(run(options, 5, 16), reference);
  for (size_t position = 20; position < 60; ++position) {
    EXPECT_EQ(DrawAt(options, model_, reference, position, 5), reference[position]);
  }
  EXPECT_NE(run(options, 6, 7), reference);
  options.seed = 12;
  EXPECT_NE(run(options, 5, 7), reference);
}

TEST_F(AutoregressiveTest, GoingBackDrawsTheSameAgain) {
  model_.other_logits = -2;
  const SamplerOptions options{.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 3};
  Sequence sequence = NewSequence(20, "dense", options);
  Generate(sequence, 30, 8);
  const auto reference = sequence.tokens;
  for (const size_t length : {25, 20, 40}) {
    sequence.tokens.resize(length);
    sequence.cache->Truncate(static_cast<int64_t>(length) - 1);
    Generate(sequence, 50 - static_cast<int64_t>(length), 8);
    EXPECT_EQ(sequence.tokens, reference);
  }
}

}  // namespace
}  // namespace godwit::autoregressive_test
