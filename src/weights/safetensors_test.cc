#include "weights/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "weights/test_files.h"

namespace godwit::safetensors_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

SafetensorsContents Parse(const std::string& file) {
  return ParseSafetensors(AsBytes(file), "m.safetensors");
}

std::string Refusal(const std::string& file) {
  const std::string message = ErrorOf(ErrorKind::kFormat, [&] { Parse(file); });
  EXPECT_THAT(message, HasSubstr("m.safetensors"));
  EXPECT_LT(message.size(), 10'000u);
  return message;
}

std::string Refusal(std::string_view header, std::string_view data) {
  return Refusal(SafetensorsBytes(header, data));
}

TEST(SafetensorsTest, ReadsTensorsInTheOrderOfTheirBytes) {
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("z":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                             R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[2,10]}})";
  const std::string file = SafetensorsBytes(header, "zz12345678");
  const SafetensorsContents contents = Parse(file);
  ASSERT_EQ(contents.tensors.size(), 2u);
  EXPECT_EQ(contents.tensors[0].name, "z");
  const TensorInfo& a = contents.tensors[1];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.dtype, DType::kF32);
  EXPECT_EQ(a.dtype_name, "F32");
  EXPECT_THAT(a.shape, ElementsAre(1, 2));
  EXPECT_EQ(a.file, "m.safetensors");
  EXPECT_EQ(a.offset_bytes, 8 + header.size() + 2);
  ASSERT_EQ(a.bytes.size(), 8u);
  EXPECT_EQ(std::memcmp(a.bytes.data(), "12345678", 8), 0);
  EXPECT_EQ(a.Describe(), "F32 [1, 2]");
  EXPECT_EQ(a.NumElements(), 2);
  EXPECT_EQ(contents.metadata.at("format"), "pt");
}

TEST(SafetensorsTest, AcceptsWhatTheFormatAllows) {
  EXPECT_TRUE(Parse(SafetensorsBytes("{}", "")).tensors.empty());
  EXPECT_TRUE(Parse(SafetensorsBytes("{}      ", "")).tensors.empty());  // padding
  EXPECT_TRUE(Parse(SafetensorsBytes(R"({"__metadata__":null})", "")).metadata.empty());
  const auto scalar =
      Parse(SafetensorsBytes(R"({"s":{"dtype":"F16","shape":[],"data_offsets":[0,2]}})", "xy"));
  EXPECT_EQ(scalar.tensors[0].NumElements(), 1);
  const auto empty =
      Parse(SafetensorsBytes(R"({"e":{"dtype":"F32","shape":[4,0],"data_offsets":[0,0]},)"
                             R"("f":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})",
                             "x"));
  EXPECT_EQ(empty.tensors[0].bytes.size(), 0u);
}

TEST(SafetensorsTest, KeepsTypesThatTheEngineDoesNotComputeWith) {
  const auto contents =
      Parse(SafetensorsBytes(R"({"a":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[0,3]},)"
                             R"("b":{"dtype":"BOOL","shape":[1],"data_offsets":[3,4]},)"
                             R"("c":{"dtype":"F4","shape":[2,3],"data_offsets":[4,7]},)"
                             R"("d":{"dtype":"F64","shape":[1],"data_offsets":[7,15]}})",
                             std::string(15, 'x')));
  ASSERT_EQ(contents.tensors.size(), 4u);
  for (const TensorInfo& tensor : contents.tensors) EXPECT_FALSE(tensor.dtype.has_value());
  EXPECT_EQ(contents.tensors[0].Describe(), "F8_E4M3 [3]");
}

