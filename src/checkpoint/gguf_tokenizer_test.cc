#include "checkpoint/gguf_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/test_folder.h"
#include "base/test_support.h"
#include "text/load_tokenizer.h"
#include "text/test_data.h"
#include "text/vocabulary_test_support.h"
#include "weights/gguf_test_support.h"
#include "weights/test_files.h"

namespace godwit::gguf_tokenizer_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

// The file as a converter writes it.
GgufBuilder Written(const Vocabulary& vocabulary) {
  std::vector<std::string> texts;
  std::vector<int32_t> types;
  std::vector<float> scores;
  for (const VocabularyToken& token : vocabulary.tokens) {
    texts.push_back(token.text);
    types.push_back(static_cast<int32_t>(token.kind));
    scores.push_back(token.score);
  }
  GgufBuilder file;
  file.Text("tokenizer.ggml.model", vocabulary.kind == VocabularyKind::kByteLevelBpe       ? "gpt2"
                                    : vocabulary.kind == VocabularyKind::kSentencePieceBpe ? "llama"
                                                                                           : "t5");
  file.List("tokenizer.ggml.tokens", GgufType::kString, texts);
  file.List("tokenizer.ggml.token_type", GgufType::kI32, types);
  if (vocabulary.kind == VocabularyKind::kByteLevelBpe) {
    file.Text("tokenizer.ggml.pre", vocabulary.pre_tokenizer);
    file.List("tokenizer.ggml.merges", GgufType::kString, vocabulary.merges);
  } else {
    file.List("tokenizer.ggml.scores", GgufType::kF32, scores);
  }
  if (vocabulary.unk_id) {
    file.U32("tokenizer.ggml.unknown_token_id", static_cast<uint32_t>(*vocabulary.unk_id));
  }
  return file;
}

// The metadata are views of the bytes, so both live here.
struct Read {
  explicit Read(const GgufBuilder& builder)
      : file(builder.Bytes()), metadata(ParseGguf(AsBytes(file), "x.gguf").values, "x.gguf") {}

  const std::string file;
  const GgufMetadata metadata;
};

struct Original {
  std::string folder;
  VocabularyKind kind;
  std::string pre_tokenizer;
  std::string architecture = "llama";
};

std::string ParamName(const testing::TestParamInfo<Original>& info) {
  return TestName(info.param.folder);
}

// Gemma 4's vocabulary has SentencePiece's letters and a list of merges, whatever its scores say.
TEST(GgufGemma4, MergesAreListed) {
  const auto tokens_of = [](const std::vector<std::string>& merges) {
    GgufBuilder file;
    file.Text("tokenizer.ggml.model", "gemma4");
    file.List<std::string>(
        "tokenizer.ggml.tokens", GgufType::kString,
        {"<pad>", "<eos>", "<bos>", "<unk>", "\u2581", "a", "b", "ab", "\u2581a"});
    file.List<int32_t>("tokenizer.ggml.token_type", GgufType::kI32, {3, 3, 3, 2, 1, 1, 1, 1, 1});
    file.List<float>("tokenizer.ggml.scores", GgufType::kF32, std::vector<float>(9, -1000));
    file.List<std::string>("tokenizer.ggml.merges", GgufType::kString, merges);
    file.U32("tokenizer.ggml.bos_token_id", 2).Bool("tokenizer.ggml.add_bos_token", true);
    file.Bool("tokenizer.ggml.add_space_prefix", false);
    const Read read(file);
    return MakeTokenizer(GgufVocabulary(read.metadata), "x.gguf")->Encode("ab ab", true);
  };
  EXPECT_THAT(tokens_of({"\u2581 a", "a b"}), ElementsAre(2, 7, 8, 6));
  EXPECT_THAT(tokens_of({"a b", "\u2581 a"}), ElementsAre(2, 7, 4, 7));
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { tokens_of({}); }),
              HasSubstr("tokenizer.ggml.merges: expected a list"));
}

class GgufTokenizerTest : public testing::TestWithParam<Original> {};

