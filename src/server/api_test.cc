#include "server/api.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/test_folder.h"
#include "server/api_test_support.h"
#include "server/page.h"

namespace godwit::server::api_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST_F(ApiTest, ReportsHealth) {
  EXPECT_EQ(Ask("GET", "/health")->json(), Json({{"status", "ok"}}));
  const Json models = Ask("GET", "/v1/models")->json();
  EXPECT_EQ(models["data"][0]["id"], "tiny");
  EXPECT_EQ(models["data"][0]["meta"]["n_vocab"], TinyEngine().vocab_size());
  api_->Drain();
  EXPECT_EQ(Ask("GET", "/health")->status(), 503);
  EXPECT_EQ(Post("/v1/completions", kLong)->headers().count("Retry-After"), 1u);
}

TEST_F(ApiTest, ModelsByTheirNames) {
  const Json list = Ask("GET", "/v1/models")->json();
  EXPECT_EQ(Ask("GET", "/v1/models/tiny")->json(), list["data"][0]);
  EXPECT_EQ(Ask("GET", "/v1/models/t%69ny")->json(), list["data"][0]);
  for (const char* const other : {"tin", "tiny%2", "tiny/", "tiny%zz", "%"}) {
    const auto reply = Ask("GET", std::string("/v1/models/") + other);
    EXPECT_THAT(MessageOf(*reply, 404), HasSubstr("another model: \"tiny\"")) << other;
    EXPECT_EQ(reply->json()["error"]["code"], "model_not_found");
  }
  EXPECT_EQ(Ask("POST", "/v1/models/tiny")->status(), 405);
}

TEST_F(ApiTest, UnknownPathNamesTheNearest) {
  const std::pair<const char*, const char*> near[] = {
      {"/nothing", "the nearest is POST /v1/chat/completions"},
      {"/v1/completion", "the nearest is POST /v1/completions"},
      {"/completions", "the nearest is POST /v1/completions"},
      {"/chat/completions", "the nearest is POST /v1/chat/completions"},
      {"/v1/v1/chat/completions", "the nearest is POST /v1/chat/completions"},
      {"/models", "the nearest is GET /v1/models"},
      {"/v1/models/", "the nearest is GET /v1/models"},
      {"/v1/tokenize", "the nearest is POST /tokenize"},
      {"/v1/embeddings", "embeddings are not supported"},
      {"/v1/messages/batches", "send several requests to POST /v1/messages"},
      {"/v1/audio/speech", "the model reads and writes text"},
      {"/api/chat", "send this chat to POST /v1/chat/completions"},
      {"", "the nearest is"},
  };
  for (const auto& [path, answer] : near) {
    EXPECT_THAT(MessageOf(*Ask("POST", path), 404), HasSubstr(answer)) << path;
  }
}

