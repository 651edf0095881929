#include "checkpoint/generation_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "base/test_support.h"

namespace godwit::generation_config_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;

SamplerDefaults Read(const std::string& text) {
  const TempFolder folder;
  folder.Write("generation_config.json", text);
  return ReadGenerationConfig(folder.path());
}

TEST(GenerationConfigTest, SilenceRecommendsNothing) {
  const TempFolder folder;
  for (const SamplerDefaults& defaults :
       {ReadGenerationConfig(folder.path()), Read("{}"),
        Read(R"({"do_sample":true,"temperature":null,"eos_token_id":2,"num_beams":1})")}) {
    EXPECT_FALSE(defaults.choices.temperature);
    EXPECT_FALSE(defaults.choices.top_k);
    EXPECT_FALSE(defaults.choices.top_p);
    EXPECT_FALSE(defaults.choices.min_p);
    EXPECT_FALSE(defaults.choices.eta);
    EXPECT_FALSE(defaults.choices.repeat_penalty);
    EXPECT_FALSE(defaults.choices.repeat_last_n);
    EXPECT_THAT(defaults.problems, IsEmpty());
    EXPECT_THAT(defaults.not_followed, IsEmpty());
  }
}

TEST(GenerationConfigTest, EveryFieldIsRead) {
  const SamplerDefaults defaults =
      Read(R"({"do_sample":true,"temperature":0.7,"top_k":20,"top_p":0.8,"min_p":0.1,)"
           R"("eta_cutoff":0.001,"repetition_penalty":1.05})");
  EXPECT_EQ(defaults.choices.temperature, 0.7f);
  EXPECT_EQ(defaults.choices.top_k, 20);
  EXPECT_EQ(defaults.choices.top_p, 0.8f);
  EXPECT_EQ(defaults.choices.min_p, 0.1f);
  EXPECT_EQ(defaults.choices.eta, 0.001f);
  EXPECT_EQ(defaults.choices.repeat_penalty, 1.05f);
  EXPECT_EQ(defaults.choices.repeat_last_n, -1) << "of the whole text, as in transformers";
  EXPECT_FALSE(Read(R"({"repetition_penalty":1.0})").choices.repeat_last_n) << "it is off";
}

TEST(GenerationConfigTest, WithoutSamplingItIsGreedy) {
  const SamplerDefaults defaults = Read(R"({"do_sample":false,"temperature":0.6,"top_p":0.9})");
  EXPECT_EQ(defaults.choices.temperature, 0);
  EXPECT_EQ(defaults.choices.top_p, 0.9f) << "for a user who asks for a temperature";
}

TEST(GenerationConfigTest, InvalidValueIsReportedByFileAndKey) {
  const SamplerDefaults defaults =
      Read(R"({"do_sample":"yes","top_k":-1,"top_p":7,"min_p":"x","eta_cutoff":2,)"
           R"("repetition_penalty":0})");
  EXPECT_THAT(defaults.problems, ElementsAre(Key("eta"), Key("min_p"), Key("repeat_penalty"),
                                             Key("temperature"), Key("top_k"), Key("top_p")));
  EXPECT_THAT(defaults.problems.at("top_p"),
              AllOf(HasSubstr("generation_config.json: top_p: "), HasSubstr("found 7")));
  EXPECT_THAT(defaults.problems.at("temperature"), HasSubstr("do_sample: expected true or false"));
  EXPECT_FALSE(defaults.choices.top_p);
  EXPECT_EQ(ErrorOf([] { Read("[]"); }).kind(), ErrorKind::kFormat);
}

TEST(GenerationConfigTest, UnsupportedKeysAreReported) {
  EXPECT_THAT(Read(R"({"num_beams":4,"typical_p":1.0,"no_repeat_ngram_size":3})").not_followed,
              ElementsAre(HasSubstr("generation_config.json: num_beams: 4 is ignored"),
                          HasSubstr("no_repeat_ngram_size: 3")));
}

}  // namespace
}  // namespace godwit::generation_config_test
