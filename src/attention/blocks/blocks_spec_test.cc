#include "attention/blocks/blocks_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "attention/blocks/blocks_presets.h"
#include "base/test_support.h"

namespace godwit::blocks_spec_test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(BlocksSpecTest, EveryKeySetsItsOwn) {
  const BlocksSpec spec = ParseBlocksSpec(
      "block_size=128,initial=3,local_windows_len=70,second_block_count=5,dense_layer_num=2,"
      "token_step=7,layer_step=8,representative_num=16,head_select_mode=SHARED,"
      "representative_type=MAX,top_p=0.85,least_block_count=4,preselect_block=True,"
      "preselect_block_count=9,preselect_votes=True,pool_tokens=13,dense_question=True,"
      "observation_window=10,group_blocks=11,group_count=12,estimate=True");
  EXPECT_EQ(spec.block_size, 128);
  EXPECT_EQ(spec.initial, 3);
  EXPECT_EQ(spec.local_windows_len, 70);
  EXPECT_EQ(spec.second_block_count, 5);
  EXPECT_EQ(spec.dense_layer_num, 2);
  EXPECT_EQ(spec.top_p, 0.85);
  EXPECT_EQ(spec.least_block_count, 4);
  EXPECT_TRUE(spec.preselect_block);
  EXPECT_TRUE(spec.estimate);
  EXPECT_EQ(spec.preselect_block_count, 9);
  EXPECT_EQ(spec.observation_window, 10);
  EXPECT_TRUE(spec.preselect_votes);
  EXPECT_EQ(spec.pool_tokens, 13);
  EXPECT_EQ(spec.PoolTokens(), 13);
  EXPECT_TRUE(spec.dense_question);
  EXPECT_EQ(spec.group_blocks, 11);
  EXPECT_EQ(spec.group_count, 12);
  EXPECT_EQ(spec.token_step, 7);
  EXPECT_EQ(spec.layer_step, 8);
  EXPECT_EQ(spec.representative_num, 16);
  EXPECT_FALSE(spec.separate);
  EXPECT_EQ(spec.representative_type, ops::RepresentativeType::kMax);
  EXPECT_TRUE(ParseBlocksSpec("head_select_mode=SEPARATE").separate);
  for (const ops::RepresentativeKind& kind : ops::kRepresentatives) {
    const BlocksSpec one = ParseBlocksSpec(fmt::format("representative_type={}", kind.name));
    EXPECT_EQ(one.representative_type, kind.type);
  }
}

TEST(BlocksSpecTest, GradualReplacementNeedsASharedChoiceByRepresentatives) {
  const BlocksSpec spec = ParseBlocksSpec("token_step=9,gradual=True,sum_scores=True");
  EXPECT_TRUE(spec.gradual);
  EXPECT_TRUE(spec.sum_scores);
  EXPECT_EQ(spec.ToString(), "blocks:token_step=9,gradual=True,sum_scores=True");
  EXPECT_THAT(spec.Explain(), HasSubstr("the least important first"));
  EXPECT_THAT(spec.Explain(), HasSubstr("add their scores up"));
  const auto refused = [](const std::string& arguments) {
    return ErrorOf(ErrorKind::kInput, [&] { ParseBlocksSpec(arguments); });
  };
  EXPECT_THAT(refused("gradual=True"), HasSubstr("token_step is above 1"));
  for (const char* other : {"preselect_block=True", "top_p=0.5", "group_blocks=8"}) {
    EXPECT_THAT(refused(std::string("token_step=9,gradual=True,") + other), HasSubstr("leave out"));
    EXPECT_THAT(refused(std::string("sum_scores=True,") + other), HasSubstr("leave out"));
  }
}

