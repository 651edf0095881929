#include "text/json_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "text/load_tokenizer.h"
#include "text/test_data.h"
#include "text/tokenizer.h"

namespace godwit::json_grammar_test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kPerson[] = R"({
  "type": "object",
  "properties": {
    "name": {"type": "string", "maxLength": 12},
    "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "tags": {"type": "array", "items": {"enum": ["a", "b", null]}, "maxItems": 3}
  },
  "required": ["name", "age", "tags"],
  "additionalProperties": false
})";

constexpr int32_t kEnd = 361;  // "</s>"
std::filesystem::path ByteLevel() { return TestData() / "tokenizers/byte_level"; }

std::function<std::string()> JsonOf(const std::filesystem::path& folder) {
  return [folder] { return ReadTokenizerFile(folder); };
}

// Chooses among the allowed tokens, now and then among those that end something.
class Writer {
 public:
  Writer(const std::filesystem::path& folder, int32_t eos)
      : eos_(eos), tokenizer_(LoadTokenizer(folder)), grammar_(JsonOf(folder), {eos}) {
    for (const char* const end : {"\"", "{", "}", "[", "]", ",", ":", "0"}) {
      ends_.push_back(tokenizer_->Encode(end, /*add_special_tokens=*/false).back());
    }
    std::ranges::sort(ends_);
  }

  const JsonGrammar& grammar() const { return grammar_; }

  // Writes a value of the schema. Empty: the value has no end within so many tokens.
  std::string Write(std::string_view schema, uint32_t seed, int most = 500) const {
    std::mt19937 random(seed);
    const auto matcher = grammar_.Match(schema);
    std::vector<int32_t> tokens;
    while (std::ssize(tokens) < most) {
      const auto allowed = Ids(matcher->Allowed(tokens));
      if (allowed == std::vector{eos_}) return tokenizer_->Decode(tokens, false);
      std::vector<int32_t> likely;
      std::ranges::set_intersection(allowed, ends_, std::back_inserter(likely));
      const auto& from = !likely.empty() && random() % 2 == 0 ? likely : allowed;
      const int32_t token = from[random() % from.size()];
      if (token == eos_) return tokenizer_->Decode(tokens, false);
      tokens.push_back(token);
    }
    return "";
  }

  static std::vector<int32_t> Ids(const std::vector<uint32_t>& words) {
    std::vector<int32_t> ids;
    for (size_t i = 0; i < 32 * words.size(); ++i) {
      if (words[i / 32] >> (i % 32) & 1) ids.push_back(static_cast<int32_t>(i));
    }
    return ids;
  }

 private:
  int32_t eos_;
  std::unique_ptr<Tokenizer> tokenizer_;
  JsonGrammar grammar_;
  std::vector<int32_t> ends_;
};

void ExpectPersons(const Writer& writer) {
  int whole = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const std::string text = writer.Write(kPerson, seed);
    if (text.empty()) continue;
    ++whole;
    const json person = json::parse(text, nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(person.is_object()) << text;
    EXPECT_EQ(person.size(), 3) << text;
    EXPECT_TRUE(person["name"].is_string()) << text;
    EXPECT_TRUE(person["age"].is_number_integer()) << text;
    EXPECT_GE(person["age"].get<int64_t>(), 0) << text;
    EXPECT_LE(person["age"].get<int64_t>(), 150) << text;
    EXPECT_LE(person["tags"].size(), 3) << text;
    for (const json& tag : person["tags"]) {
      EXPECT_TRUE(tag == "a" || tag == "b" || tag.is_null()) << text;
    }
  }
  EXPECT_GE(whole, 15);
}

TEST(JsonGrammar, OutputMatchesTheSchemaByteLevel) { ExpectPersons(Writer(ByteLevel(), kEnd)); }

TEST(JsonGrammar, OutputMatchesTheSchemaSentencePiece) {
  ExpectPersons(Writer(TestData() / "tokenizers/sentencepiece", 2));
}

TEST(JsonGrammar, OutputMatchesTheSchemaInRealTokenizers) {
  if (!std::filesystem::exists(SharedTokenizers())) GTEST_SKIP() << "no ../shared";
  ExpectPersons(Writer(SharedTokenizers() / "llama-2", 2));
  ExpectPersons(Writer(SharedTokenizers() / "qwen2.5", 151645));
}

TEST(JsonGrammar, AnyObject) {
  const Writer writer(ByteLevel(), kEnd);
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const std::string text = writer.Write(R"({"type": "object"})", seed);
    EXPECT_TRUE(text.empty() || json::parse(text, nullptr, false).is_object()) << text;
  }
}

