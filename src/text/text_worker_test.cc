// Hostile files can cause only an error.
#include "text/text_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "text/chat_template.h"
#include "text/load_tokenizer.h"
#include "text/test_data.h"

namespace godwit::text_worker_test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ChatInput Says(const char* text) {
  return {.messages = nlohmann::ordered_json::array({{{"role", "user"}, {"content", text}}})};
}

// A template that does `work` on demand, and otherwise repeats the message.
ChatTemplate OnDemand(const std::string& work) {
  return ChatTemplate(
      "{% if messages[0].content == 'work' %}" + work + "{% endif %}{{ messages[0].content }}",
      "test template", {});
}

// Lists nested 60 deep, each of which holds the next one twice, as `a` and `b`.
constexpr const char* kNested =
    "{% set n = namespace(a=[], b=[]) %}{% for i in range(60) %}"
    "{% set n.a = [n.a, n.a] %}{% set n.b = [n.b, n.b] %}{% endfor %}";

TEST(TextWorker, ATemplateThatTakesAllMemoryIsAnError) {
  const std::vector<std::string> works = {
      "{% set n = namespace(x='aaaaaaaa') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}"
      "{% endfor %}",
      "{{ 'a' | indent(4000000000, true) }}",
      "{{ '%10000000000d' | format(5) }}",
      "{{ range(3) | batch(1000000000, 1) | list }}",
      "{{ range(3) | slice(1000000000) | list }}",
      "{{ range(100000) | join('x' * 100000) }}",
      "{{ ('a' * 100000) | replace('a', 'b' * 1000) | replace('b', 'c' * 1000) }}",
  };
  for (const std::string& work : works) {
    const ChatTemplate chat = OnDemand(work);
    const Error error = ErrorOf([&] { chat.Render(Says("work")); });
    EXPECT_EQ(error.kind(), ErrorKind::kInput) << work;
    EXPECT_THAT(error.what(),
                StartsWith("test template: rendering takes more than 512 MiB of memory, for "));
    EXPECT_EQ(chat.Render(Says("hello")), "hello");
  }
}

TEST(TextWorker, ATemplateThatComputesWithoutEndIsAnError) {
  const std::vector<std::string> works = {
      kNested + std::string("{{ n.a == n.b }}"),
      "{% for i in range(99999) %}{% if i in range(99999) %}{% endif %}{% endfor %}",
  };
  for (const std::string& work : works) {
    const ChatTemplate chat = OnDemand(work);
    const Error error = ErrorOf([&] { chat.Render(Says("work")); });
    EXPECT_EQ(error.kind(), ErrorKind::kFormat) << work;
    EXPECT_STREQ(error.what(), "test template: rendering takes more than 3 s of processor time");
    EXPECT_EQ(chat.Render(Says("hello")), "hello");
  }
}

// The limit also holds for work that no operation of a template interrupts.
TEST(TextWorker, FULL_ATemplateThatPrintsOrSortsWithoutEndIsAnError) {
  for (const char* work : {"{{ n.a }}", "{{ [n.a, n.b] | sort }}"}) {
    const ChatTemplate chat = OnDemand(kNested + std::string(work));
    EXPECT_THAT(ErrorOf([&] { chat.Render(Says("work")); }).what(),
                StartsWith("test template: rendering takes more than "));
    EXPECT_EQ(chat.Render(Says("hello")), "hello");
  }
}

json TokenizerFile() {
  return json::parse(ReadFile(TestData() / "tokenizers/byte_level/tokenizer.json"));
}

// Makes 2^40 of every n.
json Doublings(const char* list, const json& first = nullptr) {
  json parts = json::array();
  if (!first.is_null()) parts.push_back(first);
  for (int i = 0; i < 40; ++i) {
    parts.push_back({{"type", "Replace"}, {"pattern", {{"String", "n"}}}, {"content", "nn"}});
  }
  return {{"type", "Sequence"}, {list, parts}};
}

