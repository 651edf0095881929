#include "base/json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace godwit::json_test {
namespace {

using ::testing::HasSubstr;

std::string Nested(int depth, char open, char close) {
  return std::string(depth, open) + std::string(depth, close);
}

std::string ErrorOf(std::string_view text, JsonOptions options = {}) {
  try {
    ParseJson(text, "config.json", options);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFormat);
    EXPECT_THAT(error.what(), HasSubstr("config.json: "));
    return error.what();
  }
  return "no error";
}

TEST(ParseJson, ParsesWhatIsValid) {
  const auto value = ParseJson(R"({"a": [1, 2.5, "x\u00e9", null, true]})", "test");
  EXPECT_EQ(value["a"][2], "xé");
  EXPECT_EQ(value["a"].size(), 5);
}

TEST(ParseJson, NamesThePlaceOfAnError) {
  EXPECT_THAT(ErrorOf("{\"a\":\n 1,}"), HasSubstr("line 2, column 4"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("unexpected end of input"));
  EXPECT_THAT(ErrorOf("{} x"), HasSubstr("column 4"));
  EXPECT_THAT(ErrorOf("1e999"), HasSubstr("number overflow"));
  EXPECT_THAT(ErrorOf("\"\xff\""), HasSubstr("ill-formed UTF-8"));
}

TEST(ParseJson, KeepsAMessageShort) {
  EXPECT_LT(ErrorOf(fmt::format("\"{}", std::string(1'000'000, 'x'))).size(), 500);
}

TEST(ParseJson, RefusesDeepNesting) {
  EXPECT_EQ(ErrorOf(Nested(128, '[', ']')), "no error");
  EXPECT_THAT(ErrorOf(Nested(129, '[', ']')), HasSubstr("more than 128 levels deep at offset 128"));
  EXPECT_THAT(ErrorOf(Nested(1'000'000, '[', ']')), HasSubstr("levels deep"));
  EXPECT_THAT(ErrorOf(std::string(1'000'000, '[')), HasSubstr("levels deep"));
  std::string objects;
  for (int i = 0; i < 10'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(ErrorOf(objects), HasSubstr("levels deep"));
  EXPECT_EQ(ErrorOf(Nested(3, '[', ']'), {.max_depth = 3}), "no error");
  EXPECT_THAT(ErrorOf(Nested(4, '[', ']'), {.max_depth = 3}), HasSubstr("more than 3 levels"));
}

TEST(ParseJson, BracketsInStringsAreNotNesting) {
  const std::string many(1000, '[');
  EXPECT_EQ(ErrorOf(fmt::format(R"("{}\"[[\\")", many)), "no error");
  EXPECT_EQ(ErrorOf(fmt::format(R"(["{}", "\\"])", many)), "no error");
}

TEST(ParseJson, RefusesAZeroByteAnywhere) {
  for (const std::string_view text :
       {std::string_view("{}\0", 3), std::string_view("{}\0{}", 5), std::string_view("{\0}", 3),
        std::string_view("1\0", 2), std::string_view("\0", 1), std::string_view("\"a\0\"", 4)}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr(fmt::format("zero byte at offset {}", text.find('\0'))));
  }
  EXPECT_EQ(ErrorOf(R"("\u0000")"), "no error");
}

TEST(ParseJson, RefusesMoreValuesThanAllowed) {
  EXPECT_EQ(ErrorOf("[1,2]", {.max_values = 3}), "no error");
  EXPECT_THAT(ErrorOf("[1,2,3]", {.max_values = 3}), HasSubstr("more than 3 values at offset 4"));
  EXPECT_THAT(ErrorOf(R"({"a":{"b":{}}})", {.max_values = 3}), HasSubstr("more than 3 values"));
  EXPECT_EQ(ErrorOf(R"([",,[[{{\",,"])", {.max_values = 2}), "no error");
  std::string zeros = "[0";
  for (int i = 0; i < 1'000'000; ++i) zeros += ",0";
  EXPECT_THAT(ErrorOf(zeros + "]"), HasSubstr("more than 1000000 values"));
}

TEST(ParseJson, RELEASE_LooksForDuplicateKeysInLinearTime) {
  // Visiting the siblings of every object would take many minutes here.
  std::string objects = "[{}";
  for (int i = 0; i < 400'000; ++i) objects += ",{}";
  EXPECT_EQ(ErrorOf(objects + "]", {.reject_duplicate_keys = true}), "no error");
}

TEST(ParseJson, RefusesDuplicateKeysWhereAsked) {
  const JsonOptions strict{.reject_duplicate_keys = true};
  EXPECT_THAT(ErrorOf(R"({"a": 1, "b": {"a": 1}, "a": 2})", strict), HasSubstr("two keys \"a\""));
  EXPECT_THAT(ErrorOf(R"([{"x": {"b": 1, "\u0062": 2}}])", strict), HasSubstr("two keys \"b\""));
  EXPECT_EQ(ErrorOf(R"({"a": {"a": [{"a": 1}, {"a": 2}]}, "b": {"a": 1}})", strict), "no error");
  EXPECT_EQ(ErrorOf(R"({"a": 1, "a": 2})"), "no error");
  EXPECT_THAT(ErrorOf(R"({"a": 1,})", strict), HasSubstr("line 1, column 9"));
}

TEST(ParseJson, ReadsPythonsInfinityWhereAsked) {
  const JsonOptions python{.pythons_infinity = true};
  const char* const text = R"({"a": [0.0, Infinity], "Infinity \" Infinity": "Infinity"})";
  EXPECT_EQ(ParseJson(text, "test", python).dump(),
            R"({"Infinity \" Infinity":"Infinity","a":[0.0,{"__float__":"Infinity"}]})");
  EXPECT_THAT(ErrorOf(R"([Infinity])"), HasSubstr("line 1, column 2"));
  EXPECT_NE(ErrorOf(R"([-Infinity])", python), "no error");
  EXPECT_NE(ErrorOf(R"([InfinityInfinity])", python), "no error");
}

TEST(ParseJson, LastOfEqualKeysCounts) {
  EXPECT_EQ(ParseJson(R"({"b": 1, "a": 2, "b": 3})", "test").dump(), R"({"a":2,"b":3})");
}

TEST(ParseOrderedJson, KeepsTheOrderOfKeys) {
  EXPECT_EQ(ParseOrderedJson(R"({"z": 1, "a": 2})", "test").dump(), R"({"z":1,"a":2})");
  EXPECT_EQ(ParseOrderedJson(R"({"z": 1, "a": 2, "z": [3], "b": {}, "z": 4})", "test").dump(),
            R"({"z":4,"a":2,"b":{}})");
}

// Keys in order, in reverse, and alike but for their ends. They stand in one object, and in one
// that holds another object before each key.
TEST(ParseOrderedJson, RELEASE_TakesObjectsOfManyKeysInLinearTime) {
  constexpr int kKeys = 300'000;
  const auto key = [](int i) { return fmt::format("{:*>40}", (i * int64_t{7919}) % kKeys); };
  std::string up = "{", down = "{", inside = "{";
  for (int i = 0; i < kKeys; ++i) {
    const char* const comma = i == 0 ? "" : ",";
    up += fmt::format("{}\"{}\":{}", comma, i, i);
    down += fmt::format("{}\"{}\":{}", comma, key(kKeys - 1 - i), i);
    inside += fmt::format("{}\"{}\":{{\"a\":0,\"b\":0}}", comma, i);
  }
  for (const auto& [text, values_of_key] :
       {std::pair(up, 1), std::pair(down, 1), std::pair(inside, 3)}) {
    JsonWork work;
    const auto json =
        ParseOrderedJson(text + "}", "test", {.reject_duplicate_keys = true, .work = &work});
    EXPECT_EQ(json.size(), size_t{kKeys});
    EXPECT_EQ(json.dump(), text + "}");
    EXPECT_EQ(work.values, values_of_key * kKeys + 1);
    EXPECT_LT(work.comparisons, 40 * kKeys) << "2 log2 of the keys for each";
  }
}

TEST(ParseOrderedJson, ACancelledOneEnds) {
  std::string zeros = "[0";
  for (int i = 0; i < 100'000; ++i) zeros += ",0";
  CancelToken cancel;
  JsonWork work;
  const JsonOptions options{.cancel = &cancel, .work = &work};
  EXPECT_EQ(ParseOrderedJson(zeros + "]", "test", options).size(), 100'001u);
  cancel.Cancel();
  try {
    ParseOrderedJson(zeros + "]", "test", options);
    ADD_FAILURE() << "it was not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCancelled);
  }
  EXPECT_LT(work.values, 10'000);
}

}  // namespace
}  // namespace godwit::json_test
