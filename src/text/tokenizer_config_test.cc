#include "text/tokenizer_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/test_folder.h"
#include "text/fake_tokenizer.h"
#include "text/special_tokens.h"
#include "text/test_data.h"

namespace godwit::tokenizer_config_test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(TokenizerConfig, AnEmptyFolderSaysNothing) {
  const TempFolder folder;
  const TokenizerConfig config = ReadTokenizerConfig(folder.path());
  EXPECT_THAT(config.named_tokens, IsEmpty());
  EXPECT_FALSE(ReadChatTemplate(folder.path()));
  EXPECT_EQ(config.bos_id, std::nullopt);
  EXPECT_THAT(config.eos_ids, IsEmpty());
}

TEST(TokenizerConfig, ReadsTokensAsTextOrObjectAndCompletesThemFromTheMap) {
  const TempFolder folder(
      {{"tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": true,
         "bos_token": {"__type": "AddedToken", "content": "<s>"}, "pad_token": null})"},
       {"special_tokens_map.json",
        R"({"bos_token": "<other>", "eos_token": {"content": "</s>"}, "pad_token": "<pad>"})"}});
  const TokenizerConfig config = ReadTokenizerConfig(folder.path());
  EXPECT_EQ(config.tokenizer_class, "LlamaTokenizer");
  EXPECT_EQ(config.add_bos_token, true);
  EXPECT_EQ(config.add_eos_token, std::nullopt);
  EXPECT_THAT(config.named_tokens,
              UnorderedElementsAre(Pair("bos_token", "<s>"), Pair("eos_token", "</s>")));
}

TEST(TokenizerConfig, GenerationConfigComesBeforeConfig) {
  const TempFolder folder({{"generation_config.json", R"({"eos_token_id": [5, 3]})"},
                           {"config.json", R"({"eos_token_id": 9, "bos_token_id": 1})"}});
  const TokenizerConfig config = ReadTokenizerConfig(folder.path());
  EXPECT_EQ(config.bos_id, 1);
  EXPECT_THAT(config.eos_ids, ElementsAre(5, 3));
}

TEST(TokenizerConfig, MinusOneIsNone) {
  const TempFolder folder({{"config.json", R"({"eos_token_id": -1, "bos_token_id": null})"}});
  EXPECT_THAT(ReadTokenizerConfig(folder.path()).eos_ids, IsEmpty());
}

// Ids outside the vocabulary are warned of, also in a file that another one overrides.
TEST(TokenizerConfig, IdsAreThoseOfTheVocabulary) {
  constexpr int64_t kVocab = 512;
  for (const char* file : {"config.json", "generation_config.json"}) {
    for (const char* key : {"eos_token_id", "bos_token_id"}) {
      for (const char* ids : {"\"x\"", "-5", "3000000000", "[2, -5]", "[\"x\"]"}) {
        const TempFolder folder(
            {{"generation_config.json", R"({"eos_token_id": 2, "bos_token_id": 1})"},
             {"config.json", "{}"},
             {file, fmt::format(R"({{"{}": {}}})", key, ids)}});
        const Error error = ErrorOf([&] { ReadTokenizerConfig(folder.path(), kVocab); });
        EXPECT_EQ(error.kind(), ErrorKind::kFormat);
        EXPECT_THAT(error.what(),
                    AllOf(HasSubstr(file), HasSubstr(key),
                          HasSubstr("must be a token id from 0 to 511"), Not(HasSubstr("\n"))));
      }
      // transformers accepts models with such ids, and so does this.
      for (const char* ids : {"1000000000", "512", "[3, 512]"}) {
        const TempFolder folder({{file, fmt::format(R"({{"{}": {}}})", key, ids)}});
        const TokenizerConfig config = ReadTokenizerConfig(folder.path(), kVocab);
        EXPECT_THAT(config.eos_ids, Each(3));
        EXPECT_NE(config.bos_id, 512);
        EXPECT_THAT(config.warnings,
                    ElementsAre(AllOf(HasSubstr(file), HasSubstr(key),
                                      HasSubstr("ignored: it is outside the vocabulary of 512"))));
      }
    }
  }
  const TempFolder last({{"config.json", R"({"eos_token_id": [511, -1, 0]})"}});
  EXPECT_THAT(ReadTokenizerConfig(last.path(), kVocab).eos_ids, ElementsAre(511, 0));
}

TEST(ChatTemplateSource, IsFoundWhereverItStands) {
  constexpr const char* kString = R"({"chat_template": "one"})";
  const TempFolder text({{"tokenizer_config.json", kString}});
  EXPECT_EQ(ReadChatTemplate(text.path())->text, "one");
  const TempFolder file({{"tokenizer_config.json", kString}, {"chat_template.jinja", "two"}});
  EXPECT_EQ(ReadChatTemplate(file.path())->text, "two");
}

