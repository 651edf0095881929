// Api: continuing texts.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "server/api_test_support.h"

namespace godwit::server::api_completions_test {
namespace {

using testing::HasSubstr;
using ApiCompletionsTest = ApiTest;

TEST_F(ApiCompletionsTest, TextsHaveTheAnswerOfTheEngine) {
  const Tokens prompt = Prompt(1, 100);
  const auto expected = TinyEngine().NewSession({}).Generate(prompt, GreedyWithLogprobs(8));
  const auto reply =
      Post("/v1/completions", {{"prompt", prompt}, {"logprobs", 0}, {"return_token_ids", true}});
  ASSERT_EQ(reply->status(), 200) << reply->body();
  const Json json = reply->json(), choice = json["choices"][0];
  EXPECT_EQ(json["object"], "text_completion");
  EXPECT_EQ(choice["text"], expected.text);
  EXPECT_EQ(choice["token_ids"], Json(expected.tokens));
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(choice["logprobs"]["token_logprobs"].size(), 8u);
  EXPECT_EQ(json["usage"]["prompt_tokens"], 100);
  EXPECT_EQ(json["timings"]["predicted_n"], 8);
  api_->Drain();
  EXPECT_EQ(served_.back().completion.output_tokens, 8);
}

// Pieces of a stream, joined, are the whole answer.
TEST_F(ApiCompletionsTest, StreamGivesTheSameText) {
  const Tokens prompt = Prompt(1, 100);
  Json body{{"prompt", prompt}, {"n", 2},           {"seed", 3},
            {"logprobs", 2},    {"temperature", 1}, {"return_token_ids", true}};
  const Json whole = Post("/v1/completions", body)->json();
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  body["return_progress"] = true;
  const auto chunks = Post("/v1/completions", body)->chunks();
  ASSERT_GT(chunks.size(), 4u);
  EXPECT_EQ(chunks.back(), "[DONE]");
  EXPECT_EQ(chunks[chunks.size() - 2]["usage"]["completion_tokens"],
            whole["usage"]["completion_tokens"]);
  bool progress = false;
  for (int i = 0; i < 2; ++i) {
    std::string text, finish;
    Json tokens = Json::array(), logprobs = Json::array();
    for (size_t k = 0; k + 1 < chunks.size(); ++k) {
      progress = progress || chunks[k].value("/prompt_progress/left_ms"_json_pointer, -1) == 0;
      for (const Json& choice : chunks[k]["choices"]) {
        if (choice["index"] != i) continue;
        text += choice["text"].get<std::string>();
        if (choice.contains("token_ids")) {
          tokens.insert(tokens.end(), choice["token_ids"].begin(), choice["token_ids"].end());
        }
        if (!choice["logprobs"].is_null()) {
          const Json& more = choice["logprobs"]["token_logprobs"];
          logprobs.insert(logprobs.end(), more.begin(), more.end());
        }
        if (choice["finish_reason"].is_string()) finish = choice["finish_reason"];
      }
    }
    const Json& expected = whole["choices"][i];
    EXPECT_EQ(text, expected["text"]);
    EXPECT_EQ(tokens, expected["token_ids"]);
    EXPECT_EQ(logprobs, expected["logprobs"]["token_logprobs"]);
    EXPECT_EQ(finish, expected["finish_reason"]);
  }
  EXPECT_TRUE(progress);
}

// Each prompt of a list has the answers that it would have alone.
TEST_F(ApiCompletionsTest, PromptsOfAList) {
  const Tokens one = Prompt(1, 40), two = Prompt(2, 60);
  Json body{{"n", 2}, {"seed", 3}, {"temperature", 1}, {"return_token_ids", true}};
  const auto answers_to = [&](const Json& prompt) {
    body["prompt"] = prompt;
    return Post("/v1/completions", body)->json();
  };
  const Json first = answers_to(one), second = answers_to(two), both = answers_to({one, two});
  ASSERT_EQ(both["choices"].size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const Json& alone = (i < 2 ? first : second)["choices"][i % 2];
    EXPECT_EQ(both["choices"][i]["index"], i);
    EXPECT_EQ(both["choices"][i]["token_ids"], alone["token_ids"]) << i;
  }
  EXPECT_EQ(both["usage"]["prompt_tokens"], 100);
  EXPECT_EQ(both["usage"]["completion_tokens"], 32);
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  const auto chunks = Post("/v1/completions", body)->chunks();
  std::vector<Tokens> streamed(4);
  for (const Json& chunk : chunks) {
    if (!chunk.is_object()) continue;
    for (const Json& choice : chunk["choices"]) {
      if (!choice.contains("token_ids")) continue;
      Tokens& tokens = streamed[choice["index"].get<size_t>()];
      for (const Json& token : choice["token_ids"]) tokens.push_back(token);
    }
  }
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(both["choices"][i]["token_ids"], Json(streamed[i]));
  EXPECT_EQ(chunks[chunks.size() - 2]["usage"]["prompt_tokens"], 100);
}

// Log-probabilities of prompt tokens are those that the tokens would have as outputs.
TEST_F(ApiCompletionsTest, EchoGivesPromptLogProbabilities) {
  const Tokens prompt = Prompt(1, 40);
  const auto written = TinyEngine().NewSession({}).Generate(prompt, GreedyWithLogprobs(8));
  Tokens whole = prompt;
  whole.insert(whole.end(), written.tokens.begin(), written.tokens.end());
  Json body{{"prompt", {whole, prompt}}, {"echo", true}, {"logprobs", 1}, {"max_tokens", 1}};
  const Json json = Post("/v1/completions", body)->json(), choice = json["choices"][0];
  const Json& logprobs = choice["logprobs"];
  ASSERT_EQ(logprobs["token_logprobs"].size(), 49u);
  EXPECT_TRUE(logprobs["token_logprobs"][0].is_null());
  EXPECT_TRUE(logprobs["top_logprobs"][0].is_null());
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(logprobs["token_logprobs"][40 + i], Json(written.logprobs[i].logprob)) << i;
    EXPECT_EQ(logprobs["top_logprobs"][40 + i][logprobs["tokens"][40 + i].get<std::string>()],
              logprobs["token_logprobs"][40 + i])
        << "the likeliest";
  }
  EXPECT_THAT(choice["text"].get<std::string>(),
              testing::StartsWith(TinyEngine().Detokenize(whole)));
  EXPECT_EQ(json["usage"]["completion_tokens"], 2);
  EXPECT_EQ(json["choices"][1]["logprobs"]["token_logprobs"][40], Json(written.logprobs[0].logprob))
      << "of the output";
  body["stream"] = true;
  std::string text;
  Json streamed = Json::array();
  for (const Json& chunk : Post("/v1/completions", body)->chunks()) {
    if (!chunk.is_object()) continue;
    for (const Json& part : chunk["choices"]) {
      if (part["index"] != 0) continue;
      text += part["text"].get<std::string>();
      if (part["logprobs"].is_null()) continue;
      for (const Json& one : part["logprobs"]["token_logprobs"]) streamed.push_back(one);
    }
  }
  EXPECT_EQ(text, choice["text"]);
  EXPECT_EQ(streamed, logprobs["token_logprobs"]);
}

TEST_F(ApiCompletionsTest, EchoesOfTexts) {
  const std::string prompt = "Once upon a time";
  Json body{{"prompt", prompt}, {"n", 2}, {"seed", 3}, {"temperature", 1}};
  const Json without = Post("/v1/completions", body)->json();
  body["echo"] = true;
  const Json with = Post("/v1/completions", body)->json();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(with["choices"][i]["text"],
              prompt + without["choices"][i]["text"].get<std::string>());
  }
  EXPECT_EQ(with["usage"]["completion_tokens"], without["usage"]["completion_tokens"]);
  body["stream"] = true;
  std::string text;
  for (const Json& chunk : Post("/v1/completions", body)->chunks()) {
    if (chunk.is_object() && chunk["choices"][0]["index"] == 1) {
      text += chunk["choices"][0]["text"].get<std::string>();
    }
  }
  EXPECT_EQ(text, with["choices"][1]["text"]);
}

