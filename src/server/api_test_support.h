// An Api of the tiny model, and answers that a test examines.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine_test_support.h"
#include "server/api.h"

namespace godwit::server {

using Json = nlohmann::json;

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
  // The parts of an answer that has ended.
  int status() const { return status_; }
  const std::string& body() const { return body_; }
  const std::map<std::string, std::string>& headers() const { return headers_; }
  Json json() const { return Json::parse(body_); }
  // The events that were streamed.
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
// Options of an Api of one model.
struct StartOptions {
  std::string model_place;
  ModelAbout about;
  chat::CompletionDefaults defaults;
  SessionOptions session;
  int64_t parallel = 1, queue = 64;
  std::vector<std::string> keys;
  bool local = false;
  double stall_ms = 30'000;
  std::vector<std::string> origins;
};

class ApiTest : public testing::Test {
 protected:
  static const Engine& TinyEngine() {
    static const Engine engine(kTiny, {.threads = 1});
    return engine;
  }
  Api& Start(StartOptions options = {}, const Engine& engine = TinyEngine()) {
    options.defaults.generate = Greedy(8, /*query_tokens=*/0);
    const std::shared_ptr<const Engine> borrowed(std::shared_ptr<void>(), &engine);
    ModelSource source{.facts = {.name = "tiny",
                                 .place = options.model_place,
                                 .about = options.about,
                                 .vocab_size = engine.vocab_size(),
                                 .max_context = engine.max_context()},
                       .load = [=](const NoteProgress&) {
                         return std::make_shared<const LoadedModel>(borrowed, options.defaults,
                                                                    options.session);
                       }};
    api_.reset();
    models_.emplace(std::vector{std::move(source)});
    models_->LoadThoseThatFit({});
    return Open({.session = options.session,
                 .parallel = options.parallel,
                 .queue = options.queue,
                 .keys = options.keys,
                 .local = options.local,
                 .stall_ms = options.stall_ms,
                 .origins = options.origins});
  }
  // Answers with models_.
  Api& Open(ApiOptions options) {
    options.on_served = [this](const ServedRequest& served) {
      const std::lock_guard lock(mutex_);
      served_.push_back(served);
    };
    return api_.emplace(*models_, std::move(options));
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
  // The error message of a refused request.
  std::string MessageOf(const Answered& reply, int status) {
    EXPECT_EQ(reply.status(), status) << reply.body();
    return reply.json()["error"]["message"];
  }

  std::mutex mutex_;
  std::vector<ServedRequest> served_;
  std::optional<Models> models_;
  std::optional<Api> api_;
};

// A request whose answer takes long.
inline const Json kLong = {{"prompt", {5, 6, 7}}, {"max_tokens", 1'000'000}};

}  // namespace godwit::server
