#include "hub/pull.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "base/sha256.h"
#include "base/test_folder.h"
#include "base/test_support.h"
#include "http/http_test_server.h"
#include "hub/hub_cache.h"

namespace godwit::hub::pull_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::string HashOf(const std::string& text) {
  Sha256 hash;
  hash.Add(std::as_bytes(std::span(text)));
  return hash.Hex();
}

std::string ReadAll(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

bool Has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

std::string Answer(int status, std::string_view body, std::string_view headers = "") {
  return fmt::format("HTTP/1.1 {} x\r\nContent-Length: {}\r\n{}\r\n{}", status, body.size(),
                     headers, body);
}

// The part of a file from the first byte of the request's range.
std::string Part(const std::string& request, const std::string& content) {
  constexpr std::string_view kRange = "Range: bytes=";
  const size_t range = request.find(kRange);
  if (range == request.npos) return Answer(200, content);
  const size_t begin = std::stoul(request.substr(range + kRange.size()));
  if (begin >= content.size()) return Answer(416, "");
  return Answer(
      206, content.substr(begin),
      fmt::format("Content-Range: bytes {}-{}/{}\r\n", begin, content.size() - 1, content.size()));
}

class PullTest : public testing::Test {
 protected:
  PullTest() {
    for (int i = 0; i < 5000; ++i) content_ += static_cast<char>(i * 31);
    listing_ = {.repository = "o/n",
                .commit = "0123456789",
                .files = {{.name = "q/n.gguf",
                           .bytes = std::ssize(content_),
                           .blob = HashOf(content_),
                           .sha256 = HashOf(content_)}}};
  }

  HubOptions Options() {
    return {.endpoint = server_.Url(""),
            .token = "secret",
            .cancel = &cancel_,
            .first_pause = std::chrono::milliseconds(1),
            .say = [this](const std::string& text) { said_.push_back(text); }};
  }

  void PullIt() {
    HubClient client(Options());
    const PullPlan plan = PlanPull(client, listing_, "main", listing_.files, cache_.path());
    Pull(client, plan,
         {.progress = [this](int64_t done, int64_t, int64_t) { done_ = done; },
          .say =
              [this](const std::string& text) {
                said_.push_back(text);
                ++says_;
              },
          .cancel = &cancel_});
  }

  fs::path blob() const { return cache_.path() / "models--o--n/blobs" / listing_.files[0].blob; }
  fs::path partial() const { return blob().native() + ".incomplete"; }
  fs::path link() const { return cache_.path() / "models--o--n/snapshots/0123456789/q/n.gguf"; }
  void Begin(const std::string& bytes) const {
    fs::create_directories(partial().parent_path());
    std::ofstream(partial(), std::ios::binary) << bytes;
  }
  std::vector<std::string> RangesAskedFor() {
    std::vector<std::string> ranges;
    for (const std::string& request : server_.requests()) {
      const size_t at = request.find("Range: ");
      ranges.push_back(
          at == request.npos ? "" : request.substr(at + 7, request.find('\r', at) - at - 7));
    }
    return ranges;
  }
  void ExpectThere() const {
    EXPECT_EQ(ReadAll(link()), content_);
    EXPECT_EQ(fs::read_symlink(link()), fs::path("../../../blobs") / listing_.files[0].blob);
    EXPECT_EQ(ReadAll(cache_.path() / "models--o--n/refs/main"), "0123456789");
    EXPECT_FALSE(fs::exists(partial()));
  }

  TempFolder cache_;
  CancelToken cancel_;
  std::string content_;
  Listing listing_;
  std::vector<std::string> said_;
  std::atomic<int> says_ = 0;  // for other threads
  int64_t done_ = 0;
  int requests_ = 0;
  std::function<TestAnswer(const std::string&)> answer_ = [this](const std::string& request) {
    return TestAnswer{Part(request, content_)};
  };
  HttpTestServer server_{[this](const std::string& request) {
    ++requests_;
    return answer_(request);
  }};
};

TEST_F(PullTest, AFileIsABlobAndALinkToIt) {
  PullIt();
  ExpectThere();
  EXPECT_EQ(done_, std::ssize(content_));
  EXPECT_TRUE(server_.requests()[0].starts_with("GET /o/n/resolve/0123456789/q/n.gguf HTTP/1.1"));
  EXPECT_TRUE(Has(server_.requests()[0], "Authorization: Bearer secret"));
  PullIt();  // nothing is left to do
  EXPECT_EQ(requests_, 1);
}

TEST_F(PullTest, PartialFileIsResumed) {
  Begin(content_.substr(0, 2000));
  PullIt();
  ExpectThere();
  EXPECT_THAT(RangesAskedFor(), ElementsAre("bytes=2000-"));
}

TEST_F(PullTest, AWholePartialFileIsNotAskedFor) {
  Begin(content_);
  PullIt();
  ExpectThere();
  EXPECT_EQ(requests_, 0);
}

TEST_F(PullTest, APartialFileThatIsTooLongIsBegunAnew) {
  Begin(content_ + "more");
  PullIt();
  ExpectThere();
  EXPECT_THAT(RangesAskedFor(), ElementsAre(""));
}

TEST_F(PullTest, ServersWithoutRangesSendAllOfIt) {
  Begin(std::string(2000, '?'));
  answer_ = [this](const std::string&) { return TestAnswer{Answer(200, content_)}; };
  PullIt();
  ExpectThere();
}

TEST_F(PullTest, ARangeThatIsRefusedIsBegunAnew) {
  Begin(content_.substr(0, 2000));
  answer_ = [this](const std::string& request) {
    return TestAnswer{Has(request, "Range: ") ? Answer(416, "") : Answer(200, content_)};
  };
  PullIt();
  ExpectThere();
}

TEST_F(PullTest, AnotherRangeIsRefused) {
  Begin(content_.substr(0, 2000));
  answer_ = [this](const std::string&) {
    return TestAnswer{Answer(206, content_, "Content-Range: bytes 0-4999/5000\r\n")};
  };
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { PullIt(); }),
              HasSubstr("asked for bytes from 2000 of 5000 on, found the range \"bytes 0-"));
  EXPECT_EQ(fs::file_size(partial()), 2000u);
}

