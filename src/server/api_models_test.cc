// An Api of several models.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "server/api_test_support.h"

namespace godwit::server::api_models_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kStories = GODWIT_SOURCE_DIR "/models/stories-3m";

// "tiny", "stories", and "broken", which lies in a folder that nobody should know.
class ApiModelsTest : public ApiTest {
 protected:
  Api& StartSeveral(ModelsOptions limits = {}, ApiOptions options = {.parallel = 2}) {
    const auto source = [this](const std::string& name, const std::string& folder) {
      return ModelSource{.facts = {.name = name,
                                   .place = folder,
                                   .about = {.family = "llama"},
                                   .max_context = 512},
                         .load = [this, name, folder](const NoteProgress& note) {
                           note(1, 4);
                           std::unique_lock lock(gate_mutex_);
                           gate_changed_.wait(lock, [&] { return closed_ != name; });
                           if (name == "broken") {
                             Throw(ErrorKind::kFormat, "{}/config.json: expected a model", folder);
                           }
                           auto engine =
                               std::make_shared<const Engine>(folder, LoadOptions{.threads = 1});
                           chat::CompletionDefaults defaults;
                           defaults.generate = Greedy(8, /*query_tokens=*/0);
                           return std::make_shared<const LoadedModel>(std::move(engine), defaults,
                                                                      SessionOptions());
                         }};
    };
    models_.emplace(std::vector{source("tiny", kTiny), source("stories", kStories),
                                source("broken", "/secret/place")},
                    std::move(limits));
    return Open(std::move(options));
  }
  // Holds up the loading of that model.
  void Close(const std::string& name) {
    const std::lock_guard lock(gate_mutex_);
    closed_ = name;
    gate_changed_.notify_all();
  }
  static const Engine& StoriesEngine() {
    static const Engine engine(kStories, {.threads = 1});
    return engine;
  }
  std::string StateOf(const std::string& name) {
    return Ask("GET", "/v1/models/" + name)->json()["status"]["value"];
  }
  ~ApiModelsTest() override {
    api_.reset();
    models_.reset();  // may be loading one, by the members below
  }

 private:
  std::mutex gate_mutex_;
  std::condition_variable gate_changed_;
  std::string closed_;
};

// An answer in the background is cancelled at once, also while its model is loaded.
TEST_F(ApiModelsTest, AnAnswerIsCancelledWhileItsModelIsLoaded) {
  StartSeveral();
  Close("tiny");
  const Json body{{"model", "tiny"}, {"input", "Hello"}, {"background", true}};
  const auto queued = Ask("POST", "/v1/responses", body.dump());
  queued->WaitForEnd();
  ASSERT_EQ(queued->status(), 200) << queued->body();
  const std::string path = "/v1/responses/" + queued->json()["id"].get<std::string>();
  while (StateOf("tiny") != "loading") std::this_thread::yield();
  Ask("POST", path + "/cancel")->WaitForEnd();
  const auto told = [&] {
    const auto reply = Ask("GET", path);
    reply->WaitForEnd();
    return reply->json();
  };
  while (told()["status"] == "queued") std::this_thread::yield();
  EXPECT_EQ(told()["status"], "cancelled");
  EXPECT_EQ(told()["output"][0]["content"][0]["text"], "");
  EXPECT_FALSE(told().contains("error") && !told()["error"].is_null()) << told();
  EXPECT_EQ(StateOf("tiny"), "loading");
  Close("");
}

