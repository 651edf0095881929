// Renderings of tools and calls by templates, and the reading of calls in these forms. Our own
// templates have the shape of those of model families; real ones are beside some checkouts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/test_support.h"
#include "chat/answer_reader.h"
#include "chat/completion_request.h"
#include "engine/render_chat.h"
#include "text/chat_template.h"

namespace godwit::chat::tool_templates_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kRequest[] = R"({
  "messages": [
    {"role": "user", "content": "Will it rain in Ulm?"},
    {"role": "assistant", "content": null, "tool_calls": [
      {"id": "abcdef123", "type": "function",
       "function": {"name": "weather", "arguments": "{\"place\": \"Ulm\", \"days\": 2}"}}]},
    {"role": "tool", "tool_call_id": "abcdef123", "name": "weather", "content": "Drizzle."}],
  "tools": [{"type": "function", "function": {
    "name": "weather", "description": "What the weather will be.",
    "parameters": {"type": "object", "required": ["place"], "properties": {
      "place": {"type": "string", "description": "a town"},
      "days": {"type": "integer", "description": "from now"}}}}}]})";

std::string Rendered(const ChatTemplate& chat_template, const CompletionRequest& request,
                     size_t messages, bool open) {
  const auto& all = std::get<std::vector<Message>>(request.prompt);
  return RenderChat(chat_template, std::span(all).first(messages),
                    {.add_generation_prompt = open, .tools = request.tools.list});
}