TEST(BlocksSpecTest, PresetsAreAStartFromWhichSettingsDiffer) {
  EXPECT_EQ(ParseBlocksSpec("").ToString(), "blocks");
  EXPECT_EQ(ParseBlocksSpec("quest").ToString(), "blocks:representative_type=QUEST");
  EXPECT_EQ(ParseBlocksSpec("infllm").ToString(),
            "blocks:block_size=128,initial=128,second_block_count=24,representative_num=4,"
            "representative_type=DYNAMIC");
  EXPECT_EQ(ParseBlocksSpec("snapkv").ToString(),
            "blocks:preselect_block_count=48,preselect_block=True");
  EXPECT_EQ(ParseBlocksSpec("ktransformers").ToString(),
            "blocks:block_size=128,initial=128,local_windows_len=4096,second_block_count=96,"
            "representative_num=1,preselect_votes=True,dense_question=True,"
            "head_select_mode=SHARED,representative_type=DYNAMIC");
  EXPECT_EQ(ParseBlocksSpec("ktransformers-yaml").ToString(),
            "blocks:block_size=128,initial=128,local_windows_len=4096,second_block_count=32,"
            "dense_layer_num=2,token_step=100,preselect_block_count=32,representative_num=1,"
            "preselect_block=True,preselect_votes=True,dense_question=True,"
            "head_select_mode=SHARED,representative_type=DYNAMIC");
  EXPECT_EQ(ParseBlocksSpec("snapkv-tokens").ToString(),
            "blocks:block_size=1,second_block_count=3072,preselect_block_count=3072,"
            "preselect_block=True,preselect_votes=True,dense_question=True,"
            "representative_type=MEAN");
  EXPECT_EQ(ParseBlocksSpec("quest,initial=0").ToString(),
            "blocks:initial=0,representative_type=QUEST");
  EXPECT_EQ(ParseBlocksSpec("block_size=1").ToString(),
            "blocks:block_size=1,representative_type=MEAN");
}

// The names of KTransformers' configuration.
TEST(BlocksSpecTest, OtherSpellingsMeanTheSame) {
  const BlocksSpec spec = ParseBlocksSpec("anchor_type=BLOCK_MAX,anchor_num=2,second_select_num=7");
  EXPECT_EQ(spec.ToString(),
            "blocks:second_block_count=7,representative_num=2,representative_type=MAX");
  for (const auto& [theirs, ours] : {std::pair{"BLOCK_MEAN", "MEAN"},
                                     {"BLOCK_MAX", "MAX"},
                                     {"FIXED", "FIX"},
                                     {"DYNAMIC", "DYNAMIC"},
                                     {"QUEST", "QUEST"}}) {
    EXPECT_EQ(ParseBlocksSpec(fmt::format("anchor_type={}", theirs)).ToString(),
              ParseBlocksSpec(fmt::format("representative_type={}", ours)).ToString());
  }
  // All settings of the text's example, of which nothing differs from the preset.
  EXPECT_EQ(ParseBlocksSpec("ktransformers,block_size=128,local_windows_len=4096,"
                            "second_select_num=96,anchor_type=DYNAMIC,dense_layer_num=0,"
                            "anchor_num=1,preselect_block=False,head_select_mode=SHARED,"
                            "preselect_block_count=96,layer_step=1,token_step=1")
                .ToString(),
            ParseBlocksSpec("ktransformers").ToString());
  EXPECT_EQ(ParseBlocksSpec("preselect_block=False,preselect_block_count=0").preselect_block_count,
            0);
}

TEST(BlocksSpecTest, SaysWhereItsNumbersComeFrom) {
  EXPECT_EQ(ExplainBlocksSources(ParseBlocksSpec("")),
            "As in KTransformers' text and its config.yaml: layer_step. As in KTransformers' text: "
            "dense_layer_num, token_step, preselect_block, preselect_block_count. As in neither of "
            "them: block_size, initial, local_windows_len, second_block_count, "
            "representative_type, representative_num, head_select_mode.");
  EXPECT_EQ(ExplainBlocksSources(ParseBlocksSpec("ktransformers")),
            "As in KTransformers' text and its config.yaml: block_size, initial, "
            "local_windows_len, representative_type, representative_num, head_select_mode, "
            "layer_step. As in KTransformers' text: second_block_count, dense_layer_num, "
            "token_step, preselect_block, preselect_block_count.");
  EXPECT_THAT(ExplainBlocksSources(ParseBlocksSpec("ktransformers-yaml,layer_step=2")),
              EndsWith(" As in KTransformers' config.yaml: second_block_count, dense_layer_num, "
                       "token_step, preselect_block, preselect_block_count. As in neither of "
                       "them: layer_step."));
}

