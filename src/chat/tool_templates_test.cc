// Renderings of tools and calls by real templates, and the reading of calls in these forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/test_support.h"
#include "chat/answer_reader.h"
#include "chat/completion_request.h"
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

class ToolTemplates : public testing::TestWithParam<const char*> {};

TEST_P(ToolTemplates, CallsAreReadAsTheyAreWritten) {
  const auto folder =
      std::filesystem::path(GODWIT_SOURCE_DIR) / "../shared/data/tokenizers/chat_templates";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no ../shared";
  const auto file = folder / (std::string(GetParam()) + ".jinja");
  const ChatTemplate chat_template(ReadTextFile(file, 1 << 20), file.string(),
                                   {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
  ASSERT_TRUE(chat_template.knows_tools());
  const auto request = ParseCompletionRequest(ParseOrderedJson(kRequest, "the request"));
  const auto render = [&](size_t messages, bool open) {
    ChatInput input{.add_generation_prompt = open, .tools = request.tools.list};
    for (size_t i = 0; i < messages; ++i) {
      const Message& message = std::get<std::vector<Message>>(request.prompt)[i];
      nlohmann::ordered_json fields{{"role", message.role}, {"content", message.content}};
      if (!message.fields.empty()) fields.update(ParseOrderedJson(message.fields, "fields"));
      input.messages.push_back(std::move(fields));
    }
    return chat_template.Render(input);
  };
  EXPECT_THAT(render(1, true), HasSubstr("What the weather will be."));
  EXPECT_THAT(render(3, true), HasSubstr("Drizzle."));
  // Some templates begin the model's reasoning in the prompt. The answer begins where the two
  // renderings differ.
  std::string asked = render(1, true);
  asked.resize(std::min(asked.rfind("<think>"), asked.size()));
  const std::string written = render(2, false);
  const auto parted = std::ranges::mismatch(written, asked).in1;
  std::string said(parted, written.end());
  constexpr std::string_view kRole = "CHATBOT_TOKEN|>";
  if (said.starts_with(kRole)) said.erase(0, kRole.size());
  for (const char* const end : {"<|im_end|>", "<|eot_id|>", "</s>", "<|START_OF_TURN_TOKEN|>"}) {
    said.resize(std::min(said.find(end), said.size()));
  }
  // Templates leave the reasoning of past answers out.
  EXPECT_THAT(ReadAnswer(request, FormOf("", /*bracketed=*/false), said).calls,
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

}  // namespace
}  // namespace godwit::chat::tool_templates_test
