#include "text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json.h"
#include "base/test_support.h"
#include "text/load_tokenizer.h"
#include "text/test_data.h"
#include "text/vocabulary_test_support.h"

namespace godwit::vocabulary_test {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

Vocabulary OfKind(const std::string& folder, VocabularyKind kind) {
  const auto file = TestData() / "tokenizers" / folder / "tokenizer.json";
  return VocabularyOfTokenizerJson(ParseJson(ReadFile(file), file.string()), kind);
}

// A few SentencePiece tokens: 0 to 2 have a role, the others come in the order of their scores.
Vocabulary Pieces(VocabularyKind kind) {
  Vocabulary vocabulary{.kind = kind,
                        .tokens = {{.text = "<unk>", .kind = TokenKind::kUnknown},
                                   {.text = "<s>", .kind = TokenKind::kControl},
                                   {.text = "</s>", .kind = TokenKind::kControl}},
                        .bos_id = 1,
                        .eos_id = 2};
  float score = 0;
  for (const char* piece : {"▁a", "ab", "▁ab", "▁", "a", "b", "é"}) {
    vocabulary.tokens.push_back({.text = piece, .score = --score});
  }
  return vocabulary;
}

std::string Refusal(ErrorKind kind, const Vocabulary& vocabulary) {
  return ErrorOf(kind, [&] { (void)MakeTokenizer(vocabulary, "model.gguf"); });
}

void ExpectCases(const Tokenizer& tokenizer, const std::string& folder) {
  for (const auto& each : ReadJson(TestData() / "tokenizers" / folder / "cases.json")) {
    const auto text = each["text"].get<std::string>();
    EXPECT_EQ(tokenizer.Encode(text, true), each["ids"].get<Ids>()) << each["name"];
    EXPECT_EQ(tokenizer.Encode(text, false), each["plain_ids"].get<Ids>()) << each["name"];
    EXPECT_EQ(tokenizer.Decode(each["ids"].get<Ids>(), false), each["decoded"]) << each["name"];
    EXPECT_EQ(tokenizer.Decode(each["ids"].get<Ids>(), true), each["decoded_skip"]);
  }
}

TEST(Vocabulary, ByteLevelBpeIsThatOfTheFile) {
  Vocabulary vocabulary = OfKind("byte_level", VocabularyKind::kByteLevelBpe);
  vocabulary.pre_tokenizer = "llama-bpe";
  const auto made = MakeTokenizer(vocabulary, "made");
  EXPECT_EQ(made->Encode("flies", true), made->Encode("flies", false)) << "no id of a BOS is known";
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.tokens[id].text == "<s>") vocabulary.bos_id = static_cast<int32_t>(id);
  }
  // The cases were made with NFC, which llama-bpe does not have.
  const auto framed = MakeTokenizer(vocabulary, "made");
  for (const auto& each : ReadJson(TestData() / "tokenizers/byte_level/cases.json")) {
    if (each["name"] == "combining" || each["name"] == "compatible") continue;
    EXPECT_EQ(framed->Encode(each["text"].get<std::string>(), true), each["ids"].get<Ids>());
    EXPECT_EQ(framed->Decode(each["ids"].get<Ids>(), false), each["decoded"]);
  }
}

TEST(Vocabulary, MergesFollowFromScores) {
  Vocabulary vocabulary = OfKind("sentencepiece", VocabularyKind::kSentencePieceBpe);
  vocabulary.bos_id = 1;
  ExpectCases(*MakeTokenizer(vocabulary, "made"), "sentencepiece");
}

// "ab" has a higher score than "▁ab", but "▁a" a higher one than both.
TEST(Vocabulary, TheHighestScoreMergesFirst) {
  const auto tokenizer = MakeTokenizer(Pieces(VocabularyKind::kSentencePieceBpe), "made");
  EXPECT_THAT(tokenizer->Encode("ab", true), ElementsAre(1, 5));
  EXPECT_THAT(tokenizer->Encode("bab", false), ElementsAre(6, 8, 4));
  EXPECT_THAT(tokenizer->Encode("x", false), ElementsAre(6, 0));
  EXPECT_EQ(tokenizer->Decode(Ids{1, 5, 3}, true), "ab a");
}

