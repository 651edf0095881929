#include "chat/completion_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/test_support.h"

namespace godwit::chat::completion_request_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

CompletionRequest Parse(const std::string& body, const CompletionDefaults& defaults = {}) {
  return ParseCompletionRequest(ParseOrderedJson(body, "test"), defaults);
}

std::string Refusal(const std::string& body) {
  return ErrorOf(ErrorKind::kInput, [&] { Parse(body); });
}

// The refusal of a request with a prompt and these fields.
std::string FieldRefusal(const std::string& fields) {
  return Refusal(R"({"prompt": "x", )" + fields + "}");
}

TEST(CompletionRequestTest, Passages) {
  const std::string messages = R"("messages": [
      {"role": "system", "content": [{"type": "text", "text": "s"}, {"type": "text", "text": "t"}]},
      {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"},
                                   {"type": "text", "text": "?"}]},
      {"role": "assistant", "content": "yes"},
      {"role": "user", "content": [{"type": "text", "text": "c"}, {"type": "text", "text": "?"}]}])";
  const auto parsed = [&](const std::string& fields) {
    return Parse("{" + messages + fields + "}");
  };
  const CompletionRequest request = parsed(R"(, "passages": true)");
  ASSERT_TRUE(request.passages);
  EXPECT_THAT(request.passages->texts, ElementsAre("a\n", "b\n"));
  EXPECT_EQ(request.passages->read_anew, 32);
  EXPECT_EQ(std::get<std::vector<Message>>(request.prompt)[1].content, "a\nb\n?");
  EXPECT_FALSE(request.include_usage);
  EXPECT_EQ(parsed(R"(, "passages": {"read_anew": 0})").passages->read_anew, 0);
  EXPECT_FALSE(parsed(R"(, "passages": false)").passages);
  EXPECT_FALSE(parsed(R"(, "passages": null)").passages);
  EXPECT_TRUE(parsed(R"(, "passages": true, "stream": true)").include_usage);

  const auto refused = [&](const std::string& fields) {
    return Refusal("{" + messages + fields + "}");
  };
  for (const char* const value :
       {"1", "\"yes\"", "[]", "{}", R"({"read_anew": -1})", R"({"read_anew": 1.5})",
        R"({"read_anew": 18446744073709551615})", R"({"read_anew": 1, "b": 2})", R"({"b": 2})"}) {
    EXPECT_THAT(refused(R"(, "passages": )" + std::string(value)),
                HasSubstr("\"passages\": expected true, false or {\"read_anew\": N}"))
        << value;
  }
  EXPECT_THAT(refused(R"(, "passages": true, "n": 2)"), HasSubstr("\"n\" above 1 exclude"));
  EXPECT_THAT(refused(R"(, "passages": true, "explain_cache": true)"),
              HasSubstr("\"explain_cache\" exclude"));
  EXPECT_EQ(parsed(R"(, "passages": true, "first_token_within_s": 2)").first_token_within_s, 2);
  EXPECT_THAT(FieldRefusal(R"("passages": true)"), HasSubstr("and \"prompt\" exclude"));
  EXPECT_THAT(Refusal(R"({"passages": true, "messages": [{"role": "user", "content": "a"}]})"),
              HasSubstr("expected a user's message whose content is a list of text parts"));
}

