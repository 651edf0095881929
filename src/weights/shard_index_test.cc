#include "weights/shard_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weights/test_files.h"

namespace godwit::shard_index_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string Refusal(const std::string& text) {
  return ErrorOf(ErrorKind::kFormat, [&] { ParseShardIndex(text, "index.json"); });
}

TEST(ShardIndexTest, ReadsTheWeightMap) {
  EXPECT_THAT(ParseShardIndex(R"({"metadata":{"total_size":4},"weight_map":{"b":"2","a":"1"}})",
                              "index.json"),
              ElementsAre(Pair("a", "1"), Pair("b", "2")));
}

TEST(ShardIndexTest, RefusesAnythingElse) {
  EXPECT_THAT(Refusal("{}"),
              HasSubstr("index.json: expected an object \"weight_map\", found none"));
  EXPECT_THAT(Refusal(R"({"weight_map":[]})"), HasSubstr("found a list of 0 values"));
  EXPECT_THAT(Refusal("7"), HasSubstr("found none"));
  EXPECT_THAT(Refusal("[]"), HasSubstr("found none"));
  Refusal(R"({"weight_map":{"a":"1","a":"2"}})");
  Refusal("");
}

TEST(ShardIndexTest, RefusesNamesThatLeadElsewhere) {
  EXPECT_THAT(Refusal(R"({"weight_map":{"a":"../x","b":"/etc/passwd","c":"..","d":".","e":"",)"
                      R"("f":"x\\y","g":"x\u0000y","h":7,"ok":"m.safetensors"}})"),
              AllOf(HasSubstr("8 problems"), HasSubstr("found \"../x\"")));
  const auto refused = [](const std::string& name) {
    return Refusal(R"({"weight_map":{"a":)" + name + R"(,"ok":"m.safetensors"}})");
  };
  EXPECT_THAT(refused(R"("/etc/passwd")"), HasSubstr("found \"/etc/passwd\""));
  EXPECT_THAT(refused(R"("..")"), HasSubstr("found \"..\""));
  EXPECT_THAT(refused(R"(".")"), HasSubstr("found \".\""));
  EXPECT_THAT(refused(R"("")"), HasSubstr("found \"\""));
  EXPECT_THAT(refused(R"("x\\y")"), HasSubstr("found \"x"));
  EXPECT_THAT(refused(R"("x\u0000y")"), HasSubstr("found \"x\\x00y\""));
  EXPECT_THAT(refused("7"), HasSubstr("found 7"));
}

}  // namespace
}  // namespace godwit::shard_index_test
