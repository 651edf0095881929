#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/test_folder.h"
#include "text/load_tokenizer.h"
#include "text/test_data.h"

namespace godwit::chat_template_test {
namespace {

using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;

ChatInput Says(const std::string& text) {
  return {.messages = ordered_json::array({{{"role", "user"}, {"content", text}}})};
}

std::string Render(const std::string& source, const ChatInput& input = Says("hi")) {
  return ChatTemplate(source, "test template", {{"bos_token", "<s>"}}).Render(input);
}

Error RenderError(const std::string& source, const ChatInput& input = Says("hi")) {
  return ErrorOf([&] { Render(source, input); });
}

TEST(ChatTemplate, SeesMessagesAndNamedTokens) {
  const std::string source =
      "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}] {{ m.content }}\n{% endfor %}"
      "{% if add_generation_prompt %}>{% endif %}{{ eos_token }}";
  EXPECT_EQ(Render(source), "<s>[user] hi\n>");
  ChatInput input = Says("\xff🐦");
  input.add_generation_prompt = false;
  EXPECT_EQ(Render(source, input), "<s>[user] �🐦\n");
}

TEST(ChatTemplate, ExtraVariablesWin) {
  ChatInput input = Says("hi");
  input.extra = {{"enable_thinking", false}, {"bos_token", "<other>"}};
  EXPECT_EQ(Render("{{ bos_token }}{{ enable_thinking }}", input), "<other>False");
}

TEST(ChatTemplate, ABosOfTheTemplateIsNotDoubled) {
  const auto tokenizer = LoadTokenizer(TestData() / "tokenizers/sentencepiece");
  const std::string text = Render("{{ bos_token }}{{ messages[0].content }}");
  const std::vector<int32_t> ids = tokenizer->Encode(text, /*add_special_tokens=*/false);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), tokenizer->TokenToId("<s>")), 1);
}

TEST(ChatTemplate, ASyntaxErrorNamesItsLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"fine\n{% for x in y %}\nfine", "line 3"},
      {"a\nb\n{{ messages[ }}", "line 3"},
      {"{% nonsense %}", "line 1"},
      {"a\n{{ 'unclosed", "line 2"},
      {"{% if true %}\n{% endfor %}", "line 2"},
  };
  for (const auto& [source, line] : cases) {
    const Error error = RenderError(source);
    EXPECT_EQ(error.kind(), ErrorKind::kFormat);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("test template: "), HasSubstr(line))) << source;
  }
}

TEST(ChatTemplate, ARunTimeErrorNamesItsLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a\n{{ missing.deeper }}", "line 2: undefined value"},
      {"\n\n{{ messages | no_such_filter }}", "line 3: unknown filter"},
      {"{{ messages[0].content.no_such_method() }}", "line 1: unknown method"},
      {"{{ 'a' + 1 }}", "line 1: invalid operation"},
      {"{{ no_such_function() }}", "line 1: unknown function"},
      {"{% macro m(x) %}\n{{ x.y.z }}\n{% endmacro %}\n{{ m(1) }}", "line 2"},
      {"{{ missing | tojson }}", "line 1: invalid operation"},
      {"{% include 'other' %}", "line 1"},
  };
  for (const auto& [source, line] : cases) {
    const Error error = RenderError(source);
    EXPECT_EQ(error.kind(), ErrorKind::kFormat) << source;
    EXPECT_THAT(error.what(), HasSubstr("test template: " + line));
  }
}

TEST(ChatTemplate, RaisingIsTheRequestsFault) {
  for (const char* source : {"\n{{ raise_exception('roles must alternate') }}",
                             "\n{% macro m() %}{{ raise_exception('roles must alternate') }}"
                             "{% endmacro %}{{ m() }}"}) {
    const Error error = RenderError(source);
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_STREQ(error.what(), "test template: line 2: roles must alternate");
  }
}

TEST(ChatTemplate, RefusesWhatIsNotAListOfMessages) {
  ChatInput input;
  input.messages = "hi";
  EXPECT_EQ(RenderError("", input).kind(), ErrorKind::kInput);
  input.messages = ordered_json::array({1});
  EXPECT_EQ(RenderError("", input).kind(), ErrorKind::kInput);
}