TEST(TextWorker, ANormalizerThatAsksForAllMemoryIsAnError) {
  json file = TokenizerFile();
  // A size of four bytes, 8.6 GB, in front of nothing.
  file["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "/P///2FiY2Q="}};
  const Error error = ErrorOf([&] { ParseTokenizer(file.dump(), "tokenizer.json"); });
  EXPECT_EQ(error.kind(), ErrorKind::kMemory);
  EXPECT_STREQ(error.what(), "tokenizer.json: loading takes more than 2048 MiB of memory");
}

// A client of a server sees an error without the server's paths.
TEST(TextWorker, ATextThatTakesAllMemoryIsRefusedWithoutAPath) {
  json file = TokenizerFile();
  file["normalizer"] = {
      {"type", "Replace"}, {"pattern", {{"String", "n"}}}, {"content", std::string(4096, 'n')}};
  // The text is so large that it has time to take the memory before the time limit.
  const std::string text(size_t{4} << 20, 'n');
  const auto tokenizer = ParseTokenizer(file.dump(), "/models/my/tokenizer.json", {}, text.size());
  const Error error = ErrorOf([&] { tokenizer->Encode(text, false); });
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  EXPECT_STREQ(error.what(),
               "tokenizer.json: encoding takes more than 2048 MiB of memory: 4194304 bytes of text "
               "without a place to cut it, expected fewer");
}

TEST(TextWorker, ANormalizerWithoutEndIsAnErrorAndStreamsGoOn) {
  json file = TokenizerFile();
  file["normalizer"] = Doublings("normalizers");
  const auto tokenizer = ParseTokenizer(file.dump(), "tokenizer.json");
  const std::vector<int32_t> bird = tokenizer->Encode("🐦", false);
  ASSERT_GE(bird.size(), 2u);  // so that the stream holds something back
  const auto stream = tokenizer->NewStream(/*skip_special_tokens=*/true);
  std::string text = stream->Push(bird.front());
  EXPECT_THAT(ErrorOf([&] { tokenizer->Encode("n", false); }).what(),
              StartsWith("tokenizer.json: encoding takes more than "));
  for (size_t i = 1; i < bird.size(); ++i) text += stream->Push(bird[i]);
  EXPECT_EQ(text + stream->Flush(), "🐦");
}

TEST(TextWorker, ADecoderWithoutEndIsAnErrorAndCanBeCancelled) {
  json file = TokenizerFile();
  file["decoder"] = Doublings("decoders");
  const auto tokenizer = ParseTokenizer(file.dump(), "tokenizer.json");
  const int32_t n = tokenizer->TokenToId("n").value();
  const int32_t e = tokenizer->TokenToId("e").value();
  EXPECT_THAT(ErrorOf([&] { tokenizer->Decode(std::vector<int32_t>{n}, false); }).what(),
              StartsWith("tokenizer.json: decoding takes more than "));

  CancelToken cancel;
  const auto stream = tokenizer->NewStream(/*skip_special_tokens=*/true, &cancel);
  EXPECT_EQ(stream->Push(e), "e");
  cancel.Cancel();
  EXPECT_EQ(ErrorOf([&] { stream->Push(n); }).kind(), ErrorKind::kCancelled);
  cancel.Reset();
  EXPECT_EQ(stream->Push(e), "e");
}

TEST(TextWorker, ALibraryThatGivesUpIsQuoted) {
  json file = TokenizerFile();
  file["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "!"}};
  const Error error = ErrorOf([&] { ParseTokenizer(file.dump(), "tokenizer.json"); });
  EXPECT_EQ(error.kind(), ErrorKind::kFormat);
  EXPECT_THAT(error.what(),
              AllOf(StartsWith("tokenizer.json: loading failed, and the library that does it says: "
                               "\"Precompiled: Error("),
                    HasSubstr("Invalid byte 33")));
}

int64_t OpenFiles() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

TEST(TextWorker, LeavesNoProcessAndNoFileBehind) {
  const int64_t files = OpenFiles();
  {
    const ChatTemplate chat = OnDemand("{{ 'a' | indent(4000000000, true) }}");
    for (int i = 0; i < 3; ++i) EXPECT_THROW(chat.Render(Says("work")), Error);
    EXPECT_EQ(chat.Render(Says("hello")), "hello");
    EXPECT_THROW(OnDemand("{% nonsense %}"), Error);
    const auto tokenizer = ParseTokenizer(TokenizerFile().dump(), "tokenizer.json");
    EXPECT_EQ(OpenFiles(), files + 2);  // one for each of the two live processes
  }
  EXPECT_EQ(OpenFiles(), files);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(TextWorker, AProcessThatIsKilledIsReplaced) {
  TextWorker worker("test", int64_t{512} << 20,
                    WorkerFrame(WorkerRequest::kOpenTemplate).AddText("{{ x }}"));
  worker.Open();
  const auto render = [&] {
    return worker.Call(
        "rendering",
        WorkerFrame(WorkerRequest::kRender).Add(int64_t{0}).AddText(R"({"x": "hello"})"));
  };
  EXPECT_EQ(render(), "hello");
  pid_t child = 0;
  std::ifstream("/proc/self/task/" + std::to_string(gettid()) + "/children") >> child;
  ASSERT_GT(child, 0);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  siginfo_t ended = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_THAT(ErrorOf(render).what(), HasSubstr("was ended by signal 9"));
  EXPECT_EQ(render(), "hello");
}

}  // namespace
}  // namespace godwit::text_worker_test