TEST(CompletionRequestTest, EveryField) {
  const CompletionRequest request = Parse(R"({
      "model": "any", "user": "me", "stream": false, "prompt": "Once", "n": 3, "max_tokens": 0,
      "query_tokens": 5,
      "temperature": 0.5, "top_p": 0.25, "top_k": 7, "min_p": 0, "eta": 0.125,
      "repetition_penalty": 1.5, "repeat_last_n": -1, "presence_penalty": 0.75,
      "frequency_penalty": -2, "logit_bias": {"5": -100, "6": 1.5}, "seed": 18446744073709551615,
      "stop": ["a", "b"], "ignore_eos": true, "logprobs": 4, "return_token_ids": true,
      "chat_template_kwargs": {"b": 1, "a": 2},
      "first_token_within_s": 2.5, "explain_cache": true})");
  EXPECT_EQ(request.first_token_within_s, 2.5);
  EXPECT_TRUE(request.explain_cache);
  EXPECT_EQ(std::get<std::string>(request.prompt), "Once");
  EXPECT_EQ(request.samples, 3);
  EXPECT_EQ(request.generate.top_logprobs, 4);
  EXPECT_TRUE(request.return_token_ids);
  EXPECT_EQ(request.template_variables.dump(), R"({"b":1,"a":2})");
  const GenerateOptions& generate = request.generate;
  EXPECT_EQ(generate.max_tokens, 0);
  EXPECT_EQ(generate.query_tokens, 5);
  EXPECT_TRUE(generate.ignore_eos);
  EXPECT_THAT(generate.stop, ElementsAre("a", "b"));
  const SamplerOptions& sampler = generate.sampler;
  EXPECT_EQ(sampler.temperature, 0.5f);
  EXPECT_EQ(sampler.top_p, 0.25f);
  EXPECT_EQ(sampler.top_k, 7);
  EXPECT_EQ(sampler.min_p, 0);
  EXPECT_EQ(sampler.eta, 0.125f);
  EXPECT_EQ(sampler.repeat_penalty, 1.5f);
  EXPECT_EQ(sampler.repeat_last_n, -1);
  EXPECT_EQ(sampler.presence_penalty, 0.75f);
  EXPECT_EQ(sampler.frequency_penalty, -2);
  EXPECT_EQ(sampler.seed, UINT64_MAX);
  EXPECT_THAT(sampler.logit_bias, ElementsAre(Pair(5, -100), Pair(6, 1.5f)));
}

TEST(CompletionRequestTest, Prompts) {
  EXPECT_THAT(std::get<std::vector<int32_t>>(Parse(R"({"prompt": [3, 1]})").prompt),
              ElementsAre(3, 1));
  const CompletionRequest chat = Parse(R"({"messages": [
      {"role": "system", "content": "Be brief.", "name": null},
      {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
  ]})");
  ASSERT_TRUE(chat.is_chat());
  const auto& messages = std::get<std::vector<Message>>(chat.prompt);
  ASSERT_EQ(messages.size(), 2);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_EQ(messages[1].content, "a\nb");
}

TEST(CompletionRequestTest, ListsOfPrompts) {
  const CompletionRequest texts = Parse(R"({"prompt": ["a", "b", "c"], "n": 2})");
  EXPECT_EQ(std::get<std::string>(texts.prompt), "a");
  ASSERT_EQ(texts.more_prompts.size(), 2u);
  EXPECT_EQ(std::get<std::string>(texts.more_prompts[1]), "c");
  EXPECT_EQ(texts.answers(), 6);
  const CompletionRequest tokens = Parse(R"({"prompt": [[1, 2], [3]], "echo": true})");
  EXPECT_THAT(std::get<std::vector<int32_t>>(tokens.prompt), ElementsAre(1, 2));
  EXPECT_THAT(std::get<std::vector<int32_t>>(tokens.more_prompts.at(0)), ElementsAre(3));
  EXPECT_TRUE(tokens.echo);
  EXPECT_TRUE(Parse(R"({"prompt": ["a"]})").more_prompts.empty());
  const std::string many = "[" + std::string(8, ' ') + R"("a","a","a","a","a","a","a","a","a"])";
  EXPECT_THAT(Refusal(R"({"n": 128, "prompt": )" + many + "}"), HasSubstr("up to 1024 answers"));
  EXPECT_THAT(Refusal(R"({"messages": [{"role": "user", "content": "x"}], "echo": true})"),
              HasSubstr("\"echo\": expected \"prompt\""));
}

