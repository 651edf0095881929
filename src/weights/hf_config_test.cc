#include "weights/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "weights/test_files.h"

namespace godwit::hf_config_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

HfConfig Config(const std::string& text) { return HfConfig::Parse(text, "config.json"); }

template <typename Action>
std::string Refusal(Action action) {
  const std::string message = ErrorOf(ErrorKind::kFormat, action);
  EXPECT_THAT(message, HasSubstr("config.json: "));
  return message;
}

TEST(HfConfigTest, ReadsEveryKindOfValue) {
  const HfConfig config = Config(
      R"({"model_type":"llama","n":32,"f":1e-5,"whole":10000,"b":true,"none":null,"r":4096.0,)"
      R"("eos":[1,2],"kinds":["x","y"],"scaling":{"factor":8.0,"deep":{"x":1}}})");
  EXPECT_EQ(config.model_type(), "llama");
  EXPECT_EQ(config.Int("n", {1, 64}), 32);
  EXPECT_EQ(config.Int("r", {1, 8192}), 4096);
  EXPECT_EQ(config.Float("f", {0, 1}), 1e-5);
  EXPECT_EQ(config.Float("whole", {1, 1e9}), 10000);
  EXPECT_TRUE(config.BoolOr("b", false));
  EXPECT_THAT(config.Ints("eos", {0, 10}), ElementsAre(1, 2));
  EXPECT_THAT(config.Ints("n", {0, 100}), ElementsAre(32));
  EXPECT_THAT(config.Strings("kinds"), ElementsAre("x", "y"));
  EXPECT_EQ(config.Object("scaling")->Float("factor", {1, 1e6}), 8.0);
  EXPECT_EQ(config.Object("scaling")->Object("deep")->Int("x", {0, 1}), 1);
}

TEST(HfConfigTest, ListsItsKeys) {
  EXPECT_THAT(Config(R"({"b":1,"a":null})").Keys(), ElementsAre("a", "b"));
  EXPECT_THAT(Config("{}").Keys(), IsEmpty());
}

TEST(HfConfigTest, TakesNullForAbsent) {
  const HfConfig config = Config(R"({"none":null})");
  for (const char* key : {"none", "missing"}) {
    EXPECT_FALSE(config.Has(key));
    EXPECT_EQ(config.IntOr(key, 7, {0, 1}), 7);
    EXPECT_EQ(config.FloatOr(key, 0.5, {1, 2}), 0.5);
    EXPECT_TRUE(config.BoolOr(key, true));
    EXPECT_EQ(config.StringOr(key, "x"), "x");
    EXPECT_THAT(config.Ints(key, {0, 1}), IsEmpty());
    EXPECT_THAT(config.Strings(key), IsEmpty());
    EXPECT_FALSE(config.Object(key).has_value());
    EXPECT_THAT(Refusal([&] {
                  config.Int(key, {1, 9});
                }),
                HasSubstr("expected a whole number from 1 to 9, found none"));
  }
  EXPECT_THAT(Refusal([&] { config.model_type(); }), HasSubstr("model_type: expected text"));
}

TEST(HfConfigTest, TellsNullFromAbsentWhenAsked) {
  const HfConfig config = Config(R"({"none":null,"zero":0})");
  EXPECT_TRUE(config.IsNull("none"));
  EXPECT_FALSE(config.IsNull("zero"));
  EXPECT_FALSE(config.IsNull("missing"));
}

TEST(HfConfigTest, RefusesSizesThatAreNoSizes) {
  for (const char* value : {"0", "-1", "-9223372036854775808", "1048577", "9223372036854775808",
                            "18446744073709551615", "99999999999999999999999", "1.5", "4096.5",
                            "1e300", "-1e300", "\"4096\"", "true", "[4096]", "{}"}) {
    const HfConfig config = Config(std::string(R"({"hidden_size":)") + value + "}");
    const std::string message = Refusal([&] { config.Int("hidden_size", {1, 1 << 20}); });
    EXPECT_THAT(message, HasSubstr("hidden_size: expected a whole number from 1 to 1048576"));
    EXPECT_THAT(Refusal([&] {
                  config.IntOr("hidden_size", 1, {1, 1 << 20});
                }),
                HasSubstr("hidden_size"));
  }
  EXPECT_THAT(Refusal([] { Config(R"({"n":-3})").Int("n", {1, 4}); }), HasSubstr("found -3"));
  EXPECT_EQ(Config(R"({"n":-9223372036854775808})").Int("n", {INT64_MIN, 0}), INT64_MIN);
}

TEST(HfConfigTest, RefusesNumbersOutOfRange) {
  for (const char* value : {"0", "-1", "2e9", "\"1\"", "false", "[]", "1e308"}) {
    const HfConfig config = Config(std::string(R"({"theta":)") + value + "}");
    EXPECT_THAT(Refusal([&] {
                  config.FloatOr("theta", 1, {1, 1e9});
                }),
                HasSubstr("theta: expected a number from 1 to 1e+09, found"));
  }
}