TEST_F(PullTest, ACutConnectionIsGoneOnWith) {
  answer_ = [this](const std::string& request) {
    std::string all = Part(request, content_);
    if (requests_ > 3) return TestAnswer{all};
    return TestAnswer{all.substr(0, all.find("\r\n\r\n") + 4 + 1000), TestAnswer::kClose};
  };
  PullIt();
  ExpectThere();
  EXPECT_THAT(RangesAskedFor(), ElementsAre("", "bytes=1000-", "bytes=2000-", "bytes=3000-"));
  ASSERT_EQ(said_.size(), 3u);
  EXPECT_THAT(said_[0], HasSubstr("cut the connection after 1000 of 5000 bytes"));
  EXPECT_THAT(said_[2], HasSubstr("trying again in 0.009 s"));
  EXPECT_EQ(done_, std::ssize(content_));
}

TEST_F(PullTest, RetriesAreLimited) {
  answer_ = [](const std::string&) { return TestAnswer{Answer(503, "")}; };
  EXPECT_THAT(ErrorOf(ErrorKind::kIo, [&] { PullIt(); }), HasSubstr("answers 503"));
  EXPECT_EQ(requests_, 5);
  ErrorOf(ErrorKind::kIo, [&] { HubClient(Options()).List("o/n", "main"); });
  EXPECT_EQ(requests_, 7);
  EXPECT_FALSE(fs::exists(link()));
}

TEST_F(PullTest, AnotherContentIsRemoved) {
  Begin("?" + content_.substr(1, 1999));
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { PullIt(); }),
              HasSubstr("expected " + HashOf(content_)));
  EXPECT_FALSE(fs::exists(partial()));
  EXPECT_FALSE(fs::exists(blob()));
  EXPECT_FALSE(fs::exists(link()));
  PullIt();
  ExpectThere();
}

TEST_F(PullTest, MoreBytesThanAFileHasAreRefused) {
  answer_ = [this](const std::string&) { return TestAnswer{Answer(200, content_ + "x")}; };
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { PullIt(); }),
              HasSubstr("expected 5000 bytes, found more"));
  EXPECT_FALSE(fs::exists(blob()));
}

TEST_F(PullTest, ALinkInPlaceOfThePartialFileIsNotFollowed) {
  const fs::path other = cache_.Write("other", "precious");
  fs::create_directories(partial().parent_path());
  fs::create_symlink(other, partial());
  ErrorOf(ErrorKind::kIo, [&] { PullIt(); });
  EXPECT_EQ(ReadAll(other), "precious");
}