TEST(CompletionRequestTest, ALastMessageOfTheAssistantIsContinued) {
  const auto continues = [](const std::string& last, const std::string& fields) {
    return Parse(R"({"messages": [{"role": "user", "content": "x"}, )" + last + "]" + fields + "}")
        .continues;
  };
  const std::string begun = R"({"role": "assistant", "content": "Once"})";
  const std::string user = R"({"role": "user", "content": "x"})";
  EXPECT_TRUE(continues(begun, ""));
  EXPECT_TRUE(continues(begun, R"(, "add_generation_prompt": false)"));
  EXPECT_TRUE(
      continues(begun, R"(, "continue_final_message": true, "add_generation_prompt": false)"));
  EXPECT_FALSE(continues(begun, R"(, "continue_final_message": false)"));
  EXPECT_FALSE(continues(begun, R"(, "add_generation_prompt": true)"));
  EXPECT_FALSE(continues(user, ""));
  EXPECT_FALSE(continues(user, R"(, "add_generation_prompt": true)"));
  EXPECT_FALSE(continues(R"({"role": "assistant", "tool_calls": [
      {"id": "a", "function": {"name": "f", "arguments": "{}"}}]})",
                         ""));
  for (const char* const field :
       {R"(, "continue_final_message": true)", R"(, "add_generation_prompt": false)"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { continues(user, field); }),
                HasSubstr("a last message of the assistant"));
  }
  EXPECT_THAT(ErrorOf(ErrorKind::kInput,
                      [&] {
                        continues(
                            begun,
                            R"(, "continue_final_message": true, "add_generation_prompt": true)");
                      }),
              HasSubstr("contradict"));
}

// Fields of clients are accepted with values that change nothing here, or that work. Values that
// would promise more are refused.
TEST(CompletionRequestTest, TakesWhatClientsSay) {
  const CompletionRequest request = Parse(R"({"prompt": "x", "store": false, "service_tier": "auto",
      "modalities": ["text"], "cache_prompt": true, "min_tokens": 0, "best_of": 1,
      "prompt_cache_key": "k", "safety_identifier": "s", "metadata": {"a": "b"},
      "keep_alive": "5m", "top_k": -1, "verbosity": "medium", "prompt_cache_retention": null})");
  EXPECT_EQ(request.generate.sampler.top_k, 0) << "all tokens";
  for (const char* const field :
       {R"("store": true)", R"("service_tier": "flex")", R"("modalities": ["text", "audio"])",
        R"("cache_prompt": false)", R"("min_tokens": 5)", R"("best_of": 2)", R"("keep_alive": 0)",
        R"("keep_alive": "0s")", R"("use_beam_search": true)", R"("verbosity": "low")",
        R"("prompt_cache_retention": "24h")"}) {
    const std::string name = std::string(field).substr(0, std::string(field).find(':'));
    EXPECT_THAT(FieldRefusal(field), AllOf(HasSubstr(name), HasSubstr("--lenient"))) << field;
    EXPECT_NO_THROW(Parse(R"({"prompt": "x", )" + std::string(field) + "}", {.lenient = true}))
        << field;
  }
}

TEST(CompletionRequestTest, TheTemplateIsToldHowMuchToThink) {
  const auto variables = [](const std::string& fields) {
    return Parse(R"({"prompt": "x", )" + fields + "}").template_variables.dump();
  };
  EXPECT_EQ(variables(R"("reasoning_effort": "high")"), R"({"reasoning_effort":"high"})");
  EXPECT_EQ(variables(R"("reasoning_effort": "none")"),
            R"({"reasoning_effort":"none","enable_thinking":false})");
  EXPECT_EQ(variables(R"("reasoning_effort": "none",
                         "chat_template_kwargs": {"enable_thinking": true, "reasoning_effort": 2})"),
            R"({"enable_thinking":true,"reasoning_effort":2})");
  EXPECT_THAT(FieldRefusal(R"("reasoning_effort": "much")"), HasSubstr("\"reasoning_effort\": "));
}

TEST(CompletionRequestTest, OlderWordsForCalls) {
  const auto messages = std::get<std::vector<Message>>(Parse(R"({"messages": [
    {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{\"x\": 1}"}},
    {"role": "function", "name": "f", "content": "2"}]})")
                                                           .prompt);
  const auto call = nlohmann::json::parse(messages[0].fields)["tool_calls"][0];
  EXPECT_EQ(call["function"]["arguments"]["x"], 1);
  EXPECT_EQ(messages[1].role, "tool");
  EXPECT_EQ(messages[1].fields, R"({"name":"f"})");
}

TEST(CompletionRequestTest, PicturesAreRefusedInOneSentence) {
  for (const char* const part :
       {R"({"type": "image_url", "image_url": {"url": "data:image/png;base64,SECRET"}})",
        R"({"type": "input_audio", "input_audio": {"data": "SECRET", "format": "wav"}})",
        R"({"type": "file", "file": {"file_id": "SECRET"}})"}) {
    EXPECT_EQ(
        Refusal(fmt::format(R"({{"messages": [{{"role": "user", "content": [{}]}}]}})", part)),
        "\"messages\": pictures, sounds and files are not supported: the model reads text, so "
        "send their content as text");
  }
}