TEST(JsonGrammar, TheEndIsAllThatMayFollowTheWhole) {
  const Writer writer(ByteLevel(), kEnd);
  const auto tokenizer = LoadTokenizer(ByteLevel());
  const auto matcher = writer.grammar().Match(R"({"const": true})");
  EXPECT_EQ(Writer::Ids(matcher->Allowed(tokenizer->Encode("true", false))),
            std::vector<int32_t>{kEnd});
  const auto longer = writer.grammar().Match(R"({"type": "integer"})");
  EXPECT_THAT(Writer::Ids(longer->Allowed(tokenizer->Encode("12", false))),
              ::testing::Contains(kEnd));
}

TEST(JsonGrammar, BlanksComeToAnEnd) {
  const Writer writer(ByteLevel(), kEnd);
  const auto tokenizer = LoadTokenizer(ByteLevel());
  const auto blank = tokenizer->Encode("\n", false).front();
  const auto matcher = writer.grammar().Match(R"({"type": "object"})");
  const auto allowed = Writer::Ids(matcher->Allowed(tokenizer->Encode("{\n", false)));
  EXPECT_THAT(allowed, Not(::testing::Contains(blank)));
}

// Blanks between two JSON tokens: as few as models write.
TEST(JsonGrammar, BlanksAreFew) {
  const Writer writer(ByteLevel(), kEnd);
  const auto tokenizer = LoadTokenizer(ByteLevel());
  const auto may_follow = [&](const std::string& begin, const std::string& next) {
    const auto matcher = writer.grammar().Match(R"({"type": "object"})");
    auto tokens = tokenizer->Encode(begin, false);
    const auto whole = tokenizer->Encode(begin + next, false);
    tokens.assign(whole.begin(), whole.end() - 1);
    try {
      const auto allowed = Writer::Ids(matcher->Allowed(tokens));
      return std::ranges::find(allowed, whole.back()) != allowed.end();
    } catch (const Error&) {
      return false;  // the beginning might not be allowed already
    }
  };
  EXPECT_TRUE(may_follow("{\n", std::string(20, ' ')));
  EXPECT_FALSE(may_follow("{\n", std::string(21, ' ')));
  EXPECT_TRUE(may_follow("{\n", std::string(10, '\t')));
  EXPECT_FALSE(may_follow("{\n", std::string(11, '\t')));
  EXPECT_FALSE(may_follow("{\n", " \t"));
  EXPECT_FALSE(may_follow("{", "  "));
}

// Whether a text fulfils the schema: whether it may end there.
bool IsOf(const Writer& writer, const std::string& schema, const std::string& text) {
  const auto tokenizer = LoadTokenizer(ByteLevel());
  const auto matcher = writer.grammar().Match(schema);
  const auto tokens = tokenizer->Encode(text, false);
  try {
    const auto allowed = Writer::Ids(matcher->Allowed(tokens));
    return std::ranges::find(allowed, kEnd) != allowed.end();
  } catch (const Error&) {
    return false;
  }
}

TEST(JsonGrammar, NoKeysAreInvented) {
  const Writer writer(ByteLevel(), kEnd);
  const std::string inner = R"({"type": "object", "properties": {"b": {"type": "integer"}}})";
  const std::string outer = R"({"type": "object", "properties": {"a": )" + inner + "}}";
  EXPECT_TRUE(IsOf(writer, outer, R"({"a": {"b": 1}})"));
  EXPECT_FALSE(IsOf(writer, outer, R"({"a": {"b": 1}, "c": 1})"));
  EXPECT_FALSE(IsOf(writer, outer, R"({"a": {"b": 1, "c": 1}})"));
  EXPECT_FALSE(IsOf(writer, R"({"type": "array", "items": )" + inner + "}", R"([{"c": 1}])"));
  EXPECT_FALSE(
      IsOf(writer, R"({"$ref": "#/$defs/x", "$defs": {"x": )" + inner + "}}", R"({"c": 1})"));
  EXPECT_FALSE(IsOf(writer, R"({"type": "object", "properties": {}})", R"({"c": 1})"));
  // Other keys are allowed if a schema asks for them, or says nothing about keys.
  EXPECT_TRUE(
      IsOf(writer, R"({"properties": {"b": {}}, "additionalProperties": true})", R"({"c": 1})"));
  EXPECT_TRUE(IsOf(writer,
                   R"({"properties": {"b": {}}, "additionalProperties": {"type": "integer"}})",
                   R"({"c": 1})"));
  EXPECT_TRUE(IsOf(writer, R"({"type": "object"})", R"({"c": 1})"));
  EXPECT_TRUE(IsOf(writer, R"({"properties": {"b": {}}, "required": ["c"]})", R"({"c": 1})"));
  // Keys are also allowed where several schemas describe one object.
  const std::string both = R"({"allOf": [{"properties": {"b": {}}, "required": ["b"]},
                                         {"properties": {"c": {}}, "required": ["c"]}]})";
  EXPECT_TRUE(IsOf(writer, both, R"({"b": 1, "c": 1})"));
  EXPECT_TRUE(IsOf(writer, R"({"properties": {"b": {}}, "anyOf": [{"required": ["b"]}, {}]})",
                   R"({"b": 1})"));
  // Names of properties are no keywords, and values are no schemas.
  EXPECT_FALSE(
      IsOf(writer, R"({"properties": {"properties": {"type": "integer"}}})", R"({"c": 1})"));
  EXPECT_TRUE(
      IsOf(writer, R"({"const": {"properties": {"b": {}}}})", R"({"properties": {"b": {}}})"));
}