TEST(SafetensorsTest, RefusesABrokenFrame) {
  EXPECT_THAT(Refusal(""), HasSubstr("expected at least 8 bytes of safetensors, found 0"));
  EXPECT_THAT(Refusal("1234567"), HasSubstr("found 7"));
  EXPECT_THAT(Refusal(SafetensorsBytes("", "")), HasSubstr("expected a JSON object"));
  EXPECT_THAT(Refusal(SafetensorsBytes("{}", "", 3)),
              HasSubstr("expected at most the 2 bytes that follow it, found 3: the file is cut"));
  EXPECT_THAT(Refusal(SafetensorsBytes("{}", "", 100'000'001)),
              HasSubstr("at most 100000000 bytes, found 100000001"));
  EXPECT_THAT(Refusal(SafetensorsBytes("{}", "", UINT64_MAX)),
              HasSubstr("found 18446744073709551615"));
  EXPECT_THAT(Refusal(" {}", ""), HasSubstr("expected a JSON object from byte 8 on"));
  EXPECT_THAT(Refusal("\xef\xbb\xbf{}", ""), HasSubstr("expected a JSON object"));
  EXPECT_THAT(Refusal("[]", ""), HasSubstr("expected a JSON object"));
  EXPECT_THAT(Refusal("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
              HasSubstr("Git LFS pointer"));
}

TEST(SafetensorsTest, RefusesBrokenJson) {
  Refusal("{", "");
  Refusal("{}{}", "");
  Refusal(std::string_view("{}\0{}", 5), "");
  EXPECT_THAT(Refusal(std::string_view("{}\0\0\0", 5), ""), HasSubstr("zero byte at offset 2"));
  Refusal("{\"a\xff\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "x");
  Refusal("{\"a\xc3\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "x");
  Refusal(R"({"a\ud800":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "x");
  Refusal(R"({"a":{"dtype":"U8","shape":[1e999],"data_offsets":[0,1]}})", "x");
  EXPECT_THAT(Refusal(R"({"a":)" + std::string(10'000, '[') + std::string(10'000, ']') + "}", ""),
              HasSubstr("deep"));
}

TEST(SafetensorsTest, RefusesDuplicateNames) {
  EXPECT_THAT(Refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                      R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                      "xy"),
              HasSubstr("a"));
  // The same name, spelled in two ways.
  Refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
          R"("\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
          "xy");
  Refusal(R"({"a":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}})", "x");
}

struct BadEntry {
  std::string entry;
  std::string expected;
  size_t data_bytes = 4;
};

class BadEntryTest : public ::testing::TestWithParam<BadEntry> {};

TEST_P(BadEntryTest, IsRefusedByName) {
  const BadEntry& bad = GetParam();
  EXPECT_THAT(Refusal(R"({"w\n":)" + bad.entry + "}", std::string(bad.data_bytes, 'x')),
              AllOf(HasSubstr("tensor \"w\\x0a\": "), HasSubstr(bad.expected)));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadEntryTest,
    ::testing::Values(
        BadEntry{"7", "entry: expected an object, found 7"},
        BadEntry{"null", "entry: expected an object, found null"},
        BadEntry{R"({"shape":[1],"data_offsets":[0,4]})", "dtype: expected to be there"},
        BadEntry{R"({"dtype":"F32","data_offsets":[0,4]})", "shape: expected to be there"},
        BadEntry{R"({"dtype":"F32","shape":[1]})", "data_offsets: expected to be there"},
        BadEntry{R"({"dtype":"F31","shape":[1],"data_offsets":[0,4]})", "found \"F31\""},
        BadEntry{R"({"dtype":32,"shape":[1],"data_offsets":[0,4]})", "found 32"},
        BadEntry{R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})", "sizes, found 1"},
        BadEntry{R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})", "2^63-1, found -1"},
        BadEntry{R"({"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})", "found 1.0"},
        BadEntry{R"({"dtype":"F32","shape":["1"],"data_offsets":[0,4]})", "found \"1\""},
        BadEntry{R"({"dtype":"F32","shape":[true],"data_offsets":[0,4]})", "found true"},
        BadEntry{R"({"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]})",
                 "found 9223372036854775808"},
        BadEntry{R"({"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4]})",
                 "shape: expected whole numbers"},
        BadEntry{R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]})",
                 "shape: expected a size below 2^63 elements", 0},
        BadEntry{R"({"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,0]})",
                 "shape: expected a size below 2^63 elements", 0},
        BadEntry{R"({"dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0]})",
                 "shape: expected a size below 2^63 elements", 0},
        BadEntry{R"({"dtype":"F4","shape":[3],"data_offsets":[0,2]})",
                 "a whole number of bytes, found F4 [3]", 2},
        BadEntry{R"({"dtype":"F32","shape":[1],"data_offsets":[0]})", "found [0]"},
        BadEntry{R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,8]})", "found [0, 4, 8]"},
        BadEntry{R"({"dtype":"F32","shape":[1],"data_offsets":[-4,0]})", "found [-4, 0]"},
        BadEntry{R"({"dtype":"F32","shape":[1],"data_offsets":[0,4.0]})", "found [0, 4.0]"},
        BadEntry{R"({"dtype":"F32","shape":[1],"data_offsets":{}})", "found an object of 0 keys"},
        BadEntry{R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})", "begin <= end <= 4"},
        BadEntry{R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})", "<= 4, the bytes of data"},
        BadEntry{R"({"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]})",
                 "found [0, 18446744073709551615]"},
        BadEntry{R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})",
                 "expected 8 bytes for F32 [2], found 4 bytes [0, 4]"},
        BadEntry{R"({"dtype":"F16","shape":[1],"data_offsets":[0,4]})", "expected 2 bytes"}));