// "aaa" is made in two ways; the left part with the lower id comes first.
TEST(Vocabulary, EqualScoresMergeInTheOrderOfIds) {
  const auto merges = [](std::vector<VocabularyToken> tokens) {
    const Vocabulary vocabulary{.kind = VocabularyKind::kSentencePieceBpe, .tokens = tokens};
    return ParseJson(TokenizerJson(vocabulary, "made"), "made")["model"]["merges"].dump();
  };
  EXPECT_EQ(merges({{.text = "a"}, {.text = "aa", .score = -2}, {.text = "aaa", .score = -1}}),
            R"([["a","aa"],["aa","a"],["a","a"]])");
  EXPECT_EQ(merges({{.text = "aa", .score = -1}, {.text = "a"}, {.text = "aaa", .score = -2}}),
            R"([["a","a"],["aa","a"],["a","aa"]])");
}

TEST(Vocabulary, ScoresOfAUnigramModelAddUp) {
  Vocabulary vocabulary = Pieces(VocabularyKind::kUnigram);
  const auto tokenizer = MakeTokenizer(vocabulary, "made");
  // -3 for "▁ab", -1 - 6 for "▁a" and "b"; an EOS follows.
  EXPECT_THAT(tokenizer->Encode("ab", true), ElementsAre(5, 2));
  EXPECT_THAT(tokenizer->Encode("aab", false), ElementsAre(3, 4));
  EXPECT_THAT(tokenizer->Encode(" ab", false), ElementsAre(6, 5));
  vocabulary.remove_extra_whitespaces = true;
  EXPECT_THAT(MakeTokenizer(vocabulary, "made")->Encode("  ab   a ", false), ElementsAre(5, 3));
}

TEST(Vocabulary, PutsASpaceWhereItIsAsked) {
  Vocabulary vocabulary = Pieces(VocabularyKind::kSentencePieceBpe);
  const auto encode = [&](SpacePrefix prefix) {
    vocabulary.space_prefix = prefix;
    return MakeTokenizer(vocabulary, "made")->Encode("a</s>a", false);
  };
  EXPECT_THAT(encode(SpacePrefix::kNone), ElementsAre(7, 2, 7));
  EXPECT_THAT(encode(SpacePrefix::kText), ElementsAre(3, 2, 7));
  EXPECT_THAT(encode(SpacePrefix::kStretch), ElementsAre(3, 2, 3));
}

TEST(Vocabulary, AddedTokensSayMoreThanKinds) {
  Vocabulary vocabulary = Pieces(VocabularyKind::kSentencePieceBpe);
  vocabulary.tokens.push_back({.text = "<x>", .kind = TokenKind::kUserDefined});
  EXPECT_THAT(MakeTokenizer(vocabulary, "made")->Encode("<x> a", false), ElementsAre(10, 6, 3));
  vocabulary.added = {{.id = 11, .text = "<new>", .special = true},
                      {.id = 10, .text = "<y>", .rstrip = true}};
  const auto tokenizer = MakeTokenizer(vocabulary, "made");
  EXPECT_THAT(tokenizer->Encode("<y> a<new>", false), ElementsAre(10, 3, 11));
  EXPECT_EQ(tokenizer->TokenToId("<x>"), std::nullopt) << "it has another name";
  EXPECT_TRUE(tokenizer->IsSpecial(11));
  EXPECT_FALSE(tokenizer->IsSpecial(10));
  vocabulary.added = {{.id = 12, .text = "<far>"}};
  EXPECT_THAT(Refusal(ErrorKind::kFormat, vocabulary),
              HasSubstr("the added token \"<far>\" has id 12, but there are 11 tokens before"));
}

TEST(Vocabulary, FramesAsItIsTold) {
  Vocabulary vocabulary = Pieces(VocabularyKind::kSentencePieceBpe);
  vocabulary.add_eos = true;
  EXPECT_THAT(MakeTokenizer(vocabulary, "made")->Encode("a", true), ElementsAre(1, 3, 2));
  vocabulary.add_bos = false;
  EXPECT_THAT(MakeTokenizer(vocabulary, "made")->Encode("a", true), ElementsAre(3, 2));
  vocabulary.eos_id = std::nullopt;
  EXPECT_THAT(Refusal(ErrorKind::kFormat, vocabulary),
              EndsWith("the id of its EOS token must lie below 10, found none"));
}