TEST(JsonGrammar, InvalidSchemaIsRefused) {
  const JsonGrammar grammar(JsonOf(ByteLevel()), {kEnd});
  const auto refused = [&](std::string_view schema) {
    return ErrorOf(ErrorKind::kInput, [&] { grammar.Match(schema); });
  };
  EXPECT_THAT(refused("{"), HasSubstr("EOF"));
  EXPECT_THAT(refused(R"({"type": "nothing"})"), HasSubstr("type"));
  EXPECT_THAT(refused(R"({"type": "object", "if": {}})"), HasSubstr("if"));
  EXPECT_THAT(refused(R"({"$ref": "https://other.example/schema.json"})"), HasSubstr("ref"));
  EXPECT_THAT(refused(R"({"type": "integer", "minimum": 2, "maximum": 1})"), Not(IsEmpty()));
  EXPECT_THAT(refused(R"({"$ref": "#"})"), HasSubstr("refers to itself without end"));
  EXPECT_THAT(refused(R"({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}})"),
              HasSubstr("refers to itself without end"));
  EXPECT_THAT(refused(std::string(JsonGrammar::kMaxSchemaBytes + 1, ' ')), HasSubstr("65536"));
  EXPECT_THAT(
      ErrorOf(ErrorKind::kUnsupported, [] { JsonGrammar(JsonOf(ByteLevel()), {}).Match("{}"); }),
      HasSubstr("no token that ends"));
}

// A new process continues where the killed one was.
TEST(JsonGrammar, AProcessThatIsKilledIsReplaced) {
  const Writer writer(ByteLevel(), kEnd);
  const auto tokenizer = LoadTokenizer(ByteLevel());
  const auto output = tokenizer->Encode(R"({"name": "ab)", false);
  const auto matcher = writer.grammar().Match(kPerson);
  const auto allowed = matcher->Allowed(output);
  std::ifstream children("/proc/self/task/" + std::to_string(gettid()) + "/children");
  for (pid_t child; children >> child;) ASSERT_EQ(kill(child, SIGKILL), 0);
  while (true) {
    try {
      EXPECT_EQ(matcher->Allowed(output), allowed);
      break;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("signal 9"));
    }
  }
}

// Schemas that are deep, wide, or large once they are put together.
TEST(JsonGrammar, RELEASE_OverlargeSchemaIsAnError) {
  const Writer writer(ByteLevel(), kEnd);
  std::string deep = "{}";
  for (int i = 0; i < 1000; ++i) deep = R"({"items": )" + deep + "}";
  const std::string many = R"({"type": "string", "minLength": 100000, "maxLength": 2000000000})";
  const std::string power =
      R"({"type": "string", "pattern": "^(((a{1,99}b{1,99}){1,99}c){1,99}d){1,99}$"})";
  const std::string product = R"({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [)"
                              R"({"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}})";
  std::string all = R"({"allOf": [{})";
  for (int i = 0; i < 500; ++i) {
    all += R"(, {"type": "string", "pattern": "a.*)" + std::to_string(i) + "\"}";
  }
  all += "]}";
  const std::string states = R"({"type": "string", "pattern": "^(.*a.{200}b.*){1,50}$"})";
  for (const std::string& schema : {deep, many, power, product, all, states}) {
    try {
      writer.Write(schema, 1, 200);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput) << error.what();
    }
    EXPECT_EQ(writer.Write(R"({"const": true})", 1), "true");
  }
}

}  // namespace
}  // namespace godwit::json_grammar_test