TEST(SafetensorsTest, RefusesHugeRanks) {
  std::string shape = "1";
  for (int i = 0; i < 1000; ++i) shape += ",1";
  EXPECT_THAT(
      Refusal(R"({"w":{"dtype":"U8","shape":[)" + shape + R"(],"data_offsets":[0,1]}})", "x"),
      HasSubstr("at most 64 sizes, found a list of 1001"));
}

TEST(SafetensorsTest, RefusesOverlapsHolesAndRemainders) {
  EXPECT_THAT(Refusal(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                      R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                      "xyz"),
              HasSubstr("tensor \"b\": data_offsets: expected to begin at 2 where \"a\" ends, "
                        "found 1: they overlap"));
  EXPECT_THAT(Refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                      R"("b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                      "x"),
              HasSubstr("they overlap"));
  EXPECT_THAT(Refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                      R"("b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                      "xyz"),
              HasSubstr("found 2: a hole"));
  EXPECT_THAT(Refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "xy"),
              HasSubstr("expected to begin at 0 as the first tensor, found 1"));
  EXPECT_THAT(Refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "xy"),
              HasSubstr("data: expected the 1 bytes of the tensors, found 2"));
  EXPECT_THAT(Refusal("{}", "x"), HasSubstr("expected the 0 bytes of the tensors, found 1"));
}

TEST(SafetensorsTest, RefusesOddMetadata) {
  EXPECT_THAT(Refusal(R"({"__metadata__":7})", ""), HasSubstr("__metadata__: expected an object"));
  EXPECT_THAT(Refusal(R"({"__metadata__":{"a":["b"]}})", ""),
              HasSubstr("__metadata__: \"a\": expected text, found a list of 1 values"));
}

TEST(SafetensorsTest, ReportsEverythingAtOnceButBriefly) {
  std::string header = "{";
  for (int i = 0; i < 50; ++i) {
    header += R"("w)" + std::to_string(100 + i) +
              R"(":{"dtype":"F31","shape":[-1],"data_offsets":[0,4]},)";
  }
  header.back() = '}';
  const std::string message = Refusal(header, "1234");
  EXPECT_THAT(message, AllOf(HasSubstr("100 problems"), HasSubstr("\"w100\": dtype"),
                             HasSubstr(", and 99 more like it"), Not(HasSubstr("\"w101\""))));
}

TEST(SafetensorsTest, RefusesAHeaderOfTooManyValues) {
  std::string header = R"({"a":[0)";
  for (int i = 0; i < 4'000'000; ++i) header += ",0";
  EXPECT_THAT(Refusal(header + "]}", ""),
              HasSubstr("m.safetensors: header: JSON of more than 4000000 values"));
}

TEST(SafetensorsTest, CutsLongNamesInMessages) {
  const std::string name(1'000'000, 'n');
  EXPECT_LT(Refusal("{\"" + name + "\":1}", "").size(), 1000u);
  EXPECT_LT(Refusal("{\"a\":\"" + name + "\"}", "").size(), 1000u);
  EXPECT_LT(Refusal("{\"" + name + "\":1,\"" + name + "\":2}", "").size(), 1000u);
}

TEST(SafetensorsTest, RefusesEveryTruncation) {
  const std::string file =
      SafetensorsBytes(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678");
  ASSERT_NO_THROW(Parse(file));
  for (size_t i = 0; i < file.size(); ++i) Refusal(file.substr(0, i));
  Refusal(file + "x");
}

}  // namespace
}  // namespace godwit::safetensors_test