TEST(CompletionRequestTest, MissingFieldsHaveDefaults) {
  CompletionDefaults defaults{.template_variables = {{"a", 1}, {"b", 2}}};
  defaults.generate.max_tokens = 9;
  defaults.generate.sampler.top_k = 3;
  defaults.generate.stop = {"end"};
  const CompletionRequest request = Parse(
      R"({"prompt": "x", "temperature": null, "stop": null, "chat_template_kwargs": {"b": 3}})",
      defaults);
  EXPECT_EQ(request.generate.max_tokens, 9);
  EXPECT_EQ(request.generate.sampler.top_k, 3);
  EXPECT_EQ(request.generate.sampler.temperature, SamplerOptions().temperature);
  EXPECT_THAT(request.generate.stop, ElementsAre("end"));
  EXPECT_EQ(request.template_variables.dump(), R"({"a":1,"b":3})");
  EXPECT_EQ(request.samples, 1);
  EXPECT_EQ(request.generate.top_logprobs, -1);
}

// A penalty of the model's has the reach that the model names.
TEST(CompletionRequestTest, APenaltyOfItsOwnHasTheUsualReach) {
  CompletionDefaults defaults{.repeat_last_n = 64};
  defaults.generate.sampler.repeat_last_n = -1;
  const auto reach = [&](const std::string& body) {
    return Parse(body, defaults).generate.sampler.repeat_last_n;
  };
  EXPECT_EQ(reach(R"({"prompt": "x"})"), -1);
  EXPECT_EQ(reach(R"({"prompt": "x", "repeat_penalty": 1.1})"), 64);
  EXPECT_EQ(reach(R"({"prompt": "x", "repeat_penalty": 1.1, "repeat_last_n": 5})"), 5);
}

TEST(CompletionRequestTest, LogProbabilities) {
  const auto top = [](const std::string& fields) {
    return Parse(R"({"prompt": "x", )" + fields + "}").generate.top_logprobs;
  };
  EXPECT_EQ(top(R"("logprobs": true)"), 0);
  EXPECT_EQ(top(R"("logprobs": false)"), -1);
  EXPECT_EQ(top(R"("logprobs": true, "top_logprobs": 20)"), 20);
  EXPECT_EQ(top(R"("top_logprobs": 5, "logprobs": true)"), 5);
  EXPECT_EQ(top(R"("logprobs": 0)"), 0);
}

TEST(CompletionRequestTest, Streams) {
  const auto plain = Parse(R"({"prompt": "x", "stream": false, "stream_options": null})");
  EXPECT_FALSE(plain.stream || plain.include_usage || plain.return_progress);
  const auto streamed = Parse(
      R"({"return_progress": true, "stream_options": {"include_usage": true}, "prompt": "x",
          "stream": true})");
  EXPECT_TRUE(streamed.stream && streamed.include_usage && streamed.return_progress);
  EXPECT_FALSE(Parse(R"({"prompt": "x", "stream": true})").include_usage);
}

