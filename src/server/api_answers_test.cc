// Api: answers that clients leave and come back to, also in a later process.
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/test_folder.h"
#include "journal/folder.h"
#include "server/api_test_support.h"

namespace godwit::server::api_answers_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ApiAnswersTest : public ApiTest {
 protected:
  ~ApiAnswersTest() override { api_.reset(); }
  // A server of the journal, in place of the one before: as after a restart, but for the engine.
  void Restart(double grace_ms = 60'000, std::vector<std::string> keys = {},
               const std::string& kv = "dense") {
    api_.reset();
    journal_.reset();
    journal_.emplace(folder_.path() / "journal", journal::FolderLimits{}, nullptr);
    StartOptions options{.parallel = 2, .keys = keys};
    options.session.kv = kv;
    options.defaults.kv_choices = kv_choices_;
    Start(options);
    api_.reset();
    Open({.session = options.session,
          .parallel = 2,
          .keys = keys,
          .grace_ms = grace_ms,
          .journal = &*journal_});
  }
  std::shared_ptr<Answered> Get(const std::string& path, const std::string& last_event_id = "",
                                const std::string& key = "", const std::string& query = "") {
    auto reply = std::make_shared<Answered>();
    api_->Handle({.method = "GET",
                  .path = path,
                  .query = query,
                  .authorization = key,
                  .last_event_id = last_event_id},
                 reply);
    reply->WaitForEnd();
    return reply;
  }
  static std::vector<std::string> EventsOf(const std::string& body) {
    std::vector<std::string> events;
    for (size_t at = 0; at < body.size();) {
      const size_t end = body.find("\n\n", at);
      events.push_back(body.substr(at, end == body.npos ? end : end + 2 - at));
      at = end == body.npos ? body.size() : end + 2;
    }
    return events;
  }
  static std::string IdOf(const std::string& event) {
    EXPECT_TRUE(event.starts_with("id: ")) << event;
    return event.substr(4, event.find('\n') - 4);
  }
  static std::string AnswerOf(const std::string& id) { return id.substr(0, id.rfind(':')); }
  // Cuts the journal of an answer off behind some of its bytes, as a kill would.
  void CutJournal(const std::string& id, double part) {
    const auto name = id.substr(id.find_first_of("_-") + 1);
    auto path = folder_.path() / "journal" / (name + ".done");
    ASSERT_TRUE(std::filesystem::exists(path)) << path;
    const auto going = folder_.path() / "journal" / (name + ".journal");
    std::filesystem::rename(path, going);
    const journal::Records records = journal::ReadRecords(going);
    // The request is on the disk before any event.
    int64_t head = std::ssize(journal::FileHeader());
    for (const auto& record : records.records) {
      if (record.kind >= 5) break;
      head += 16 + std::ssize(record.bytes);
    }
    const double rest = static_cast<double>(records.bytes - head);
    std::filesystem::resize_file(going,
                                 static_cast<uintmax_t>(head + static_cast<int64_t>(part * rest)));
  }

