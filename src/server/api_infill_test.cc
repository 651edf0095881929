// Api: texts with a hole.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/test_folder.h"
#include "server/api_test_support.h"

namespace godwit::server::api_infill_test {
namespace {

using testing::HasSubstr;

constexpr int32_t kPrefix = 508, kSuffix = 509, kMiddle = 510, kFile = 511;

// The tiny model, whose last four tokens are the special tokens of infilling.
class ApiInfillTest : public ApiTest {
 protected:
  ApiInfillTest() {
    for (const auto& file : std::filesystem::directory_iterator(kTiny)) {
      std::filesystem::copy(file, folder_.path() / file.path().filename());
    }
    const auto file = folder_.path() / "tokenizer.json";
    auto json = nlohmann::ordered_json::parse(ReadTextFile(file, size_t{1} << 20));
    auto& vocab = json["model"]["vocab"];
    auto& merges = json["model"]["merges"];
    for (const char* const last : {"Ġcow", "Ġthousand", "ory", "orms"}) vocab.erase(last);
    merges.erase(merges.end() - 4, merges.end());
    int32_t id = kPrefix;
    for (const char* const name :
         {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>"}) {
      auto token = json["added_tokens"][0];
      token.update({{"id", id++}, {"content", name}});
      json["added_tokens"].push_back(token);
    }
    std::ofstream(file) << json;
    engine_.emplace(folder_.path().string(), LoadOptions{.threads = 1});
    Start({}, *engine_);
  }
  ~ApiInfillTest() override { api_.reset(); }

  TempFolder folder_;
  std::optional<Engine> engine_;
};

TEST_F(ApiInfillTest, TextBetweenPrefixAndSuffixIsFilled) {
  std::vector<int32_t> prompt = engine_->Tokenize("Once");
  prompt.insert(prompt.begin() + 1, kPrefix);
  prompt.push_back(kSuffix);
  for (const int32_t id : engine_->Tokenize(" a time", /*add_special=*/false)) prompt.push_back(id);
  prompt.push_back(kMiddle);
  const std::string expected = engine_->NewSession({}).Generate(prompt, Greedy(8)).text;
  Json asked{{"input_prefix", "Once"}, {"input_suffix", " a time"}};
  const Json answer = Post("/infill", asked)->json();
  EXPECT_EQ(answer["content"], expected);
  EXPECT_EQ(answer["tokens_evaluated"], prompt.size());
  EXPECT_EQ(answer["stop_type"], "limit");
  asked["stream"] = true;
  std::string streamed;
  const auto chunks = Post("/infill", asked)->chunks();
  for (const Json& chunk : chunks) {
    streamed += chunk["content"];
    EXPECT_EQ(chunk["stop"], &chunk == &chunks.back());
  }
  EXPECT_EQ(streamed, expected);
  const Json completion =
      Post("/v1/completions", {{"prompt", "Once"}, {"suffix", " a time"}})->json();
  EXPECT_EQ(completion["choices"][0]["text"], expected);
  EXPECT_EQ(completion["usage"]["prompt_tokens"], prompt.size());
}

TEST_F(ApiInfillTest, EndsWhereTheNextFileBegins) {
  const Json answer = Post("/infill", {{"input_prefix", "Once"},
                                       {"input_suffix", ""},
                                       {"logit_bias", {{std::to_string(kFile), 100}}}})
                          ->json();
  EXPECT_EQ(answer["content"], "");
  EXPECT_EQ(answer["stop_type"], "eos");
  EXPECT_EQ(answer["tokens_predicted"], 1);
}

TEST_F(ApiInfillTest, OverlongTextIsRefusedWithItsLength) {
  const auto reply = Post("/infill", {{"input_prefix", std::string(20'000, 'a')}});
  EXPECT_EQ(reply->status(), 400);
  EXPECT_EQ(reply->json()["error"]["code"], "context_length_exceeded");
}

TEST_F(ApiTest, AModelThatCannotFillSaysSo) {
  for (const char* const path : {"/infill", "/v1/completions"}) {
    Json asked{{"prompt", "a"}};
    asked[path == std::string("/infill") ? "input_suffix" : "suffix"] = "b";
    EXPECT_THAT(MessageOf(*Post(path, asked), 400), HasSubstr("cannot fill in"));
  }
}

}  // namespace
}  // namespace godwit::server::api_infill_test