// llama-3's pre-tokenizer implies a BOS by its name.
INSTANTIATE_TEST_SUITE_P(
    All, GgufTokenizerTest,
    testing::Values(Original{"llama-2", VocabularyKind::kSentencePieceBpe, ""},
                    Original{"llama-3.1", VocabularyKind::kByteLevelBpe, "llama-bpe"},
                    Original{"qwen2.5", VocabularyKind::kByteLevelBpe, "qwen2"},
                    Original{"falcon", VocabularyKind::kByteLevelBpe, "falcon"},
                    Original{"phi-3-mini", VocabularyKind::kSentencePieceBpe, "", "phi3"}),
    ParamName);

TEST_P(GgufTokenizerTest, RELEASE_GivesTheIdsOfTheTokenizerJson) {
  const Original& real = GetParam();
  const auto file = SharedTokenizers() / real.folder / "tokenizer.json";
  if (!std::filesystem::exists(file)) {
    GTEST_SKIP() << "the real tokenizers of ../shared/data/tokenizers are not on this machine";
  }
  const std::string json = ReadFile(file);
  Vocabulary vocabulary = VocabularyOfTokenizerJson(ParseJson(json, file.string()), real.kind);
  vocabulary.pre_tokenizer = real.pre_tokenizer;
  const auto original = ParseTokenizer(json, file.string());
  GgufBuilder written = Written(vocabulary);
  written.Text("general.architecture", real.architecture);
  const auto frame = original->Encode("", /*add_special_tokens=*/true);
  written.Bool("tokenizer.ggml.add_bos_token", !frame.empty());
  if (!frame.empty()) {
    written.U32("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(frame.front()));
  }
  const Read read(written);
  const auto made = MakeTokenizer(GgufVocabulary(read.metadata), "x.gguf");
  EXPECT_EQ(made->VocabSize(), original->VocabSize());
  const auto cases = ReadJson(TestData() / "tokenizers/real_cases.json").at(real.folder);
  ASSERT_FALSE(cases.empty());
  for (const auto& each : cases) {
    const auto text = each["text"].get<std::string>();
    const auto ids = made->Encode(text, /*add_special_tokens=*/true);
    EXPECT_EQ(ids, original->Encode(text, /*add_special_tokens=*/true)) << text;
    EXPECT_EQ(made->Decode(ids, true), original->Decode(ids, true)) << text;
  }
}

// A vocabulary of five. Types as GGUF numbers them: unknown, control, control, normal, normal.
GgufBuilder Small() {
  Vocabulary vocabulary{.kind = VocabularyKind::kSentencePieceBpe, .unk_id = 0};
  vocabulary.tokens = {{"<unk>", TokenKind::kUnknown},
                       {"<s>", TokenKind::kControl},
                       {"</s>", TokenKind::kControl},
                       {"a", TokenKind::kNormal, -1},
                       {"<|im_end|>", TokenKind::kControl}};
  GgufBuilder file = Written(vocabulary);
  file.U32("tokenizer.ggml.bos_token_id", 1).U32("tokenizer.ggml.eos_token_id", 2);
  return file;
}

TEST(GgufTokenizer, ReadsWhatIsSaid) {
  GgufBuilder file = Small();
  file.Bool("tokenizer.ggml.add_space_prefix", false).Bool("tokenizer.ggml.add_eos_token", true);
  file.List<uint8_t>("tokenizer.ggml.precompiled_charsmap", GgufType::kU8, {1, 0, 255});
  const Read read(file);
  const Vocabulary vocabulary = GgufVocabulary(read.metadata);
  EXPECT_EQ(vocabulary.kind, VocabularyKind::kSentencePieceBpe);
  EXPECT_EQ(vocabulary.tokens[3].score, -1);
  EXPECT_EQ(vocabulary.tokens[2].kind, TokenKind::kControl);
  EXPECT_EQ(vocabulary.space_prefix, SpacePrefix::kNone);
  EXPECT_EQ(vocabulary.add_bos, std::nullopt);
  EXPECT_EQ(vocabulary.add_eos, true);
  EXPECT_EQ(vocabulary.bos_id, 1);
  EXPECT_EQ(vocabulary.charsmap, std::string("\x01\0\xff", 3));
}

// A converter writes runs of spaces as they stand in a text, not in SentencePiece's spelling.
TEST(GgufTokenizer, RunsOfSpacesOfGemmaAreTokens) {
  Vocabulary vocabulary{.kind = VocabularyKind::kSentencePieceBpe, .unk_id = 0};
  vocabulary.tokens = {{"<unk>", TokenKind::kUnknown},      {"<bos>", TokenKind::kControl},
                       {"\u2581", TokenKind::kNormal, -2},  {"a", TokenKind::kNormal, -2},
                       {"\u2581a", TokenKind::kNormal, -1}, {"  ", TokenKind::kUserDefined}};
  GgufBuilder file = Written(vocabulary);
  file.U32("tokenizer.ggml.bos_token_id", 1).Bool("tokenizer.ggml.add_space_prefix", false);
  const Read read(file);
  const auto made = MakeTokenizer(GgufVocabulary(read.metadata), "x.gguf");
  const auto ids = made->Encode("a a  a   a", /*add_special_tokens=*/true);
  EXPECT_THAT(ids, ElementsAre(1, 3, 4, 5, 3, 5, 4));
  EXPECT_EQ(made->Decode(ids, /*skip_special_tokens=*/true), "a a  a   a");
}

TEST(GgufTokenizer, KnowsWhatEndsAText) {
  const Read read(Small());
  const TokenizerConfig config = GgufTokenizerConfig(read.metadata, 5);
  EXPECT_EQ(config.bos_id, 1);
  EXPECT_THAT(config.eos_ids, ElementsAre(2, 4)) << "and what ends a turn";
  EXPECT_THAT(config.named_tokens,
              UnorderedElementsAre(Pair("bos_token", "<s>"), Pair("eos_token", "</s>"),
                                   Pair("unk_token", "<unk>")));
  GgufBuilder more = Small();
  more.U32("tokenizer.ggml.eot_token_id", 3).U32("tokenizer.ggml.eom_token_id", UINT32_MAX);
  EXPECT_THAT(GgufTokenizerConfig(Read(more).metadata, 5).eos_ids, ElementsAre(2, 3, 4));
}

TEST(GgufTokenizer, KnowsWhatFramesAHole) {
  EXPECT_THAT(GgufTokenizerConfig(Read(Small()).metadata, 5).fill_ids, testing::IsEmpty());
  GgufBuilder file = Small();
  file.U32("tokenizer.ggml.fim_pre_token_id", 1).U32("tokenizer.ggml.prefix_token_id", 2);
  file.U32("tokenizer.ggml.suffix_token_id", 3).U32("tokenizer.ggml.fim_mid_token_id", 9);
  file.U32("tokenizer.ggml.fim_sep_token_id", 4);
  EXPECT_THAT(GgufTokenizerConfig(Read(file).metadata, 5).fill_ids,
              UnorderedElementsAre(Pair("prefix", 1), Pair("suffix", 3), Pair("file", 4)));
}

// In a text with channels, <|end|> ends a message and not the text.
TEST(GgufTokenizer, KnowsWhatEndsATextOfChannels) {
  Vocabulary vocabulary{.kind = VocabularyKind::kSentencePieceBpe, .unk_id = 0};
  for (const char* const text :
       {"<unk>", "<|return|>", "<|channel|>", "<|end|>", "<|call|>", "<|endoftext|>"}) {
    vocabulary.tokens.push_back({text, TokenKind::kControl});
  }
  GgufBuilder file = Written(vocabulary);
  file.U32("tokenizer.ggml.eos_token_id", 1);
  EXPECT_THAT(GgufTokenizerConfig(Read(file).metadata, 6).eos_ids, ElementsAre(1, 4, 5));
}

// Gemma 4 waits for the result of a tool behind its call.
TEST(GgufTokenizer, KnowsWhatEndsATurnOfGemma4) {
  Vocabulary vocabulary{.kind = VocabularyKind::kSentencePieceBpe, .unk_id = 0};
  for (const char* const text :
       {"<unk>", "<eos>", "<|turn>", "<turn|>", "<|tool_response>", "<tool_response|>"}) {
    vocabulary.tokens.push_back({text, TokenKind::kControl});
  }
  GgufBuilder file = Written(vocabulary);
  file.U32("tokenizer.ggml.eos_token_id", 1);
  EXPECT_THAT(GgufTokenizerConfig(Read(file).metadata, 6).eos_ids, ElementsAre(1, 3, 4));
}

TEST(GgufTokenizer, FindsChatTemplates) {
  const TempFolder folder;
  const std::string file = folder.Write("my.jinja", "mine");
  GgufBuilder builder = Small();
  EXPECT_FALSE(GgufChatTemplate(Read(builder).metadata, ""));
  builder.Text("tokenizer.chat_template", "one").Text("tokenizer.chat_template.rag", "two");
  const Read read(builder);
  EXPECT_EQ(GgufChatTemplate(read.metadata, "")->text, "one");
  EXPECT_EQ(GgufChatTemplate(read.metadata, "default")->what, "x.gguf: tokenizer.chat_template");
  EXPECT_EQ(GgufChatTemplate(read.metadata, "rag")->text, "two");
  EXPECT_EQ(GgufChatTemplate(read.metadata, file)->text, "mine");
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { (void)GgufChatTemplate(read.metadata, "other"); }),
              HasSubstr("x.gguf has no chat template called \"other\""));
}

