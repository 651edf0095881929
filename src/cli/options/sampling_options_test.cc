#include "cli/options/sampling_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"

namespace godwit::cli::sampling_options_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

SamplingFlags Flags(const std::vector<std::string>& arguments) {
  SamplingFlags flags;
  console::CommandLine line("run", "", "");
  AddSamplingFlags(line, flags);
  line.Parse(arguments);
  return flags;
}

EffectiveSampler Effective(const SamplingFlags& flags, const SamplerDefaults& model) {
  return TakeModelDefaults(flags, MakeGenerateOptions(flags).sampler, model);
}

TEST(SamplingOptionsTest, AModelsChoiceIsTheDefaultAndAFlagWins) {
  SamplerDefaults model;
  model.choices = {.temperature = 0.6f, .top_k = 20, .top_p = 0.8f};
  const EffectiveSampler silent = Effective(Flags({}), model);
  EXPECT_EQ(silent.options.top_k, 20);
  EXPECT_EQ(silent.options.top_p, 0.8f);
  EXPECT_EQ(silent.options.temperature, 0.6f);
  EXPECT_EQ(silent.options.min_p, SamplerOptions().min_p);
  EXPECT_THAT(silent.from_model, ElementsAre("temperature", "top_k", "top_p"));

  const EffectiveSampler told =
      Effective(Flags({"--temp", "0.8", "--top-k=7", "--min-p", "0"}), model);
  EXPECT_EQ(told.options.temperature, 0.8f) << "though it is the default without a model's";
  EXPECT_EQ(told.options.top_k, 7);
  EXPECT_EQ(told.options.min_p, 0);
  EXPECT_THAT(told.from_model, ElementsAre("top_p"));
}

TEST(SamplingOptionsTest, AModelsReachIsThatOfItsPenalty) {
  SamplerDefaults model;
  model.choices = {.repeat_last_n = -1, .repeat_penalty = 1.1f};
  EXPECT_EQ(Effective(Flags({}), model).options.repeat_last_n, -1);
  EXPECT_EQ(Effective(Flags({"--repeat-last-n", "9"}), model).options.repeat_last_n, 9);
  const EffectiveSampler own = Effective(Flags({"--repeat-penalty", "1.3"}), model);
  EXPECT_EQ(own.options.repeat_last_n, 64);
  EXPECT_THAT(own.from_model, IsEmpty());
}

TEST(SamplingOptionsTest, ABadRecommendationIsRefusedUnlessAFlagOverridesIt) {
  SamplerDefaults model;
  model.problems["top_p"] = "generation_config.json: top_p: expected a number from 0 to 1, found 7";
  EXPECT_EQ(ErrorOf(ErrorKind::kFormat, [&] { Effective(Flags({}), model); }),
            model.problems["top_p"]);
  EXPECT_EQ(Effective(Flags({"--top-p", "0.5"}), model).options.top_p, 0.5f);
}

TEST(SamplingOptionsTest, SamplersNameAnOrder) {
  using enum SamplerStep;
  EXPECT_THAT(Flags({"--samplers", "min-p;temperature"}).sampler.steps,
              ElementsAre(kMinP, kTemperature));
  for (const char* names : {"min_q", "", "top_k;top_k", "top_k;penalties"}) {
    EXPECT_EQ(ErrorOf([&] {
                MakeGenerateOptions(Flags({"--samplers", names}));
              }).kind(),
              ErrorKind::kInput)
        << names;
  }
}

}  // namespace
}  // namespace godwit::cli::sampling_options_test