TEST(CompletionRequestTest, RefusesByName) {
  EXPECT_EQ(FieldRefusal(R"("temprature": 1)"),
            R"(unknown field "temprature" (did you mean "temperature"?); --lenient ignores it)");
  EXPECT_EQ(FieldRefusal(R"("zzz": null)"), R"(unknown field "zzz"; --lenient ignores it)");
  EXPECT_THAT(FieldRefusal(R"("functions": [])"), HasSubstr(R"(did you mean "tools"?)"));
  EXPECT_THAT(FieldRefusal(R"("n_predict": 5)"), HasSubstr(R"(did you mean "max_tokens"?)"));
  EXPECT_EQ(FieldRefusal(R"("n": 0)"), R"("n": expected a whole number from 1 to 128, found 0)");
  EXPECT_EQ(FieldRefusal(R"("top_p": "hot")"),
            R"("top_p": expected a number, found a text of 3 bytes)");
  for (const char* field : {R"("n": 129)",
                            R"("n": 1.5)",
                            R"("first_token_within_s": 0)",
                            R"("first_token_within_s": -1)",
                            R"("first_token_within_s": "2")",
                            R"("first_token_within_s": 1e9)",
                            R"("explain_cache": 1)",
                            R"("n": "1")",
                            R"("max_tokens": -1)",
                            R"("max_tokens": 18446744073709551615)",
                            R"("max_tokens": 1e3)",
                            R"("temperature": -1)",
                            R"("temperature": true)",
                            R"("top_p": 1.5)",
                            R"("top_k": -2)",
                            R"("min_p": 2)",
                            R"("seed": -1)",
                            R"("seed": 1.5)",
                            R"("stop": 5)",
                            R"("stop": "")",
                            R"("stop": ["a", ""])",
                            R"("stop": [["a"]])",
                            R"("logit_bias": [])",
                            R"("logit_bias": {"a": 1})",
                            R"("logit_bias": {"-1": 1})",
                            R"("logit_bias": {"1": 1, "01": 2})",
                            R"("logit_bias": {"1": "x"})",
                            R"("logprobs": 21)",
                            R"("logprobs": "yes")",
                            R"("logprobs": true, "top_logprobs": -1)",
                            R"("top_logprobs": 2)",
                            R"("logprobs": false, "top_logprobs": 2)",
                            R"("ignore_eos": 1)",
                            R"("chat_template_kwargs": 5)",
                            R"("chat_template_kwargs": {"messages": []})",
                            R"("stream": 1)",
                            R"("stream_options": {"include_usage": true})",
                            R"("stream_options": {"include_obfuscation": true}, "stream": true)",
                            R"("stream_options": [], "stream": true)",
                            R"("return_progress": true)",
                            R"("model": 5)",
                            R"("repeat_penalty": 0)",
                            R"("max_tokens": 1, "max_completion_tokens": 1)",
                            R"("messages": [])",
                            R"("messages": [{"role": "user", "content": "x"}])"}) {
    const std::string name = std::string(field).substr(1, std::string(field).find('"', 1) - 1);
    EXPECT_THAT(FieldRefusal(field), HasSubstr(name)) << field;
  }
}

TEST(CompletionRequestTest, ChoosesAmongWhatIsAllowed) {
  const CompletionDefaults defaults{
      .generate = {.timeout_ms = 5000}, .kv_choices = {"dense", "blocks"}, .prefill_choices = {""}};
  const auto parsed = [&](const std::string& fields) {
    return ParseCompletionRequest(nlohmann::ordered_json::parse(R"({"prompt": "x")" + fields + "}"),
                                  defaults);
  };
  EXPECT_EQ(parsed("").kv, std::nullopt);
  EXPECT_EQ(parsed("").generate.timeout_ms, 5000);
  EXPECT_EQ(parsed(R"(, "kv": "blocks")").kv, "blocks");
  EXPECT_EQ(parsed(R"(, "prefill": "")").prefill, "");
  EXPECT_EQ(parsed(R"(, "timeout_ms": 100)").generate.timeout_ms, 100);
  for (const char* const field : {R"("kv": "sinks:4+60")", R"("kv": 1)", R"("prefill": "window:9")",
                                  R"("timeout_ms": 5001)", R"("timeout_ms": 0)"}) {
    EXPECT_THROW(parsed(std::string(", ") + field), Error) << field;
  }
  EXPECT_THAT(FieldRefusal(R"("kv": "dense")"), HasSubstr("--kv-choice"));
  EXPECT_THAT(FieldRefusal(R"("prefill": "window:9")"), HasSubstr("--prefill-choice"));
  EXPECT_EQ(Parse(R"({"prompt": "x", "timeout_ms": 90000})").generate.timeout_ms, 90000);
}

TEST(CompletionRequestTest, PassesOverWhatIsNotKnownIfItIsTold) {
  const auto request = ParseCompletionRequest(
      nlohmann::ordered_json::parse(
          R"({"messages": [{"role": "user", "content": "x", "name": "y"}], "store": {"a": 1},
              "temperature": 0.5})"),
      {.lenient = true});
  EXPECT_EQ(request.generate.sampler.temperature, 0.5f);
  EXPECT_EQ(std::get<std::vector<Message>>(request.prompt).size(), 1u);
  EXPECT_THROW(ParseCompletionRequest(nlohmann::ordered_json::parse(R"({"prompt": "x", "n": "y"})"),
                                      {.lenient = true}),
               Error)
      << "what is known must make sense";
}