TEST(HfConfigTest, RefusesOtherTypes) {
  const HfConfig config = Config(R"({"x":1,"list":[1,"a"],"rope":{"factor":-1}})");
  EXPECT_THAT(Refusal([&] { config.BoolOr("x", true); }), HasSubstr("true or false, found 1"));
  EXPECT_THAT(Refusal([&] { config.StringOr("x", ""); }), HasSubstr("expected text, found 1"));
  EXPECT_THAT(Refusal([&] { config.Object("x"); }), HasSubstr("expected an object, found 1"));
  EXPECT_THAT(Refusal([&] { config.Strings("x"); }), HasSubstr("a list of text, found 1"));
  EXPECT_THAT(Refusal([&] {
                config.Ints("list", {0, 9});
              }),
              HasSubstr("list[1]: expected a whole number from 0 to 9, found \"a\""));
  EXPECT_THAT(Refusal([&] { config.Strings("list"); }), HasSubstr("list[0]: expected text"));
  EXPECT_THAT(Refusal([&] {
                config.Object("rope")->Float("factor", {1, 2});
              }),
              HasSubstr("rope.factor: expected a number from 1 to 2, found -1"));
  EXPECT_THAT(Refusal([&] { config.Refuse("x", "a divisor of 7"); }),
              HasSubstr("x: expected a divisor of 7, found 1"));
}

TEST(HfConfigTest, NotesWhichKeysWereRead) {
  const HfConfig config = Config(R"({"a":1,"b":true,"c":null,"rope":{"factor":2,"beta":3}})");
  const HfConfig copy = config;
  config.Int("a", {0, 9});
  EXPECT_TRUE(config.Has("b"));
  config.IsNull("c");
  config.Object("rope")->Float("factor", {0, 9});
  EXPECT_TRUE(copy.WasRead("a"));
  EXPECT_FALSE(copy.WasRead("b")) << "its value was not asked for";
  EXPECT_FALSE(copy.WasRead("c"));
  EXPECT_TRUE(copy.WasRead("rope"));
  EXPECT_TRUE(copy.Object("rope")->WasRead("factor"));
  EXPECT_FALSE(copy.Object("rope")->WasRead("beta"));
  EXPECT_FALSE(copy.WasRead("factor")) << "another key";
  copy.MarkAsRead("b");
  EXPECT_TRUE(config.WasRead("b"));
  EXPECT_FALSE(Config(R"({"a":1})").WasRead("a")) << "another file";
}

TEST(HfConfigTest, ComparesValuesAndListsOfThem) {
  const HfConfig config = Config(R"({"one":1.0,"off":false,"all":["x","x"],"some":["x","y"],)"
                                 R"("none":[],"null":null,"object":{}})");
  EXPECT_TRUE(config.IsAmong("one", "[0, 1]"));
  EXPECT_FALSE(config.IsAmong("one", "[0]"));
  EXPECT_TRUE(config.IsAmong("off", "[false]"));
  EXPECT_FALSE(config.IsAmong("off", "[0]"));
  EXPECT_TRUE(config.IsAmong("all", R"(["x"])"));
  EXPECT_FALSE(config.IsAmong("some", R"(["x"])"));
  EXPECT_FALSE(config.IsAmong("object", "[]"));
  for (const char* key : {"none", "null", "absent"}) EXPECT_TRUE(config.IsAmong(key, "[]")) << key;
  EXPECT_EQ(config.Spell("one"), "config.json: one: 1.0");
  EXPECT_EQ(config.Spell("some"), "config.json: some: a list of 2 values");
}

TEST(HfConfigTest, RefusesBrokenJson) {
  for (const char* text : {"", "{", "[]", "7", "null", R"({"a":1,"a":2})", R"({"a":NaN})",
                           R"({"a":-Infinity})", R"({"a":1e999})", "{\"a\":\"\xff\"}", "{} x"}) {
    ErrorOf(ErrorKind::kFormat, [&] { Config(text); });
  }
  ErrorOf(ErrorKind::kFormat, [] { Config(std::string("{}\0{}", 5)); });
  ErrorOf(ErrorKind::kFormat, [] { Config(std::string(10'000, '[') + std::string(10'000, ']')); });
  ErrorOf(ErrorKind::kFormat, [] { Config(std::string(10'000'000, '[')); });
}

TEST(HfConfigTest, InfinityIsANumberWhereTheRangeHasIt) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  for (const char* text : {R"({"a":[0,Infinity]})", R"({"a":[0,{"__float__":"Infinity"}]})"}) {
    const HfConfig config = Config(text);
    EXPECT_THAT(config.Floats("a", {0, kInfinite}), ElementsAre(0, kInfinite));
    ErrorOf(ErrorKind::kFormat, [&] { config.Floats("a", {0, 1e9}); });
  }
  ErrorOf(ErrorKind::kFormat, [] {
    Config(R"({"a":[{"__float__":"NaN"}]})").Floats("a", {0, kInfinite});
  });
}

TEST(HfConfigTest, AnObjectOutlivesItsParent) {
  auto config = std::make_unique<HfConfig>(Config(R"({"rope":{"factor":2}})"));
  const HfConfig rope = *config->Object("rope");
  config.reset();
  EXPECT_EQ(rope.Int("factor", {0, 9}), 2);
}

TEST(HfConfigTest, LoadsFromDisk) {
  TempFolder folder;
  EXPECT_EQ(HfConfig::Load(folder.Write("config.json", R"({"n":1})")).Int("n", {0, 1}), 1);
  EXPECT_THAT(ErrorOf(ErrorKind::kIo, [&] { HfConfig::Load(folder.path() / "none.json"); }),
              HasSubstr("none.json"));
  ErrorOf(ErrorKind::kIo, [&] { HfConfig::Load(folder.path()); });
}

}  // namespace
}  // namespace godwit::hf_config_test
