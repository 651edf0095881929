// Api: streams that end anywhere, contain anything and may be split anywhere.
#include <gmock/gmock.h>

#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "server/api_test_support.h"

namespace godwit::server::api_streams_test {
namespace {

using testing::HasSubstr;

class ApiStreamsTest : public ApiTest {
 protected:
  // The texts of the answers and their finish reasons, from a stream or a whole answer.
  struct Texts {
    std::vector<std::string> texts, reasons;
  };
  Texts TextsOf(Json body, bool stream) {
    body["stream"] = stream;
    const auto reply = Post("/v1/completions", body);
    EXPECT_EQ(reply->status(), 200) << reply->body();
    const auto count = body.value("n", size_t{1});
    Texts all{std::vector<std::string>(count), std::vector<std::string>(count)};
    for (const Json& json : stream ? reply->chunks() : std::vector<Json>{reply->json()}) {
      if (!json.is_object()) continue;
      for (const Json& choice : json["choices"]) {
        const auto index = choice["index"].get<size_t>();
        all.texts[index] += choice["text"].get<std::string>();
        if (choice["finish_reason"].is_string()) all.reasons[index] = choice["finish_reason"];
      }
    }
    return all;
  }
};

// Stop strings begin and end within tokens, with draft tokens, two answers or a schema.
TEST_F(ApiStreamsTest, AStopStringNeverShowsItsBeginning) {
  const std::string schema = R"({"type": "object", "required": ["name", "of"],
      "properties": {"name": {"type": "string", "minLength": 8, "maxLength": 12},
                     "of": {"enum": ["something", "nothing"]}}})";
  const Json held{{"type", "json_schema"},
                  {"json_schema", {{"name", "x"}, {"schema", Json::parse(schema)}}}};
  Json bodies[] = {{{"draft", ""}, {"n", 1}},
                   {{"draft", "ngram"}, {"n", 1}},
                   {{"draft", "ngram"}, {"n", 2}},
                   {{"draft", "ngram"}, {"response_format", held}, {"ignore_eos", false}}};
  int stopped = 0, inside = 0;
  for (Json& body : bodies) {
    body["prompt"] = "Once upon a time there was a cow. Once upon a time there was a cow. Once";
    body["max_tokens"] = 40;
    body["temperature"] = 1;
    body["seed"] = 5;
    // Only letters are allowed, so that each place is the beginning of a character.
    for (int id = 0; id < 512 && !body.contains("response_format"); ++id) {
      const std::string text = TinyEngine().Detokenize({{id}});
      if (text.find("\xef\xbf\xbd") != text.npos) body["logit_bias"][std::to_string(id)] = -100;
    }
    const Texts whole = TextsOf(body, false);
    const std::string& first = whole.texts[0];
    ASSERT_GT(first.size(), 20u);
    for (size_t at = 1; at + 9 < first.size(); at += 4) {
      const std::string stop = first.substr(at, 2 + at % 7);
      body["stop"] = stop;
      for (const bool stream : {false, true}) {
        const Texts cut = TextsOf(body, stream);
        for (size_t i = 0; i < whole.texts.size(); ++i) {
          const size_t end = whole.texts[i].find(stop);
          EXPECT_EQ(cut.texts[i], whole.texts[i].substr(0, end)) << stop;
          if (end == std::string::npos) continue;
          EXPECT_EQ(cut.reasons[i], "stop");
          ++stopped;
        }
      }
      inside += TinyEngine().Tokenize(stop).size() > 1;
    }
  }
  EXPECT_GT(stopped, 100);
  EXPECT_GT(inside, 50) << "stops across tokens";
}

