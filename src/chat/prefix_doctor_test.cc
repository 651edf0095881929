#include "chat/prefix_doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine_test_support.h"

namespace godwit::chat::prefix_doctor_test {
namespace {

using testing::HasSubstr;

TEST(PrefixDoctorTest, DatesAndTimesAreTold) {
  struct Case {
    std::string before, prompt, cache;
  };
  for (const Case& one :
       {Case{"Today is 2026-11-2", "9, a Sunday.", "8, a Saturday."},
        Case{"It is 14:0", "5 now.", "4 now."},
        Case{"Current date: ", "29 Nov 2026", "28 Nov 2026"}, Case{"Date: November ", "29", "30"},
        Case{"(", "2026-11-29T10:00:00Z)", "2026-11-28T23:10:00Z)"},
        Case{"on 11/", "29/2026", "30/2026"}}) {
    EXPECT_EQ(
        LikelyCause(
            {.before = one.before, .prompt = one.prompt, .cache = one.cache, .role = "system"}),
        "a date or a time in the system message")
        << one.before << one.prompt;
  }
  EXPECT_EQ(LikelyCause({.before = "at 14:0", .prompt = "5", .cache = "4"}),
            "a date or a time in the text");
}

TEST(PrefixDoctorTest, OtherCausesAreTold) {
  EXPECT_THAT(
      LikelyCause(
          {.before = "Session ", .prompt = "a81f93c2", .cache = "77be01d9", .role = "system"}),
      HasSubstr("a number that changes, in the system message"));
  EXPECT_THAT(
      LikelyCause(
          {.before = "assistant\n", .prompt = "The answer", .cache = "<think>\nHm", .role = ""}),
      HasSubstr("leaves out thoughts"));
  EXPECT_EQ(LikelyCause({.before = "\"name\": \"",
                         .prompt = "search",
                         .cache = "find",
                         .before_user = true,
                         .has_tools = true}),
            "an edited list of tools");
  // The same words in a message are no tools.
  EXPECT_EQ(LikelyCause({.before = "be ",
                         .prompt = "brief",
                         .cache = "kind",
                         .role = "system",
                         .before_user = true,
                         .has_tools = true}),
            "another text in the system message");
  EXPECT_THAT(
      LikelyCause({.before = "x", .prompt = "It is", .cache = "it is", .role = "assistant"}),
      HasSubstr("comes back in other words"));
  EXPECT_EQ(LikelyCause({.before = "x", .prompt = "more", .cache = ""}),
            "the prompt goes on where the cached text ends");
  EXPECT_EQ(LikelyCause({.before = "x", .prompt = "", .cache = "more"}),
            "the prompt ends before the cached text does");
  EXPECT_EQ(LikelyCause({.before = "Once ", .prompt = "upon", .cache = "more"}), "another text");
  // A number that one side has is no date.
  EXPECT_EQ(LikelyCause({.before = "in ", .prompt = "May", .cache = "short", .role = "user"}),
            "another text in the user message");
}

TEST(PrefixDoctorTest, PlacesAreFoundInMessages) {
  const std::vector<Message> messages{{.role = "system", .content = "Be brief."},
                                      {.role = "user", .content = "Who? Be brief."}};
  const std::string text = "<s>[system]Be brief.[user]Who? Be brief.[assistant]";
  const auto at = [&](std::string_view upto) {
    return FindPlace(text, text.find(upto) + upto.size(), messages);
  };
  EXPECT_EQ(at("<s>[sys").message, -1);
  EXPECT_EQ(at("<s>[sys").byte, 7);
  EXPECT_EQ(at("]Be").message, 0);
  EXPECT_EQ(at("]Be").byte, 2);
  EXPECT_TRUE(at("]Be").inside);
  EXPECT_EQ(at("[us").message, 0);
  EXPECT_FALSE(at("[us").inside);
  EXPECT_EQ(at("[us").byte, text.find("[us") + 3);
  EXPECT_EQ(at("Who? Be").message, 1);
  EXPECT_EQ(at("Who? Be").byte, 7);
  EXPECT_FALSE(at("[assist").inside);
  // A content that the template writes in another way is passed over.
  const std::vector<Message> other{{.role = "system", .content = "NOT THERE"}, messages[1]};
  EXPECT_EQ(FindPlace(text, text.find("Who? B") + 6, other).message, 1);
}

TEST(PrefixDoctorTest, ARequestIsExplained) {
  const Engine engine(kTiny, {.threads = 1});
  const auto explain = [&](const std::string& text) {
    CompletionRequest request;
    request.generate = Greedy(4, /*query_tokens=*/0);
    request.prompt = text;
    const Prompt prompt{.tokens = engine.Tokenize(text)};
    const auto json = ExplainPrefix(engine, {}, request, prompt);
    engine.Submit(prompt.tokens, Greedy(4)).Wait();
    return json;
  };
  std::string filler;
  for (int i = 0; i < 14; ++i) filler += "the cat and the dog sat by the door, ";
  const auto first = explain(filler + "on 2026-11-28 " + filler);
  EXPECT_EQ(first["cause"], "no text in memory begins as this prompt does");
  EXPECT_EQ(first["cached_tokens"], 0);
  const auto second = explain(filler + "on 2026-11-29 " + filler);
  EXPECT_EQ(second["cause"], "a date or a time in the text") << second.dump(1);
  EXPECT_EQ(second["byte"], filler.size() + 12);
  EXPECT_THAT(second["prompt"].get<std::string>(), testing::StartsWith("9 the cat"));
  EXPECT_THAT(second["cache"].get<std::string>(), testing::StartsWith("8 the cat"));
  EXPECT_THAT(second["before"].get<std::string>(), testing::EndsWith("on 2026-11-2"));
  EXPECT_GT(second["cached_tokens"], 0);
}

}  // namespace
}  // namespace godwit::chat::prefix_doctor_test