ChatTemplate TemplateOf(const std::filesystem::path& file) {
  return ChatTemplate(ReadTextFile(file, 1 << 20), file.string(),
                      {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
}

// The answer that the template writes, up to the first of the `ends`. Some templates begin the
// model's reasoning in the prompt. The answer begins where the two renderings differ.
std::string AnswerOf(const std::string& asked, const std::string& written,
                     std::initializer_list<std::string_view> ends) {
  const auto parted = std::ranges::mismatch(written, asked).in1;
  std::string said(parted, written.end());
  for (const std::string_view end : ends) said.resize(std::min(said.find(end), said.size()));
  return said;
}

class ToolTemplates : public testing::TestWithParam<const char*> {};

TEST_P(ToolTemplates, CallsAreReadAsTheyAreWritten) {
  const auto folder =
      std::filesystem::path(GODWIT_SOURCE_DIR) / "../shared/data/tokenizers/chat_templates";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no ../shared";
  const ChatTemplate chat_template = TemplateOf(folder / (std::string(GetParam()) + ".jinja"));
  ASSERT_TRUE(chat_template.knows_tools());
  const auto request = ParseCompletionRequest(ParseOrderedJson(kRequest, "the request"));
  std::string asked = Rendered(chat_template, request, 1, true);
  EXPECT_THAT(asked, HasSubstr("What the weather will be."));
  EXPECT_THAT(Rendered(chat_template, request, 3, true), HasSubstr("Drizzle."));
  asked.resize(std::min(asked.rfind("<think>"), asked.size()));
  std::string said = AnswerOf(asked, Rendered(chat_template, request, 2, false),
                              {"<|im_end|>", "<|eot_id|>", "</s>", "<|START_OF_TURN_TOKEN|>"});
  constexpr std::string_view kRole = "CHATBOT_TOKEN|>";
  if (said.starts_with(kRole)) said.erase(0, kRole.size());
  // Templates leave the reasoning of past answers out.
  EXPECT_THAT(ReadAnswer(request, FormOf("", /*is_token=*/{}), said).calls,
              ElementsAre(ToolCall{"weather", R"({"place":"Ulm","days":2})"}))
      << said;
}

INSTANTIATE_TEST_SUITE_P(Real, ToolTemplates,
                         testing::Values("NousResearch-Hermes-3-Llama-3.1-8B-tool_use",
                                         "Qwen-QwQ-32B", "Qwen-Qwen2.5-7B-Instruct",
                                         "Qwen-Qwen3-0.6B", "meta-llama-Llama-3.1-8B-Instruct",
                                         "meta-llama-Llama-3.2-3B-Instruct",
                                         "mistralai-Mistral-Nemo-Instruct-2407",
                                         "CohereForAI-c4ai-command-r-plus-tool_use"),
                         [](const auto& info) { return TestName(info.param); });

// A family of models: its template, and how an answer of its models ends.
struct Family {
  const char* name;
  const char* end;
  const char* thought_token = "";
  const char* thought_begin = "<think>";  // as the model writes it; null: the model writes none
  const char* thought_end = "</think>";
};

void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }

class FamilyTemplates : public testing::TestWithParam<Family> {
 protected:
  FamilyTemplates()
      : chat_template_(
            TemplateOf(std::filesystem::path(GODWIT_SOURCE_DIR) / "tests/data/templates/own" /
                       (std::string(GetParam().name) + ".jinja"))),
        request_(ParseCompletionRequest(ParseOrderedJson(kRequest, "the request"))),
        asked_(Rendered(chat_template_, request_, 1, true)),
        form_(FormOf(asked_,
                     [](std::string_view text) { return text == GetParam().thought_token; })) {}

  // The call as the template writes it, behind the prompt or behind a thought.
  std::string Said() {
    // Templates may leave out the thought that their prompt began, and may end it at once.
    constexpr std::string_view kThoughtMarks[] = {"<think>", "</think>", "<|channel>"};
    std::string asked = asked_;
    for (const std::string_view mark : kThoughtMarks) {
      asked.resize(std::min(asked.rfind(mark), asked.size()));
    }
    std::string said =
        AnswerOf(asked, Rendered(chat_template_, request_, 2, false), {GetParam().end});
    constexpr std::string_view kEmptyThoughts[] = {"<think>\n\n</think>\n\n", "<think></think>",
                                                   "</think>"};
    for (const std::string_view empty : kEmptyThoughts) {
      if (said.starts_with(empty)) said.erase(0, empty.size());
    }
    return said;
  }

  WholeAnswer Read(std::string_view text, size_t piece) const {
    AnswerReader reader(request_, form_);
    AnswerPieces pieces;
    for (size_t at = 0; at < text.size(); at += piece) {
      std::ranges::move(reader.Push(text.substr(at, piece)), std::back_inserter(pieces));
    }
    std::ranges::move(reader.Finish(), std::back_inserter(pieces));
    return Join(pieces);
  }

  ChatTemplate chat_template_;
  CompletionRequest request_;
  std::string asked_;
  AnswerForm form_;
};

TEST_P(FamilyTemplates, ShowToolsAndTheirResults) {
  ASSERT_TRUE(chat_template_.knows_tools());
  EXPECT_THAT(asked_, HasSubstr("What the weather will be."));
  EXPECT_THAT(Rendered(chat_template_, request_, 3, true), HasSubstr("Drizzle."));
}

TEST_P(FamilyTemplates, CallsAreReadAsTheyAreWritten) {
  const Family& family = GetParam();
  const std::string call = Said();
  ASSERT_THAT(call, HasSubstr("weather"));
  std::string thought;
  if (family.thought_begin != nullptr) {
    if (!form_.thought.open) thought = family.thought_begin;
    thought += std::string("Let me see.\n") + family.thought_end;
  }
  for (const std::string& text : {thought + call, thought + call + call}) {
    for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, text.size()}) {
      const WholeAnswer read = Read(text, piece);
      EXPECT_EQ(read.thought, thought.empty() ? "" : "Let me see.") << text;
      EXPECT_THAT(read.text, testing::MatchesRegex("\n*")) << text;
      ASSERT_EQ(read.calls.size(), text.size() == thought.size() + call.size() ? 1 : 2) << text;
      for (const ToolCall& found : read.calls) {
        EXPECT_EQ(found.name, "weather") << text;
        EXPECT_EQ(nlohmann::json::parse(found.arguments, nullptr, /*allow_exceptions=*/false),
                  nlohmann::json::parse(R"({"place": "Ulm", "days": 2})"))
            << text << "\n"
            << found.arguments;
      }
    }
  }
}

