#include "server/refusals.h"

#include <gtest/gtest.h>

namespace godwit::server::refusals_test {
namespace {

TEST(Refusals, FoldersOfThisMachineAreLeftOut) {
  const auto words = [](ErrorKind kind, const std::string& message,
                        const std::string& model = "/data/My Models/tiny") {
    return WithoutFolders(Error(kind, message), message, model);
  };
  EXPECT_EQ(words(ErrorKind::kFormat, "/data/My Models/tiny/chat_template.jinja: line 1: bad"),
            "tiny/chat_template.jinja: line 1: bad");
  EXPECT_EQ(words(ErrorKind::kUnsupported, "/data/My Models/tiny has no chat template"),
            "tiny has no chat template");
  EXPECT_EQ(words(ErrorKind::kInput, "tiny.gguf: no", "models/tiny.gguf/"), "tiny.gguf: no");
  EXPECT_EQ(words(ErrorKind::kInput, "models/tiny.gguf: no", "models/tiny.gguf/"), "tiny.gguf: no");
  EXPECT_EQ(words(ErrorKind::kIo, "cannot start /opt/godwit/bin/godwit-text: no such file"),
            "cannot start godwit-text: no such file");
  EXPECT_EQ(words(ErrorKind::kFormat, "\"/etc/a\" and (/etc/b/c), a/b"), "\"a\" and (c), a/b");
  // Quotes of a request stay as they are, and the server's URL paths are no files.
  EXPECT_EQ(words(ErrorKind::kInput, "found \"/etc/passwd\"; see POST /v1/completions"),
            "found \"/etc/passwd\"; see POST /v1/completions");
}

}  // namespace
}  // namespace godwit::server::refusals_test
