#include "model/packed_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/checksum.h"
#include "base/test_support.h"

namespace godwit::packed_header_test {
namespace {

using ::testing::HasSubstr;

PackedHeader Example() {
  return {.info = {.godwit = "1.2.3",
                   .weights = "int4",
                   .config_checksum = UINT64_MAX,
                   .sources = {{.name = "model-1.safetensors",
                                .bytes = int64_t{5} << 32,
                                .modified_ns = -1,
                                .changed_ns = 1'700'000'000'123'456'789,
                                .checksum = 7}},
                   .warnings = {"tensor \"a\" holds NaN"}},
          .parts = {{.name = "a", .offset = 4096, .bytes = 10, .checksum = 1},
                    {.name = "b", .offset = 4160, .bytes = 0, .checksum = 2},
                    {.name = "c", .offset = 8192, .bytes = 5000, .checksum = 3}}};
}

// Parts are zeros. `json` replaces the JSON, if it is not empty.
std::vector<std::byte> FileOf(const PackedHeader& header, std::string json = "") {
  std::vector<std::byte> file = PackedBeginning();
  file.resize(header.parts.empty() ? file.size() : 8192 + 5000);
  std::vector<std::byte> end = PackedEnd(header);
  if (!json.empty()) {
    const uint64_t numbers[] = {json.size(), Checksum(std::as_bytes(std::span(json)))};
    const std::vector<std::byte> magic(end.end() - 8, end.end());
    end.resize(json.size() + sizeof(numbers));
    std::memcpy(end.data(), json.data(), json.size());
    std::memcpy(end.data() + json.size(), numbers, sizeof(numbers));
    end.insert(end.end(), magic.begin(), magic.end());
  }
  file.insert(file.end(), end.begin(), end.end());
  return file;
}

std::string Refusal(std::span<const std::byte> file, ErrorKind kind = ErrorKind::kFormat) {
  return ErrorOf(kind, [&] { ParsePackedHeader(file, "f"); });
}

TEST(PackedHeader, SaysWhatWasWritten) {
  const PackedHeader header = ParsePackedHeader(FileOf(Example()), "f");
  EXPECT_EQ(header.info, Example().info);
  EXPECT_EQ(header.parts, Example().parts);
  EXPECT_EQ(ParsePackedHeader(FileOf({}), "f").parts, std::vector<PackedPart>());
}

TEST(PackedHeader, PlacesPartsByTheirSize) {
  EXPECT_EQ(PackedHeader::OffsetFor(4096, 1), 4096);
  EXPECT_EQ(PackedHeader::OffsetFor(4097, 4095), 4160);
  EXPECT_EQ(PackedHeader::OffsetFor(4097, 4096), 8192);
}

TEST(PackedHeader, RefusesOtherFilesAndVersions) {
  std::vector<std::byte> file = FileOf(Example());
  EXPECT_TRUE(BeginsAsPacked(file));
  file[8] = std::byte{9};
  EXPECT_TRUE(BeginsAsPacked(file));
  EXPECT_EQ(Refusal(file, ErrorKind::kUnsupported),
            "f: packed in version 9 of the layout, expected version 2");
  file[0] = std::byte{'x'};
  EXPECT_FALSE(BeginsAsPacked(file));
  EXPECT_EQ(Refusal(file), "f: not a packed copy of a model");
  EXPECT_EQ(Refusal({}), "f: not a packed copy of a model");
}

TEST(PackedHeader, RefusesOneThatIsCutShort) {
  const std::vector<std::byte> file = FileOf(Example());
  for (size_t size = 8; size < file.size(); size += size < 4096 || size > 13'000 ? 1 : 97) {
    EXPECT_THAT(Refusal(std::span(file).first(size)), HasSubstr("f: cut short")) << size;
  }
  std::vector<std::byte> longer = file;
  longer.push_back({});
  EXPECT_THAT(Refusal(longer), HasSubstr("f: cut short or damaged at its end"));
}

TEST(PackedHeader, NoticesEveryFlippedBit) {
  const std::vector<std::byte> file = FileOf(Example());
  const size_t end = PackedEnd(Example()).size();
  for (size_t i = file.size() - end; i < file.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> damaged = file;
      damaged[i] ^= std::byte{1} << bit;
      EXPECT_FALSE(Refusal(damaged).empty());
    }
  }
}

// An attacker can write a right checksum.
TEST(PackedHeader, RefusesWhatMakesNoSense) {
  const std::string before = R"({"godwit":"1","weights":"f32","config":0,"sources":[)";
  const std::string behind = R"(],"warnings":[],"parts":[)";
  const auto refusal = [&](const std::string& source, const std::string& parts) {
    return Refusal(FileOf(Example(), before + source + behind + parts + "]}"));
  };
  const std::string right = R"(["a",4096,10,1],["b",4160,0,2],["c",8192,5000,3])";
  EXPECT_EQ(ParsePackedHeader(FileOf(Example(), before + behind + right + "]}"), "f").parts,
            Example().parts);
  for (const char* parts : {"",                                        // no parts
                            R"(["a",4096,10,1])",                      // others follow
                            R"(["a",4096,10,1],["c",8192,5064,3])",    // beyond the end
                            R"(["a",4096,18446744073709551615,1])",    // more than the file has
                            R"(["a",4096,9223372036854775807,1])",     //
                            R"(["a",4096,-1,1])",                      // negative
                            R"(["a",4160,10,1],["c",8192,5000,3])",    // behind a hole
                            R"(["a",4096,5000,1],["c",8192,5000,3])",  // one inside another
                            R"(["a",4100,10,1],["c",8192,5000,3])",    // not aligned
                            R"(["a",0,10,1],["c",8192,5000,3])",       // before the first
                            R"(["a",4096,1e1,1],["c",8192,5000,3])",   // no integer
                            R"([1,4096,10,1],["c",8192,5000,3])",      // no name
                            R"(["a",4096,10],["c",8192,5000,3])", R"(7)", R"({"a":[]})"}) {
    EXPECT_EQ(refusal("", parts), "f: header: the value of \"parts\" is invalid") << parts;
  }
  const auto source = [](const char* bytes) {
    return fmt::format(R"({{"name":"a","bytes":{},"modified_ns":0,"changed_ns":0,"checksum":0}})",
                       bytes);
  };
  for (const char* bytes : {"-9223372036854775809", "9223372036854775808", "1.5", "\"1\""}) {
    EXPECT_EQ(refusal(source(bytes), right), "f: header: the value of \"bytes\" is invalid")
        << bytes;
  }
  EXPECT_EQ(refusal("1", right), "f: header: the value of \"name\" is invalid");
  EXPECT_EQ(Refusal(FileOf(Example(), "[]")), "f: header: the value of \"godwit\" is invalid");
  EXPECT_EQ(Refusal(FileOf(Example(), R"({"godwit":"1"})")),
            "f: header: the value of \"weights\" is invalid");
  EXPECT_THAT(Refusal(FileOf(Example(), "{")), HasSubstr("f: header"));
}

}  // namespace
}  // namespace godwit::packed_header_test