// A call that the request asks for is JSON in any family, and follows the thought.
TEST_P(FamilyTemplates, ForcedCallsAreReadBehindTheThought) {
  const Family& family = GetParam();
  auto asked = ParseOrderedJson(kRequest, "the request");
  asked["tool_choice"] = "required";
  const CompletionRequest forced = ParseCompletionRequest(asked);
  ASSERT_FALSE(forced.generate.json_schema.empty());
  std::string before;
  if (family.thought_begin != nullptr) {
    if (!form_.thought.open) before = family.thought_begin;
    before += std::string("Let me see.\n") + family.thought_end;
  }
  if (form_.is_channels) before += "<|channel|>final<|message|>";
  AnswerReader reader(forced, form_);
  AnswerPieces pieces = reader.Push(before + R"([{"name":"weather","arguments":{"place":"U)");
  EXPECT_EQ(Join(pieces).thought, before.empty() ? "" : "Let me see.");
  EXPECT_THAT(Join(pieces).calls, ElementsAre(ToolCall{"weather", R"({"place":"U)"}));
  std::ranges::move(reader.Push(R"(lm"}}])"), std::back_inserter(pieces));
  std::ranges::move(reader.Finish(), std::back_inserter(pieces));
  EXPECT_THAT(Join(pieces).calls, ElementsAre(ToolCall{"weather", R"({"place":"Ulm"})"}));
  EXPECT_EQ(Join(pieces).text, "");
}

TEST_P(FamilyTemplates, CallsOfUnknownToolsAreText) {
  std::string call = Said();
  const size_t name = call.find("weather");
  ASSERT_NE(name, call.npos);
  call.replace(name, 7, "climate");
  const std::string thought = form_.thought.open ? GetParam().thought_end : "";
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, call.size()}) {
    const WholeAnswer read = Read(thought + call, piece);
    EXPECT_THAT(read.calls, testing::IsEmpty()) << call;
    if (form_.is_channels) continue;  // the marks of a message are never text
    const size_t begin = std::min(call.find_first_not_of('\n'), call.size());
    EXPECT_THAT(read.text, testing::EndsWith(call.substr(begin))) << call;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Own, FamilyTemplates,
    testing::Values(
        Family{.name = "qwen35", .end = "<|im_end|>"},
        Family{.name = "gpt_oss",
               .end = "<|never|>",
               .thought_begin = "<|channel|>analysis<|message|>",
               .thought_end = "<|end|><|start|>assistant"},
        Family{.name = "glm", .end = "<|user|>"},
        Family{.name = "gemma4",
               .end = "<|tool_response>",
               .thought_token = "<|channel>",
               .thought_begin = "<|channel>thought\n",
               .thought_end = "<channel|>"},
        Family{.name = "kimi", .end = "<|im_end|>"}, Family{.name = "minimax", .end = "[e~["},
        Family{.name = "deepseek_v31", .end = "<｜end▁of▁sentence｜>", .thought_begin = nullptr},
        Family{.name = "deepseek_v32", .end = "<｜end▁of▁sentence｜>"},
        Family{.name = "lfm2", .end = "<|im_end|>"},
        Family{.name = "seed_oss",
               .end = "<seed:eos>",
               .thought_token = "<seed:think>",
               .thought_begin = "<seed:think>",
               .thought_end = "</seed:think>"},
        Family{.name = "nemotron", .end = "\n<SPECIAL_12>"},
        Family{.name = "granite4", .end = "<|end_of_text|>", .thought_begin = nullptr},
        Family{.name = "apertus",
               .end = "<|assistant_end|>",
               .thought_token = "<|inner_prefix|>",
               .thought_begin = "<|inner_prefix|>",
               .thought_end = "<|inner_suffix|>"},
        Family{.name = "hunyuan", .end = "</s>"},
        Family{.name = "mistral",
               .end = "</s>",
               .thought_token = "[THINK]",
               .thought_begin = "[THINK]",
               .thought_end = "[/THINK]"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace godwit::chat::tool_templates_test
