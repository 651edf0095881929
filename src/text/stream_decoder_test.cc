#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "text/load_tokenizer.h"
#include "text/test_data.h"
#include "text/tokenizer.h"

namespace godwit::stream_decoder_test {
namespace {

using nlohmann::json;

struct Variant {
  std::string name;
  std::string tokenizer;  // folder in tests/data/tokenizers
  json decoder;           // replaces the tokenizer's decoder unless it is "own"
};

json Typed(const char* type, json fields = json::object()) {
  fields["type"] = type;
  return fields;
}

std::vector<Variant> Variants() {
  const json metaspace = {{"replacement", "▁"}, {"prepend_scheme", "always"}, {"split", true}};
  const json replace = {{"pattern", {{"String", "▁"}}}, {"content", " "}};
  const json strip = {{"content", " "}, {"start", 3}, {"stop", 0}};
  const json sequence = json::array({Typed("ByteFallback"), Typed("Metaspace", metaspace)});
  const json late = json::array({Typed("Fuse"), Typed("Replace", replace), Typed("Strip", strip)});
  const json three = json::array(
      {Typed("Replace", replace), Typed("ByteFallback"), Typed("Fuse"), Typed("Strip", strip)});
  return {
      {"byte_level", "byte_level", "own"},
      {"byte_level_on_pieces", "sentencepiece",
       Typed("ByteLevel",
             {{"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}})},
      {"sentencepiece", "sentencepiece", "own"},
      {"metaspace", "sentencepiece", Typed("Metaspace", metaspace)},
      {"byte_fallback_metaspace", "sentencepiece", Typed("Sequence", {{"decoders", sequence}})},
      {"strip_three", "sentencepiece", Typed("Sequence", {{"decoders", three}})},
      {"replace_after_fuse", "sentencepiece", Typed("Sequence", {{"decoders", late}})},
      {"strip_each", "sentencepiece",
       Typed("Strip", {{"content", "<"}, {"start", 1}, {"stop", 0}})},
      {"wordpiece", "sentencepiece", Typed("WordPiece", {{"prefix", "<"}, {"cleanup", true}})},
      {"bpe", "sentencepiece", Typed("BPEDecoder", {{"suffix", ">"}})},
      {"ctc", "sentencepiece",
       Typed("CTC", {{"pad_token", "a"}, {"word_delimiter_token", "▁"}, {"cleanup", true}})},
      {"none", "sentencepiece", nullptr},
      {"unigram", "unigram", "own"},
      {"word_piece", "word_piece", "own"},
  };
}

class StreamDecoding : public ::testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    const auto path = TestData() / "tokenizers" / GetParam().tokenizer / "tokenizer.json";
    json file = json::parse(ReadFile(path));
    if (GetParam().decoder != "own") file["decoder"] = GetParam().decoder;
    tokenizer_ = ParseTokenizer(file.dump(), GetParam().name);
  }

  // The stream's text of `ids`, with each piece checked.
  static std::string Streamed(StreamDecoder& stream, const std::vector<int32_t>& ids) {
    std::string text;
    for (const int32_t id : ids) {
      const std::string piece = stream.Push(id);
      EXPECT_EQ(ReplaceInvalidUtf8(piece), piece);
      text += piece;
    }
    return text + stream.Flush();
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

INSTANTIATE_TEST_SUITE_P(All, StreamDecoding, ::testing::ValuesIn(Variants()),
                         [](const auto& info) { return info.param.name; });

TEST_P(StreamDecoding, RandomTokensAddUpToDecode) {
  std::mt19937 random(20250711);
  for (const bool skip : {false, true}) {
    const auto stream = tokenizer_->NewStream(skip);
    for (int round = 0; round < 1500; ++round) {
      std::vector<int32_t> ids(1 + random() % 24);
      // Narrow ranges of ids bring long runs of byte tokens, spaces and special tokens.
      const int32_t low = static_cast<int32_t>(random() % tokenizer_->VocabSize());
      const int32_t width = round % 2 == 0 ? tokenizer_->VocabSize() + 3 : 1 + random() % 40;
      for (int32_t& id : ids)
        id = (low + static_cast<int32_t>(random() % width)) % (tokenizer_->VocabSize() + 3);
      ASSERT_EQ(Streamed(*stream, ids), tokenizer_->Decode(ids, skip))
          << ::testing::PrintToString(ids);
    }
  }
}

TEST_P(StreamDecoding, RealTextAddsUpToDecode) {
  const std::string text = "  The godwit 🐦 flies <s>über</s> das Meer\n海を越える。\xf0 e\u0301 ";
  const std::vector<int32_t> ids = tokenizer_->Encode(text, true);
  for (const bool skip : {false, true}) {
    EXPECT_EQ(Streamed(*tokenizer_->NewStream(skip), ids), tokenizer_->Decode(ids, skip));
  }
}

TEST_P(StreamDecoding, RELEASE_TwentyThousandTokens) {
  std::vector<int32_t> ids;
  const std::vector<int32_t> sentence =
      tokenizer_->Encode("The bird 🐦 flies über das Meer. ", false);
  while (ids.size() < 20'000) ids.insert(ids.end(), sentence.begin(), sentence.end());
  const auto stream = tokenizer_->NewStream(true);
  EXPECT_EQ(Streamed(*stream, ids), tokenizer_->Decode(ids, true));
  EXPECT_EQ(stream->Flush(), "");
}

TEST(StreamDecoder, OutlivesItsTokenizer) {
  auto tokenizer = LoadTokenizer(TestData() / "tokenizers/byte_level");
  const std::vector<int32_t> ids = tokenizer->Encode("The bird", false);
  const auto stream = tokenizer->NewStream(true);
  tokenizer.reset();
  std::string text;
  for (const int32_t id : ids) text += stream->Push(id);
  EXPECT_EQ(text, "The bird");
}

TEST(StreamDecoder, EmitsACharacterAsSoonAsItIsComplete) {
  const auto tokenizer = LoadTokenizer(TestData() / "tokenizers/byte_level");
  const auto stream = tokenizer->NewStream(true);
  std::vector<std::string> pieces;
  for (const int32_t id : tokenizer->Encode("🐦🐦", false)) pieces.push_back(stream->Push(id));
  ASSERT_GE(pieces.size(), 2);
  EXPECT_EQ(pieces.back(), "🐦");
  EXPECT_THROW(stream->Push(-1), Error);
}

}  // namespace
}  // namespace godwit::stream_decoder_test
