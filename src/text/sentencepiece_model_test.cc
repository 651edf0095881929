#include "text/sentencepiece_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <string_view>

#include "base/test_support.h"
#include "text/test_data.h"

namespace godwit::sentencepiece_model_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The wire format of protobuf.
std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string Number(int field, uint64_t value) {
  return Varint(static_cast<uint64_t>(field) << 3) + Varint(value);
}
std::string Bytes(int field, std::string_view value) {
  return Varint(static_cast<uint64_t>(field) << 3 | 2) + Varint(value.size()) + std::string(value);
}
std::string Float(int field, float value) {
  std::string bytes = Varint(static_cast<uint64_t>(field) << 3 | 5);
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift);
  return bytes;
}

const std::string kPiece = Bytes(1, Bytes(1, "▁a") + Float(2, -1.5F));
constexpr uint64_t kBpe = 2;

Vocabulary Parse(std::string_view bytes) { return ParseSentencePieceModel(bytes, "a.model"); }

std::string Refusal(ErrorKind kind, std::string_view bytes) {
  return ErrorOf(kind, [&] { (void)Parse(bytes); });
}

TEST(SentencePieceModel, ReadsWhatEncodingNeeds) {
  const Vocabulary vocabulary =
      Parse(Bytes(1, Bytes(1, "<unk>") + Float(2, 0) + Number(3, 2)) + kPiece +
            Bytes(2, Bytes(1, "a file") + Number(3, kBpe) + Number(41, static_cast<uint64_t>(-1)) +
                         Number(42, 1)) +
            Bytes(3, Bytes(1, "nfkc") + Bytes(2, std::string_view("m\0p", 3)) + Number(3, 0)) +
            Bytes(4, "self test data, which nobody needs") + Number(200, 7));
  EXPECT_EQ(vocabulary.kind, VocabularyKind::kSentencePieceBpe);
  ASSERT_EQ(vocabulary.tokens.size(), 2);
  EXPECT_EQ(vocabulary.tokens[0].kind, TokenKind::kUnknown);
  EXPECT_EQ(vocabulary.tokens[1].text, "▁a");
  EXPECT_EQ(vocabulary.tokens[1].score, -1.5F);
  EXPECT_EQ(vocabulary.tokens[1].kind, TokenKind::kNormal);
  EXPECT_EQ(vocabulary.unk_id, 0) << "as not said";
  EXPECT_EQ(vocabulary.bos_id, std::nullopt) << "-1";
  EXPECT_EQ(vocabulary.eos_id, 1);
  EXPECT_EQ(vocabulary.charsmap, std::string_view("m\0p", 3));
  EXPECT_EQ(vocabulary.space_prefix, SpacePrefix::kNone);
  EXPECT_TRUE(vocabulary.remove_extra_whitespaces) << "as not said";
}

TEST(SentencePieceModel, RefusesWhatItIsNot) {
  EXPECT_EQ(Refusal(ErrorKind::kFormat, ""),
            "a.model: not a SentencePiece model: expected pieces before offset 0");
  EXPECT_THAT(Refusal(ErrorKind::kFormat, "<html>"), HasSubstr("not a SentencePiece model"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, kPiece + "\x0a\x7f" + "short"),
              HasSubstr("expected more bytes before offset 15"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, kPiece + std::string(12, '\xff')),
              HasSubstr("expected a number of at most ten bytes"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, Bytes(1, Number(1, 5))),
              HasSubstr("expected text before offset 4"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, Bytes(1, Bytes(1, "a") + Number(3, 7))),
              HasSubstr("expected a kind of piece from 1 to 6"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, kPiece + Number(3, 1)), HasSubstr("expected a message"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, kPiece + "\x0b"),
              HasSubstr("expected a field of a known type"));
}

TEST(SentencePieceModel, RELEASE_RefusesMorePiecesThanAnyModelHas) {
  std::string file;
  for (size_t i = 0; i <= kMaxTokens; ++i) file += std::string_view("\x0a\0", 2);
  EXPECT_THAT(Refusal(ErrorKind::kFormat, file), HasSubstr("expected fewer pieces before offset"));
}

TEST(SentencePieceModel, RefusesWhatTheLibraryCannotDo) {
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, kPiece + Bytes(2, Number(3, 4))),
              HasSubstr("found model type 4"));
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, kPiece + Bytes(2, Number(24, 1))),
              HasSubstr("found treat_whitespace_as_suffix"));
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, kPiece + Bytes(3, Number(5, 0))),
              HasSubstr("found escape_whitespaces = false"));
}

TEST(SentencePieceModel, EveryBeginningOfAFileIsReadOrRefused) {
  const std::string file = ReadFile(TestData() / "vocabularies/llama/tokenizer.model");
  EXPECT_EQ(Parse(file).tokens.size(), 480);
  size_t refused = 0;
  for (size_t size = 0; size < file.size(); ++size) {
    try {
      EXPECT_LE(Parse(std::string_view(file).substr(0, size)).tokens.size(), 480);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kFormat);
      ++refused;
    }
  }
  EXPECT_GT(refused, file.size() / 2);
}

}  // namespace
}  // namespace godwit::sentencepiece_model_test
