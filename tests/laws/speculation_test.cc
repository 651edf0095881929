// Speculation changes the time that a text takes, and nothing else.

#include <gtest/gtest.h>

#include "generate/autoregressive.h"
#include "generate/head_drafts.h"
#include "generate/partial_drafts.h"
#include "generate/recycled_drafts.h"
#include "generate/speculative.h"
#include "generate/suffix_drafts.h"
#include "generate/triforce_drafts.h"
#include "tests/drive_strategy.h"
#include "tests/model_runner.h"
#include "tests/on_isas.h"
#include "tests/scripted_drafts.h"
#include "train/train_heads.h"

namespace godwit::speculation_test {
namespace {

constexpr int64_t kContext = 24'000;

using Sources = std::vector<std::unique_ptr<DraftSource>>;

struct Case {
  std::string kv;
  DType kv_type;
  std::optional<DType> weights;
  bool int8_products = false;
};

class Speculation : public TestOnIsas<Case> {
 protected:
  Speculation() : runner_(GODWIT_SOURCE_DIR "/tests/data/tiny-llama", one().weights) {}

  Sequence NewSequence(const SamplerOptions& sampler) const {
    Sequence sequence{.tokens = {},
                      .cache = MakeTextCache(Geometry(runner_.spec()), Options(one().kv)),
                      .sampler = Sampler(sampler, vocab()),
                      .id = 0};
    for (int32_t i = 0; i < 700; ++i) sequence.tokens.push_back(3 + (i * i * 7 + i) % 300);
    sequence.cache->SetQuestion(690, 700);
    return sequence;
  }
  PolicyOptions Options(const std::string& kv) const {
    return {.spec = kv,
            .kv_type = one().kv_type,
            .int8_products = one().int8_products,
            .context = kContext};
  }
  int32_t vocab() const { return static_cast<int32_t>(runner_.decoder().vocab_size()); }

  Drive On(std::string_view isa) {
    return {.model = runner_.decoder(),
            .exec = {.pool = pool_,
                     .kernels = *kernels::SelectIsa(std::string(isa)).table,
                     .workspace = workspace_},
            .chunk = 512};
  }

  std::vector<int32_t> Plain(std::string_view isa, const SamplerOptions& sampler, int64_t tokens) {
    Sequence sequence = NewSequence(sampler);
    Autoregressive strategy;
    On(isa).Continue(sequence, strategy, tokens);
    return sequence.tokens;
  }

  // Checks that the text with these draft tokens is `plain`. Returns how many were accepted.
  int64_t Hold(std::string_view isa, const SamplerOptions& sampler, Sources sources,
               const std::vector<int32_t>& plain, int64_t tokens) {
    Sequence sequence = NewSequence(sampler);
    Speculative strategy(std::move(sources), NoTime);
    On(isa).Continue(sequence, strategy, tokens);
    EXPECT_TRUE(
        std::ranges::equal(sequence.tokens, std::span(plain).first(sequence.tokens.size())));
    int64_t accepted = 0;
    for (const auto& source : strategy.stats().accepted) accepted += source.draft_tokens;
    return accepted;
  }

  Sources Ngram() const {
    Sources sources;
    sources.push_back(std::make_unique<SuffixDrafts>());
    sources.push_back(std::make_unique<RecycledDrafts>(vocab()));
    return sources;
  }
  // Heads trained on the beginning of this very text.
  std::shared_ptr<const DraftHeads> TrainOn(const std::vector<int32_t>& plain) {
    const Exec exec = On(isa()).exec;
    const Decoder& model = runner_.decoder();
    constexpr int64_t kHeads = 3;
    train::HiddenStates states(model.hidden_size(), kHeads, vocab());
    const std::vector<int32_t> piece(plain.begin() + 600, plain.begin() + 1000);
    train::ReadPieces(exec, model, {&piece, 1}, {}, states);
    train::HeadGradient gradient(exec, model, vocab(), DType::kF32);
    train::HeadProgress heads =
        train::NewHeads(kHeads, model.hidden_size(), vocab(), model.final_norm_weight());
    train::TrainHeads(exec, gradient, states,
                      {.steps = 30, .warmup = 3, .batch = 128, .rate = 0.03}, heads, [] {});
    return std::make_shared<const DraftHeads>(pool_, std::move(heads.parameters),
                                              one().weights.value_or(DType::kF32));
  }
  Sources Trained(std::shared_ptr<const DraftHeads> heads, bool with_ngram) const {
    Sources sources;
    if (with_ngram) sources = Ngram();
    sources.push_back(
        std::make_unique<HeadDrafts>(std::make_shared<HeadBatch>(std::move(heads), NoTime)));
    return sources;
  }
  Sources Foreseen(const std::vector<int32_t>& plain, double right) const {
    Sources sources;
    sources.push_back(std::make_unique<ScriptedDrafts>(vocab(), plain, right));
    return sources;
  }

