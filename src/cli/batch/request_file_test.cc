#include "cli/batch/request_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "base/test_support.h"

namespace godwit::cli::request_file_test {
namespace {

using ::testing::HasSubstr;

RequestIndex Check(std::string_view content) {
  const TempFolder folder;
  return CheckRequests(folder.Write("requests", content));
}

std::string Refusal(std::string_view content) {
  return ErrorOf(ErrorKind::kFormat, [&] { Check(content); });
}

TEST(RequestFileTest, KnowsEveryRequest) {
  const RequestIndex index = Check(
      R"({"custom_id": "a", "body": {"prompt": "x"}})"
      "\r\n\n"
      R"({"custom_id": "b", "method": "POST", "url": "/v1/completions", "body": {"prompt": "x"}})"
      "\n \n"
      R"({"custom_id": "c", "body": {"prompt": "y"}})");
  ASSERT_EQ(index.by_custom_id.size(), 3);
  EXPECT_EQ(index.lines, 5);
  EXPECT_EQ(index.by_custom_id.at("a").line, 1);
  EXPECT_EQ(index.by_custom_id.at("c").line, 5);
  EXPECT_FALSE(index.has_chats);
  EXPECT_TRUE(Check(R"({"custom_id": "a", "url": "/v1/chat/completions", )"
                    R"("body": {"messages": [{"role": "user", "content": "x"}]}})")
                  .has_chats);
}

TEST(RequestFileTest, FingerprintsTellLinesApart) {
  EXPECT_EQ(Fingerprint("a"), 0xaf63dc4c8601ec8cu) << "FNV-1a's own example";
  EXPECT_NE(Fingerprint("ab"), Fingerprint("ba"));
}

TEST(RequestFileTest, RefusesEverythingAtOnce) {
  const std::string message =
      Refusal(R"({"custom_id": "a", "body": {"prompt": "x"}})"
              "\n"
              R"({"custom_id": "a", "body": {"prompt": "y"}})"
              "\n"
              R"({"custom_id": "b", "body": {"prompt": "y", "temprature": 1}})"
              "\n");
  EXPECT_THAT(message, HasSubstr("requests: 2 problems"));
  EXPECT_THAT(message,
              HasSubstr(R"(line 2: "custom_id": expected a new one, found "a" of line 1)"));
  EXPECT_THAT(message, HasSubstr(R"(line 3: unknown field "temprature")"));
}

TEST(RequestFileTest, RefusesLines) {
  for (const auto& [line, expected] : std::vector<std::pair<std::string, std::string>>{
           {"nonsense", "line 1: parse error"},
           {"[]", "expected an object, found a list of 0 values"},
           {R"({"body": {"prompt": "x"}})", R"(a request needs "custom_id")"},
           {R"({"custom_id": "a"})", R"(a request needs "body")"},
           {R"({"custom_id": 5, "body": {"prompt": "x"}})", R"("custom_id": expected a text)"},
           {R"({"custom_id": "", "body": {"prompt": "x"}})", R"("custom_id": expected a text)"},
           {R"({"custom_id": "a", "id": 1, "body": {"prompt": "x"}})", R"(unknown field "id")"},
           {R"({"custom_id": "a", "body": {"prompt": "x", "prompt": "y"}})", "two keys"},
           {R"({"custom_id": "a", "method": "GET", "body": {"prompt": "x"}})",
            R"("method": expected "POST", found "GET")"},
           {R"({"custom_id": "a", "url": "/v1/chat/completions", "body": {"prompt": "x"}})",
            R"("url": expected "/v1/completions", found "/v1/chat/completions")"},
           {R"({"custom_id": "a", "body": {"prompt": "x", "stream": true}})",
            "\"stream\": expected false, because results go to a file"},
           {"{\"custom_id\": \"a\", \"body\": {\"prompt\": \"\xff\"}}", "UTF-8"},
           {std::string(200, '['), "nested"},
       }) {
    EXPECT_THAT(Refusal(line), HasSubstr(expected)) << line;
  }
  EXPECT_THAT(Refusal(R"({"custom_id": ")" + std::string(513, 'x') + R"(", "body": {}})"),
              HasSubstr("1 to 512 bytes"));
}

TEST(RequestFileTest, RefusesAnEmptyFile) {
  for (const char* content : {"", "\n", " \r\n\n"}) {
    EXPECT_THAT(Refusal(content), HasSubstr("expected at least one request, found none"));
  }
}

}  // namespace
}  // namespace godwit::cli::request_file_test
