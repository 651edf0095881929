#include "weights/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "weights/gguf_metadata.h"
#include "weights/gguf_test_support.h"
#include "weights/test_files.h"

namespace godwit::gguf_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kF32 = 0, kF16 = 1, kQ4_0 = 2, kIq1S = 19, kQ4_K = 12;

std::string Refusal(const std::string& file) {
  return ErrorOf(ErrorKind::kFormat, [&] { (void)ParseGguf(AsBytes(file), "x.gguf"); });
}
std::string Refusal(const GgufBuilder& builder) { return Refusal(builder.Bytes()); }

TEST(Gguf, ReadsKeysAndTensors) {
  GgufBuilder builder;
  builder.Text("general.architecture", "llama").U32("llama.block_count", 3);
  builder.F32("eps", 0.5f).Bool("yes", true);
  builder.List<std::string_view>("tokens", GgufType::kString, {"a", "", "bc"});
  builder.List<float>("scores", GgufType::kF32, {1, -2});
  builder.Tensor("norm", {2}, kF32, Raw(1.0f) + Raw(2.0f));
  builder.Tensor("w", {3, 64}, kQ4_0, std::string(3 * 2 * 18, 'x'));
  builder.Tensor("k", {256}, kIq1S, std::string(50, 'y'));
  const std::string file = builder.Bytes();
  const GgufContents contents = ParseGguf(AsBytes(file), "x.gguf");

  const GgufMetadata metadata(contents.values, "x.gguf");
  EXPECT_EQ(metadata.String("general.architecture"), "llama");
  EXPECT_EQ(metadata.Int("llama.block_count", {1, 9}), 3);
  EXPECT_EQ(metadata.Float("eps", {0, 1}), 0.5);
  EXPECT_TRUE(metadata.BoolOr("yes", false));
  EXPECT_THAT(metadata.Strings("tokens"), ElementsAre("a", "", "bc"));
  EXPECT_THAT(metadata.Floats("scores"), ElementsAre(1, -2));

  ASSERT_EQ(contents.tensors.size(), 3u);
  const TensorInfo& matrix = contents.tensors[1];
  EXPECT_EQ(matrix.Describe(), "Q4_0 [3, 64]");
  EXPECT_FALSE(matrix.dtype);
  ASSERT_NE(matrix.blocks, nullptr);
  EXPECT_EQ(matrix.blocks->name, "Q4_0");
  EXPECT_EQ(matrix.bytes.data(), AsBytes(file).data() + matrix.offset_bytes);
  EXPECT_EQ(std::memcmp(matrix.bytes.data(), "xxxx", 4), 0);
  EXPECT_EQ(contents.tensors[0].dtype, DType::kF32);
  // IQ1_S is known, so its size is checked, but it is not built.
  EXPECT_EQ(contents.tensors[2].Describe(), "IQ1_S [256]");
  EXPECT_EQ(contents.tensors[2].blocks, nullptr);
}

TEST(Gguf, KeepsToAnAlignmentOfItsOwn) {
  GgufBuilder builder;
  builder.alignment = 64;
  builder.U32("general.alignment", 64).Tensor("a", {1}, kF32, Raw(1.0f));
  builder.Tensor("b", {1}, kF32, Raw(2.0f));
  const std::string file = builder.Bytes();
  const GgufContents contents = ParseGguf(AsBytes(file), "x");
  EXPECT_EQ(contents.tensors[1].offset_bytes - contents.tensors[0].offset_bytes, 64u);
  EXPECT_EQ(contents.tensors[0].offset_bytes % 64, 0u);
}

TEST(Gguf, HoldsAVocabularyAlone) {
  EXPECT_TRUE(ParseGguf(AsBytes(GgufBuilder().U32("a", 1).Bytes()), "x").tensors.empty());
}

TEST(Gguf, RefusesOtherHeaders) {
  EXPECT_THAT(
      Refusal("safetensors"),
      HasSubstr("no GGUF magic: expected a file that begins with \"GGUF\", found \"safe\""));
  EXPECT_THAT(Refusal("GG"),
              HasSubstr("no GGUF magic: expected a file that begins with \"GGUF\", found \"GG\""));
  GgufBuilder builder;
  builder.version = 1;
  EXPECT_THAT(Refusal(builder), HasSubstr("expected version 2 or 3 of GGUF, found 1"));
  builder.version = 3 << 24;
  EXPECT_THAT(Refusal(builder), HasSubstr("a big-endian file"));
}

