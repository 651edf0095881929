// A layer that predicts tokens changes the time that a text takes, and nothing else. Policies,
// storages, chunks and other sources meet it in models of latent, grouped and recurrent layers.

#include <gtest/gtest.h>

#include <optional>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "generate/autoregressive.h"
#include "generate/mtp_drafts.h"
#include "generate/recycled_drafts.h"
#include "generate/speculative.h"
#include "generate/suffix_drafts.h"
#include "tests/drive_strategy.h"
#include "tests/model_runner.h"
#include "tests/mtp_model.h"
#include "tests/pairs.h"
#include "tests/scripted_drafts.h"

namespace godwit::mtp_laws_test {
namespace {

const std::vector<MtpGolden> kFamilies = MtpGoldens();
const std::vector<std::string> kPolicies = {
    "dense", "sinks:4+60",
    "blocks:block_size=64,initial=64,second_block_count=1,local_windows_len=64"};
const std::vector<DType> kTypes = {DType::kF32, DType::kBF16, DType::kI8};
const std::vector<std::optional<DType>> kWeights = {std::nullopt, DType::kBF16, DType::kI8};
const std::vector<int64_t> kChunks = {1, 7, 512};
enum class Beside { kNothing, kNgram, kForeseen };
const std::vector<Beside> kBeside = {Beside::kNothing, Beside::kNgram, Beside::kForeseen};

constexpr int64_t kPrompt = 240;

using Combined = Combination<6>;
const std::array<size_t, 6> kSizes = {kFamilies.size(), kPolicies.size(), kTypes.size(),
                                      kWeights.size(),  kChunks.size(),   kBeside.size()};

class MtpLaws : public testing::TestWithParam<Combined> {
 protected:
  const std::string& policy() const { return kPolicies[GetParam()[1]]; }
  int64_t chunk() const { return kChunks[GetParam()[4]]; }
  Beside beside() const { return kBeside[GetParam()[5]]; }

  static std::unique_ptr<Decoder> Load(const std::filesystem::path& folder,
                                       std::optional<DType> weights, bool predicts) {
    ThreadPool pool(1);
    DecoderSpec spec = DescribeModel(HfConfig::Load(folder / "config.json"));
    if (predicts) RequestPrediction(spec);
    return LoadDecoder(spec, *OpenWeights(folder), pool, {}, weights);
  }

  Sequence NewSequence(const Decoder& model, const SamplerOptions& sampler) const {
    const auto vocab = static_cast<int32_t>(model.vocab_size());
    Sequence sequence{.tokens = {},
                      .cache = MakeTextCache(Geometry(model.spec()),
                                             {.spec = policy(),
                                              .kv_type = kTypes[GetParam()[2]],
                                              .int8_products = kTypes[GetParam()[2]] == DType::kI8,
                                              .context = 4096}),
                      .sampler = Sampler(sampler, vocab),
                      .id = 0};
    for (int32_t i = 0; i < kPrompt; ++i) sequence.tokens.push_back((i * i * 7 + i) % vocab);
    sequence.cache->SetQuestion(kPrompt - 10, kPrompt);
    return sequence;
  }

  Sequence Continue(const Decoder& model, Strategy& strategy, const SamplerOptions& sampler,
                    int64_t tokens, int64_t* steps) {
    Sequence sequence = NewSequence(model, sampler);
    Drive drive{.model = model, .exec = exec(), .chunk = chunk()};
    drive.Continue(sequence, strategy, tokens);
    *steps = drive.steps;
    return sequence;
  }

  // The logits of predictions behind the text, from any state.
  std::vector<float> Predict(const Decoder& model, const Sequence& sequence) {
    std::vector<float> state, all;
    for (int64_t i = 0; i < model.hidden_size(); ++i) state.push_back(static_cast<float>(i % 7));
    model.Predict(exec(), *sequence.cache, sequence.tokens.back(), state, /*most=*/3,
                  [&](std::span<const float> logits) -> std::optional<int32_t> {
                    all.insert(all.end(), logits.begin(), logits.end());
                    return 5;
                  });
    EXPECT_EQ(std::ssize(all), 3 * model.vocab_size());
    return all;
  }

