// For tests only: laws of tokens that a layer or a head predicts. They change the time that a text
// takes, and nothing else. Policies, storages, chunks and other sources meet them by pairs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "generate/autoregressive.h"
#include "generate/mtp_drafts.h"
#include "generate/recycled_drafts.h"
#include "generate/speculative.h"
#include "generate/suffix_drafts.h"
#include "tests/drive_strategy.h"
#include "tests/model_runner.h"
#include "tests/pairs.h"
#include "tests/scripted_drafts.h"

namespace godwit::prediction_laws {

inline const std::vector<std::string> kPolicies = {
    "dense", "sinks:4+60",
    "blocks:block_size=64,initial=64,second_block_count=1,local_windows_len=64"};
inline const std::vector<DType> kTypes = {DType::kF32, DType::kBF16, DType::kI8};
inline const std::vector<std::optional<DType>> kWeights = {std::nullopt, DType::kBF16, DType::kI8};
inline const std::vector<int64_t> kChunks = {1, 7, 512};
enum class Beside { kNothing, kNgram, kForeseen };
inline const std::vector<Beside> kBeside = {Beside::kNothing, Beside::kNgram, Beside::kForeseen};

inline constexpr int64_t kPrompt = 240;

using Combined = Combination<6>;

inline std::vector<Combined> PairsOf(size_t models) {
  const auto pairs = CoveringPairs(std::array<size_t, 6>{
      models, kPolicies.size(), kTypes.size(), kWeights.size(), kChunks.size(), kBeside.size()});
  return {pairs.begin(), pairs.end()};
}

// model: the name of the combination's first value.
inline std::string NameOf(const std::string& model, const Combined& combined) {
  std::string name = model;
  for (size_t i = 1; i < combined.size(); ++i) name += "_" + std::to_string(combined[i]);
  return TestName(name);
}

class PredictionLaws : public testing::TestWithParam<Combined> {
 protected:
  std::optional<DType> weights() const { return kWeights[GetParam()[3]]; }

  // The text of `plain` is that of `drafting`, whose draft tokens come from MtpDrafts by the name
  // of `source`. agrees: whether it predicts what the model chooses. state: for predictions behind
  // the text.
  void ExpectSameText(const Decoder& plain, const Decoder& drafting, const char* source,
                      bool agrees, const std::vector<float>& state) {
    constexpr int64_t kTokens = 100, kPath = DraftShape::kMaxDepth + 1;
    const Beside beside = kBeside[GetParam()[5]];
    for (const SamplerOptions& sampler :
         {SamplerOptions{.temperature = 0},
          SamplerOptions{.temperature = 1, .min_p = 0.05f, .seed = 5}}) {
      int64_t plain_steps = 0, steps = 0;
      Autoregressive one_by_one;
      const auto expected =
          Continue(plain, one_by_one, sampler, kTokens + kPath, &plain_steps).tokens;
      const auto vocab = static_cast<int32_t>(plain.vocab_size());
      std::vector<std::unique_ptr<DraftSource>> sources;
      if (beside == Beside::kNgram) {
        sources.push_back(std::make_unique<SuffixDrafts>());
        sources.push_back(std::make_unique<RecycledDrafts>(vocab));
      } else if (beside == Beside::kForeseen) {
        sources.push_back(std::make_unique<ScriptedDrafts>(vocab, expected, 0.5));
      }
      sources.push_back(std::make_unique<MtpDrafts>(NoTime, source));
      Speculative strategy(std::move(sources), NoTime);
      const Sequence drafted = Continue(drafting, strategy, sampler, kTokens, &steps);
      const std::vector<int32_t>& found = drafted.tokens;
      EXPECT_TRUE(std::ranges::equal(found, std::span(expected).first(found.size())))
          << agrees << " at temperature " << sampler.temperature;
      // The keys of the layer or head are those of a text without draft tokens.
      const Sequence undrafted =
          Continue(drafting, one_by_one, sampler, std::ssize(found) - kPrompt, &plain_steps);
      EXPECT_EQ(undrafted.tokens, found);
      EXPECT_EQ(Predict(drafting, drafted, state), Predict(drafting, undrafted, state)) << agrees;
      if (!agrees || sampler.temperature > 0) continue;
      // The model's choices are predicted, so that its weights are read for fewer steps.
      const auto& last = strategy.stats().accepted.back();
      EXPECT_EQ(last.source, source);
      EXPECT_LT(2 * steps, kTokens);
      if (beside == Beside::kNothing) {
        EXPECT_GT(last.draft_tokens, kTokens / 2);
      }
    }
  }

  ThreadPool pool_{2};
  Workspace workspace_;
  TempFolder temp_;

 private:
  Sequence NewSequence(const Decoder& decoder, const SamplerOptions& sampler) const {
    const auto vocab = static_cast<int32_t>(decoder.vocab_size());
    const DType kv_type = kTypes[GetParam()[2]];
    Sequence sequence{
        .tokens = {},
        .cache = MakeTextCache(Geometry(decoder.spec()), {.spec = kPolicies[GetParam()[1]],
                                                          .kv_type = kv_type,
                                                          .int8_products = kv_type == DType::kI8,
                                                          .context = 4096}),
        .sampler = Sampler(sampler, vocab),
        .id = 0};
    for (int32_t i = 0; i < kPrompt; ++i) sequence.tokens.push_back((i * i * 7 + i) % vocab);
    sequence.cache->SetQuestion(kPrompt - 10, kPrompt);
    return sequence;
  }

  Sequence Continue(const Decoder& decoder, Strategy& strategy, const SamplerOptions& sampler,
                    int64_t tokens, int64_t* steps) {
    Sequence sequence = NewSequence(decoder, sampler);
    Drive drive{.model = decoder, .exec = exec(), .chunk = kChunks[GetParam()[4]]};
    drive.Continue(sequence, strategy, tokens);
    *steps = drive.steps;
    return sequence;
  }

  // The logits of predictions behind the text.
  std::vector<float> Predict(const Decoder& decoder, const Sequence& sequence,
                             const std::vector<float>& state) {
    std::vector<float> all;
    decoder.Predict(exec(), *sequence.cache, sequence.tokens.back(), state, /*most=*/3,
                    [&](std::span<const float> logits) -> std::optional<int32_t> {
                      all.insert(all.end(), logits.begin(), logits.end());
                      return 5;
                    });
    EXPECT_EQ(std::ssize(all), 3 * decoder.vocab_size());
    return all;
  }

  Exec exec() {
    return {.pool = pool_, .kernels = *kernels::BestIsa().table, .workspace = workspace_};
  }
};

}  // namespace godwit::prediction_laws