TEST(Vocabulary, BytesStandInForCharacters) {
  Vocabulary vocabulary = Pieces(VocabularyKind::kSentencePieceBpe);
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.tokens.push_back(
        {.text = fmt::format("<0x{:02X}>", byte), .kind = TokenKind::kByte});
  }
  const auto tokenizer = MakeTokenizer(vocabulary, "made");
  EXPECT_THAT(tokenizer->Encode("ü", false), ElementsAre(6, 10 + 0xc3, 10 + 0xbc));
  EXPECT_EQ(tokenizer->Decode(Ids{6, 10 + 0xc3, 10 + 0xbc}, false), "ü");
}

// llama.cpp's files have such tokens for unused ids.
TEST(Vocabulary, EmptyTokensAreNeverFound) {
  Vocabulary vocabulary = Pieces(VocabularyKind::kUnigram);
  vocabulary.tokens.resize(vocabulary.tokens.size() + 2, {.text = "", .score = -20});
  const auto tokenizer = MakeTokenizer(vocabulary, "made");
  EXPECT_THAT(tokenizer->Encode("ab", false), ElementsAre(5));
  EXPECT_EQ(tokenizer->IdToToken(11), "[EMPTY_11]");
}

TEST(Vocabulary, KnowsEveryPreTokenizerThatItNames) {
  Vocabulary vocabulary = OfKind("byte_level", VocabularyKind::kByteLevelBpe);
  const std::string text = "It's 12345 words,\n\n  in  Ünï 中文字!\t";
  for (const std::string& name : PreTokenizerNames()) {
    vocabulary.pre_tokenizer = name;
    const auto tokenizer = MakeTokenizer(vocabulary, name);
    EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text, false), false), text) << name;
  }
  vocabulary.pre_tokenizer = "llama-4";
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, vocabulary),
              HasSubstr("model.gguf: the pre-tokenizer \"llama-4\" is not known; known are "
                        "llama-bpe, llama3, "));
}

TEST(Vocabulary, RefusesWhatIsNone) {
  const auto with = [](const VocabularyToken& token) {
    Vocabulary vocabulary = Pieces(VocabularyKind::kUnigram);
    vocabulary.tokens.push_back(token);
    return vocabulary;
  };
  EXPECT_EQ(Refusal(ErrorKind::kFormat, with({.text = "ab"})),
            "model.gguf: tokens 4 and 10 are both \"ab\"");
  EXPECT_THAT(Refusal(ErrorKind::kFormat, with({.text = "a\xff"})),
              HasSubstr("token 10 is not UTF-8"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, with({.text = "c", .score = NAN})),
              HasSubstr("the score of token 10 is no finite number"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, with({.text = std::string(20 << 20, 'a')})),
              HasSubstr("expected at most 16777216"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, {.tokens = std::vector<VocabularyToken>(kMaxTokens + 1),
                                           .pre_tokenizer = "gpt-2"}),
              HasSubstr("expected at most 2097152 tokens, found 2097153"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, Vocabulary{.kind = VocabularyKind::kSentencePieceBpe}),
              HasSubstr("the vocabulary is empty"));
}

// Each letter in every run of up to 256, each of which comes from all shorter ones.
TEST(Vocabulary, RefusesScoresThatAllowTooManyMerges) {
  Vocabulary vocabulary{.kind = VocabularyKind::kSentencePieceBpe};
  for (char letter = 'A'; letter < 'A' + 50; ++letter) {
    for (size_t length = 1; length <= 256; ++length) {
      vocabulary.tokens.push_back({.text = std::string(length, letter)});
    }
  }
  EXPECT_THAT(Refusal(ErrorKind::kFormat, vocabulary),
              HasSubstr("its scores allow merges of more than 268435456 bytes"));
}

}  // namespace
}  // namespace godwit::vocabulary_test