TEST(CompletionRequestTest, ReadsFormats) {
  const auto schema = [](const std::string& format) {
    return Parse(fmt::format(R"({{"prompt": "x", "response_format": {}}})", format))
        .generate.json_schema;
  };
  EXPECT_EQ(schema(R"({"type": "text"})"), "");
  EXPECT_EQ(schema(R"({"type": "json_object"})"), R"({"type": "object"})");
  EXPECT_EQ(schema(R"({"type": "json_schema", "json_schema":
                       {"name": "n", "strict": true, "schema": {"type": "integer"}}})"),
            R"({"type":"integer"})");
  for (const char* const format :
       {"5", "{}", R"({"type": "xml"})", R"({"type": "json_schema"})",
        R"({"type": "json_object", "json_schema": {"schema": {}}})",
        R"({"type": "json_schema", "json_schema": {"schema": 5}})",
        R"({"type": "json_schema", "json_schema": {"name": 5, "schema": {}}})",
        R"({"type": "json_schema", "json_schema": {"schema": {}, "other": 1}})"}) {
    EXPECT_THAT(FieldRefusal(fmt::format(R"("response_format": {})", format)),
                HasSubstr("\"response_format\": "))
        << format;
  }
}

constexpr char kTools[] = R"([
  {"type": "function", "function": {"name": "weather", "description": "of a place",
    "parameters": {"type": "object", "properties": {"place": {"$ref": "#/$defs/place"}},
                   "$defs": {"place": {"type": "string"}}}}},
  {"type": "function", "function": {"name": "now"}}])";

CompletionRequest WithTools(const std::string& more) {
  return Parse(fmt::format(R"({{"messages": [{{"role": "user", "content": "x"}}], "tools": {}{}}})",
                           kTools, more));
}

TEST(CompletionRequestTest, ReadsTools) {
  EXPECT_TRUE(WithTools("").tools.Has("weather") && WithTools("").tools.Has("now"));
  EXPECT_EQ(WithTools("").generate.json_schema, "");
  EXPECT_TRUE(WithTools(R"(, "tool_choice": "none")").tools.list.empty());
  const auto any =
      nlohmann::json::parse(WithTools(R"(, "tool_choice": "required")").generate.json_schema);
  EXPECT_EQ(any["minItems"], 1);
  EXPECT_FALSE(any.contains("maxItems"));
  EXPECT_EQ(any["items"]["anyOf"].size(), 2u);
  EXPECT_EQ(any["items"]["anyOf"][0]["properties"]["arguments"]["properties"]["place"]["$ref"],
            "#/items/anyOf/0/properties/arguments/$defs/place")
      << "what a schema says of itself holds where it stands now";
  const auto one = nlohmann::json::parse(
      WithTools(R"(, "tool_choice": {"type": "function", "function": {"name": "now"}})")
          .generate.json_schema);
  EXPECT_EQ(one["properties"]["name"]["const"], "now");
  const auto single = nlohmann::json::parse(
      WithTools(R"(, "tool_choice": "required", "parallel_tool_calls": false)")
          .generate.json_schema);
  EXPECT_EQ(single["maxItems"], 1);
}

TEST(CompletionRequestTest, RefusesTools) {
  for (const char* const tools :
       {"5", "[5]", R"([{"type": "function"}])", R"([{"type": "x", "function": {"name": "a"}}])",
        R"([{"type": "function", "function": {"name": "a b"}}])",
        R"([{"type": "function", "function": {"name": ""}}])",
        R"([{"type": "function", "function": {"name": "a", "parameters": 5}}])",
        R"([{"type": "function", "function": {"name": "a", "other": 5}}])"}) {
    EXPECT_THAT(FieldRefusal(fmt::format(R"("tools": {})", tools)), HasSubstr("\"tools\": "))
        << tools;
  }
  const auto refusal = [](const char* more) {
    return ErrorOf(ErrorKind::kInput, [&] { WithTools(more); });
  };
  EXPECT_THAT(refusal(R"(, "tool_choice": "some")"), HasSubstr("\"tool_choice\": "));
  EXPECT_THAT(refusal(R"(, "tool_choice": {"type": "function", "function": {"name": "other"}})"),
              HasSubstr("the name of one of the tools"));
  EXPECT_THAT(refusal(R"(, "response_format": {"type": "json_object"})"), HasSubstr("exclude"));
  EXPECT_THAT(Refusal(fmt::format(R"({{"prompt": "x", "tools": {}}})", kTools)),
              HasSubstr("need \"messages\""));
  EXPECT_THAT(Refusal(R"({"messages": [{"role": "user", "content": "x"}],
                          "tool_choice": "required"})"),
              HasSubstr("needs \"tools\""));
}