TEST(GgufTokenizer, RefusesWhatDoesNotBelongTogether) {
  const auto refusal = [](ErrorKind kind, const GgufBuilder& builder) {
    return ErrorOf(kind, [&] { (void)GgufVocabulary(Read(builder).metadata); });
  };
  EXPECT_THAT(
      refusal(ErrorKind::kUnsupported, GgufBuilder().Text("tokenizer.ggml.model", "bert")),
      HasSubstr("tokenizer.ggml.model: expected llama, gpt2, t5 or gemma4, found \"bert\""));
  GgufBuilder types;
  types.Text("tokenizer.ggml.model", "llama");
  types.List<std::string>("tokenizer.ggml.tokens", GgufType::kString, {"a", "b"});
  GgufBuilder scores = types;
  types.List<int32_t>("tokenizer.ggml.token_type", GgufType::kI32, {1});
  EXPECT_THAT(refusal(ErrorKind::kFormat, types),
              HasSubstr("token_type: expected one for each of 2 tokens, found 1"));
  scores.List<float>("tokenizer.ggml.scores", GgufType::kF32, {1, 2, 3});
  EXPECT_THAT(refusal(ErrorKind::kFormat, scores), HasSubstr("expected one for each of 2 tokens"));
  GgufBuilder kind;
  kind.Text("tokenizer.ggml.model", "llama");
  kind.List<int32_t>("tokenizer.ggml.token_type", GgufType::kI32, {7});
  EXPECT_THAT(refusal(ErrorKind::kFormat, kind), HasSubstr("from 1 to 6"));
}

TEST(GgufTokenizer, IdsOutsideTheVocabularyAreLeftOutAndTold) {
  GgufBuilder file = Small();
  file.U32("tokenizer.ggml.padding_token_id", 5).U32("tokenizer.ggml.eom_token_id", 7);
  const Read outside(file);
  const TokenizerConfig config = GgufTokenizerConfig(outside.metadata, 5);
  const TokenizerConfig without = GgufTokenizerConfig(Read(Small()).metadata, 5);
  EXPECT_EQ(config.named_tokens, without.named_tokens);
  EXPECT_EQ(config.eos_ids, without.eos_ids);
  EXPECT_THAT(without.warnings, testing::IsEmpty());
  EXPECT_THAT(
      config.warnings,
      ElementsAre(HasSubstr("tokenizer.ggml.padding_token_id 5 is ignored: it is outside the "
                            "vocabulary of 5"),
                  HasSubstr("tokenizer.ggml.eom_token_id 7 is ignored")));
}

}  // namespace
}  // namespace godwit::gguf_tokenizer_test