  Exec exec() {
    return {.pool = pool_, .kernels = *kernels::BestIsa().table, .workspace = workspace_};
  }

  ThreadPool pool_{2};
  Workspace workspace_;
  TempFolder temp_;
};

const SamplerOptions kGreedy{.temperature = 0};
const SamplerOptions kSampled{.temperature = 1, .min_p = 0.05f, .seed = 5};

TEST_P(MtpLaws, KeepsTheText) {
  constexpr int64_t kTokens = 100, kPath = DraftShape::kMaxDepth + 1;
  const MtpGolden& family = kFamilies[GetParam()[0]];
  WriteAgreeingModel(family, temp_.path() / "agrees");
  WriteMtpGolden(family, temp_.path() / "golden");
  for (const char* name : {"agrees", "golden"}) {
    const std::filesystem::path folder = temp_.path() / name;
    const auto weights = kWeights[GetParam()[3]];
    const auto plain = Load(folder, weights, false), drafting = Load(folder, weights, true);
    for (const SamplerOptions& sampler : {kGreedy, kSampled}) {
      int64_t plain_steps = 0, steps = 0;
      Autoregressive one_by_one;
      const auto expected =
          Continue(*plain, one_by_one, sampler, kTokens + kPath, &plain_steps).tokens;
      const auto vocab = static_cast<int32_t>(plain->vocab_size());
      std::vector<std::unique_ptr<DraftSource>> sources;
      if (beside() == Beside::kNgram) {
        sources.push_back(std::make_unique<SuffixDrafts>());
        sources.push_back(std::make_unique<RecycledDrafts>(vocab));
      } else if (beside() == Beside::kForeseen) {
        sources.push_back(std::make_unique<ScriptedDrafts>(vocab, expected, 0.5));
      }
      sources.push_back(std::make_unique<MtpDrafts>(NoTime));
      Speculative strategy(std::move(sources), NoTime);
      const Sequence drafted = Continue(*drafting, strategy, sampler, kTokens, &steps);
      const std::vector<int32_t>& found = drafted.tokens;
      EXPECT_TRUE(std::ranges::equal(found, std::span(expected).first(found.size())))
          << name << " at temperature " << sampler.temperature;
      // The layer's keys are those of a text without draft tokens.
      const Sequence undrafted =
          Continue(*drafting, one_by_one, sampler, std::ssize(found) - kPrompt, &plain_steps);
      EXPECT_EQ(undrafted.tokens, found);
      EXPECT_EQ(Predict(*drafting, drafted), Predict(*drafting, undrafted)) << name;
      if (std::string_view(name) == "golden" || sampler.temperature > 0) continue;
      // The layer makes the model's choices, so that its weights are read for fewer steps.
      const auto& mtp = strategy.stats().accepted.back();
      EXPECT_EQ(mtp.source, "mtp");
      EXPECT_LT(2 * steps, kTokens);
      if (beside() == Beside::kNothing) {
        EXPECT_GT(mtp.draft_tokens, kTokens / 2);
      }
    }
  }
}

std::vector<Combined> Pairs() {
  const auto pairs = CoveringPairs(kSizes);
  return {pairs.begin(), pairs.end()};
}

std::string NameOf(const testing::TestParamInfo<Combined>& info) {
  std::string name = kFamilies[info.param[0]].family;
  for (size_t i = 1; i < info.param.size(); ++i) name += "_" + std::to_string(info.param[i]);
  return TestName(name);
}

INSTANTIATE_TEST_SUITE_P(Pairs, MtpLaws, testing::ValuesIn(Pairs()), NameOf);

}  // namespace
}  // namespace godwit::mtp_laws_test