TEST(BlocksSpecTest, ASpecSpellsItselfAndIsReadAsItself) {
  constexpr std::string_view kName = "blocks:";
  for (const std::string_view spec :
       {"blocks:block_size=4096",
        "blocks:initial=0",
        "blocks:local_windows_len=1",
        "blocks:second_block_count=1",
        "blocks:dense_layer_num=1099511627776",
        "blocks:token_step=100",
        "blocks:top_p=0.85",
        "blocks:least_block_count=48,top_p=0.999",
        "blocks:preselect_block=True",
        "blocks:estimate=True",
        "blocks:preselect_block_count=3,observation_window=32,preselect_block=True",
        "blocks:pool_tokens=0,preselect_block=True,preselect_votes=True,dense_question=True",
        "blocks:layer_step=4",
        "blocks:representative_num=64",
        "blocks:head_select_mode=SHARED",
        "blocks:representative_type=MEAN",
        "blocks:representative_type=MAX",
        "blocks:representative_type=QUEST",
        "blocks:representative_type=FIX",
        "blocks:representative_type=MEANSTD",
        "blocks:representative_type=DYNAMIC",
        "blocks:group_blocks=8,group_count=48",
        "blocks:block_size=192,initial=130,local_windows_len=2,second_block_count=3,"
        "dense_layer_num=4,representative_num=64,head_select_mode=SHARED,"
        "representative_type=MEAN"}) {
    EXPECT_EQ(ParseBlocksSpec(spec.substr(kName.size())).ToString(), spec);
  }
  EXPECT_EQ(ParseBlocksSpec("initial=64,head_select_mode=SEPARATE").ToString(), "blocks")
      << "what is as in the preset goes without saying";
}

TEST(BlocksSpecTest, PagesAreTheRepresentativesByTheirVectors) {
  const auto expect = [](const char* arguments, int64_t parts, int64_t part_tokens) {
    const ops::BlockShape shape = ParseBlocksSpec(arguments).Shape();
    EXPECT_EQ(shape.type, ParseBlocksSpec(arguments).representative_type) << arguments;
    EXPECT_EQ(shape.tokens, ParseBlocksSpec(arguments).block_size) << arguments;
    EXPECT_EQ(shape.parts, parts) << arguments;
    EXPECT_EQ(shape.part_tokens(), part_tokens) << arguments;
  };
  expect("", 64, 1);
  expect("block_size=256", 256, 1);
  expect("representative_num=64", 64, 1);
  expect("meanstd", 4, 16);
  expect("meanstd,representative_num=2", 1, 64);
  expect("meanstd,representative_num=128", 64, 1);
  expect("representative_type=MEAN,representative_num=1", 1, 64);
  expect("representative_type=MEAN,representative_num=64", 64, 1);
  expect("quest,block_size=192", 8, 24);
  expect("infllm", 4, 32);
  expect("block_size=1", 1, 1);
  expect("block_size=32", 2, 16);
  expect("quest,block_size=8", 1, 8);
  expect("block_size=8,representative_num=8", 8, 1);
  expect("representative_type=DYNAMIC", 4, 16);
  expect("representative_type=DYNAMIC,representative_num=1", 1, 64);
  expect("representative_type=DYNAMIC,representative_num=64", 64, 1);
}

std::string Refusal(std::string_view arguments) {
  return ErrorOf(ErrorKind::kInput, [&] { ParseBlocksSpec(arguments); });
}

TEST(BlocksSpecTest, RefusesUnknownNamesWithTheKnown) {
  EXPECT_EQ(Refusal("blocksize=64"),
            "the KV policy blocks has no setting \"blocksize\"; there are: block_size, initial, "
            "local_windows_len, second_block_count, dense_layer_num, token_step, layer_step, "
            "least_block_count, preselect_block_count, pool_tokens, observation_window, "
            "representative_num, group_blocks, group_count, top_p, preselect_block, "
            "preselect_votes, dense_question, estimate, gradual, sum_scores, head_select_mode, "
            "representative_type");
  EXPECT_THAT(Refusal("=64"), HasSubstr("no setting \"\""));
  for (const char* arguments : {"quests", "initial", "initial=5,quests", ",quest", "quest,"}) {
    EXPECT_THAT(Refusal(arguments), HasSubstr("blocks:PRESET has no preset \"")) << arguments;
  }
  EXPECT_THAT(
      Refusal("quests"),
      EndsWith("\"quests\"; there are: infllm, ktransformers, ktransformers-yaml, meanstd, quest, "
               "snapkv, snapkv-tokens, and settings are KEY=VALUE"));
}

