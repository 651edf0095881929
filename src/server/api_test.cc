#include "server/api.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/test_folder.h"
#include "engine/engine_test_support.h"
#include "server/page.h"

namespace godwit::server::api_test {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// An answer that a test looks at.
class Answered : public HttpReply {
 public:
  void Send(int status, std::string_view /*content_type*/, std::string_view body,
            Headers headers) override {
    const std::lock_guard lock(mutex_);
    status_ = status;
    body_ = body;
    for (const auto& [name, value] : headers) headers_.emplace(name, value);
    ended_ = true;
    changed_.notify_all();
  }
  void Begin(std::string_view /*content_type*/) override {
    const std::lock_guard lock(mutex_);
    status_ = 200;
  }
  void Write(std::string_view piece) override {
    const std::lock_guard lock(mutex_);
    body_ += piece;
    changed_.notify_all();
  }
  void End() override {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  const CancelToken& gone() const override { return gone_; }

  void GoAway() { gone_.Cancel(); }
  void WaitForEnd() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_; });
  }
  void WaitForSomething() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || !body_.empty(); });
  }
  bool ended() {
    const std::lock_guard lock(mutex_);
    return ended_;
  }
  // Of an answer that has ended.
  int status() const { return status_; }
  const std::string& body() const { return body_; }
  const std::map<std::string, std::string>& headers() const { return headers_; }
  Json json() const { return Json::parse(body_); }
  // What was streamed.
  std::vector<Json> chunks() const {
    std::vector<Json> chunks;
    constexpr std::string_view kBegin = "data: ";
    for (size_t at = 0; (at = body_.find(kBegin, at)) != body_.npos;) {
      at += kBegin.size();
      const std::string line = body_.substr(at, body_.find("\n\n", at) - at);
      chunks.push_back(line == "[DONE]" ? Json(line) : Json::parse(line));
    }
    return chunks;
  }

 private:
  CancelToken gone_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  int status_ = 0;
  std::string body_;
  std::map<std::string, std::string> headers_;
};

class ApiTest : public testing::Test {
 protected:
  static const Engine& TheEngine() {
    static const Engine engine(kTiny, {.threads = 1});
    return engine;
  }
  Api& Start(ApiOptions options = {}, const Engine& engine = TheEngine()) {
    options.model = "tiny";
    options.defaults.generate = Greedy(8, /*query_tokens=*/0);
    options.on_served = [this](const ServedRequest& served) {
      const std::lock_guard lock(mutex_);
      served_.push_back(served);
    };
    api_.emplace(engine, options);
    return *api_;
  }
  std::shared_ptr<Answered> Ask(const std::string& method, const std::string& path,
                                const std::string& body = "", const std::string& key = "") {
    if (!api_) Start();
    auto reply = std::make_shared<Answered>();
    api_->Handle({.method = method, .path = path, .authorization = key, .body = body}, reply);
    return reply;
  }
  std::shared_ptr<Answered> Post(const std::string& path, const Json& body,
                                 const std::string& key = "") {
    const auto reply = Ask("POST", path, body.dump(), key);
    reply->WaitForEnd();
    return reply;
  }
  // Of one that is refused.
  std::string MessageOf(const Answered& reply, int status) {
    EXPECT_EQ(reply.status(), status) << reply.body();
    return reply.json()["error"]["message"];
  }

  std::mutex mutex_;
  std::vector<ServedRequest> served_;
  std::optional<Api> api_;
};

const Json kLong = {{"prompt", {5, 6, 7}}, {"max_tokens", 1'000'000}};

TEST_F(ApiTest, SaysHowItIs) {
  EXPECT_EQ(Ask("GET", "/health")->json(), Json({{"status", "ok"}}));
  const Json models = Ask("GET", "/v1/models")->json();
  EXPECT_EQ(models["data"][0]["id"], "tiny");
  EXPECT_EQ(models["data"][0]["meta"]["n_vocab"], TheEngine().vocab_size());
  api_->Drain();
  EXPECT_EQ(Ask("GET", "/health")->status(), 503);
  EXPECT_EQ(Post("/v1/completions", kLong)->headers().count("Retry-After"), 1u);
}

