#include "cli/batch/result_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/test_folder.h"
#include "base/test_support.h"

namespace godwit::cli::result_file_test {
namespace {

using ::testing::HasSubstr;

class ResultFileTest : public testing::Test {
 protected:
  ResultFileTest()
      : path_(folder_.path() / "results"),
        requests_(
            CheckRequests(folder_.Write("requests", R"({"custom_id": "a", "body": {"prompt": "x"}})"
                                                    "\n\n"
                                                    R"({"custom_id": "b", "body": {"prompt": "y"}})"
                                                    "\n"))) {}

  RequestName Name(const std::string& id) const { return {id, requests_.by_custom_id.at(id)}; }
  std::string Answer(const std::string& id, const std::string& model = "m") const {
    return ResultLine(Name(id), {{"model", model}});
  }

  FinishedRequests Read(const std::string& content) {
    folder_.Write("results", content);
    console::AppendedFile results(path_);
    return ReadResults(results, requests_, "m");
  }
  std::string Refusal(const std::string& content) {
    const std::string message = ErrorOf(ErrorKind::kInput, [&] { Read(content); });
    EXPECT_EQ(Content(), content) << "it is as it was";
    return message;
  }
  std::string Content() const {
    std::ostringstream content;
    content << std::ifstream(path_).rdbuf();
    return content.str();
  }

  const TempFolder folder_;
  const std::string path_;
  const RequestIndex requests_;
};

TEST_F(ResultFileTest, KnowsWhatIsFinished) {
  const FinishedRequests finished =
      Read(FailureLine(Name("b"), Error(ErrorKind::kInput, "no")) + Answer("a"));
  EXPECT_EQ(finished.count, 2);
  ASSERT_EQ(finished.failures.size(), 1u);
  EXPECT_EQ(finished.failures[0].request, 3);
  EXPECT_EQ(finished.failures[0].result, 1);
  EXPECT_EQ(finished.lines, std::vector<bool>({false, true, false, true}));
  EXPECT_EQ(Read("").count, 0);
}

TEST_F(ResultFileTest, FailedRequestsAreForgotten) {
  const std::string failure = FailureLine(Name("b"), Error(ErrorKind::kInput, "no"));
  for (const std::string& content : {failure + Answer("a"), Answer("a") + failure}) {
    folder_.Write("results", content);
    console::AppendedFile results(path_);
    FinishedRequests finished = ReadResults(results, requests_, "m");
    ForgetFailures(results, finished);
    EXPECT_EQ(finished.count, 1);
    EXPECT_TRUE(finished.failures.empty());
    EXPECT_EQ(finished.lines, std::vector<bool>({false, true, false, false}));
    EXPECT_EQ(Content(), Answer("a"));
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { console::AppendedFile second(path_); }),
                HasSubstr("another process"));
    results.Append(Answer("b"));
    EXPECT_EQ(Content(), Answer("a") + Answer("b"));
  }
}

// An unfinished line is removed, wherever the writer was killed.
TEST_F(ResultFileTest, ALineThatWasNotFinishedIsTakenAway) {
  const std::string first = Answer("b"), second = Answer("a");
  for (size_t bytes = 0; bytes < second.size() - 1; ++bytes) {
    EXPECT_EQ(Read(first + second.substr(0, bytes)).count, 1) << bytes;
    EXPECT_EQ(Content(), first) << bytes;
  }
  EXPECT_EQ(Read(first + second.substr(0, second.size() - 1)).count, 2) << "but for its newline";
  EXPECT_EQ(Content(), first + second);
}

// Zeros that a power cut leaves in place of lost bytes, and all behind them.
TEST_F(ResultFileTest, LinesWithLostBytesAreTakenAway) {
  const std::string first = Answer("b"), second = Answer("a");
  for (size_t begin = 0; begin < second.size(); begin += 7) {
    for (const size_t bytes : {size_t{1}, second.size() / 2, second.size()}) {
      std::string torn = second;
      for (size_t i = begin; i < std::min(torn.size(), begin + bytes); ++i) torn[i] = '\0';
      EXPECT_EQ(Read(first + torn).count, 1) << begin << ", " << bytes;
      EXPECT_EQ(Content(), first);
      EXPECT_EQ(Read(torn + first).count, 0) << begin << ", " << bytes;
      EXPECT_EQ(Content(), "");
    }
  }
}

TEST_F(ResultFileTest, RefusesWhatAnswersSomethingElse) {
  EXPECT_THAT(Refusal("{}\n"), HasSubstr("results:1: expected a result of godwit batch"));
  EXPECT_THAT(Refusal("[1]\n"), HasSubstr("results:1: expected a result of godwit batch"));
  EXPECT_THAT(Refusal(Answer("a") + Answer("a")), HasSubstr("results:2: \"a\" has a result"));
  EXPECT_THAT(Refusal(Answer("a", "other")),
              HasSubstr("found a result of the model \"other\", expected one of \"m\""));
  RequestName other = Name("a");
  other.custom_id = "c";
  EXPECT_THAT(Refusal(ResultLine(other, {{"model", "m"}})), HasSubstr("\"c\" is no request of "));
  other = Name("a");
  ++other.place.fingerprint;
  EXPECT_THAT(Refusal(ResultLine(other, {{"model", "m"}})), HasSubstr("expected a result of "));
  // Text that is no result stays, though no newline ends it.
  for (const char* text : {"a text", "{\"id\": 5", "{}"}) {
    folder_.Write("results", text);
    EXPECT_THROW(Read(text), Error) << text;
    EXPECT_EQ(Content(), text);
  }
}

TEST_F(ResultFileTest, AnEmptyFileIsNotLeftBehind) {
  { const console::AppendedFile file(path_); }
  EXPECT_FALSE(std::filesystem::exists(path_));
  { console::AppendedFile(path_).Append("x"); }
  EXPECT_EQ(Content(), "x");
}

TEST_F(ResultFileTest, OneWriterAtATime) {
  const console::AppendedFile file(path_);
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { console::AppendedFile second(path_); }),
              HasSubstr("another process"));
}

TEST_F(ResultFileTest, RefusesWhatCannotBeContinued) {
  for (const char* path : {"/dev/null", "/dev/stdout", "-"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { console::AppendedFile file(path); }),
                HasSubstr("expected a regular file"))
        << path;
  }
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { console::AppendedFile file(folder_.path()); }),
              HasSubstr("expected a regular file"));
}

}  // namespace
}  // namespace godwit::cli::result_file_test
