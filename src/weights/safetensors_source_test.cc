#include "weights/safetensors_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "weights/test_files.h"

namespace godwit::safetensors_source_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A shard with a U8 tensor of one byte for each name.
std::string Shard(const std::vector<std::string>& names) {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  for (size_t i = 0; i < names.size(); ++i) {
    header += ",\"" + names[i] + R"(":{"dtype":"U8","shape":[1],"data_offsets":[)" +
              std::to_string(i) + "," + std::to_string(i + 1) + "]}";
  }
  return SafetensorsBytes(header + "}", std::string(names.size(), 'x'));
}

TEST(SafetensorsSourceTest, FindsTensorsInOneFile) {
  TempFolder folder;
  const auto source = OpenSafetensors(folder.Write("m.safetensors", Shard({"b", "a"})));
  EXPECT_THAT(source->Names(), ElementsAre("b", "a"));
  ASSERT_NE(source->Find("a"), nullptr);
  EXPECT_EQ(source->Find("a")->bytes[0], std::byte{'x'});
  EXPECT_EQ(source->Find("c"), nullptr);
  EXPECT_EQ(source->Metadata().at("format"), "pt");
}

TEST(SafetensorsSourceTest, ReleasedBytesStayReadable) {
  TempFolder folder;
  constexpr size_t kBytes = 1 << 20;
  const auto source = OpenSafetensors(folder.Write(
      "m.safetensors",
      SafetensorsBytes(R"({"w":{"dtype":"U8","shape":[1048576],"data_offsets":[0,1048576]}})",
                       std::string(kBytes, 'x'))));
  const TensorInfo& w = *source->Find("w");
  source->Release(w);
  EXPECT_EQ(std::memcmp(w.bytes.data(), std::string(kBytes, 'x').data(), kBytes), 0);
}

TEST(SafetensorsSourceTest, FindsTensorsInShards) {
  TempFolder folder;
  folder.Write("1.safetensors", Shard({"a", "b"}));
  folder.Write("2.safetensors", Shard({"c"}));
  const auto source = OpenShardedSafetensors(folder.Write(
      "i.json", R"({"weight_map":{"a":"1.safetensors","b":"1.safetensors","c":"2.safetensors"}})"));
  EXPECT_THAT(source->Names(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(source->Find("c")->file, (folder.path() / "2.safetensors").string());
  source->Release(*source->Find("c"));
}

TEST(SafetensorsSourceTest, ReportsEverythingThatIndexAndShardsDisagreeOn) {
  TempFolder folder;
  folder.Write("1.safetensors", Shard({"a", "stray", "moved", "twice"}));
  folder.Write("2.safetensors", Shard({"twice", "b"}));
  folder.Write("broken.safetensors", SafetensorsBytes(R"({"x":1,"y":2})", ""));
  const auto index = folder.Write(
      "i.json",
      R"({"weight_map":{"a":"1.safetensors","absent":"1.safetensors","moved":"2.safetensors",)"
      R"("twice":"1.safetensors","b":"2.safetensors","c":"gone.safetensors",)"
      R"("d":"gone.safetensors","x":"broken.safetensors"}})");
  const std::string message = ErrorOf(ErrorKind::kFormat, [&] { OpenShardedSafetensors(index); });
  EXPECT_THAT(message,
              AllOf(HasSubstr("i.json: 6 problems"),
                    HasSubstr("tensor \"absent\": expected in \"1.safetensors\" by the index, "
                              "found in no shard"),
                    HasSubstr("tensor \"moved\": expected in \"2.safetensors\" by the index, "
                              "found in \"1.safetensors\""),
                    HasSubstr("tensor \"stray\": expected in the index, found only in "
                              "\"1.safetensors\""),
                    HasSubstr("tensor \"twice\": expected in one shard, found in \"1.safetensors\" "
                              "and \"2.safetensors\""),
                    HasSubstr("shard of 2 tensors: "), HasSubstr("gone.safetensors: cannot open"),
                    HasSubstr("broken.safetensors: 2 problems\n    tensor \"x\"")));
  // An unreadable shard is one problem, not one for each tensor in it.
  EXPECT_THAT(message, AllOf(Not(HasSubstr("tensor \"c\"")), Not(HasSubstr("tensor \"d\""))));
}

TEST(SafetensorsSourceTest, ShardsThatCannotBeReadAreNoBrokenFormat) {
  TempFolder folder;
  folder.Write("1.safetensors", Shard({"a"}));
  const auto index =
      folder.Write("i.json", R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})");
  EXPECT_THAT(ErrorOf(ErrorKind::kIo, [&] { OpenShardedSafetensors(index); }),
              HasSubstr("2.safetensors: cannot open"));
}

TEST(SafetensorsSourceTest, RefusesEmptyAndSpecialFiles) {
  TempFolder folder;
  EXPECT_THAT(ErrorOf(ErrorKind::kIo, [&] { OpenSafetensors(folder.Write("m", "")); }),
              HasSubstr("the file is empty"));
  EXPECT_THAT(ErrorOf(ErrorKind::kIo, [&] { OpenSafetensors(folder.path()); }),
              HasSubstr("found a folder"));
}

}  // namespace
}  // namespace godwit::safetensors_source_test