TEST_F(PullTest, HeadersGiveSizeAndHashThatTheListLacks) {
  const std::string linked = fmt::format("X-Linked-Size: {}\r\nX-Linked-Etag: \"{}\"\r\n",
                                         content_.size(), HashOf(content_));
  const std::string plain = fmt::format("ETag: \"{}\"\r\n", HashOf(content_));
  for (const bool is_linked : {true, false}) {
    answer_ = [&](const std::string& request) {
      if (Has(request, "/resolve/")) {
        return TestAnswer{Answer(302, "Found.",
                                 fmt::format("Location: {}\r\nETag: \"other\"\r\n{}",
                                             server_.Url("/cdn"), is_linked ? linked : ""))};
      }
      return TestAnswer{Answer(200, content_, is_linked ? "" : plain)};
    };
    HubClient client(Options());
    const PullPlan plan = PlanPull(client, listing_, "main", {{.name = "q/n.gguf"}}, cache_.path());
    EXPECT_EQ(plan.files[0].sha256, HashOf(content_));
    EXPECT_EQ(plan.missing_bytes(), 5000);
    if (is_linked) continue;
    Pull(client, plan, {});
    EXPECT_EQ(ReadAll(link()), content_);
  }
}

// Files of an earlier commit that are the same in the new one are linked there, too.
TEST_F(PullTest, FilesOfAnEarlierCommitAreLinkedToo) {
  const std::string other = "another model";
  listing_.files.push_back({.name = "m.gguf",
                            .bytes = std::ssize(other),
                            .blob = HashOf(other),
                            .sha256 = HashOf(other)});
  cache_.Write("models--o--n/blobs/" + HashOf(other), other);
  HubClient client(Options());
  Pull(client, PlanPull(client, listing_, "main", {listing_.files[0]}, cache_.path()), {});
  EXPECT_EQ(ReadAll(link().parent_path().parent_path() / "m.gguf"), other);
}

TEST_F(PullTest, NoRoomIsSaidBeforeAnythingComes) {
  listing_.files[0].bytes = int64_t{1} << 50;
  HubClient client(Options());
  const PullPlan plan = PlanPull(client, listing_, "main", listing_.files, cache_.path() / "hub");
  EXPECT_THAT(ErrorOf(ErrorKind::kIo, [&] { RequireDiskSpace(plan); }),
              HasSubstr("1.0 PiB to download, and the disk of "));
}

// The second pull waits until the other one, here this test, releases the lock.
TEST_F(PullTest, SecondPullWaitsForTheFirst) {
  const fs::path lock = cache_.Write(".locks/models--o--n/" + listing_.files[0].blob + ".lock", "");
  const FileDescriptor held(open(lock.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(flock(held.get(), LOCK_EX), 0);
  std::thread other([&] {
    while (says_ == 0) std::this_thread::yield();
    flock(held.get(), LOCK_UN);
  });
  PullIt();
  other.join();
  ExpectThere();
  EXPECT_THAT(said_[0], HasSubstr("waiting for another process that downloads \"q/n.gguf\""));
}

TEST_F(PullTest, CancellingLeavesWhatCame) {
  answer_ = [this](const std::string& request) {
    std::string all = Part(request, content_);
    return TestAnswer{all.substr(0, all.size() - 1000)};  // then silence
  };
  std::thread canceller([&] {
    while (!fs::exists(partial()) || fs::file_size(partial()) < 4000) std::this_thread::yield();
    cancel_.Cancel();
  });
  ErrorOf(ErrorKind::kCancelled, [&] { PullIt(); });
  canceller.join();
  EXPECT_EQ(fs::file_size(partial()), 4000u);
}

TEST_F(PullTest, RefusalsSayWhatToDo) {
  std::string token = "secret";
  const auto refusal = [&](int status, std::string_view code) {
    answer_ = [=](const std::string&) {
      return TestAnswer{
          Answer(status, "", code.empty() ? "" : fmt::format("X-Error-Code: {}\r\n", code))};
    };
    HubOptions options = Options();
    options.token = token;
    return ErrorOf(ErrorKind::kIo, [&] { HubClient(options).List("o/n", "dev"); });
  };
  EXPECT_THAT(refusal(404, "RepoNotFound"), HasSubstr("o/n: there is no such model"));
  EXPECT_THAT(refusal(404, "RevisionNotFound"), HasSubstr("o/n has no revision \"dev\""));
  EXPECT_THAT(refusal(403, "GatedRepo"), HasSubstr("accept them at " + server_.Url("/o/n")));
  EXPECT_THAT(refusal(401, ""), HasSubstr("the token is not accepted"));
  EXPECT_FALSE(Has(refusal(401, ""), "secret"));
  token = "";
  EXPECT_THAT(refusal(401, "GatedRepo"), HasSubstr("set HF_TOKEN"));
  EXPECT_THAT(refusal(401, ""), HasSubstr("the model does not exist, or it is private or gated"));
  EXPECT_THAT(refusal(400, ""), HasSubstr("answers 400"));
}

}  // namespace
}  // namespace godwit::hub::pull_test
