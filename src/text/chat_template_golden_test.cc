// Our templates and those of real models, against transformers' renderings.
// tools/make_template_goldens.py writes the expectations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "text/chat_template.h"
#include "text/test_data.h"

namespace godwit::chat_template_golden_test {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;

std::filesystem::path Templates() { return TestData() / "templates"; }

// The source that make_template_goldens.py calls `name`; nullopt if this machine lacks it.
std::optional<std::string> Source(const std::string& name) {
  if (name.starts_with("own.")) {
    return ReadFile(Templates() / "own" / (name.substr(4) + ".jinja"));
  }
  const auto file = SharedTokenizers() / "chat_templates" / (name + ".jinja");
  if (std::filesystem::exists(file)) return ReadFile(file);
  const auto found = ReadChatTemplate(SharedTokenizers() / name);
  return found ? std::optional(found->text) : std::nullopt;
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(Templates() / "expected")) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class GoldenTemplate : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(All, GoldenTemplate, ::testing::ValuesIn(Names()),
                         [](const auto& info) { return TestName(info.param); });

TEST_P(GoldenTemplate, RendersAsTransformersDoes) {
  const std::optional<std::string> source = Source(GetParam());
  if (!source) GTEST_SKIP() << "the templates of ../shared are not on this machine";
  const ChatTemplate chat(*source, GetParam(), {{"bos_token", "<BOS>"}, {"eos_token", "<EOS>"}});
  const ordered_json setup = ReadJson(Templates() / "cases.json");
  const ordered_json expected = ReadJson(Templates() / "expected" / (GetParam() + ".json"));
  for (const auto& [name, value] : setup["cases"].items()) {
    SCOPED_TRACE(name);
    const ChatInput input{.messages = value["messages"],
                          .add_generation_prompt = value["add_generation_prompt"],
                          .tools = value.value("tools", ordered_json()),
                          .extra = value.value("extra", ordered_json::object()),
                          .now_unix_s = setup["now_unix_s"].get<int64_t>()};
    const ordered_json& want = expected[name];
    if (want.contains("text")) {
      EXPECT_EQ(chat.Render(input), want["text"].get<std::string>());
      continue;
    }
    // minijinja loops over None as over nothing, and Jinja refuses. A template that does so is
    // broken either way, and no hook tells the two apart.
    if (want.value("error", "") == "'NoneType' object is not iterable") continue;
    const Error error = ErrorOf([&] { chat.Render(input); });
    EXPECT_THAT(error.what(), HasSubstr(": line "));
    if (want.contains("raised")) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      EXPECT_THAT(error.what(), HasSubstr(want["raised"].get<std::string>()));
    } else {
      EXPECT_EQ(error.kind(), ErrorKind::kFormat) << want["error"] << "\n" << error.what();
    }
  }
}

}  // namespace
}  // namespace godwit::chat_template_golden_test