TEST(ChatTemplate, EndlessTemplateIsAnError) {
  const std::string loop = "{% for i in range(100000) %}";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {loop + loop + loop + "x{% endfor %}{% endfor %}{% endfor %}",
       "line 1: it takes too many steps"},
      {"{% for i in range(1000000000000) %}x{% endfor %}", "too many elements"},
      {"\n{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "recursion"},
      {"{% for m in messages recursive %}{{ loop(messages) }}{% endfor %}", "recursion"},
      {"{{ 'x' * 10000000000 }}", "too large"},
      {loop + "{{ 'x' * 1000000 }}{% endfor %}", "the output exceeds"},
      {"{{ " + std::string(100'000, '[') + " }}", "line 1"},
      {std::string(1'000'000, ' '), "bytes exceed"},
  };
  for (const auto& [source, reason] : cases) {
    const std::string shown = source.substr(0, 60);
    const Error error = RenderError(source);
    EXPECT_EQ(error.kind(), ErrorKind::kFormat) << shown;
    EXPECT_THAT(error.what(), HasSubstr(reason)) << shown;
  }
}

TEST(ChatTemplate, SurvivesTheLongestRunOfOperators) {
  std::string negations = "{{ ";
  for (int i = 0; i < 120'000; ++i) negations += "not ";
  EXPECT_EQ(Render(negations + "1 }}"), "True");
  const Error error = RenderError("{{ " + std::string(500'000, '-') + "1 }}");
  EXPECT_EQ(error.kind(), ErrorKind::kFormat);
  EXPECT_STREQ(error.what(), "test template: loading nests too deeply");
}

TEST(ChatTemplate, SurvivesValuesNestedAsDeepAsALoopCanMakeThem) {
  const auto nest = [](int outer) {
    return "{% set ns = namespace(x=[]) %}{% for i in range(" + std::to_string(outer) +
           ") %}{% for j in range(100) %}{% set ns.x = [ns.x] %}{% endfor %}{% endfor %}";
  };
  EXPECT_EQ(Render(nest(100) + "done"), "done");
  EXPECT_STREQ(RenderError(nest(100'000)).what(), "test template: rendering nests too deeply");
  EXPECT_THAT(RenderError(nest(10) + "{{ ns.x }}").what(), HasSubstr("nested too deeply"));
  EXPECT_THAT(RenderError(nest(10) + "{{ ns.x | tojson }}").what(), HasSubstr("nested too deeply"));
}

TEST(ChatTemplate, GenerationMarksAreNotRendered) {
  EXPECT_EQ(Render("a{% generation %}b{% endgeneration %}c"), "abc");
  EXPECT_EQ(Render("a {%- generation -%} b {%- endgeneration -%} c"), "abc");
  EXPECT_EQ(Render("{%generation%}{{ generation }}{%endgeneration%}"), "");
  EXPECT_EQ(Render("{% set generation = 1 %}{% if generation %}x{% endif %}"), "x");
}

TEST(ChatTemplate, IsSharedByThreadsAndMoves) {
  ChatTemplate first("{{ messages[0].content }}", "test", {});
  const ChatTemplate second = std::move(first);
  const std::vector<std::string> said = {"a", "b", "c", "d"};
  std::vector<std::string> texts(said.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < said.size(); ++i) {
    threads.emplace_back([&, i] { texts[i] = second.Render(Says(said[i])); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(texts, said);
}

TEST(ChatTemplate, IsMadeFromAFolder) {
  const TempFolder folder({{"tokenizer_config.json", R"({"bos_token": "<s>"})"},
                           {"chat_template.jinja", "{{ bos_token }}\n{{ x.y }}"}});
  const auto chat = LoadChatTemplate(ReadChatTemplate(folder.path()), {{"bos_token", "<s>"}});
  ASSERT_TRUE(chat);
  EXPECT_THAT(ErrorOf([&] { chat->Render(Says("a")); }).what(),
              AllOf(HasSubstr("chat_template.jinja"), HasSubstr("line 2")));
  EXPECT_FALSE(LoadChatTemplate(ReadChatTemplate(TempFolder().path()), {}));
}

TEST(SpellArguments, MakesTextOfObjectsAndLeavesTheRest) {
  auto messages = ordered_json::parse(R"([
      {"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": "none"},
      {"role": "assistant", "tool_calls": [1, {"function": "f"}, {"function": {"name": "f"}},
        {"function": {"name": "f", "arguments": "x"}}]}])");
  const ordered_json before = messages;
  EXPECT_FALSE(SpellArguments(messages));
  EXPECT_EQ(messages, before);
  messages[2]["tool_calls"].push_back(
      {{"function", {{"name", "f"}, {"arguments", {{"b", 1}, {"a", "é"}}}}}});
  EXPECT_TRUE(SpellArguments(messages));
  EXPECT_EQ(messages[2]["tool_calls"][4]["function"]["arguments"], R"({"b":1,"a":"é"})");
  EXPECT_FALSE(SpellArguments(messages));
}

TEST(TemplateVariables, AreAJsonObjectOfFreeNames) {
  EXPECT_EQ(ParseTemplateVariables(R"({"enable_thinking": false})"),
            ordered_json({{"enable_thinking", false}}));
  for (const char* text : {"", "5", "[]", "{", "{'a': 1}", R"({"messages": []})",
                           R"({"add_generation_prompt": false})", R"({"tools": []})"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { ParseTemplateVariables(text); }),
                HasSubstr("template variables"))
        << text;
  }
  ordered_json many;
  for (int i = 0; i < 1001; ++i) many[std::to_string(i)] = i;
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { ParseTemplateVariables(many.dump()); }),
              HasSubstr("expected at most 1000, found 1001"));
  many.erase("0");
  EXPECT_EQ(ParseTemplateVariables(many.dump()).size(), 1000u);
}

// The template of our own story model (models/README.md).
class StoriesTemplate : public ::testing::Test {
 protected:
  std::string After(std::initializer_list<std::string> turns) {
    ordered_json messages;
    for (const std::string& turn : turns) {
      messages.push_back(
          {{"role", messages.size() % 2 == 0 ? "user" : "assistant"}, {"content", turn}});
    }
    return template_->Render({.messages = messages});
  }

  const std::optional<ChatTemplate> template_ = LoadChatTemplate(
      ReadChatTemplate(std::filesystem::path(GODWIT_SOURCE_DIR) / "models/stories-3m"),
      {{"eos_token", "<E>"}});
};

TEST_F(StoriesTemplate, MakesARequestTheOpeningOfAStory) {
  const std::string opening =
      "<E>Once upon a time, there was a brave cat. Everyone loved the brave cat.";
  for (const char* request :
       {"Tell me a story about a brave cat", "tell us a long tale about a brave cat!",
        "a brave cat", "Could you please write a story about a brave cat?",
        "A story of a brave cat."}) {
    EXPECT_EQ(After({request}), opening);
    EXPECT_EQ(After({"Hi", " there.", request}), opening) << "a story of its own";
  }
  EXPECT_EQ(After({"Tell me a story about Lily and Tom."}),
            "<E>Once upon a time, there was Lily and Tom. Everyone loved Lily and Tom.");
  EXPECT_EQ(After({"Tell me another story, please."}), "<E>");
}

TEST_F(StoriesTemplate, GoesOnWithTheStorySoFar) {
  EXPECT_EQ(After({"Lily had a ball"}), "<E>Lily had a ball");
  EXPECT_EQ(After({"Lily had a ball", " and", "go on"}), "<E>Lily had a ball and");
  EXPECT_EQ(After({"Lily had a ball", ".", "What happened next?"}),
            "<E>Lily had a ball.\n\nThe next day, something new happened.");
  EXPECT_EQ(After({"Lily had a ball", ".", "Tom told her a story about a dog."}),
            "<E>Lily had a ball.\n\nTom told her a story about a dog.");
}

TEST_F(StoriesTemplate, TheSystemMessageIsTheSetting) {
  const ordered_json messages = {{{"role", "system"}, {"content", "It was winter."}},
                                 {{"role", "user"}, {"content", "Lily was cold."}}};
  EXPECT_EQ(template_->Render({.messages = messages}), "<E>It was winter.\n\nLily was cold.");
}

}  // namespace
}  // namespace godwit::chat_template_test
