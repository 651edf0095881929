#include "text/vocabulary_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "text/load_tokenizer.h"
#include "text/test_data.h"

namespace godwit::vocabulary_files_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

std::filesystem::path Data(const std::string& folder) {
  return TestData() / "vocabularies" / folder;
}

std::string Refusal(ErrorKind kind, const TempFolder& folder) {
  return ErrorOf(kind, [&] { (void)LoadTokenizer(folder.path()); });
}

constexpr std::string_view kVocab = R"({"a": 0, "b": 1, "ab": 2})";
constexpr std::string_view kGpt2 = R"({"tokenizer_class": "GPT2Tokenizer"})";

class VocabularyFolder : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(All, VocabularyFolder,
                         ::testing::Values("gemma", "gpt2", "internlm2", "llama", "llama_legacy",
                                           "llama_old", "opt", "qwen2", "unigram"),
                         [](const auto& info) { return TestName(info.param); });

TEST_P(VocabularyFolder, GivesTheIdsOfItsMakers) {
  const auto tokenizer = LoadTokenizer(Data(GetParam()));
  const auto cases = ReadJson(Data(GetParam()) / "cases.json");
  EXPECT_GE(cases.size(), 15);
  for (const auto& each : cases) {
    EXPECT_EQ(tokenizer->Encode(each["text"].get<std::string>(), /*add_special_tokens=*/true),
              each["ids"].get<Ids>())
        << each["name"];
  }
}

TEST(VocabularyFiles, TokenizerJsonComesFirst) {
  TempFolder folder;
  EXPECT_EQ(FindTokenizerFile(folder.path()), std::nullopt);
  folder.Write("vocab.json", "");
  EXPECT_EQ(FindTokenizerFile(folder.path()), std::nullopt) << "merges.txt belongs to it";
  folder.Write("merges.txt", "");
  EXPECT_EQ(FindTokenizerFile(folder.path()), "vocab.json");
  folder.Write("tokenizer.model", "");
  EXPECT_EQ(FindTokenizerFile(folder.path()), "tokenizer.model");
  folder.Write("tokenizer.json", "");
  EXPECT_EQ(FindTokenizerFile(folder.path()), "tokenizer.json");
}

// A space comes before every stretch unless "legacy" is false.
TEST(VocabularyFiles, LegacyPutsASpaceBehindSpecialTokens) {
  const auto now = LoadTokenizer(Data("llama"));
  const auto legacy = LoadTokenizer(Data("llama_legacy"));
  EXPECT_NE(now->Encode("<s>bird", false), now->Encode("<s> bird", false));
  EXPECT_EQ(legacy->Encode("<s>bird", false), now->Encode("<s> bird", false));
}

TEST(VocabularyFiles, RolesMakeTokensSpecial) {
  const TempFolder folder({{"vocab.json", R"({"a": 0, "<|endoftext|>": 1, "<m>": 2})"},
                           {"merges.txt", ""},
                           {"tokenizer_config.json", kGpt2},
                           {"special_tokens_map.json",
                            R"({"mask_token": {"content": "<m>", "lstrip": true},
                                "pad_token": "<pad>", "additional_special_tokens": ["<x>"]})"}});
  const auto tokenizer = LoadTokenizer(folder.path());
  EXPECT_THAT(tokenizer->Encode("a  <m>a<pad><x><|endoftext|>", false),
              ElementsAre(0, 2, 0, 3, 4, 1));
  EXPECT_EQ(tokenizer->Decode(Ids{0, 1, 2, 3, 4}, /*skip_special_tokens=*/true), "a");
}

TEST(VocabularyFiles, ARoleThatIsNullHasNoToken) {
  const TempFolder folder({{"vocab.json", R"({"a": 0, "<|endoftext|>": 1})"},
                           {"merges.txt", "#version: 0.2\n"},
                           {"special_tokens_map.json", R"({"bos_token": "<|endoftext|>"})"},
                           {"tokenizer_config.json",
                            R"({"tokenizer_class": "GPT2TokenizerFast", "bos_token": null,
                                "eos_token": null, "unk_token": null})"}});
  EXPECT_FALSE(LoadTokenizer(folder.path())->IsSpecial(1));
}

TEST(VocabularyFiles, UnknownClassesAreRefusedWithACommand) {
  const TempFolder folder(
      {{"vocab.json", kVocab},
       {"merges.txt", "a b"},
       {"tokenizer_config.json", R"({"tokenizer_class": "WhisperTokenizer"})"}});
  EXPECT_THAT(
      Refusal(ErrorKind::kUnsupported, folder),
      AllOf(HasSubstr("vocab.json with merges.txt of the tokenizer_class \"WhisperTokenizer\""),
            HasSubstr("expected one of GPT2Tokenizer, "),
            EndsWith(".save_pretrained(sys.argv[1])' '" + folder.path().string() + "'")));
  folder.Write("tokenizer.model", "");
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, folder),
              HasSubstr("a tokenizer.model of the tokenizer_class \"WhisperTokenizer\" is not "
                        "supported, expected one of LlamaTokenizer, "));
  const TempFolder none({{"vocab.json", kVocab}, {"merges.txt", "a b"}});
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, none), HasSubstr("without a tokenizer_class"));
  none.Write("config.json", R"({"model_type": "opt"})");
  EXPECT_THAT(LoadTokenizer(none.path())->Encode("aba", false), ElementsAre(2, 0));
}