TEST(BlocksSpecTest, RefusesValuesThatAreNone) {
  for (const char* key :
       {"block_size", "initial", "local_windows_len", "second_block_count", "dense_layer_num",
        "token_step", "layer_step", "representative_num", "group_blocks"}) {
    for (const char* value : {"", "x", "-1", "64k", "1.5", "99999999999999999999", "5=6"}) {
      EXPECT_EQ(Refusal(fmt::format("{}={}", key, value)),
                fmt::format("the KV policy blocks: {} is a whole number up to 2^40, not \"{}\"",
                            key, value));
    }
  }
  for (const char* key : {"preselect_block", "estimate"}) {
    EXPECT_THAT(Refusal(fmt::format("{}=1", key)),
                EndsWith(fmt::format("{} is True or False, not \"1\"", key)));
  }
  for (const char* value : {"", "x", "0", "-0.5", "1.1", "0.5x", "nan", "95%"}) {
    EXPECT_EQ(
        Refusal(fmt::format("top_p={}", value)),
        fmt::format("the KV policy blocks: top_p is a share above 0 and at most 1, not \"{}\"",
                    value));
  }
  EXPECT_THAT(Refusal("head_select_mode=shared"),
              EndsWith("head_select_mode is SHARED or SEPARATE, not \"shared\""));
  EXPECT_THAT(Refusal("representative_type=dynamic"),
              EndsWith("representative_type is one of MEAN, MAX, QUEST, MEANSTD, FIX, DYNAMIC, "
                       "SIGN, not \"dynamic\""));
}

TEST(BlocksSpecTest, RefusesToChooseBetweenTwoSettings) {
  EXPECT_EQ(Refusal("block_size=64,initial=0,block_size=64"),
            "the KV policy blocks: block_size is given twice");
  EXPECT_EQ(Refusal("representative_type=MEAN,representative_type=MAX"),
            "the KV policy blocks: representative_type is given twice");
  EXPECT_EQ(Refusal("anchor_num=1,representative_num=2"),
            "the KV policy blocks: representative_num is given twice");
  for (const char* arguments : {"initial=0,quest", "meanstd,quest"}) {
    EXPECT_EQ(Refusal(arguments),
              "the KV policy blocks: the preset quest comes before all settings");
  }
}

TEST(BlocksSpecTest, ExplainsItself) {
  EXPECT_EQ(ParseBlocksSpec("").Explain(),
            "Every token is kept. The context is read with full attention. A token of the question "
            "or the "
            "answer sees the first 64 and the last 1024 tokens, in whole blocks of 64, and the 48 "
            "blocks between that score highest for it. Each KV head chooses for itself, in every "
            "layer, by the signs of the keys of every token.");
  EXPECT_EQ(
      ParseBlocksSpec("meanstd,initial=0,dense_layer_num=2,head_select_mode=SHARED,"
                      "block_size=128,representative_num=2,token_step=4,layer_step=3")
          .Explain(),
      "Every token is kept. The context is read with full attention. A token of the question or "
      "the "
      "answer sees the last 1024 tokens, in whole blocks of 128, and the 48 blocks between "
      "that score highest for it. All heads choose together, once for 3 layers and 4 tokens, by "
      "the mean and the spread of the keys of every 128 tokens. The first 2 layers see "
      "all tokens.");
  EXPECT_THAT(ParseBlocksSpec("top_p=0.9,preselect_block=True").Explain(),
              EndsWith(" Of these, it sees only those that get 0.9 of its attention, but at least "
                       "1. The answer chooses among the 96 blocks that score highest for the "
                       "last 128 tokens of the question, and blocks that leave the window later."));
  EXPECT_EQ(ParseBlocksSpec("snapkv-tokens").Explain(),
            "Every token is kept. The context and the question are read with full attention. A "
            "token of the answer sees the first 64 and the last 1024 tokens, in whole blocks of 1, "
            "and the 3072 blocks between that score highest for it. Each KV head chooses for "
            "itself, in every layer, by the mean of the keys of every token. The answer chooses "
            "among the 3072 blocks that get most votes from the last 128 tokens of the prompt, "
            "counted with those of 0 tokens on either side, and blocks that leave the window "
            "later.");
  EXPECT_THAT(ParseBlocksSpec("infllm").Explain(),
              EndsWith(" in every layer, by the keys that get most attention from the last 128 of "
                       "every 1024 tokens, 4 of every block."));
  EXPECT_THAT(ParseBlocksSpec("group_blocks=8").Explain(),
              EndsWith(" They are searched in the 192 groups of 8 blocks that score highest."));
  EXPECT_THAT(ParseBlocksSpec("quest,group_blocks=8").Explain(),
              EndsWith(" Groups of 8 blocks that can hold none of them are skipped."));
  EXPECT_THAT(ParseBlocksSpec("estimate=True").Explain(),
              EndsWith(" The other blocks are estimated: each counts as its number of tokens "
                       "with its mean key and mean value."));
}