// A stream has comments while its model is loaded, and then its answer or the error.
TEST_F(ApiModelsTest, AStreamTellsThatItsModelIsLoaded) {
  StartSeveral({}, {.parallel = 2, .comment_ms = 0});
  for (const char* const name : {"tiny", "broken"}) {
    for (const char* const path : {"/v1/completions", "/v1/messages"}) {
      const bool is_text = std::string(path) == "/v1/completions";
      Json body{{"model", name}, {"max_tokens", 4}, {"stream", true}};
      if (is_text) {
        body["prompt"] = "Once";
      } else {
        body["messages"] = Json::array({{{"role", "user"}, {"content", "Hello"}}});
      }
      if (StateOf(name) == "loaded") continue;
      Close(name);
      const auto reply = Ask("POST", path, body.dump());
      reply->WaitForSomething();
      Close("");
      reply->WaitForEnd();
      EXPECT_TRUE(reply->body().starts_with(": loading the model, ")) << reply->body();
      if (std::string(name) == "tiny") {
        EXPECT_TRUE(reply->body().ends_with("data: [DONE]\n\n")) << reply->body();
      } else {
        EXPECT_THAT(reply->body(),
                    HasSubstr(is_text ? "\n\ndata: {\"error\"" : "\n\nevent: error\n"));
        EXPECT_THAT(reply->body(), Not(HasSubstr("secret")));
      }
    }
  }
  Close("broken");
  const auto whole =
      Ask("POST", "/v1/completions", Json{{"model", "broken"}, {"prompt", "Once"}}.dump());
  Close("");
  whole->WaitForEnd();
  EXPECT_EQ(whole->status(), 500);
}