TEST(ChatTemplateSource, OneOfSeveralIsChosenByItsName) {
  const TempFolder list({{"tokenizer_config.json", R"({"chat_template": [
      {"name": "tool_use", "template": "tools"}, {"name": "default", "template": "three"}]})"},
                         {"mine.jinja", "a file"}});
  EXPECT_EQ(ReadChatTemplate(list.path())->text, "three");
  EXPECT_EQ(ReadChatTemplate(list.path(), "tool_use")->text, "tools");
  EXPECT_EQ(ReadChatTemplate(list.path(), (list.path() / "mine.jinja").string())->text, "a file");
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { ReadChatTemplate(list.path(), "rag"); }),
              AllOf(HasSubstr("called \"rag\""), HasSubstr("\"default\", \"tool_use\"")));

  const TempFolder files({{"chat_template.jinja", "four"}});
  std::filesystem::create_directory(files.path() / "additional_chat_templates");
  std::ofstream(files.path() / "additional_chat_templates/rag.jinja") << "five";
  EXPECT_EQ(ReadChatTemplate(files.path())->text, "four");
  EXPECT_EQ(ReadChatTemplate(files.path(), "rag")->text, "five");
}

TEST(ChatTemplateSource, SeveralWithoutADefaultMustBeChosenFrom) {
  const TempFolder folder(
      {{"tokenizer_config.json", R"({"chat_template": [{"name": "x", "template": "y"}]})"}});
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { ReadChatTemplate(folder.path()); }),
              AllOf(HasSubstr("called \"default\""), HasSubstr("those it has: \"x\"")));
}

TEST(ChatTemplateSource, WrongTypeIsRefusedOnlyByReadChatTemplate) {
  for (const char* text : {R"({"chat_template": 5})", R"({"chat_template": [{"name": "x"}]})",
                           R"({"chat_template": [{"name": 1, "template": "y"}]})"}) {
    const TempFolder folder({{"tokenizer_config.json", text}});
    EXPECT_NO_THROW(ReadTokenizerConfig(folder.path())) << text;
    EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { ReadChatTemplate(folder.path()); }),
                HasSubstr("\"chat_template\" must be"))
        << text;
  }
}

TEST(TokenizerConfig, RefusesWrongTypesAndNamesThem) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"({"bos_token": 1})", "\"bos_token\" must be a string"},
      {R"({"bos_token": {"content": null}})", "\"bos_token\" must be a string"},
      {R"({"add_bos_token": "yes"})", "\"add_bos_token\" must be true or false"},
      {R"([1])", "expected a JSON object"},
      {R"({"bos_token": )", "line 1, column"},
  };
  for (const auto& [text, reason] : cases) {
    const TempFolder folder({{"tokenizer_config.json", text}});
    const Error error = ErrorOf([&] { ReadTokenizerConfig(folder.path()); });
    EXPECT_EQ(error.kind(), ErrorKind::kFormat) << text;
    EXPECT_THAT(error.what(), AllOf(HasSubstr("tokenizer_config.json: "), HasSubstr(reason)));
  }
  for (const char* ids :
       {"\"2\"", "2.5", "true", "[1, \"2\"]", "3000000000", "1e30", "{}", "18446744073709551615"}) {
    const std::string text = std::string(R"({"eos_token_id": )") + ids + "}";
    const TempFolder folder({{"generation_config.json", text}});
    const Error error = ErrorOf([&] { ReadTokenizerConfig(folder.path()); });
    EXPECT_EQ(error.kind(), ErrorKind::kFormat) << ids;
    EXPECT_THAT(error.what(), HasSubstr("\"eos_token_id\" must be a token id")) << ids;
  }
}

TEST(TokenizerConfig, AFileThatIsListedButCannotBeOpenedIsAnError) {
  // Links to a file that never arrived, as in half a download, and to itself.
  for (const char* target : {"never came", "chat_template.jinja"}) {
    const TempFolder folder({{"tokenizer_config.json", R"({"chat_template": "one"})"}});
    std::filesystem::create_symlink(target, folder.path() / "chat_template.jinja");
    EXPECT_THAT(ErrorOf(ErrorKind::kIo, [&] { ReadChatTemplate(folder.path()); }),
                HasSubstr("chat_template.jinja: cannot open"));
  }
}

TEST(SpecialTokens, JoinsIdsAndTheNamedToken) {
  const FakeTokenizer tokenizer;
  TokenizerConfig config;
  config.named_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  SpecialTokens tokens = FindSpecialTokens(config, tokenizer);
  EXPECT_EQ(tokens.bos_id, FakeTokenizer::kBos);
  EXPECT_THAT(tokens.eos_ids, ElementsAre(FakeTokenizer::kEos));

  config.bos_id = 7;
  config.eos_ids = {FakeTokenizer::kEos, 9, 9};
  config.named_tokens["eos_token"] = "not in the vocabulary";
  tokens = FindSpecialTokens(config, tokenizer);
  EXPECT_EQ(tokens.bos_id, 7);
  EXPECT_THAT(tokens.eos_ids, ElementsAre(9, FakeTokenizer::kEos));
}

}  // namespace
}  // namespace godwit::tokenizer_config_test