// A client that disconnects ends the reading of its prompt.
TEST_F(ApiCompletionsTest, EchoOfAGoneClientEnds) {
  Start({.session = {.kv = "sinks:4+60"}});
  Json body = kLong;
  body["echo"] = true;
  body["logprobs"] = 1;
  const auto reply = Ask("POST", "/v1/completions", body.dump());
  while (Ask("GET", "/slots")->json()[0]["is_processing"] != true) continue;
  reply->GoAway();
  api_->Drain();
  EXPECT_TRUE(served_.back().gone || served_.front().gone);
}

TEST_F(ApiCompletionsTest, APromptThatDoesNotFitSaysSoForPrograms) {
  const int64_t most = TinyEngine().NewSession({}).limit_tokens();
  Start({.defaults = {.kv_choices = {"dense", "sinks:4+60"}}});
  const auto reply = Post("/v1/completions", {{"prompt", Prompt(1, most + 5)}});
  EXPECT_THAT(MessageOf(*reply, 400), HasSubstr("send it with \"kv\": \"sinks:4+60\""));
  const Json error = reply->json()["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_EQ(error["n_prompt_tokens"], most + 5);
  EXPECT_EQ(error["n_ctx"], most);
  Start({.session = {.context_tokens = most - 10}});
  std::string text;
  while (std::ssize(TinyEngine().Tokenize(text)) < most - 5) text += "Once upon a time ";
  const Json chat{{"messages", {{{"role", "user"}, {"content", text}}}}, {"stream", true}};
  const auto small = Post("/v1/chat/completions", chat);
  EXPECT_THAT(MessageOf(*small, 400), HasSubstr("--kv-choice sinks:4+"));
  EXPECT_EQ(small->json()["error"]["n_ctx"], most - 10);
  EXPECT_GT(small->json()["error"]["n_prompt_tokens"], most - 10);
}

// A text larger than all caches is refused. When two texts fit only one at a time, one waits.
TEST_F(ApiCompletionsTest, TextsThatTakeAllMemory) {
  constexpr int64_t kPages = 3, kTokens = 64;
  const int64_t page = TinyEngine().KvBytes(kTokens, {});
  const Engine engine(kTiny, {.threads = 1, .kv_memory_bytes = kPages * page});
  Start({.parallel = 2}, engine);
  const auto refused = Post("/v1/completions", {{"prompt", Prompt(1, kPages * kTokens + 1)}});
  EXPECT_THAT(MessageOf(*refused, 400), HasSubstr("enough for 192 tokens: shorten it, or"));
  const Json error = refused->json()["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_EQ(error["n_prompt_tokens"], 193);
  EXPECT_EQ(error["n_ctx"], 192);
  std::vector<std::shared_ptr<Answered>> replies;
  const auto body_of = [](int i) {
    return Json{{"prompt", Prompt(i, 120)}, {"max_tokens", 60}, {"return_token_ids", true}};
  };
  for (const int i : {1, 2}) replies.push_back(Ask("POST", "/v1/completions", body_of(i).dump()));
  for (const int i : {1, 2}) {
    Answered& reply = *replies[i - 1];
    reply.WaitForEnd();
    ASSERT_EQ(reply.status(), 200) << reply.body();
    const auto alone = TinyEngine().NewSession({}).Generate(Prompt(i, 120), Greedy(60));
    EXPECT_EQ(reply.json()["choices"][0]["token_ids"], Json(alone.tokens)) << i;
  }
  api_.reset();
}

TEST_F(ApiCompletionsTest, RequestChoosesItsCachePolicy) {
  Start({.defaults = {.kv_choices = {"dense", "sinks:4+60"}}});
  const Tokens prompt = Prompt(4, 200);
  for (const char* const kv : {"dense", "sinks:4+60"}) {
    const auto reply =
        Post("/v1/completions", {{"prompt", prompt}, {"kv", kv}, {"return_token_ids", true}});
    const auto expected = TinyEngine().NewSession({.kv = kv}).Generate(prompt, Greedy(8));
    EXPECT_EQ(reply->json()["choices"][0]["token_ids"], Json(expected.tokens)) << kv;
  }
  EXPECT_THAT(MessageOf(*Post("/v1/completions", {{"prompt", prompt}, {"kv", "blocks"}}), 400),
              HasSubstr(R"(expected "dense" or "sinks:4+60")"));
}

}  // namespace
}  // namespace godwit::server::api_completions_test