TEST_F(ApiModelsTest, EachAnswersAsItDoesAlone) {
  StartSeveral();
  const std::string text = "Once upon a time there was a little";
  for (const auto& [name, engine] : {std::pair<std::string, const Engine*>{"tiny", &TinyEngine()},
                                     {"stories", &StoriesEngine()}}) {
    const auto tokens = engine->Tokenize(text);
    const auto expected = engine->NewSession({}).Generate(tokens, Greedy(8));
    const Json answer = Post("/v1/completions", {{"model", name}, {"prompt", text}})->json();
    EXPECT_EQ(answer["model"], name);
    EXPECT_EQ(answer["choices"][0]["text"], expected.text);
    // A body that is too long for the server's own thread, with the name at its end.
    Json large{{"prompt", text}, {"metadata", {{"x", std::string(50'000, 'x')}}}};
    std::string body = large.dump();
    body.replace(body.size() - 1, 1, ",\"model\":\"" + name + "\"}");
    const auto reply = Ask("POST", "/v1/completions", body);
    reply->WaitForEnd();
    EXPECT_EQ(reply->json()["choices"][0]["text"], expected.text);

    EXPECT_EQ(Post("/tokenize", {{"model", name}, {"content", text}})->json()["tokens"],
              Json(engine->Tokenize(text, false)));
    EXPECT_EQ(Post("/detokenize", {{"model", name}, {"tokens", tokens}})->json()["content"],
              engine->Detokenize(tokens));
    const Json messages{{{"role", "user"}, {"content", "Hello"}}};
    const std::string prompt = engine->ApplyChatTemplate({{Message{"user", "Hello"}}});
    EXPECT_EQ(Post("/apply-template", {{"model", name}, {"messages", messages}})->json()["prompt"],
              prompt);
    const auto framed = engine->Tokenize(prompt, false);
    const std::string said = engine->NewSession({}).Generate(framed, Greedy(8)).text;
    EXPECT_EQ(Post("/v1/messages/count_tokens", {{"model", name}, {"messages", messages}})
                  ->json()["input_tokens"],
              framed.size());
    EXPECT_EQ(Post("/v1/chat/completions", {{"model", name}, {"messages", messages}})
                  ->json()["choices"][0]["message"]["content"],
              said);
    const Json response = Post("/v1/responses", {{"model", name}, {"input", "Hello"}})->json();
    EXPECT_EQ(response["model"], name);
    EXPECT_EQ(response["output"][0]["content"][0]["text"], said);
    const Json message =
        Post("/v1/messages", {{"model", name}, {"max_tokens", 8}, {"messages", messages}})->json();
    EXPECT_EQ(message["model"], name);
    EXPECT_EQ(message["content"][0]["text"], said);
  }
}

TEST_F(ApiModelsTest, RequestsWithoutANameAreForTheFirst) {
  StartSeveral();
  for (const char* const body :
       {R"({"prompt":"a"})", R"({"prompt":"a","model":""})", R"({"prompt":"a","model":null})"}) {
    const auto reply = Ask("POST", "/v1/completions", body);
    reply->WaitForEnd();
    EXPECT_EQ(reply->json()["model"], "tiny") << body;
  }
  EXPECT_EQ(StateOf("stories"), "unloaded");
}

TEST_F(ApiModelsTest, UnknownNamesAreRefusedWithTheKnownOnes) {
  StartSeveral();
  const std::string expected =
      R"(this server has no model "story": it has "tiny", "stories" and "broken")";
  for (const char* const path :
       {"/v1/completions", "/v1/chat/completions", "/v1/responses", "/infill", "/tokenize"}) {
    const auto reply = Post(path, {{"model", "story"}});
    EXPECT_EQ(MessageOf(*reply, 404), expected) << path;
    EXPECT_EQ(reply->json()["error"]["code"], "model_not_found");
  }
  const auto anthropic = Post("/v1/messages", {{"model", "story"}});
  EXPECT_EQ(MessageOf(*anthropic, 404), expected);
  EXPECT_EQ(anthropic->json()["type"], "error");
  EXPECT_EQ(anthropic->json()["error"]["type"], "not_found_error");
  EXPECT_EQ(MessageOf(*Ask("GET", "/v1/models/story"), 404), expected);
  EXPECT_EQ(StateOf("tiny"), "unloaded") << "nothing was loaded for them";
  // A name that is no text is refused as ever.
  EXPECT_THAT(MessageOf(*Post("/v1/completions", {{"model", 5}, {"prompt", "a"}}), 400),
              HasSubstr("\"model\""));
  EXPECT_THAT(MessageOf(*Post("/tokenize", {{"model", 5}, {"content", "a"}}), 400),
              HasSubstr("\"model\""));
}

TEST_F(ApiModelsTest, AKeyComesBeforeAnyLoading) {
  StartSeveral({}, {.keys = {"right"}});
  EXPECT_EQ(Ask("POST", "/v1/completions", R"({"prompt":"a"})", "Bearer wrong")->status(), 401);
  EXPECT_EQ(Post("/v1/completions", {{"model", "x"}, {"prompt", "a"}})->status(), 401)
      << "nor are names told";
  EXPECT_EQ(models_->status(0).loads, 0);
}

TEST_F(ApiModelsTest, ListsAndPropertiesTellWhatIsLoaded) {
  StartSeveral({.most_loaded = 1});
  EXPECT_EQ(Ask("GET", "/props")->json()["loaded"], false);
  EXPECT_FALSE(Ask("GET", "/props")->json().contains("n_ctx")) << "unknown until it is loaded";
  Post("/v1/completions", {{"model", "stories"}, {"prompt", "a"}});
  const Json list = Ask("GET", "/v1/models")->json()["data"];
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0]["status"], Json({{"value", "unloaded"}}));
  EXPECT_EQ(list[1]["status"], Json({{"value", "loaded"}}));
  EXPECT_EQ(list[1]["meta"]["size"], StoriesEngine().weight_bytes());
  Json props = Ask("GET", "/props")->json();
  EXPECT_EQ(props["model"], "tiny");
  EXPECT_EQ(props["models"], (Json{"tiny", "stories", "broken"}));
  const auto props_of = [&](const std::string& query) {
    auto reply = std::make_shared<Answered>();
    api_->Handle({.method = "GET", .path = "/props", .query = query}, reply);
    return reply;
  };
  props = props_of("model=stories")->json();
  EXPECT_EQ(props["model"], "stories");
  EXPECT_EQ(props["n_ctx"], StoriesEngine().max_context());
  EXPECT_EQ(props["chat_template"], true);
  EXPECT_EQ(props_of("x=y&model=st%6fries&z")->json()["model"], "stories");
  EXPECT_EQ(props_of("model=story")->status(), 404);
  Post("/v1/completions", {{"model", "tiny"}, {"prompt", "a"}});
  props = props_of("model=stories")->json();
  EXPECT_EQ(props["loaded"], false);
  EXPECT_EQ(props["n_ctx"], StoriesEngine().max_context()) << "known since it was loaded";
}

TEST_F(ApiModelsTest, SlotsAndMetricsAreOfAllModels) {
  StartSeveral();
  Post("/v1/completions", {{"model", "tiny"}, {"prompt", "a"}});
  Post("/v1/completions", {{"model", "stories"}, {"prompt", "a"}});
  api_->Drain();
  const Json slots = Ask("GET", "/slots")->json();
  ASSERT_EQ(slots.size(), 6u) << "two for each";
  EXPECT_EQ(slots[3]["model"], "stories");
  EXPECT_EQ(slots[3]["id"], 3);
  const std::string metrics = Ask("GET", "/metrics")->body();
  for (const std::string& line :
       {std::string("godwit_model_loaded{model=\"tiny\"} 1\n"),
        std::string("godwit_model_loaded{model=\"broken\"} 0\n"),
        std::string("godwit_model_loads{model=\"stories\"} 1\n"),
        std::string("godwit_requests_total{model=\"tiny\",path=\"/v1/completions\",status=\"200\"} "
                    "1\n"),
        fmt::format("godwit_weight_bytes {}\n",
                    TinyEngine().weight_bytes() + StoriesEngine().weight_bytes())}) {
    EXPECT_THAT(metrics, HasSubstr(line));
  }
}

TEST_F(ApiModelsTest, AModelThatCannotBeLoadedIsNoFaultOfTheRequest) {
  StartSeveral();
  const auto reply = Post("/v1/completions", {{"model", "broken"}, {"prompt", "a"}});
  const std::string message = MessageOf(*reply, 500);
  EXPECT_THAT(message, HasSubstr("the model \"broken\" cannot be loaded: "));
  EXPECT_THAT(message, HasSubstr("expected a model"));
  EXPECT_THAT(message, Not(HasSubstr("secret")));
  EXPECT_EQ(Post("/v1/completions", {{"model", "tiny"}, {"prompt", "a"}})->status(), 200);
  api_->Drain();
  EXPECT_THAT(served_[0].error, HasSubstr("/secret/place/config.json"));
}

TEST_F(ApiModelsTest, LoadingHoldsUpNobodyElse) {
  StartSeveral({}, {.parallel = 1, .queue = 1, .stall_ms = 0});
  Close("stories");
  const std::string body = R"({"model":"stories","prompt":"a"})";
  const auto first = Ask("POST", "/v1/completions", body);
  const auto second = Ask("POST", "/v1/completions", body);
  while (StateOf("stories") != "loading") std::this_thread::yield();
  while (Ask("GET", "/v1/models/stories")->json()["status"]["progress"] != 0.25) {
    std::this_thread::yield();
  }
  EXPECT_EQ(Ask("GET", "/health")->json(), Json({{"status", "ok"}})) << "loading is no stall";
  EXPECT_EQ(Ask("POST", "/v1/completions", body)->status(), 429) << "its queue is full";
  EXPECT_EQ(Ask("GET", "/ready")->status(), 200) << "other models have room";
  // A client that goes ends its wait.
  first->GoAway();
  while (Ask("GET", "/metrics")->body().find("godwit_requests_left_total 1\n") ==
         std::string::npos) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(first->ended());
  Close("");
  second->WaitForEnd();
  EXPECT_EQ(second->json()["model"], "stories");
}

TEST_F(ApiModelsTest, AnotherModelAnswersWhileOneIsLoaded) {
  StartSeveral();
  Close("stories");
  const auto waiting = Ask("POST", "/v1/completions", R"({"model":"stories","prompt":"a"})");
  while (StateOf("stories") != "loading") std::this_thread::yield();
  // The models are loaded one after the other, so this one must be there.
  Close("");
  waiting->WaitForEnd();
  Post("/v1/completions", {{"model", "tiny"}, {"prompt", "a"}});
  Close("broken");
  const auto broken = Ask("POST", "/v1/completions", R"({"model":"broken","prompt":"a"})");
  while (StateOf("broken") != "loading") std::this_thread::yield();
  EXPECT_EQ(Post("/v1/completions", {{"model", "tiny"}, {"prompt", "a"}})->status(), 200);
  EXPECT_EQ(Post("/v1/completions", {{"model", "stories"}, {"prompt", "a"}})->status(), 200);
  Close("");
  broken->WaitForEnd();
}

}  // namespace
}  // namespace godwit::server::api_models_test