  // The body of an answer in the background, once it has ended.
  Json Ended(const std::string& path) {
    Json body = Json::object();
    for (int i = 0; i < 3000; ++i) {
      body = Get(path)->json();
      const std::string status = body["status"];
      if (status != "queued" && status != "in_progress") break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return body;
  }

  TempFolder folder_;
  std::optional<journal::Folder> journal_;
  std::vector<std::string> kv_choices_;
};

Json PassageChat(const std::vector<std::string>& texts, const Json& fields = Json::object()) {
  Json parts = Json::array();
  for (const std::string& text : texts) parts.push_back({{"type", "text"}, {"text", text}});
  Json body{{"messages", {{{"role", "user"}, {"content", parts}}}},
            {"passages", {{"read_anew", 1}}},
            {"ignore_eos", true},
            {"max_tokens", 30}};
  body.update(fields);
  return body;
}

struct Asked {
  const char* path;
  Json body = Json::object();
};

std::vector<Asked> AllKinds() {
  const Json hello = Json::array({{{"role", "user"}, {"content", "Hello"}}});
  return {
      {"/v1/completions", {{"prompt", "Once upon a time"}, {"temperature", 1}, {"seed", 3}}},
      {"/v1/completions", {{"prompt", "Once upon a time"}, {"draft", "ngram"}}},
      {"/v1/completions", {{"prompt", {"Once", "There was"}}, {"n", 3}, {"temperature", 1}}},
      {"/v1/completions", {{"prompt", "Once upon"}, {"logprobs", 2}}},
      {"/v1/completions", {{"prompt", "Once upon"}, {"echo", true}}},
      {"/v1/completions",
       {{"prompt", "Once upon"}, {"kv", "sinks:4+60"}, {"max_tokens", 90}, {"ignore_eos", true}}},
      {"/v1/chat/completions",
       {{"messages", hello}, {"stream_options", {{"include_usage", true}}}}},
      {"/v1/chat/completions",
       {{"messages", hello},
        {"response_format", {{"type", "json_object"}}},
        {"ignore_eos", false},
        {"temperature", 1}}},
      {"/v1/responses", {{"input", "Hello"}, {"max_output_tokens", 30}}},
      {"/v1/chat/completions", PassageChat({"Once upon a time.", "A bird sang.", "Who sang?"})},
      {"/v1/chat/completions",
       PassageChat({"Once upon a time.", "A bird sang.", "Who sang?"}, {{"logprobs", true}})},
      {"/v1/messages", {{"messages", hello}, {"max_tokens", 30}}},
  };
}

// A client that comes back has the rest of the same bytes, wherever it left.
TEST_F(ApiAnswersTest, AReaderComesBack) {
  Restart();
  for (Asked& asked : AllKinds()) {
    asked.body.erase("kv");
    asked.body["stream"] = true;
    const auto whole = Post(asked.path, asked.body);
    ASSERT_EQ(whole->status(), 200) << whole->body();
    const auto events = EventsOf(whole->body());
    ASSERT_GT(events.size(), 4u) << whole->body();
    const std::string id = AnswerOf(IdOf(events[0]));
    const std::string path = std::string(asked.path) + "/" + id;
    for (const size_t at : {size_t{0}, events.size() / 2, events.size() - 2, events.size() - 1}) {
      std::string rest;
      for (size_t i = at + 1; i < events.size(); ++i) rest += events[i];
      EXPECT_EQ(Get(path, IdOf(events[at]))->body(), rest) << asked.path << at;
    }
    EXPECT_EQ(Get(path, "", "", "stream=true")->body(), whole->body());
    EXPECT_EQ(Get(path, "of another:3")->status(), 400);
    EXPECT_EQ(Get(path, id + ":x")->status(), 400);
  }
}

// A later process goes on from any beginning of the journal. All events are the same bytes, but for
// the times in the last ones.
TEST_F(ApiAnswersTest, ALaterProcessGoesOn) {
  for (Asked& asked : AllKinds()) {
    asked.body.erase("kv");
    asked.body["stream"] = true;
    for (const double part : {0.0, 0.3, 0.77, 1.0}) {
      Restart();
      const auto whole = Post(asked.path, asked.body);
      ASSERT_EQ(whole->status(), 200) << whole->body();
      const auto events = EventsOf(whole->body());
      const std::string id = AnswerOf(IdOf(events[0]));
      api_.reset();
      journal_.reset();
      if (part < 1) CutJournal(id, part);
      Restart();
      const auto again = Get(std::string(asked.path) + "/" + id, IdOf(events[1]));
      ASSERT_EQ(again->status(), 200) << again->body();
      const auto rest = EventsOf(again->body());
      ASSERT_EQ(rest.size() + 2, events.size()) << asked.path << part << asked.body;
      std::multiset<std::string> had, has;
      for (size_t i = 2; i < events.size(); ++i) {
        if (part < 1 && events[i].find("timings") != std::string::npos) continue;
        if (part < 1 && events[i].find("usage") != std::string::npos) continue;
        had.insert(events[i]);
      }
      for (const std::string& event : rest) {
        if (part < 1 && event.find("timings") != std::string::npos) continue;
        if (part < 1 && event.find("usage") != std::string::npos) continue;
        has.insert(event);
      }
      if (asked.body.contains("n")) {  // the order of several texts depends on time
        EXPECT_EQ(had.size(), has.size());
      } else {
        EXPECT_EQ(had, has) << asked.path << part;
      }
    }
  }
}

TEST_F(ApiAnswersTest, OtherSettingsAreRefused) {
  Restart();
  const auto whole = Post(
      "/v1/chat/completions",
      {{"messages", Json::array({{{"role", "user"}, {"content", "Hello"}}})}, {"stream", true}});
  const std::string id = AnswerOf(IdOf(EventsOf(whole->body())[0]));
  const std::string path = "/v1/chat/completions/" + id;
  api_.reset();
  journal_.reset();
  CutJournal(id, 0.5);
  Restart(60'000, {}, "sinks:4+60");
  EXPECT_THAT(MessageOf(*Get(path, id + ":0"), 409),
              HasSubstr("begun with other settings and cannot go on (read by: "));
  Restart();
  EXPECT_EQ(Get(path, id + ":0")->status(), 200);
}

// The second server would choose the other policy.
TEST_F(ApiAnswersTest, AChoiceByTimeIsKept) {
  kv_choices_ = {"dense", "sinks:4+60"};
  const auto plan_of = [](const std::vector<std::string>& events) {
    for (const std::string& event : events) {
      if (event.find("\"plan\"") == event.npos) continue;
      return Json::parse(event.substr(event.find("data: ") + 6))["usage"]["plan"];
    }
    return Json();
  };
  for (const double part : {0.0, 0.5, 1.0}) {
    Restart();
    const auto whole = Post("/v1/completions", {{"prompt", "Once upon a time"},
                                                {"stream", true},
                                                {"max_tokens", 90},
                                                {"ignore_eos", true},
                                                {"first_token_within_s", 1000}});
    const auto events = EventsOf(whole->body());
    ASSERT_EQ(plan_of(events)["kv"], "dense") << whole->body();
    const std::string id = AnswerOf(IdOf(events[0]));
    api_.reset();
    journal_.reset();
    if (part < 1) CutJournal(id, part);
    Restart(60'000, {}, "sinks:4+60");
    const auto again = Get("/v1/completions/" + id, IdOf(events[0]));
    ASSERT_EQ(again->status(), 200) << again->body();
    const auto rest = EventsOf(again->body());
    ASSERT_EQ(rest.size() + 1, events.size());
    EXPECT_EQ(plan_of(rest), plan_of(events));
    for (size_t i = 0; i + 3 < rest.size(); ++i) EXPECT_EQ(rest[i], events[i + 1]);
  }
}

TEST_F(ApiAnswersTest, AChoiceByTimeInTheBackground) {
  Restart();
  const auto ended = [&](double seconds) {
    const auto queued = Post("/v1/responses", {{"input", "Hello"},
                                               {"background", true},
                                               {"max_output_tokens", 5},
                                               {"first_token_within_s", seconds}});
    EXPECT_EQ(queued->status(), 200) << queued->body();
    return Ended("/v1/responses/" + queued->json()["id"].get<std::string>());
  };
  EXPECT_EQ(ended(1000)["usage"]["plan"]["kv"], "dense");
  const Json late = ended(1e-7);
  EXPECT_EQ(late["status"], "failed");
  EXPECT_THAT(late["error"]["message"].get<std::string>(), HasSubstr("would come after "));
}

TEST_F(ApiAnswersTest, AnswersBelongToTheirKeys) {
  Restart(60'000, {"first", "second"});
  const auto whole =
      Post("/v1/completions", {{"prompt", "Once"}, {"stream", true}}, "Bearer first");
  const std::string id = AnswerOf(IdOf(EventsOf(whole->body())[0]));
  const std::string path = "/v1/completions/" + id;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Get(path, "", "Bearer second")->status(), 404);
    EXPECT_EQ(Get("/v1/chat/completions/" + id, "", "Bearer first")->status(), 404);
    EXPECT_EQ(Get(path, "", "Bearer first")->body(), whole->body());
    api_.reset();
    Restart(60'000, {"first", "second"});
  }
}

// A lost client's answer stops, and goes on when the client comes back.
TEST_F(ApiAnswersTest, ALostAnswerStopsAndGoesOn) {
  Restart(/*grace_ms=*/50);
  Json asked{{"prompt", "Once upon a time"},
             {"stream", true},
             {"max_tokens", 400},
             {"temperature", 1},
             {"seed", 8}};
  const auto whole = Post("/v1/completions", asked)->body();
  const auto reply = Ask("POST", "/v1/completions", asked.dump());
  reply->WaitForSomething();
  reply->GoAway();
  const auto events = EventsOf(reply->body());
  const std::string id = AnswerOf(IdOf(events[0]));
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  const auto rest = EventsOf(Get("/v1/completions/" + id, IdOf(events[0]))->body());
  const auto expected = EventsOf(whole);
  ASSERT_EQ(rest.size() + 1, expected.size());
  const auto text_of = [](const std::string& event) {
    return event.substr(event.find("\"choices\""),
                        event.find("\"timings\"") - event.find("\"choices\""));
  };
  for (size_t i = 0; i + 2 < rest.size(); ++i)
    EXPECT_EQ(text_of(rest[i]), text_of(expected[i + 1]));
}

TEST_F(ApiAnswersTest, Background) {
  Restart();
  const Json asked{
      {"input", "Hello"}, {"background", true}, {"store", true}, {"max_output_tokens", 300}};
  const auto queued = Post("/v1/responses", asked);
  ASSERT_EQ(queued->status(), 200) << queued->body();
  EXPECT_EQ(queued->json()["status"], "queued");
  const std::string path = "/v1/responses/" + queued->json()["id"].get<std::string>();
  const Json body = Ended(path);
  EXPECT_EQ(body["status"], "incomplete");
  EXPECT_EQ(body["usage"]["output_tokens"], 300);
  const std::string text = body["output"][0]["content"][0]["text"];
  EXPECT_EQ(Post("/v1/responses", {{"input", "Hello"}, {"max_output_tokens", 300}})
                ->json()["output"][0]["content"][0]["text"],
            text);
  const auto events = EventsOf(Get(path, "", "", "stream=true&starting_after=1")->body());
  EXPECT_THAT(events.front(), HasSubstr("\"sequence_number\":2,"));
  EXPECT_THAT(events.back(), HasSubstr("response.incomplete"));
  Restart();
  EXPECT_EQ(Get(path)->json(), body);
  const auto deleted = Ask("DELETE", path);
  deleted->WaitForEnd();
  EXPECT_EQ(deleted->json()["deleted"], true);
  EXPECT_EQ(Get(path)->status(), 404);
}

TEST_F(ApiAnswersTest, CancelEndsIt) {
  Restart();
  const auto queued = Post("/v1/responses", {{"input", "Hello"},
                                             {"background", true},
                                             {"kv", "sinks:4+60"},
                                             {"max_output_tokens", 1'000'000}});
  // The server has no --kv-choice; without it the context ends the answer.
  const auto long_one =
      Post("/v1/responses", {{"input", "Hello"}, {"background", true}, {"max_output_tokens", 400}});
  const std::string id = long_one->json()["id"];
  const auto cancelled = Ask("POST", "/v1/responses/" + id + "/cancel");
  cancelled->WaitForEnd();
  EXPECT_THAT(cancelled->json()["status"].get<std::string>(),
              testing::AnyOf("cancelled", "incomplete"));
  std::string status;
  for (int i = 0; i < 3000 && status != "cancelled" && status != "incomplete"; ++i) {
    status = Get("/v1/responses/" + id)->json()["status"];
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_THAT(status, testing::AnyOf("cancelled", "incomplete"));
  EXPECT_EQ(queued->status(), 400);
}

TEST_F(ApiAnswersTest, NothingIsKeptUnlessAskedFor) {
  Start();
  const auto whole = Post("/v1/completions", {{"prompt", "Once"}, {"stream", true}});
  const std::string id = AnswerOf(IdOf(EventsOf(whole->body())[0]));
  EXPECT_THAT(MessageOf(*Get("/v1/completions/" + id), 404), HasSubstr("--journal"));
}

}  // namespace
}  // namespace godwit::server::api_answers_test