TEST(VocabularyFiles, TheCommandIsOneWordForAnyFolder) {
  EXPECT_THAT(ConversionCommand("it's here"), EndsWith(R"( 'it'\''s here')"));
}

TEST(VocabularyFiles, AListOfTiktokenIsNoSentencePieceModel) {
  const TempFolder folder({{"tokenizer.model", "IQ== 0\nIg== 1\n"}});
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, folder), HasSubstr("is a list of tiktoken's"));
  folder.Write("tokenizer.model", "IQ==");
  EXPECT_THAT(Refusal(ErrorKind::kFormat, folder), HasSubstr("not a SentencePiece model"));
}

TEST(VocabularyFiles, SayWhichFileIsBroken) {
  const TempFolder folder(
      {{"vocab.json", kVocab}, {"merges.txt", "a b c"}, {"tokenizer_config.json", kGpt2}});
  EXPECT_THAT(Refusal(ErrorKind::kFormat, folder), HasSubstr("vocab.json"));
  folder.Write("merges.txt", "a x");
  EXPECT_THAT(Refusal(ErrorKind::kFormat, folder), HasSubstr("vocab.json"));
  for (const char* vocab : {R"({"a": 0, "b": 2})", R"({"a": 0, "b": 0})", R"({"a": 0, "b": -1})",
                            R"({"a": 0, "b": "1"})"}) {
    folder.Write("vocab.json", vocab);
    EXPECT_THAT(Refusal(ErrorKind::kFormat, folder),
                HasSubstr("vocab.json: expected the ids 0 to 1, each once"));
  }
  folder.Write("vocab.json", "{}");
  EXPECT_THAT(Refusal(ErrorKind::kFormat, folder), HasSubstr("expected an object of tokens"));
}

TEST(VocabularyFiles, SayWhichAddedTokenIsBroken) {
  const TempFolder folder(
      {{"vocab.json", kVocab}, {"merges.txt", ""}, {"added_tokens.json", R"({"<x>": "3"})"}});
  folder.Write("config.json", R"({"model_type": "gpt2"})");
  EXPECT_THAT(Refusal(ErrorKind::kFormat, folder),
              HasSubstr("added_tokens.json: \"<x>\" must be a token id, found \"\\\"3\\\"\""));
  folder.Write("added_tokens.json", R"({"<x>": 7})");
  EXPECT_THAT(Refusal(ErrorKind::kFormat, folder),
              HasSubstr("the added token \"<x>\" has id 7, but there are 3 tokens before"));
  for (const char* decoder : {"[]", R"({"x": "a"})", R"({"-1": "a"})", R"({"3": 1})",
                              R"({"3": {"content": "a", "lstrip": 1}})"}) {
    folder.Write("tokenizer_config.json",
                 fmt::format(R"({{"added_tokens_decoder": {}}})", decoder));
    EXPECT_THAT(Refusal(ErrorKind::kFormat, folder),
                HasSubstr("tokenizer_config.json: \"added_tokens_decoder\" must be "))
        << decoder;
  }
}

}  // namespace
}  // namespace godwit::vocabulary_files_test
