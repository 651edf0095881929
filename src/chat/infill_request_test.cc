#include "chat/infill_request.h"

#include <gmock/gmock.h>

#include <string>

#include "base/error.h"
#include "chat/infill_json.h"

namespace godwit::chat::infill_request_test {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

CompletionRequest Parse(const std::string& fields, const CompletionDefaults& defaults = {}) {
  return ParseInfillRequest(Json::parse("{" + fields + "}"), defaults);
}

std::string Refusal(const std::string& fields) {
  try {
    Parse(fields);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(InfillRequestTest, IsATextWithAHole) {
  const auto request = Parse(R"("input_prefix": "a", "input_suffix": "b", "prompt": "c",
      "input_extra": [{"filename": "x.py", "text": "one"}], "n_predict": 7, "stop": ["y"],
      "cache_prompt": true, "stream": true)");
  EXPECT_EQ(std::get<std::string>(request.prompt), "a");
  ASSERT_TRUE(request.fill);
  EXPECT_EQ(request.fill->behind, "b");
  EXPECT_EQ(request.fill->begun, "c");
  EXPECT_EQ(request.fill->files[0].name, "x.py");
  EXPECT_EQ(request.fill->files[0].text, "one");
  EXPECT_EQ(request.generate.max_tokens, 7);
  const auto empty = Parse(R"("input_prefix": "", "input_suffix": null, "n_predict": -1)");
  EXPECT_TRUE(empty.fill);
  EXPECT_EQ(empty.generate.max_tokens, -1);
}

TEST(InfillRequestTest, RefusesOtherThings) {
  for (const char* const field :
       {R"("input_prefix": 5)", R"("input_suffix": ["SECRET"])", R"("prompt": [1, 2])",
        R"("input_extra": "SECRET")", R"("input_extra": [{"filename": "x"}])",
        R"("input_extra": [{"filename": "x", "text": 5}])", R"("input_extra": [5])",
        R"("input_extra": [{"filename": "x", "text": "y", "z": 1}])", R"("n": 2)",
        R"("messages": [])", R"("suffix": "SECRET")", R"("logprobs": 1)", R"("stream_options": {})",
        R"("n_indent": 4)"}) {
    const std::string name = std::string(field).substr(0, std::string(field).find(':'));
    EXPECT_THAT(Refusal(field), AllOf(HasSubstr(name), Not(HasSubstr("SECRET")))) << field;
  }
  EXPECT_NO_THROW(Parse(R"("input_prefix": "a", "n_indent": 4, "n": 1)", {.lenient = true}));
}

TEST(InfillRequestTest, SuffixOfACompletion) {
  const auto parse = [](const std::string& fields) {
    return ParseCompletionRequest(Json::parse("{" + fields + "}"));
  };
  const auto request = parse(R"("prompt": "a", "suffix": "b", "n": 2)");
  EXPECT_EQ(request.fill->behind, "b");
  EXPECT_EQ(request.samples, 2);
  EXPECT_TRUE(parse(R"("prompt": "", "suffix": "b")").fill);
  EXPECT_FALSE(parse(R"("prompt": "a", "suffix": "")").fill);
  for (const char* const fields :
       {R"("prompt": [1, 2], "suffix": "b")", R"("prompt": ["a", "b"], "suffix": "b")",
        R"("prompt": "a", "suffix": 5)", R"("prompt": "a", "suffix": "b", "echo": true)",
        R"("messages": [{"role": "user", "content": "a"}], "suffix": "b")"}) {
    try {
      parse(fields);
      ADD_FAILURE() << fields;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("\"suffix\"")) << fields;
    }
  }
}

TEST(InfillJsonTest, SaysHowItEnded) {
  const auto request = Parse(R"("input_prefix": "a", "stop": ["y"])");
  const CompletionName name{.id = "7", .model = "m"};
  GenerateResult result{.text = "b", .tokens = {1, 2}, .prompt_tokens = 5};
  EXPECT_EQ(InfillJson(request, result, name, /*is_whole=*/true)["stop_type"], "eos");
  result.stop = "<|fim_pad|>";
  const Json whole = InfillJson(request, result, name, /*is_whole=*/true);
  EXPECT_EQ(whole["stop_type"], "eos");
  EXPECT_EQ(whole["content"], "b");
  EXPECT_EQ(whole["tokens_evaluated"], 5);
  result.stop = "y";
  const Json last = InfillJson(request, result, name, /*is_whole=*/false);
  EXPECT_EQ(last["stop_type"], "word");
  EXPECT_EQ(last["stopping_word"], "y");
  EXPECT_EQ(last["content"], "");
  result.finish_reason = FinishReason::kLength;
  result.stop.clear();
  EXPECT_EQ(InfillJson(request, result, name, /*is_whole=*/true)["stop_type"], "limit");
}

}  // namespace
}  // namespace godwit::chat::infill_request_test
