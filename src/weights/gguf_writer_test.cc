#include "weights/gguf_writer.h"

#include <gtest/gtest.h>

#include "base/test_support.h"
#include "weights/gguf_metadata.h"
#include "weights/gguf_test_support.h"
#include "weights/test_files.h"

namespace godwit::gguf_writer_test {
namespace {

using testing::HasSubstr;

// The builder of the reader's tests is a second implementation of the format.
TEST(GgufWriter, BytesOfATinyFile) {
  GgufKeys keys;
  keys.Text("general.architecture", "llama");
  keys.U32("llama.block_count", 3);
  keys.F32("llama.epsilon", 0.5);
  keys.Bool("yes", true);
  keys.Texts("words", std::vector<std::string>{"a", ""});
  keys.I32s("kinds", std::vector<int32_t>{1, -6});
  keys.F32s("scores", std::vector<float>{0.25f});
  keys.Bools("windows", {true, false});
  keys.Bytes("map", std::string_view("\0\xff", 2));
  const std::vector<NewGgufTensor> tensors = {
      {"a.weight", {2, 3}, FindGgufTensorType("F32")},
      {"b.weight", {1, 32}, FindGgufTensorType("Q8_0")},
  };
  GgufBuilder expected;
  expected.Text("general.architecture", "llama").U32("llama.block_count", 3);
  expected.F32("llama.epsilon", 0.5f).Bool("yes", true);
  expected.List("words", GgufType::kString, std::vector<std::string>{"a", ""});
  expected.List("kinds", GgufType::kI32, std::vector<int32_t>{1, -6});
  expected.List("scores", GgufType::kF32, std::vector<float>{0.25f});
  expected.List("windows", GgufType::kBool, std::vector<uint8_t>{1, 0});
  expected.List("map", GgufType::kU8, std::vector<uint8_t>{0, 255});
  expected.RawTensor("a.weight", {2, 3}, 0, 0).RawTensor("b.weight", {1, 32}, 8, 32);
  EXPECT_EQ(GgufHeader(keys, tensors), expected.Bytes());
  EXPECT_EQ(tensors[0].bytes(), 24);
  EXPECT_EQ(tensors[1].bytes(), 34);
}

TEST(GgufWriter, CopiesValuesOfAnotherFile) {
  GgufBuilder builder;
  builder.U32("one", 7).Text("text", "abc");
  builder.List("list", GgufType::kString, std::vector<std::string>{"x", "yz"});
  const std::string file = builder.Bytes();
  GgufKeys keys;
  for (const auto& [key, value] : ParseGguf(AsBytes(file), "x.gguf").values) keys.Copy(key, value);
  const std::string copy = GgufHeader(keys, {});
  const GgufMetadata read(ParseGguf(AsBytes(copy), "copy.gguf").values, "copy.gguf");
  EXPECT_EQ(read.Int("one", {0, 10}), 7);
  EXPECT_EQ(read.String("text"), "abc");
  EXPECT_EQ(read.Strings("list"), (std::vector<std::string_view>{"x", "yz"}));
}

TEST(GgufWriter, RefusesLongNames) {
  const std::vector<NewGgufTensor> tensors = {
      {std::string(64, 'x'), {1}, FindGgufTensorType("F32")}};
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { GgufHeader({}, tensors); }),
              HasSubstr("expected a name of up to 63 bytes"));
}

}  // namespace
}  // namespace godwit::gguf_writer_test
