// Outputs that are held to a schema.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "base/test_support.h"
#include "engine/engine_test_support.h"

namespace godwit::json_schema_test {
namespace {

using ::testing::HasSubstr;

constexpr char kAnimal[] = R"({
  "type": "object", "required": ["name", "legs"], "additionalProperties": false,
  "properties": {"name": {"type": "string", "maxLength": 8},
                 "legs": {"type": "integer", "minimum": 0, "maximum": 8}}})";

GenerateOptions Held(uint64_t seed) {
  GenerateOptions options{.max_tokens = 200};
  options.sampler = {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = seed};
  options.json_schema = kAnimal;
  return options;
}

class JsonSchemaTest : public testing::Test {
 protected:
  const Engine& engine() const {
    static const Engine engine(kTiny, {.threads = 1});
    return engine;
  }
  GenerateResult Write(const GenerateOptions& options) const {
    return engine().NewSession({}).Generate(engine().Tokenize("Once upon"), options);
  }
};

TEST_F(JsonSchemaTest, OutputMatchesTheSchema) {
  int whole = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const GenerateResult result = Write(Held(seed));
    if (result.finish_reason != FinishReason::kStop) continue;
    ++whole;
    const auto animal = nlohmann::json::parse(result.text);
    EXPECT_LE(animal["name"].get<std::string>().size(), 8u * 4) << result.text;
    EXPECT_LE(animal["legs"].get<int>(), 8) << result.text;
  }
  EXPECT_GE(whole, 5);
}

TEST_F(JsonSchemaTest, DraftsChangeNoOutput) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    GenerateOptions options = Held(seed);
    const auto tokens = Write(options).tokens;
    options.draft = "ngram";
    EXPECT_EQ(Write(options).tokens, tokens);
  }
}

TEST_F(JsonSchemaTest, OtherRequestsChangeNoOutput) {
  const auto prompt = engine().Tokenize("Once upon");
  std::vector<Generation> all;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    GenerateOptions options = Held(seed);
    if (seed % 2 == 1) options.json_schema.clear();
    all.push_back(engine().Submit(prompt, options));
  }
  for (uint64_t seed = 0; seed < 6; seed += 2) {
    EXPECT_EQ(all[seed].Wait().tokens, Write(Held(seed)).tokens);
  }
}

// Reasoning is free, and the schema holds from its end on.
TEST_F(JsonSchemaTest, ThoughtsAreFree) {
  int whole = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    GenerateOptions options = Held(seed);
    options.thought = {.begin = "<think>", .end = "e", .open = true};
    const GenerateResult result = Write(options);
    if (result.finish_reason != FinishReason::kStop) continue;
    ++whole;
    const std::span<const int32_t> tokens = result.tokens;
    const auto thought = static_cast<size_t>(result.thought_tokens);
    ASSERT_GT(thought, 0u);
    EXPECT_THAT(engine().Detokenize(tokens.first(thought)), HasSubstr("e"));
    EXPECT_EQ(engine().Detokenize(tokens.first(thought - 1)).find('e'), std::string::npos);
    const auto animal =
        nlohmann::json::parse(engine().Detokenize(tokens.subspan(thought), /*skip_special=*/true));
    EXPECT_LE(animal["legs"].get<int>(), 8) << result.text;
  }
  EXPECT_GE(whole, 5);
}

// Marks may stand between reasoning and answer.
TEST_F(JsonSchemaTest, TheAnswerBeginsBehindItsMarks) {
  GenerateOptions options = Held(1);
  options.thought = {.begin = "<think>", .end = "e", .open = true, .before_answer = {"a", "o"}};
  const GenerateResult result = Write(options);
  const size_t json = result.text.find('{');
  ASSERT_NE(json, std::string::npos) << result.text;
  const std::string before = result.text.substr(0, json);
  const size_t end = before.find('e');
  const size_t mark = before.find('a', end);
  EXPECT_NE(before.find('o', mark), std::string::npos) << result.text;
}

TEST_F(JsonSchemaTest, NoTextEndsBeforeItsAnswer) {
  GenerateOptions options = Held(1);
  options.max_tokens = 20;
  options.sampler.logit_bias[2] = 100;  // </s>
  EXPECT_THAT(Write(options).text, HasSubstr("{"));
  options.json_schema.clear();
  ASSERT_EQ(Write(options).tokens, (Tokens{2}));
  options.json_schema = kAnimal;
  options.thought = {.begin = "<think>", .end = "\x01", .open = true};
  EXPECT_EQ(Write(options).tokens.size(), 20u);
}

// If the prompt does not begin reasoning, the model may, if it has a token for it.
TEST_F(JsonSchemaTest, AThoughtIsTheModelsChoice) {
  const int32_t x = engine().Tokenize("x", false).back();
  GenerateOptions options = Held(1);
  options.max_tokens = 30;
  options.sampler.logit_bias[x] = -100;
  const Tokens without = Write(options).tokens;
  options.thought = {.begin = "x", .end = "\x01"};
  EXPECT_EQ(Write(options).tokens, without);
  EXPECT_EQ(Write(options).thought_tokens, 0);
  options.sampler.logit_bias[x] = 100;
  const GenerateResult result = Write(options);
  EXPECT_EQ(result.tokens, Tokens(30, x));
  EXPECT_EQ(result.thought_tokens, 30);
}

// Log-probabilities are the model's own, without the schema.
TEST_F(JsonSchemaTest, LogprobsAreTheModels) {
  GenerateOptions options = Held(1);
  options.top_logprobs = 1;
  const GenerateResult result = Write(options);
  ASSERT_FALSE(result.logprobs.empty());
  GenerateOptions free = Greedy(1);
  free.top_logprobs = 1;
  EXPECT_EQ(result.logprobs[0].top[0].token, Write(free).logprobs[0].top[0].token);
  EXPECT_EQ(result.logprobs[0].top[0].logprob, Write(free).logprobs[0].top[0].logprob);
}

TEST_F(JsonSchemaTest, InvalidOptionsAreRefused) {
  GenerateOptions options = Held(0);
  options.ignore_eos = true;
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { Write(options); }), HasSubstr("ignore_eos"));
  options = Held(0);
  options.json_schema = R"({"type": "animal"})";
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { Write(options); }),
              HasSubstr("the JSON schema: Invalid type: animal"));
}

}  // namespace
}  // namespace godwit::json_schema_test