// Outputs that are no UTF-8: clients get valid text, and the log-probabilities hold the bytes.
TEST_F(ApiStreamsTest, AModelThatWritesNoUtf8) {
  // ED A0 80 would be a surrogate. Its bytes come from characters that exist.
  const auto bytes_of = [](const char* text) { return TinyEngine().Tokenize(text, false); };
  const Tokens ed = bytes_of("\xed\x9f\xbf"), a0 = bytes_of("\xc2\xa0"), x80 = bytes_of("\xc2\x80");
  ASSERT_EQ(ed.size(), 3u);
  ASSERT_EQ(a0.size(), 2u);
  ASSERT_EQ(x80.size(), 2u);
  Json body{{"messages", {{{"role", "user"}, {"content", "Hello"}}}},
            {"max_tokens", 30},
            {"temperature", 1},
            {"top_logprobs", 1},
            {"logprobs", true}};
  for (const int32_t token : {ed[0], a0[1], x80[1]}) {
    body["logit_bias"][std::to_string(token)] = 100;
  }
  for (const int seed : {1, 2, 3}) {
    body["seed"] = seed;
    body["stream"] = false;
    const auto reply = Post("/v1/chat/completions", body);
    ASSERT_EQ(reply->status(), 200) << reply->body();
    const Json choice = reply->json()["choices"][0];  // parsing refuses what is no UTF-8
    const std::string text = choice["message"]["content"];
    EXPECT_THAT(text, HasSubstr("\xef\xbf\xbd"));
    ASSERT_EQ(choice["logprobs"]["content"].size(), 30u);
    body["stream"] = true;
    std::string streamed;
    Json logprobs = Json::array();
    for (const Json& chunk : Post("/v1/chat/completions", body)->chunks()) {
      if (!chunk.is_object() || chunk["choices"].empty()) continue;
      const Json& delta = chunk["choices"][0]["delta"];
      if (delta.contains("content") && delta["content"].is_string()) {
        streamed += delta["content"].get<std::string>();
      }
      if (!chunk["choices"][0]["logprobs"].is_object()) continue;
      for (const Json& one : chunk["choices"][0]["logprobs"]["content"]) logprobs.push_back(one);
    }
    EXPECT_EQ(streamed, text);
    EXPECT_EQ(logprobs, choice["logprobs"]["content"]);
  }
}

// Draft tokens of any source change no token's log-probability, nor the likeliest tokens beside it.
TEST_F(ApiStreamsTest, DraftsChangeNoLogProbability) {
  Json body{{"prompt", Prompt(1, 300)}, {"max_tokens", 300}, {"logprobs", 5}, {"draft", ""}};
  const Json plain = Post("/v1/completions", body)->json()["choices"][0];
  body["draft"] = "ngram";
  const Json drafted = Post("/v1/completions", body)->json()["choices"][0];
  EXPECT_GT(drafted["drafts"]["accepted"], 10) << "or this shows nothing";
  EXPECT_EQ(drafted["logprobs"], plain["logprobs"]);
  for (const Json& one : plain["logprobs"]["token_logprobs"]) EXPECT_LT(one, 0);
}

TEST_F(ApiStreamsTest, CutStreamsLeaveNothingBehind) {
  Start({.parallel = 4, .queue = 400});
  const Tokens prompt = Prompt(1, 60);
  const Json asked{{"prompt", prompt}, {"return_token_ids", true}};
  const Json before = Post("/v1/completions", asked)->json()["choices"][0]["token_ids"];
  constexpr int kStreams = 300;
  for (int i = 0; i < kStreams; ++i) {
    Json body{{"prompt", Prompt(i % 7, 20 + i % 50)},
              {"n", 2},
              {"max_tokens", 300},
              {"stream", true},
              {"temperature", i % 2}};
    if (i % 3 > 0) body["draft"] = "ngram";
    const auto reply = Ask("POST", "/v1/completions", body.dump());
    if (RandomBits(/*seed=*/3, 0, i, 0) % 4 > 0) reply->WaitForSomething();
    reply->GoAway();
  }
  EXPECT_EQ(Post("/v1/completions", asked)->json()["choices"][0]["token_ids"], before);
  api_->Drain();
  EXPECT_EQ(served_.size(), kStreams + 2u);
  const Json slots = Ask("GET", "/slots")->json();
  ASSERT_EQ(slots.size(), 4u);
  for (const Json& slot : slots) EXPECT_EQ(slot["is_processing"], false);
}

}  // namespace
}  // namespace godwit::server::api_streams_test