TEST_F(ApiTest, PropsDescribeTheModel) {
  Start({.about = {.family = "llama", .parameters = 7, .stored_as = {"Q4_K", "F32"}},
         .defaults = {.kv_choices = {"dense", "sinks:4+60"}},
         .parallel = 3});
  const Json props = Ask("GET", "/props")->json();
  EXPECT_EQ(props["model_info"]["family"], "llama");
  EXPECT_EQ(props["model_info"]["n_params"], 7);
  EXPECT_EQ(props["model_info"]["stored_as"], (Json{"Q4_K", "F32"}));
  EXPECT_EQ(props["model_info"]["size"], TinyEngine().weight_bytes());
  EXPECT_EQ(props["model"], "tiny");
  EXPECT_EQ(props["n_ctx"], TinyEngine().NewSession({}).limit_tokens());
  EXPECT_EQ(props["total_slots"], 3);
  EXPECT_EQ(props["kv"]["choices"], (Json{"dense", "sinks:4+60"}));
  EXPECT_EQ(props["default_generation_settings"]["temperature"], 0);
  Start({.session = {.kv = "sinks:4+60"}});
  EXPECT_EQ(Ask("GET", "/props")->json()["n_ctx"], 0) << "endless";
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
  // All files that the page loads exist, and none is of another host.
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

TEST_F(ApiTest, CountsRequestsInMetrics) {
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

TEST_F(ApiTest, TokensAndTexts) {
  const std::string text = "Once upon a time";
  const Json tokens = Post("/tokenize", {{"content", text}})->json()["tokens"];
  EXPECT_EQ(tokens, Json(TinyEngine().Tokenize(text, false)));
  EXPECT_EQ(Post("/tokenize", {{"content", text}, {"add_special", true}})->json()["tokens"],
            Json(TinyEngine().Tokenize(text, true)));
  EXPECT_EQ(Post("/detokenize", {{"tokens", tokens}})->json()["content"], text);
}

TEST_F(ApiTest, InvalidRequestsAreRefused) {
  EXPECT_THAT(MessageOf(*Ask("GET", "/nothing"), 404), HasSubstr("unknown path"));
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

TEST_F(ApiTest, ApiKeyIsRequired) {
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
  EXPECT_THAT(message("Bearer third"), HasSubstr("does not know this key"));
  EXPECT_EQ(Ask("GET", "/v1/models", "", "Bearer third")->json()["error"]["code"],
            "invalid_api_key");
  EXPECT_EQ(Ask("GET", "/v1/models", "", "Bearer first")->status(), 200);
  EXPECT_EQ(Ask("GET", "/v1/models", "", "Bearer second")->status(), 200);
  EXPECT_EQ(Ask("GET", "/health")->status(), 200);
}

// Pages of other sites are refused by their own name, and by a name that was made to resolve here.
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

TEST_F(ApiTest, FullQueueSaysWhenToRetry) {
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

// An object of so many keys took minutes when each key was compared with all earlier ones.
TEST_F(ApiTest, RELEASE_ObjectsOfManyKeysAreReadInLinearTime) {
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

// A request that checks for its client twice: at its beginning and while it reads the body. At the
// second check the client is gone.
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

TEST_F(ApiTest, RequestOfAGoneClientIsNotReadToTheEnd) {
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
      EXPECT_THAT(std::string(health["message"]),
                  HasSubstr("requests waiting 1, running 1, and none"));
      EXPECT_THAT(MessageOf(*Ask("GET", "/ready"), 503), HasSubstr("the server is stuck"));
    } else {
      EXPECT_EQ(health, Json({{"status", "ok"}}));
      EXPECT_EQ(Ask("GET", "/ready")->status(), 200);
    }
    const auto third = Ask("POST", "/v1/completions", body.dump());
    EXPECT_THAT(MessageOf(*Ask("GET", "/ready"), 503), HasSubstr("too many"));
    for (const auto& reply : {first, second, third}) reply->GoAway();
    api_->Drain();
    EXPECT_THAT(MessageOf(*Ask("GET", "/ready"), 503), HasSubstr("shutting down"));
  }
}

TEST_F(ApiTest, FilePathsAppearOnlyInTheLog) {
  const TempFolder folder;
  std::filesystem::copy(kTiny, folder.path());
  folder.Write("chat_template.jinja", "{{ broken");
  const Engine engine(folder.path(), {.threads = 1});
  Start({.model_place = folder.path()}, engine);
  const auto reply =
      Post("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}});
  const std::string message = MessageOf(*reply, 400);
  EXPECT_THAT(message, HasSubstr("chat_template.jinja"));
  EXPECT_THAT(message, Not(HasSubstr(folder.path().native())));
  api_->Drain();
  ASSERT_EQ(served_.size(), 1u);
  EXPECT_THAT(served_[0].error, HasSubstr(folder.path() / "chat_template.jinja"));
}

// A client that disconnects ends its request.
TEST_F(ApiTest, StreamOfAGoneClientEnds) {
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
