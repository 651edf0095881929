#include "console/terminal/result_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/test_folder.h"
#include "godwit/error.h"

namespace godwit::console::result_files_test {
namespace {

namespace fs = std::filesystem;

class ResultFilesTest : public testing::Test {
 protected:
  ResultFilesTest()
      : text_(folder_.Write("text", "a text")),
        weights_(folder_.Write("model/model.safetensors", "weights")) {}

  std::string At(const std::string& name) const { return folder_.path() / name; }

  // The refusal's words. Empty: none. The folder must be unchanged in any case.
  std::string Refusal(const std::vector<NamedFile>& results) const {
    const auto count = [&] {
      return std::distance(fs::recursive_directory_iterator(folder_.path()),
                           fs::recursive_directory_iterator());
    };
    const auto before = count();
    std::string message;
    try {
      CheckResultFiles(results, {{"-f", text_}, {"-m", At("model")}, {"--calib", std::nullopt}});
    } catch (const Error& error) {
      message = error.what();
    }
    EXPECT_EQ(count(), before);
    return message;
  }

  const TempFolder folder_;
  const std::string text_, weights_;
};

TEST_F(ResultFilesTest, TakesNewAndOldFiles) {
  folder_.Write("old", "result");
  EXPECT_EQ(Refusal({{"-o", At("new")}, {"--jsonl", At("old")}, {"--nll", std::nullopt}}), "");
  EXPECT_EQ(Refusal({{"-o", At("model-int8")}}), "") << "its name begins as the model's does";
  EXPECT_EQ(Refusal({{"-o", "/dev/null"}, {"--jsonl", "/dev/null"}, {"--nll", "/dev/stdout"}}), "");
}

TEST_F(ResultFilesTest, AppendedFileIsARegularFile) {
  const auto appended = [](const std::string& path) {
    return NamedFile{.flag = "-o", .path = path, .appended = true};
  };
  EXPECT_EQ(Refusal({appended(At("new"))}), "");
  EXPECT_EQ(Refusal({appended(folder_.Write("old", "result"))}), "");
  for (const std::string& path : {std::string("-"), std::string("/dev/null"), At("model/..")}) {
    EXPECT_NE(Refusal({appended(path)}).find("expected a regular file"), std::string::npos) << path;
  }
  EXPECT_NE(Refusal({appended(text_)}).find("is the file that -f reads"), std::string::npos);
}

TEST_F(ResultFilesTest, RefusesAnInputByAnyName) {
  fs::create_symlink("text", folder_.path() / "link");
  fs::create_symlink("link", folder_.path() / "chain");
  fs::create_hard_link(text_, folder_.path() / "hard");
  for (const char* name : {"text", "./text", "model/../text", "link", "chain", "hard"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(Refusal({{"--nll", At(name)}}),
              "--nll: \"" + At(name) + "\" is the file that -f reads: choose another one");
  }
}

TEST_F(ResultFilesTest, RefusesStandardInputAsAFile) {
  const int saved = dup(STDIN_FILENO);
  const int file = open(text_.c_str(), O_RDONLY);
  dup2(file, STDIN_FILENO);
  EXPECT_THROW(CheckResultFiles({{"--nll", text_}}, {{"-f", "-"}}), Error);
  dup2(saved, STDIN_FILENO);
  close(saved);
  close(file);
}

TEST_F(ResultFilesTest, RefusesWhatBelongsToTheModel) {
  fs::create_directory(folder_.path() / "blobs");
  fs::create_hard_link(weights_, folder_.path() / "blobs" / "1234");
  fs::create_directory_symlink("model", folder_.path() / "latest");
  for (const char* name : {"model", "model/model.safetensors", "model/new", "latest/new",
                           "model/../latest/new", "blobs/1234"}) {
    SCOPED_TRACE(name);
    EXPECT_NE(Refusal({{"-o", At(name)}}).find("belongs to the model of -m"), std::string::npos);
  }
}

TEST_F(ResultFilesTest, RefusesOneFileForTwo) {
  folder_.Write("old", "result");
  fs::create_symlink("old", folder_.path() / "link");
  fs::create_symlink("new", folder_.path() / "dangling");
  for (const auto& [first, second] :
       {std::pair{"new", "new"}, {"new", "./new"}, {"old", "link"}, {"dangling", "new"}}) {
    SCOPED_TRACE(first);
    EXPECT_EQ(Refusal({{"--nll", At(first)}, {"--jsonl", At(second)}}),
              "--jsonl: \"" + At(second) + "\" is the file that --nll writes: choose another one");
  }
}

TEST_F(ResultFilesTest, RefusesWhatCannotBeWritten) {
  EXPECT_NE(Refusal({{"--nll", "-"}}).find("standard output"), std::string::npos);
  EXPECT_NE(Refusal({{"--nll", At("missing/new")}}).find("No such file"), std::string::npos);
  EXPECT_NE(Refusal({{"--nll", folder_.path()}}).find("Is a directory"), std::string::npos);
}

// Opening a pipe would wait for a reader, and closing it would be the reader's end.
TEST_F(ResultFilesTest, OpensNoPipe) {
  ASSERT_EQ(mkfifo(At("pipe").c_str(), 0666), 0);
  EXPECT_EQ(Refusal({{"--nll", At("pipe")}, {"--jsonl", At("pipe")}}), "");
}

}  // namespace
}  // namespace godwit::console::result_files_test