TEST_F(ApiTest, TextsHaveTheAnswerOfTheEngine) {
  const Tokens prompt = Prompt(1, 100);
  const auto expected = TheEngine().NewSession({}).Generate(prompt, Telling(8));
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

// The pieces of a stream, put together, are the whole.
TEST_F(ApiTest, AStreamTellsTheSame) {
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
      progress = progress || chunks[k].contains("prompt_progress");
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
    const Json& expected = whole["choices"][static_cast<size_t>(i)];
    EXPECT_EQ(text, expected["text"]);
    EXPECT_EQ(tokens, expected["token_ids"]);
    EXPECT_EQ(logprobs, expected["logprobs"]["token_logprobs"]);
    EXPECT_EQ(finish, expected["finish_reason"]);
  }
  EXPECT_TRUE(progress);
}

// Each of a list of prompts has the answers that it would have alone.
TEST_F(ApiTest, PromptsOfAList) {
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

// How likely a prompt is: what its tokens would have had as an output.
TEST_F(ApiTest, EchoesTellHowLikelyAPromptIs) {
  const Tokens prompt = Prompt(1, 40);
  const auto written = TheEngine().NewSession({}).Generate(prompt, Telling(8));
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
              testing::StartsWith(TheEngine().Detokenize(whole)));
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

TEST_F(ApiTest, EchoesOfTexts) {
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

// Whoever is gone takes the reading of a prompt along.
TEST_F(ApiTest, EchoesEndWithWhoeverAsks) {
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

TEST_F(ApiTest, APromptThatDoesNotFitSaysSoForPrograms) {
  const int64_t most = TheEngine().NewSession({}).limit_tokens();
  Start({.defaults = {.kv_choices = {"dense", "sinks:4+60"}}});
  const auto reply = Post("/v1/completions", {{"prompt", Prompt(1, most + 5)}});
  EXPECT_THAT(MessageOf(*reply, 400), HasSubstr("ask with \"kv\": \"sinks:4+60\""));
  const Json error = reply->json()["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_EQ(error["n_prompt_tokens"], most + 5);
  EXPECT_EQ(error["n_ctx"], most);
  Start({.session = {.context_tokens = most - 10}});
  std::string text;
  while (std::ssize(TheEngine().Tokenize(text)) < most - 5) text += "Once upon a time ";
  const Json chat{{"messages", {{{"role", "user"}, {"content", text}}}}, {"stream", true}};
  const auto small = Post("/v1/chat/completions", chat);
  EXPECT_THAT(MessageOf(*small, 400), HasSubstr("--kv-choice sinks:4+"));
  EXPECT_EQ(small->json()["error"]["n_ctx"], most - 10);
  EXPECT_GT(small->json()["error"]["n_prompt_tokens"], most - 10);
}

TEST_F(ApiTest, ModelsByTheirNames) {
  const Json list = Ask("GET", "/v1/models")->json();
  EXPECT_EQ(Ask("GET", "/v1/models/tiny")->json(), list["data"][0]);
  EXPECT_EQ(Ask("GET", "/v1/models/t%69ny")->json(), list["data"][0]);
  for (const char* const other : {"tin", "tiny%2", "tiny/", "tiny%zz", "%"}) {
    const auto reply = Ask("GET", std::string("/v1/models/") + other);
    EXPECT_THAT(MessageOf(*reply, 404), HasSubstr("but \"tiny\"")) << other;
    EXPECT_EQ(reply->json()["error"]["code"], "model_not_found");
  }
  EXPECT_EQ(Ask("POST", "/v1/models/tiny")->status(), 405);
}

TEST_F(ApiTest, RolesAreKnown) {
  const auto ask = [&](const char* role) {
    return Post(
        "/v1/chat/completions",
        {{"messages", {{{"role", "user"}, {"content", "a"}}, {{"role", role}, {"content", "b"}}}}});
  };
  EXPECT_THAT(MessageOf(*ask("robot"), 400),
              HasSubstr("expected the role \"system\", \"developer\", \"user\""));
  const auto prompt_of = [&](const char* role) {
    return Post("/apply-template", {{"messages", {{{"role", role}, {"content", "b"}}}}})
        ->json()["prompt"];
  };
  EXPECT_EQ(prompt_of("developer"), prompt_of("system"));
  EXPECT_EQ(prompt_of("function"), prompt_of("tool"));
}

// The answer goes on where the message ends, as if the model had written its beginning.
TEST_F(ApiTest, ABegunMessageIsContinued) {
  const Json user{{"role", "user"}, {"content", "Hello"}};
  const Json begun{{"role", "assistant"}, {"content", " Once upon  "}};
  const auto prompt_of = [&](const Json& messages) {
    return Post("/apply-template", {{"messages", messages}})->json()["prompt"].get<std::string>();
  };
  const std::string prompt = prompt_of({user, begun});
  EXPECT_EQ(prompt, prompt_of(Json::array({user})) + "Once upon  ");
  EXPECT_EQ(prompt_of({user, {{"role", "assistant"}, {"content", " "}}}),
            prompt_of(Json::array({user})));
  const Json chat = Post("/v1/chat/completions", {{"messages", {user, begun}}})->json();
  const auto tokens = TheEngine().Tokenize(prompt, /*add_special=*/false);
  const auto expected = TheEngine().NewSession({}).Generate(tokens, Greedy(8));
  EXPECT_EQ(chat["choices"][0]["message"]["content"], expected.text);
  EXPECT_EQ(chat["usage"]["prompt_tokens"], tokens.size());
  const Json answered =
      Post("/apply-template", {{"messages", {user, begun}}, {"continue_final_message", false}})
          ->json();
  EXPECT_THAT(answered["prompt"].get<std::string>(),
              testing::EndsWith("<|im_end|>\n<|im_start|>assistant\n"));
}

TEST_F(ApiTest, WhatIsNotThereSaysWhatIsNear) {
  const std::pair<const char*, const char*> near[] = {
      {"/nothing", "the nearest is POST /v1/chat/completions"},
      {"/v1/completion", "the nearest is POST /v1/completions"},
      {"/completions", "the nearest is POST /v1/completions"},
      {"/chat/completions", "the nearest is POST /v1/chat/completions"},
      {"/v1/v1/chat/completions", "the nearest is POST /v1/chat/completions"},
      {"/models", "the nearest is GET /v1/models"},
      {"/v1/models/", "the nearest is GET /v1/models"},
      {"/v1/tokenize", "the nearest is POST /tokenize"},
      {"/v1/embeddings", "there are no embeddings"},
      {"/v1/messages", "the same chat goes to POST /v1/chat/completions"},
      {"/v1/messages/count_tokens", "POST /tokenize gives its tokens"},
      {"/v1/audio/speech", "the model reads and writes text"},
      {"/infill", "it is continued, at POST /v1/completions"},
      {"/api/chat", "the same chat goes to POST /v1/chat/completions"},
      {"", "the nearest is"},
  };
  for (const auto& [path, answer] : near) {
    EXPECT_THAT(MessageOf(*Ask("POST", path), 404), HasSubstr(answer)) << path;
  }
}

TEST_F(ApiTest, SaysWhatMayBeAskedFor) {
  Start({.defaults = {.kv_choices = {"dense", "sinks:4+60"}}, .parallel = 3});
  const Json props = Ask("GET", "/props")->json();
  EXPECT_EQ(props["model"], "tiny");
  EXPECT_EQ(props["n_ctx"], TheEngine().NewSession({}).limit_tokens());
  EXPECT_EQ(props["total_slots"], 3);
  EXPECT_EQ(props["kv"]["choices"], (Json{"dense", "sinks:4+60"}));
  EXPECT_EQ(props["default_generation_settings"]["temperature"], 0);
  Start({.session = {.kv = "sinks:4+60"}});
  EXPECT_EQ(Ask("GET", "/props")->json()["n_ctx"], 0) << "endless";
}

TEST_F(ApiTest, ARequestMayKeepItsTextAsItLikes) {
  Start({.defaults = {.kv_choices = {"dense", "sinks:4+60"}}});
  const Tokens prompt = Prompt(4, 200);
  for (const char* const kv : {"dense", "sinks:4+60"}) {
    const auto reply =
        Post("/v1/completions", {{"prompt", prompt}, {"kv", kv}, {"return_token_ids", true}});
    const auto expected = TheEngine().NewSession({.kv = kv}).Generate(prompt, Greedy(8));
    EXPECT_EQ(reply->json()["choices"][0]["token_ids"], Json(expected.tokens)) << kv;
  }
  EXPECT_THAT(MessageOf(*Post("/v1/completions", {{"prompt", prompt}, {"kv", "blocks"}}), 400),
              HasSubstr(R"(expected "dense" or "sinks:4+60")"));
}

TEST_F(ApiTest, ShowsWhatIsBeingAnswered) {
  Start({.session = {.kv = "sinks:4+60"}, .parallel = 2});
  Json body = kLong;
  body["stream"] = true;
  const auto reply = Ask("POST", "/v1/completions", body.dump());
  reply->WaitForSomething();
  const Json slots = Ask("GET", "/slots")->json();
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[0]["is_processing"], true);
  EXPECT_EQ(slots[0]["n_prompt_tokens"], 3);
  EXPECT_GT(slots[0]["n_decoded"], 0);
  EXPECT_EQ(slots[1]["is_processing"], false);
  reply->GoAway();
  api_->Drain();
  EXPECT_EQ(Ask("GET", "/slots")->json()[0]["is_processing"], false);
}

TEST(PageTest, IsInTheProgram) {
  const auto get = [](const std::string& path, const std::string& method = "GET") {
    auto reply = std::make_shared<Answered>();
    const bool is_page = AnswerPage({.method = method, .path = path}, *reply);
    return std::pair(is_page, reply);
  };
  const auto [is_page, index] = get("/");
  ASSERT_TRUE(is_page);
  EXPECT_THAT(index->headers().at("Content-Security-Policy"), HasSubstr("default-src 'none'"));
  // Whatever it loads is there, and nothing of another host.
  const std::string& html = index->body();
  int64_t loaded = 0;
  for (size_t at = 0; (at = html.find("\"/page/", at)) != html.npos; ++loaded) {
    const std::string path = html.substr(at + 1, html.find('"', at + 1) - at - 1);
    EXPECT_TRUE(get(path).first) << path;
    at += path.size();
  }
  EXPECT_GE(loaded, 2);
  for (const PageFile& file : PageFiles()) {
    EXPECT_EQ(file.text.find("src=\"http"), file.text.npos) << file.name;
  }
  for (const char* const path : {"/page/", "/page/../api.cc", "/page/nothing.js", "/v1/models"}) {
    EXPECT_FALSE(get(path).first) << path;
  }
  EXPECT_FALSE(get("/", "POST").first);
}

TEST_F(ApiTest, CountsWhatItDid) {
  static int first_time = 77;  // so that nobody has read it
  const Tokens prompt = Prompt(first_time++, 100);
  for (int i = 0; i < 2; ++i) Post("/v1/completions", {{"prompt", prompt}});
  Ask("GET", "/nothing");
  api_->Drain();
  const auto reply = Ask("GET", "/metrics");
  for (const char* const line :
       {"godwit_requests_total{path=\"/v1/completions\",status=\"200\"} 2\n",
        "godwit_requests_total{path=\"?\",status=\"404\"} 1\n", "godwit_prompt_tokens_total 200\n",
        "godwit_cached_tokens_total 99\n", "godwit_output_tokens_total 16\n",
        "godwit_first_token_seconds_bucket{le=\"+Inf\"} 2\n", "godwit_token_seconds_count 2\n",
        "godwit_requests_running 0\n", "# TYPE godwit_requests_waiting gauge\n"}) {
    EXPECT_THAT(reply->body(), HasSubstr(line));
  }
}

TEST(HistogramTest, CountsUpToEveryBound) {
  Histogram histogram;
  for (const double value : {0.0005, 0.001, 0.002, 3.0, 1e6}) histogram.Add(value);
  const std::string text = histogram.Text("x", "some seconds");
  EXPECT_THAT(text, HasSubstr("# HELP godwit_x some seconds\n# TYPE godwit_x histogram\n"));
  EXPECT_THAT(text, HasSubstr("godwit_x_bucket{le=\"0.001\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("godwit_x_bucket{le=\"2.5\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("godwit_x_bucket{le=\"5\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("godwit_x_bucket{le=\"+Inf\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("godwit_x_count 5\n"));
}

TEST_F(ApiTest, ChatsNeedATemplate) {
  const Json body{{"messages", {{{"role", "user"}, {"content", "Hello"}}}}, {"max_tokens", 3}};
  const auto reply = Post("/v1/chat/completions", body);
  if (!TheEngine().has_chat_template()) {
    EXPECT_THAT(MessageOf(*reply, 400), HasSubstr("template"));
    return;
  }
  EXPECT_EQ(reply->json()["choices"][0]["message"]["role"], "assistant");
}

// The newer words for the same answer.
TEST_F(ApiTest, ResponsesAreChats) {
  const Json chat{{"messages", {{{"role", "user"}, {"content", "Hello"}}}}};
  Json asked{{"input", "Hello"}, {"metadata", {{"a", "b"}}}};
  const Json expected = Post("/v1/chat/completions", chat)->json();
  const auto reply = Post("/v1/responses", asked);
  ASSERT_EQ(reply->status(), 200) << reply->body();
  const Json response = reply->json();
  EXPECT_EQ(response["output"][0]["content"][0]["text"],
            expected["choices"][0]["message"]["content"]);
  EXPECT_EQ(response["metadata"], asked["metadata"]);
  EXPECT_EQ(response["usage"]["input_tokens"], expected["usage"]["prompt_tokens"]);
  asked["stream"] = true;
  asked["return_progress"] = true;
  const auto events = Post("/v1/responses", asked)->chunks();
  EXPECT_EQ(events.front()["type"], "response.created");
  EXPECT_EQ(events.back()["response"]["output"][0]["content"], response["output"][0]["content"]);
  EXPECT_THAT(MessageOf(*Post("/v1/responses", {{"input", "x"}, {"store", true}}), 400),
              HasSubstr("\"store\": expected false"));
}

// With a template that knows of tools, and begins thoughts if it is told to.
class ThinkingApiTest : public ApiTest {
 protected:
  ThinkingApiTest() {
    const auto file =
        folder_.Write("template.jinja",
                      "{% if tools %}{{ tools | tojson }}{% endif %}"
                      "{% for message in messages %}{{ message.content }}\n{% endfor %}"
                      "{% if thinks %}<think>\n{% endif %}");
    engine_.emplace(kTiny, LoadOptions{.threads = 1, .chat_template = file.string()});
    Start({}, *engine_);
  }
  ~ThinkingApiTest() override { api_.reset(); }

  // The deltas of a stream that have this field.
  std::vector<Json> Deltas(Json body, const std::string& field) {
    body["stream"] = true;
    std::vector<Json> deltas;
    for (const Json& chunk : Post("/v1/chat/completions", body)->chunks()) {
      if (!chunk.is_object() || chunk["choices"].empty()) continue;
      const Json& delta = chunk["choices"][0]["delta"];
      if (delta.contains(field)) deltas.push_back(delta[field]);
    }
    return deltas;
  }

  TempFolder folder_;
  std::optional<Engine> engine_;
};

TEST_F(ThinkingApiTest, ThoughtsAreToldApart) {
  Json body{{"messages", {{{"role", "user"}, {"content", "Hello"}}}}};
  body["chat_template_kwargs"] = {{"thinks", true}};
  const Json answer = Post("/v1/chat/completions", body)->json();
  const Json& message = answer["choices"][0]["message"];
  const std::string thought = message["reasoning_content"];
  EXPECT_NE(thought, "");
  EXPECT_EQ(message["content"], "");
  EXPECT_EQ(answer["usage"]["completion_tokens_details"]["reasoning_tokens"], 8);
  std::string streamed;
  for (const Json& delta : Deltas(body, "reasoning_content")) streamed += delta;
  EXPECT_EQ(streamed, thought);
  const Json asked{{"input", "Hello"}, {"chat_template_kwargs", {{"thinks", true}}}};
  const Json response = Post("/v1/responses", asked)->json();
  EXPECT_EQ(response["output"][0]["type"], "reasoning");
  EXPECT_EQ(response["output"][0]["content"][0]["text"], thought);
  EXPECT_EQ(response["usage"]["output_tokens_details"]["reasoning_tokens"], 8);
  body["chat_template_kwargs"] = {{"thinks", false}};
  const Json free = Post("/v1/chat/completions", body)->json();
  EXPECT_FALSE(free["choices"][0]["message"].contains("reasoning_content"));
  EXPECT_EQ(free["usage"]["completion_tokens_details"]["reasoning_tokens"], 0);
}

TEST_F(ThinkingApiTest, CallsComePieceByPiece) {
  const Json parameters = {{"type", "object"},
                           {"properties", {{"x", {{"type", "string"}, {"maxLength", 12}}}}},
                           {"required", {"x"}},
                           {"additionalProperties", false}};
  const Json function = {{"name", "look"}, {"parameters", parameters}};
  Json body{{"messages", {{{"role", "user"}, {"content", "Hello"}}}},
            {"tools", {{{"type", "function"}, {"function", function}}}},
            {"tool_choice", {{"type", "function"}, {"function", {{"name", "look"}}}}},
            {"ignore_eos", false},
            {"temperature", 1},
            {"seed", 3},
            {"max_tokens", 60}};
  const Json answer = Post("/v1/chat/completions", body)->json();
  const Json& call = answer["choices"][0]["message"]["tool_calls"][0];
  EXPECT_EQ(call["function"]["name"], "look");
  const auto deltas = Deltas(body, "tool_calls");
  ASSERT_GT(deltas.size(), 2u);
  EXPECT_EQ(deltas[0][0]["function"]["name"], "look");
  std::string arguments;
  for (const Json& delta : deltas) {
    ASSERT_EQ(delta.size(), 1u);
    EXPECT_EQ(delta[0]["index"], 0);
    EXPECT_EQ(delta[0].contains("id"), &delta == &deltas[0]);
    arguments += delta[0]["function"]["arguments"];
  }
  EXPECT_EQ(arguments, call["function"]["arguments"]);
  Json flat = function;
  flat["type"] = "function";
  body["input"] = "Hello";
  body["tools"] = {flat};
  body["tool_choice"] = {{"type", "function"}, {"name", "look"}};
  body["max_output_tokens"] = 60;
  for (const char* const field : {"messages", "max_tokens"}) body.erase(field);
  const auto response = Post("/v1/responses", body);
  ASSERT_EQ(response->status(), 200) << response->body();
  const Json item = response->json()["output"][0];
  EXPECT_EQ(item["type"], "function_call");
  EXPECT_EQ(item["name"], "look");
  EXPECT_THAT(item["arguments"].get<std::string>(), testing::StartsWith("{\"x\":"));
}

TEST_F(ApiTest, TokensAndTexts) {
  const std::string text = "Once upon a time";
  const Json tokens = Post("/tokenize", {{"content", text}})->json()["tokens"];
  EXPECT_EQ(tokens, Json(TheEngine().Tokenize(text, false)));
  EXPECT_EQ(Post("/tokenize", {{"content", text}, {"add_special", true}})->json()["tokens"],
            Json(TheEngine().Tokenize(text, true)));
  EXPECT_EQ(Post("/detokenize", {{"tokens", tokens}})->json()["content"], text);
}

TEST_F(ApiTest, WhatMakesNoSenseIsRefused) {
  EXPECT_THAT(MessageOf(*Ask("GET", "/nothing"), 404), HasSubstr("nothing at this path"));
  const auto wrong = Ask("GET", "/v1/completions");
  EXPECT_EQ(MessageOf(*wrong, 405), "expected POST");
  EXPECT_EQ(wrong->headers().at("Allow"), "POST");
  EXPECT_EQ(Ask("POST", "/health")->headers().at("Allow"), "GET, HEAD");
  const auto refused = [&](const std::string& path, const std::string& body) {
    const auto reply = Ask("POST", path, body);
    reply->WaitForEnd();
    return MessageOf(*reply, 400);
  };
  const std::string texts = "/v1/completions";
  EXPECT_THAT(refused(texts, ""), HasSubstr("the body"));
  EXPECT_THAT(refused(texts, "{"), HasSubstr("the body"));
  EXPECT_THAT(refused(texts, "[]"), HasSubstr("an object"));
  EXPECT_THAT(refused(texts, std::string(100'000, '[')), HasSubstr("the body"));
  EXPECT_THAT(refused(texts, R"({"prompt":"a","tempature":1})"),
              HasSubstr("did you mean \"temperature\"?"));
  EXPECT_THAT(refused(texts, R"({"prompt":"a","prompt":"b"})"), HasSubstr("the body"));
  EXPECT_THAT(refused(texts, R"({"messages":[{"role":"user","content":"a"}]})"),
              HasSubstr("expected \"prompt\" here"));
  EXPECT_THAT(refused("/v1/chat/completions", R"({"prompt":"a"})"),
              HasSubstr("expected \"messages\" here"));
  EXPECT_THAT(refused(texts, R"({"prompt":[99999999]})"), HasSubstr("99999999"));
  EXPECT_THAT(refused(texts, R"({"prompt":"a","return_progress":true})"),
              HasSubstr("needs \"stream\": true"));
  EXPECT_THAT(refused("/tokenize", R"({"text":"a"})"), HasSubstr("unknown field \"text\""));
  EXPECT_THAT(refused("/tokenize", "{}"), HasSubstr("needs \"content\""));
  EXPECT_THAT(refused("/detokenize", R"({"tokens":[-1]})"), HasSubstr("numbers below"));
  EXPECT_THAT(refused(texts, R"({"prompt":"a" SECRET)"), Not(HasSubstr("SECRET")));
  api_->Drain();
  for (const ServedRequest& served : served_) EXPECT_NE(served.status, 200) << served.path;
}

TEST_F(ApiTest, KeysLetIn) {
  Start({.keys = {"first", "second"}});
  for (const char* const wrong :
       {"", "Bearer ", "Bearer firs", "Bearer firsts", "first", "Basic first", "Bearer second "}) {
    const auto reply = Ask("GET", "/v1/models", "", wrong);
    EXPECT_THAT(MessageOf(*reply, 401), Not(HasSubstr("first"))) << wrong;
    EXPECT_EQ(reply->headers().at("WWW-Authenticate"), "Bearer");
  }
  const auto message = [&](const char* key) {
    return MessageOf(*Ask("GET", "/v1/models", "", key), 401);
  };
  EXPECT_THAT(message(""), HasSubstr("a key is needed"));
  EXPECT_THAT(message("Bearer third"), HasSubstr("none of the keys"));
  EXPECT_EQ(Ask("GET", "/v1/models", "", "Bearer third")->json()["error"]["code"],
            "invalid_api_key");
  EXPECT_EQ(Ask("GET", "/v1/models", "", "Bearer first")->status(), 200);
  EXPECT_EQ(Ask("GET", "/v1/models", "", "Bearer second")->status(), 200);
  EXPECT_EQ(Ask("GET", "/health")->status(), 200);
}

// Neither by their own name, nor by one that was made to lead here.
TEST_F(ApiTest, PagesOfOtherSitesMayNotAsk) {
  const auto status = [&](const std::string& host, const std::string& origin,
                          const std::string& key = "", bool allowed = false) {
    const auto reply = std::make_shared<Answered>();
    api_->Handle({.method = "GET",
                  .path = "/v1/models",
                  .host = host,
                  .origin = origin,
                  .allowed_origin = allowed,
                  .authorization = key},
                 reply);
    return reply->status();
  };
  Start({.local = true});
  for (const char* const host :
       {"", "localhost", "localhost:8080", "127.0.0.1:1", "127.1.2.3", "[::1]", "[::1]:8080"}) {
    EXPECT_EQ(status(host, ""), 200) << host;
    EXPECT_EQ(status(host, "http://evil.example"), 403) << host;
  }
  for (const char* const host : {"evil.example", "evil.example:8080", "127.evil.example",
                                 "localhost.evil.example", "1127.0.0.1", "[::2]", "::1]"}) {
    EXPECT_EQ(status(host, ""), 403) << host;
    EXPECT_EQ(status(host, std::string("http://") + host), 403) << host;
  }
  EXPECT_EQ(status("localhost:8080", "http://localhost:8080"), 200) << "a page of its own";
  EXPECT_EQ(status("localhost:8080", "null"), 403);
  EXPECT_EQ(status("localhost:8080", "https://chat.example", "", /*allowed=*/true), 200)
      << "which may";
  EXPECT_EQ(status("localhost:8080", "https://evil.example"), 403);
  const auto refusal = [&](const std::string& host, const std::string& origin) {
    const auto reply = std::make_shared<Answered>();
    api_->Handle({.method = "GET", .path = "/v1/models", .host = host, .origin = origin}, reply);
    return MessageOf(*reply, 403);
  };
  EXPECT_THAT(refusal("localhost", "https://evil.example"), HasSubstr("--allow-origin ORIGIN"));
  EXPECT_THAT(refusal("llm.example", ""), HasSubstr("--allow-origin http://NAME"));
  Start({.local = true, .origins = {"http://llm.example", "http://llm.example:81"}});
  EXPECT_EQ(status("llm.example", ""), 200);
  EXPECT_EQ(status("llm.example:81", "http://llm.example:81"), 200);
  EXPECT_EQ(status("llm.example:82", ""), 403);
  EXPECT_EQ(status("m.example", ""), 403);
  Start({.keys = {"k"}, .local = true});
  EXPECT_EQ(status("llm.example", "", "Bearer k"), 200) << "by way of a proxy";
  EXPECT_EQ(status("llm.example", "http://evil.example", "Bearer k"), 403);
}

TEST_F(ApiTest, MoreThanMayWaitAreToldToComeBack) {
  Start({.session = {.kv = "sinks:4+60"}, .parallel = 1, .queue = 1});
  const std::string body = kLong.dump();
  const auto first = Ask("POST", "/v1/completions", body);
  const auto second = Ask("POST", "/v1/completions", body);
  const auto third = Ask("POST", "/v1/completions", body);
  EXPECT_THAT(MessageOf(*third, 429), HasSubstr("too many"));
  EXPECT_EQ(third->headers().count("Retry-After"), 1u);
  EXPECT_EQ(Ask("GET", "/health")->status(), 200) << "whatever else goes on";
  first->GoAway();
  second->GoAway();
  api_->Drain();
  EXPECT_FALSE(first->ended()) << "there was nobody to tell";
}

// An object of so many keys took minutes, when each was looked for among those before it.
TEST_F(ApiTest, ObjectsOfManyKeysAreReadInLinearTime) {
  constexpr int kKeys = 600'000;
  std::string many = "{";
  for (int i = 0; i < kKeys; ++i) many += fmt::format("{}\"{}\":1", i == 0 ? "" : ",", i);
  many += "}";
  const auto refused = [&](const std::string& path, const std::string& body) {
    const auto reply = Ask("POST", path, body);
    reply->WaitForEnd();
    return MessageOf(*reply, 400);
  };
  const std::string text = R"({"prompt":"a",)", chat = R"({"messages":[{"role":"user",)";
  EXPECT_THAT(refused("/v1/completions", text + "\"logit_bias\":" + many + "}"),
              HasSubstr("\"logit_bias\": expected up to 524288 token ids"));
  EXPECT_THAT(refused("/v1/completions", text + many.substr(1)),
              HasSubstr("expected a request of at most 1000 fields, found 600001"));
  EXPECT_THAT(refused("/v1/responses", R"({"input":"a",)" + many.substr(1)),
              HasSubstr("at most 1000 fields"));
  EXPECT_THAT(refused("/v1/chat/completions",
                      chat + R"("content":"a"}],"chat_template_kwargs":)" + many + "}"),
              HasSubstr("\"chat_template_kwargs\": template variables: expected at most 1000"));
  EXPECT_THAT(refused("/v1/chat/completions", chat + many.substr(1) + "]}"),
              HasSubstr("found \"0\""));
}

// Looks at its client when it begins, and when it reads the body: there he leaves.
class LeavesWhileItIsRead : public Answered {
 public:
  const CancelToken& gone() const override {
    if (++looks_ == 2) left_.Cancel();
    return left_;
  }

 private:
  mutable int looks_ = 0;
  mutable CancelToken left_;
};

TEST_F(ApiTest, WhoIsGoneIsNotReadToTheEnd) {
  Start();
  const auto reply = std::make_shared<LeavesWhileItIsRead>();
  const Json body{{"tokens", std::vector<int>(10'000, 5)}};
  api_->Handle({.method = "POST", .path = "/detokenize", .body = body.dump()}, reply);
  api_->Drain();
  EXPECT_FALSE(reply->ended()) << "there was nobody to tell";
  ASSERT_EQ(served_.size(), 1u);
  EXPECT_TRUE(served_[0].gone);
}

TEST_F(ApiTest, SaysWhenRequestsDoNotGetThrough) {
  for (const double stall_ms : {0.0, 1e9}) {
    Start({.session = {.kv = "sinks:4+60"}, .parallel = 1, .queue = 2, .stall_ms = stall_ms});
    EXPECT_EQ(Ask("GET", "/ready")->json(), Json({{"status", "ready"}}));
    Json body = kLong;
    body["stream"] = true;
    const auto first = Ask("POST", "/v1/completions", body.dump());
    first->WaitForSomething();
    EXPECT_EQ(Ask("GET", "/ready")->status(), 200) << "nobody waits";
    const auto second = Ask("POST", "/v1/completions", body.dump());
    const Json health = Ask("GET", "/health")->json();
    if (stall_ms == 0) {
      EXPECT_EQ(health["status"], "stalled");
      EXPECT_THAT(std::string(health["message"]), HasSubstr("1 wait, and of the 1 that"));
      EXPECT_THAT(MessageOf(*Ask("GET", "/ready"), 503), HasSubstr("do not get through"));
    } else {
      EXPECT_EQ(health, Json({{"status", "ok"}}));
      EXPECT_EQ(Ask("GET", "/ready")->status(), 200);
    }
    const auto third = Ask("POST", "/v1/completions", body.dump());
    EXPECT_THAT(MessageOf(*Ask("GET", "/ready"), 503), HasSubstr("too many"));
    for (const auto& reply : {first, second, third}) reply->GoAway();
    api_->Drain();
    EXPECT_THAT(MessageOf(*Ask("GET", "/ready"), 503), HasSubstr("about to end"));
  }
}

// Who goes away takes his request along.
TEST_F(ApiTest, WhatNobodyReadsEnds) {
  Start({.session = {.kv = "sinks:4+60"}});
  Json body = kLong;
  body["stream"] = true;
  const auto reply = Ask("POST", "/v1/completions", body.dump());
  reply->WaitForSomething();
  EXPECT_FALSE(reply->ended());
  reply->GoAway();
  api_->Drain();
  ASSERT_EQ(served_.size(), 1u);
  EXPECT_TRUE(served_[0].gone);
  EXPECT_LT(served_[0].completion.output_tokens, 1'000'000);
}

}  // namespace
}  // namespace godwit::server::api_test