TEST(BlocksSpecTest, RefusesNumbersThatMakeNoSense) {
  const auto expect = [](const char* arguments, const char* sentence) {
    EXPECT_EQ(Refusal(arguments), std::string("the KV policy blocks: ") + sentence);
  };
  for (const int size : {100, 3, 48, 0, 4160}) {
    expect(fmt::format("block_size={}", size).c_str(),
           fmt::format("block_size is 1, 2, 4, 8, 16, 32 or a multiple of 64 tokens, up to 4096, "
                       "not {}",
                       size)
               .c_str());
  }
  expect("block_size=32,group_blocks=2",
         "group_blocks needs a block_size of at least 64 tokens, not 32");
  expect("block_size=1,estimate=True", "estimate needs a block_size of at least 64 tokens, not 1");
  expect("block_size=16,representative_type=SIGN",
         "representative_type=SIGN needs a block_size of at least 64 tokens, not 16");
  expect("infllm,block_size=8,local_windows_len=63",
         "representative_type=DYNAMIC with such blocks needs a local_windows_len of at least 64 "
         "tokens, whose last ones observe, not 63");
  expect("block_size=8,representative_num=16",
         "a block has no more representatives than tokens, not 16");
  expect("local_windows_len=0", "local_windows_len is at least 1, the token itself, not 0");
  expect("second_block_count=0",
         "second_block_count is at least 1 (without blocks, use sinks:S+W), not 0");
  ParseBlocksSpec("second_block_count=17179869184");
  expect("second_block_count=17179869185",
         "second_block_count blocks have at most 2^40 tokens, not 17179869185");
  expect("token_step=0", "token_step is at least 1 (1: each token chooses for itself), not 0");
  expect("layer_step=0", "layer_step is at least 1 (1: each layer chooses for itself), not 0");
  expect("least_block_count=0",
         "least_block_count is at least 1 and at most second_block_count, not 0");
  expect("least_block_count=49",
         "least_block_count is at least 1 and at most second_block_count, not 49");
  expect("pool_tokens=4097", "pool_tokens is at most 4096, not 4097");
  expect("preselect_block_count=0,preselect_block=True",
         "preselect_block_count is at least 1 (preselect_block=False turns it off), not 0");
  expect("group_blocks=1025", "group_blocks is at most 1024, or 0 for no groups, not 1025");
  expect("group_count=0", "group_count is at least 1, not 0");
  expect("observation_window=0", "observation_window is 1 to 4096 tokens, not 0");
  for (const int number : {1, 3, 6, 24, 130, 256}) {
    expect(fmt::format("quest,representative_num={}", number).c_str(),
           fmt::format("representative_num is 2 (a part has a centre and a spread), 4, 8, 16, 32, "
                       "64 or 128 with this representative_type, not {}",
                       number)
               .c_str());
  }
  expect("representative_num=4",
         "representative_num equals block_size with representative_type=SIGN, which keeps one for "
         "every token, not 4");
  for (const char* type : {"MEAN", "DYNAMIC"}) {
    for (const int number : {3, 6, 128}) {
      expect(fmt::format("representative_type={},representative_num={}", type, number).c_str(),
             fmt::format("representative_num is 1, 2, 4, 8, 16, 32 or 64 with this "
                         "representative_type, not {}",
                         number)
                 .c_str());
    }
  }
}

}  // namespace
}  // namespace godwit::blocks_spec_test