// Counts in the file allocate nothing.
TEST(Gguf, RefusesCountsBeyondTheFile) {
  for (const uint64_t count : {uint64_t{100}, uint64_t{1} << 32, ~uint64_t{0}}) {
    GgufBuilder tensors;
    tensors.tensor_count = count;
    EXPECT_THAT(Refusal(tensors), HasSubstr("tensors by the format and the"));
    GgufBuilder keys;
    keys.key_count = count;
    EXPECT_THAT(Refusal(keys), HasSubstr("keys by the format and the"));
    const std::string list = Raw(uint32_t{8}) + Raw(count);  // of text
    EXPECT_THAT(Refusal(GgufBuilder().RawKey("k", GgufType::kArray, list)),
                HasSubstr("for which the file has bytes"));
    EXPECT_THAT(Refusal(GgufBuilder().RawKey("k", GgufType::kString, Raw(count))),
                HasSubstr("key \"k\": expected"));
  }
  // 2^61 elements of 8 bytes would be 0 bytes in 64 bits.
  const std::string wrap = Raw(uint32_t{10}) + Raw(uint64_t{1} << 61);
  EXPECT_THAT(Refusal(GgufBuilder().RawKey("k", GgufType::kArray, wrap)), HasSubstr("found 2305"));
}

TEST(Gguf, RefusesNamesAndTypes) {
  EXPECT_THAT(Refusal(GgufBuilder().U32("k", 1).U32("k", 2)),
              HasSubstr("key \"k\": expected once, found twice"));
  EXPECT_THAT(Refusal(GgufBuilder().U32("", 1)), HasSubstr("a name of 1 to 1024 bytes"));
  EXPECT_THAT(Refusal(GgufBuilder().U32(std::string(1025, 'k'), 1)), HasSubstr("found a length"));
  EXPECT_THAT(Refusal(GgufBuilder().RawKey("k", GgufType{13}, "")),
              HasSubstr("expected a type from 0 to 12, found 13"));
  const std::string nested = Raw(uint32_t{9}) + Raw(uint64_t{0});
  EXPECT_THAT(Refusal(GgufBuilder().RawKey("k", GgufType::kArray, nested)),
              HasSubstr("found a list of lists"));
  GgufBuilder twice;
  twice.Tensor("t", {1}, kF32, Raw(1.0f)).Tensor("t", {1}, kF32, Raw(1.0f));
  EXPECT_THAT(Refusal(twice), HasSubstr("tensor \"t\": expected once, found twice"));
  EXPECT_THAT(Refusal(GgufBuilder().Tensor("t", {1}, 4, "x")),
              HasSubstr("tensor \"t\": expected a type of the format"));
}

TEST(Gguf, RefusesShapes) {
  const auto shape = [](const std::vector<uint64_t>& dims, uint32_t type) {
    return Refusal(GgufBuilder().RawTensor("t", dims, type, 0));
  };
  EXPECT_THAT(shape({1, 1, 1, 1, 1}, kF32), HasSubstr("at most 4 dimensions, found 5"));
  EXPECT_THAT(shape({0}, kF32), HasSubstr("dimensions from 1 to 2^63-1, found 0"));
  EXPECT_THAT(shape({uint64_t{1} << 63}, kF32), HasSubstr("dimensions from 1 to 2^63-1"));
  EXPECT_THAT(shape({uint64_t{1} << 32, uint64_t{1} << 32}, kF16), HasSubstr("below 2^63 bytes"));
  EXPECT_THAT(shape({uint64_t{1} << 62}, kF32), HasSubstr("below 2^63 bytes"));
  // The whole tensor would fill blocks; a row does not.
  EXPECT_THAT(shape({8, 33}, kQ4_0), HasSubstr("rows of whole blocks of 32 elements"));
  EXPECT_THAT(shape({2, 128}, kQ4_K), HasSubstr("rows of whole blocks of 256 elements"));
}