TEST(CompletionRequestTest, ReadsPastCalls) {
  const CompletionRequest request = Parse(R"({"messages": [
    {"role": "developer", "content": "s"},
    {"role": "assistant", "content": null, "tool_calls": [
      {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]},
    {"role": "tool", "tool_call_id": "a", "content": "2"}]})");
  const auto& messages = std::get<std::vector<Message>>(request.prompt);
  EXPECT_EQ(messages[0].role, "developer") << "the template may know it";
  EXPECT_EQ(messages[1].content, "");
  EXPECT_EQ(
      nlohmann::json::parse(messages[1].fields)["tool_calls"][0]["function"]["arguments"]["x"], 1)
      << "templates expect an object";
  EXPECT_EQ(messages[2].fields, R"({"tool_call_id":"a"})");
}

TEST(CompletionRequestTest, ArgumentsOfPastCallsHaveLimits) {
  const std::string deep = R"({\"x\": )" + std::string(100'000, '[');
  const CompletionRequest request = Parse(
      R"({"messages": [{"role": "assistant", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": ")" +
      deep + std::string(100'000, ']') + R"(}"}}]}]})");
  const auto& message = std::get<std::vector<Message>>(request.prompt).front();
  EXPECT_TRUE(
      nlohmann::json::parse(message.fields)["tool_calls"][0]["function"]["arguments"].is_string());
}

// A refusal may be read by other people than the text's author.
TEST(CompletionRequestTest, RefusalsQuoteNoText) {
  for (const char* const field :
       {R"("temperature": "SECRET")", R"("stop": [5, "SECRET"])", R"("logit_bias": {"SECRET": 1})",
        R"("kv": "SECRET")", R"("seed": "SECRET")"}) {
    EXPECT_THAT(FieldRefusal(field), testing::Not(HasSubstr("SECRET"))) << field;
  }
}

TEST(CompletionRequestTest, RefusesPrompts) {
  EXPECT_EQ(Refusal("{}"), R"(a request needs "messages" or "prompt")");
  EXPECT_THAT(Refusal("[]"), HasSubstr("an object"));
  for (const char* body : {R"({"prompt": ""})", R"({"prompt": []})", R"({"prompt": ["a", ""]})",
                           R"({"prompt": [[1], []]})"}) {
    EXPECT_THAT(Refusal(body), HasSubstr("the prompt is empty"));
  }
  for (const char* prompt :
       {R"(5)", R"({})", R"(["a", 1])", R"([1, -1])", R"([2147483648])", R"([1.5])",
        R"([[1, "a"]])", R"([true])", R"([["a"]])", R"([1, [1]])", R"([[[1]]])"}) {
    EXPECT_THAT(Refusal(fmt::format(R"({{"prompt": {}}})", prompt)), HasSubstr("\"prompt\": "))
        << prompt;
  }
  for (const char* message :
       {R"(5)", R"({})", R"({"role": "user"})", R"({"content": "x"})",
        R"({"role": 1, "content": "x"})", R"({"role": "user", "content": null})",
        R"({"role": "user", "content": "x", "tool_calls": {}})",
        R"({"role": "assistant", "tool_calls": [{"id": "a"}]})",
        R"({"role": "tool", "content": "x", "tool_call_id": 1})",
        R"({"role": "user", "content": ["x"]})",
        R"({"role": "user", "content": [{"type": "image_url", "text": "x"}]})"}) {
    EXPECT_THAT(Refusal(fmt::format(R"({{"messages": [{}]}})", message)),
                HasSubstr("\"messages\": "))
        << message;
  }
}

}  // namespace
}  // namespace godwit::chat::completion_request_test
