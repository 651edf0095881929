// An EAGLE-3 head changes the time that a text takes, and nothing else. Policies, storages, chunks
// and other sources meet it beside models of full, windowed and recurrent layers.

#include <gtest/gtest.h>

#include <optional>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "generate/autoregressive.h"
#include "generate/mtp_drafts.h"
#include "generate/recycled_drafts.h"
#include "generate/speculative.h"
#include "generate/suffix_drafts.h"
#include "model/eagle3_folder.h"
#include "tests/drive_strategy.h"
#include "tests/eagle3_model.h"
#include "tests/model_runner.h"
#include "tests/pairs.h"
#include "tests/scripted_drafts.h"

namespace godwit::eagle3_laws_test {
namespace {

const std::vector<std::string> kModels = {"llama/gqa",          "gpt_oss/new_config",
                                          "qwen3/layer_types",  "qwen2/untied_mha",
                                          "qwen3_next/experts", "bamba/listed"};
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
const std::array<size_t, 6> kSizes = {kModels.size(),  kPolicies.size(), kTypes.size(),
                                      kWeights.size(), kChunks.size(),   kBeside.size()};

class Eagle3Laws : public testing::TestWithParam<Combined> {
 protected:
  const std::string& model() const { return kModels[GetParam()[0]]; }
  Beside beside() const { return kBeside[GetParam()[5]]; }

  // head: its folder; none: the model alone.
  std::unique_ptr<Decoder> Load(const std::filesystem::path& folder,
                                std::optional<std::filesystem::path> head = {}) {
    const auto weights = kWeights[GetParam()[3]];
    auto decoder = LoadDecoder(DescribeModel(HfConfig::Load(folder / "config.json")),
                               *OpenWeights(folder), pool_, {}, weights);
    if (head) decoder->Take(Eagle3Folder(*head, decoder->spec()).Load(pool_, weights));
    return decoder;
  }

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
  std::vector<float> Predict(const Decoder& decoder, const Sequence& sequence) {
    std::vector<float> all;
    decoder.Predict(exec(), *sequence.cache, sequence.tokens.back(), {}, /*most=*/3,
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

  ThreadPool pool_{2};
  Workspace workspace_;
  TempFolder temp_;
};

const SamplerOptions kGreedy{.temperature = 0};
const SamplerOptions kSampled{.temperature = 1, .min_p = 0.05f, .seed = 5};

TEST_P(Eagle3Laws, KeepsTheText) {
  constexpr int64_t kTokens = 100, kPath = DraftShape::kMaxDepth + 1;
  const auto folder = temp_.path() / "model";
  const auto root = std::filesystem::path(GODWIT_SOURCE_DIR "/tests/golden");
  WriteModelByLastToken(root / model(), folder, /*predicts=*/false);
  for (const bool agrees : {true, false}) {
    const auto head = temp_.path() / (agrees ? "agrees" : "differs");
    WriteEagle3Head(folder, head, agrees);
    const auto plain = Load(folder), drafting = Load(folder, head);
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
      sources.push_back(std::make_unique<MtpDrafts>(NoTime, "eagle3"));
      Speculative strategy(std::move(sources), NoTime);
      const Sequence drafted = Continue(*drafting, strategy, sampler, kTokens, &steps);
      const std::vector<int32_t>& found = drafted.tokens;
      EXPECT_TRUE(std::ranges::equal(found, std::span(expected).first(found.size())))
          << agrees << " at temperature " << sampler.temperature;
      // The head's keys are those of a text without draft tokens.
      const Sequence undrafted =
          Continue(*drafting, one_by_one, sampler, std::ssize(found) - kPrompt, &plain_steps);
      EXPECT_EQ(undrafted.tokens, found);
      EXPECT_EQ(Predict(*drafting, drafted), Predict(*drafting, undrafted)) << agrees;
      if (!agrees || sampler.temperature > 0) continue;
      // The head makes the model's choices, so that its weights are read for fewer steps.
      const auto& eagle3 = strategy.stats().accepted.back();
      EXPECT_EQ(eagle3.source, "eagle3");
      EXPECT_LT(2 * steps, kTokens);
      if (beside() == Beside::kNothing) {
        EXPECT_GT(eagle3.draft_tokens, kTokens / 2);
      }
    }
  }
}

std::vector<Combined> Pairs() {
  const auto pairs = CoveringPairs(kSizes);
  return {pairs.begin(), pairs.end()};
}

std::string NameOf(const testing::TestParamInfo<Combined>& info) {
  std::string name = kModels[info.param[0]];
  for (size_t i = 1; i < info.param.size(); ++i) name += "_" + std::to_string(info.param[i]);
  return TestName(name);
}

INSTANTIATE_TEST_SUITE_P(Pairs, Eagle3Laws, testing::ValuesIn(Pairs()), NameOf);

}  // namespace
}  // namespace godwit::eagle3_laws_test