TEST(Gguf, RefusesPlaces) {
  const std::string data(64, 'd');
  const auto with = [&](uint64_t offset) {
    return GgufBuilder().Tensor("a", {16}, kF32, data).RawTensor("b", {8}, kF32, offset);
  };
  EXPECT_THAT(Refusal(with(8)), HasSubstr("an offset that is a multiple of 32, found 8"));
  EXPECT_THAT(Refusal(with(64)), HasSubstr("expected 32 bytes (F32 [8]) at offset 64 of 64"));
  EXPECT_THAT(Refusal(with(~uint64_t{0} - 31)), HasSubstr("at offset 18446744073709551584"));
  EXPECT_THAT(Refusal(with(32)), AllOf(HasSubstr("tensor \"b\": expected to begin at 64 or later, "
                                                 "where \"a\" ends"),
                                       HasSubstr("they overlap")));
  const std::string whole = GgufBuilder().Tensor("a", {16}, kF32, data).Bytes();
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_THAT(Refusal(whole.substr(0, bytes)), HasSubstr("x.gguf: ")) << bytes;
  }
}

TEST(Gguf, RefusesAlignments) {
  for (const uint32_t alignment : {0u, 24u, 1u << 21}) {
    EXPECT_THAT(Refusal(GgufBuilder().U32("general.alignment", alignment)),
                HasSubstr("general.alignment: expected a power of two"));
  }
  EXPECT_THAT(Refusal(GgufBuilder().F32("general.alignment", 32)), HasSubstr("as u32"));
}

TEST(GgufMetadata, ChecksWhatIsAskedFor) {
  GgufBuilder builder;
  builder.U32("n", 7).F32("nan", std::nanf("")).Key("big", GgufType::kU64, ~uint64_t{0});
  builder.Key("bool", GgufType::kBool, uint8_t{2}).Text("text", "seven");
  builder.List<uint32_t>("same", GgufType::kU32, {4, 4}).List<int32_t>("list", GgufType::kI32, {});
  builder.List<uint32_t>("unlike", GgufType::kU32, {4, 5});
  const std::string file = builder.Bytes();
  const GgufMetadata metadata(ParseGguf(AsBytes(file), "x").values, "x.gguf");
  const auto refusal = [&](auto read) { return ErrorOf(ErrorKind::kFormat, read); };

  EXPECT_EQ(metadata.Int("same", {1, 9}), 4);
  EXPECT_EQ(metadata.IntOr("absent", 5, {1, 9}), 5);
  EXPECT_EQ(metadata.Float("n", {0, 9}), 7);
  EXPECT_EQ(refusal([&] {
              (void)metadata.Int("n", {1, 6});
            }),
            "x.gguf: n: expected a whole number from 1 to 6, found 7");
  EXPECT_THAT(refusal([&] { (void)metadata.Int("text", {1, 9}); }), HasSubstr("found text"));
  EXPECT_THAT(refusal([&] { (void)metadata.Int("big", {1, INT64_MAX}); }), HasSubstr("big"));
  EXPECT_THAT(refusal([&] { (void)metadata.Int("list", {1, 9}); }), HasSubstr("a list of 0"));
  EXPECT_THAT(refusal([&] { (void)metadata.Float("nan", {0, 9}); }), HasSubstr("found nan"));
  EXPECT_THAT(refusal([&] { (void)metadata.BoolOr("bool", true); }), HasSubstr("true or false"));
  EXPECT_THAT(refusal([&] { (void)metadata.String("n"); }), HasSubstr("expected text, found 7"));
  EXPECT_THAT(refusal([&] { (void)metadata.Strings("n"); }), HasSubstr("expected a list of text"));
  EXPECT_THAT(refusal([&] { (void)metadata.Floats("same"); }), HasSubstr("expected a list of f32"));
  EXPECT_THAT(refusal([&] { (void)metadata.Ints("same", {5, 9}); }), HasSubstr("from 5 to 9"));
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                      [&] {
                        (void)metadata.Int("unlike", {1, 9});
                      }),
              HasSubstr("the same number for every layer"));
}

}  // namespace
}  // namespace godwit::gguf_test