  // Drafts from a part of the cache, alone or behind others.
  Sources Partial(const std::string& part, Sources others = {}) const {
    auto policy = MakePolicy(Geometry(runner_.spec()), Options(part));
    others.push_back(std::make_unique<PartialDrafts>(std::move(policy), 600, NoTime));
    return others;
  }

  // Both levels, with the model itself for the smaller one: over few tokens, it is often wrong.
  Sources TriForce(const std::string& part, int64_t inner) {
    const auto new_text = [this] {
      return MakeTextCache(Geometry(runner_.spec()), Options("sinks:4+60"));
    };
    Sources sources;
    sources.push_back(std::make_unique<TriForceDrafts>(
        MakePolicy(Geometry(runner_.spec()), Options(part)), 600,
        ModelText::Parts{.model = {std::shared_ptr<const LanguageModel>(), &runner_.decoder()},
                         .new_text = new_text,
                         .kept = std::make_shared<DraftTexts>(),
                         .key = "",
                         .chunk_tokens = 512},
        TriForceDrafts::Lengths{.inner = inner, .outer = ChainDrafts::kMaxDraftTokens}, NoTime));
    return sources;
  }

  ModelRunner runner_;
  ThreadPool pool_{2};
  Workspace workspace_;
};

const SamplerOptions kGreedy{.temperature = 0};
const SamplerOptions kPenalized{
    .repeat_last_n = 256, .repeat_penalty = 1.2f, .temperature = 1, .min_p = 0.1f, .seed = 5};

TEST_P(Speculation, KeepsTheText) {
  constexpr int64_t kTokens = 200, kPath = DraftShape::kMaxDepth + 1;
  const auto heads = TrainOn(Plain(isa(), kGreedy, kTokens + 100));
  for (const SamplerOptions& sampler : {kGreedy, kPenalized}) {
    const auto plain = Plain(isa(), sampler, kTokens + kPath);
    for (const double right : {0.4, 0.9}) {
      EXPECT_GT(Hold(isa(), sampler, Foreseen(plain, right), plain, kTokens), kTokens / 5);
    }
    Hold(isa(), sampler, Ngram(), plain, kTokens);
    EXPECT_GT(Hold(isa(), sampler, Trained(heads, false), plain, kTokens), 5);
    Hold(isa(), sampler, Trained(heads, true), plain, kTokens);
  }
}

const std::vector<Case> kCases = {
    Case{"dense", DType::kBF16, DType::kBF16}, Case{"dense", DType::kI8, DType::kI8, true},
    Case{"blocks:block_size=64,second_block_count=4,local_windows_len=64,"
         "preselect_block=True",
         DType::kI8, DType::kI8, true},
    Case{"blocks:block_size=64,second_block_count=4,local_windows_len=64,"
         "token_step=4",
         DType::kBF16, DType::kBF16},
    Case{"sinks:4+252", DType::kF32, DType::kF32}};
std::string NameOf(const Case& one) {
  return fmt::format("{}_{}", one.kv, one.int8_products ? "i8_products" : Name(one.kv_type));
}

GODWIT_ON_ISAS(Speculation, kCases, NameOf, kernels::Best());

using LongSpeculation = Speculation;

TEST_P(LongSpeculation, RELEASE_KeepsTheTextOver20000Tokens) {
  constexpr int64_t kTokens = 20'000;
  const auto plain = Plain(isa(), kGreedy, kTokens + DraftShape::kMaxDepth + 1);
  EXPECT_GT(Hold(isa(), kGreedy, Foreseen(plain, 0.7), plain, kTokens), kTokens / 2);
  Hold(isa(), kGreedy, Ngram(), plain, kTokens);
  const auto heads = TrainOn(plain);
  EXPECT_GT(Hold(isa(), kGreedy, Trained(heads, false), plain, kTokens), 100);
  Hold(isa(), kGreedy, Trained(heads, true), plain, kTokens);
}

INSTANTIATE_TEST_SUITE_P(Blocks, LongSpeculation,
                         testing::Combine(testing::Values(Case{
                                              "blocks:block_size=64,second_block_count=8,"
                                              "local_windows_len=64",
                                              DType::kI8, DType::kI8, true}),
                                          testing::Values(&kernels::BestIsa())),
                         NamesOfSpeculation);
INSTANTIATE_TEST_SUITE_P(FULL_Dense, LongSpeculation,
                         testing::Combine(testing::Values(Case{"dense", DType::kBF16,
                                                               DType::kBF16}),
                                          testing::Values(&kernels::BestIsa())),
                         NamesOfSpeculation);

using PartialSpeculation = Speculation;

const std::string kBlocks = "blocks:initial=64,local_windows_len=64,second_block_count=2";
const std::string kGradual =
    "blocks:block_size=1,representative_type=MEAN,initial=64,local_windows_len=1,"
    "second_block_count=192,token_step=192,gradual=True,sum_scores=True";

TEST_P(PartialSpeculation, KeepsTheText) {
  constexpr int64_t kTokens = 200, kPath = DraftShape::kMaxDepth + 1;
  for (const SamplerOptions& sampler : {kGreedy, kPenalized}) {
    const auto plain = Plain(isa(), sampler, kTokens + kPath);
    EXPECT_GT(Hold(isa(), sampler, Partial(kBlocks), plain, kTokens), kTokens / 4);
    // A part that is the whole cache drafts every token, 8 in a step.
    EXPECT_GT(Hold(isa(), sampler, Partial("dense"), plain, kTokens), kTokens * 8 / 10);
    Hold(isa(), sampler, Partial(kBlocks, Ngram()), plain, kTokens);
    // The chains are those of the part, however many of its rows are read together.
    const int64_t by_part = Hold(isa(), sampler, Partial(kBlocks), plain, kTokens);
    for (const int64_t inner : {1, 3}) {
      EXPECT_EQ(Hold(isa(), sampler, TriForce(kBlocks, inner), plain, kTokens), by_part) << inner;
    }
    EXPECT_GT(Hold(isa(), sampler, TriForce("dense", 2), plain, kTokens), kTokens * 8 / 10);
    Hold(isa(), sampler, TriForce(kGradual, 3), plain, kTokens);
  }
}

const std::vector<Case> kPartialCases = {{"dense", DType::kBF16, DType::kBF16},
                                         {"dense", DType::kI8, DType::kI8, true}};

GODWIT_ON_ISAS(PartialSpeculation, kPartialCases, NameOf, kernels::Best());

using LongPartialSpeculation = Speculation;

TEST_P(LongPartialSpeculation, RELEASE_KeepsTheTextOver20000Tokens) {
  constexpr int64_t kTokens = 20'000;
  const auto plain = Plain(isa(), kPenalized, kTokens + DraftShape::kMaxDepth + 1);
  EXPECT_GT(Hold(isa(), kPenalized, Partial(kBlocks), plain, kTokens), kTokens / 4);
  for (const std::string& part :
       {kBlocks + ",token_step=3,representative_type=MEANSTD", std::string("sinks:16+112")}) {
    EXPECT_GT(Hold(isa(), kPenalized, Partial(part), plain, 1000), 200) << part;
  }
}

INSTANTIATE_TEST_SUITE_P(FULL_Int8, LongPartialSpeculation,
                         testing::Combine(testing::Values(kPartialCases.back()),
                                          testing::Values(&kernels::BestIsa())),
                         NamesOfPartialSpeculation);

}  // namespace
}  // namespace godwit::speculation_test
