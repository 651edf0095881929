// Texts that ranks share, saved by every rank on its disk. Later ranks go on from them with the
// bits of a text that was read.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/test_folder.h"
#include "engine/generation_impl.h"
#include "engine/on_ranks_test_support.h"
#include "engine/saved_texts.h"
#include "tests/session_of.h"

namespace godwit::saved_ranks_test {
namespace {

using testing::Each;
namespace fs = std::filesystem;

constexpr int64_t kQuestion = 30;

// A context of 303 or 647 tokens, and a question.
Tokens Asked(int context, int question, int64_t length) {
  Tokens prompt = Prompt(context, length);
  const Tokens asked = Prompt(question, kQuestion);
  std::ranges::copy(asked, prompt.end() - kQuestion);
  return prompt;
}

// Ranks use one folder each, as hosts do, or all the same one.
class SavedRanks : public testing::Test {
 protected:
  fs::path FolderOf(int rank) const {
    return temp_.path() / (one_folder_ ? "all" : std::to_string(rank));
  }

  std::vector<std::string> Ask(int ranks, const std::function<void(const EnginePtr&)>& ask,
                               int tensor_parallel = 1) const {
    const auto options = [&](int rank) {
      return LoadOptions{.threads = 1,
                         .weights = "f32",
                         .cache_dir = FolderOf(rank).string(),
                         .tensor_parallel = tensor_parallel};
    };
    return OnRanks(ranks, options, ask);
  }

  // The answer of new ranks to a prompt.
  GenerateResult Generate(int ranks, const SessionOptions& session, const Tokens& prompt,
                          int tensor_parallel = 1) const {
    GenerateResult result;
    const auto errors = Ask(
        ranks,
        [&](const EnginePtr& engine) {
          result = SubmitTo(engine, prompt, GreedyWithLogprobs(20, kQuestion), session).Wait();
        },
        tensor_parallel);
    EXPECT_THAT(errors, Each(""));
    return result;
  }

  // A later question goes on from what the ranks have saved, as from what they read.
  void ExpectSameBitsFromDisk(int ranks, const char* kv, const char* prefill) const {
    SCOPED_TRACE(fmt::format("{} ranks, {} {}", ranks, kv, prefill));
    const SessionOptions session = {.kv = kv, .prefill = prefill, .kv_type = "f32"};
    const Tokens first = Asked(ranks, 7, 677), other = Asked(ranks, 8, 677);
    const auto read = Generate(ranks, session, first);
    EXPECT_EQ(read.disk_tokens, 0);
    const auto again = Generate(ranks, session, first);
    EXPECT_EQ(again.disk_tokens, 647);
    EXPECT_EQ(again.cached_tokens, 647);
    EXPECT_EQ(AnswerOf(again), AnswerOf(read));
    // Another question, by an engine that has the context on the disk and by one that reads it.
    const auto asked = Generate(ranks, session, other);
    EXPECT_EQ(asked.disk_tokens, 647);
    fs::remove_all(temp_.path());
    const auto reread = Generate(ranks, session, other);
    EXPECT_EQ(reread.disk_tokens, 0);
    EXPECT_EQ(AnswerOf(asked), AnswerOf(reread));
  }

  TempFolder temp_;
  bool one_folder_ = false;
};

constexpr const char* kBlocks = "blocks:block_size=64,second_block_count=2";

TEST_F(SavedRanks, GoOnWithTheSameBits) {
  ExpectSameBitsFromDisk(2, "dense", "star:block=128,anchor=128");
  ExpectSameBitsFromDisk(3, "dense", "ring:chunk=64");
  ExpectSameBitsFromDisk(2, kBlocks, "star:block=64");
}

TEST_F(SavedRanks, RELEASE_GoOnWithTheSameBitsHoweverTheyRead) {
  ExpectSameBitsFromDisk(2, "dense", "star:block=40");
  ExpectSameBitsFromDisk(3, "dense", "star:block=40");
  ExpectSameBitsFromDisk(3, "dense", "star:block=128,anchor=128");
  ExpectSameBitsFromDisk(2, "dense", "ring:chunk=64");
  ExpectSameBitsFromDisk(3, kBlocks, "star:block=64");
}

TEST_F(SavedRanks, MayShareAFolder) {
  one_folder_ = true;
  const SessionOptions session = {.prefill = "star:block=40", .kv_type = "f32"};
  const auto read = Generate(3, session, Asked(1, 2, 333));
  EXPECT_EQ(Generate(3, session, Asked(1, 2, 333)).disk_tokens, 303);
  // Another number of ranks, another end of the context: other parts.
  EXPECT_EQ(Generate(2, session, Asked(1, 2, 333)).disk_tokens, 0);
  EXPECT_EQ(Generate(3, session, Asked(1, 2, 334)).disk_tokens, 0);
  EXPECT_EQ(Generate(1, session, Asked(1, 2, 333)).disk_tokens, 0);
  EXPECT_EQ(AnswerOf(Generate(3, session, Asked(1, 2, 333))), AnswerOf(read));
}

// A prefix in memory goes before one on the disk, and a session saves its text as others do.
TEST_F(SavedRanks, SessionsAndRequestsGoOnFromOneAnother) {
  const SessionOptions session = {.prefill = "ring:chunk=64", .kv_type = "f32"};
  EXPECT_THAT(Ask(2,
                  [&](const EnginePtr& engine) {
                    SessionOf(*engine, session).Generate(Asked(1, 2, 333), Greedy(5, kQuestion));
                  }),
              Each(""));
  EXPECT_THAT(
      Ask(2,
          [&](const EnginePtr& engine) {
            for (const int question : {3, 4}) {
              const auto result =
                  SubmitTo(engine, Asked(1, question, 333), Greedy(5, kQuestion), session).Wait();
              EXPECT_EQ(result.cached_tokens, 303);
              EXPECT_EQ(result.disk_tokens, question == 3 ? 303 : 0);
            }
          }),
      Each(""));
}

// The others forget theirs, and all read the context again.
TEST_F(SavedRanks, ARankWithoutItsPartMakesAllReadAgain) {
  const SessionOptions session = {.prefill = "star:block=40", .kv_type = "f32"};
  const Tokens prompt = Asked(1, 2, 333);
  const auto read = Generate(3, session, prompt);
  for (const int rank : {0, 2}) {
    fs::remove_all(FolderOf(rank));
    const auto again = Generate(3, session, prompt);
    EXPECT_EQ(again.disk_tokens, 0);
    EXPECT_EQ(AnswerOf(again), AnswerOf(read));
  }
  EXPECT_EQ(Generate(3, session, prompt).disk_tokens, 303) << "it was saved again";
}

// A bit of the last page of a rank's part.
TEST_F(SavedRanks, ADamagedPartMakesAllReadAgain) {
  const SessionOptions session = {.prefill = "ring:chunk=64", .kv_type = "f32"};
  const Tokens prompt = Asked(1, 2, 333);
  const auto read = Generate(2, session, prompt);
  for (const int rank : {0, 1}) {
    int files = 0;
    for (const auto& file : fs::directory_iterator(FolderOf(rank))) {
      if (file.path().extension() != ".kv") continue;
      ++files;
      std::fstream bytes(file.path(), std::ios::in | std::ios::out | std::ios::binary);
      bytes.seekp(-4096, std::ios::end);
      bytes.put('\x55');
    }
    EXPECT_EQ(files, 1);
    const auto again = Generate(2, session, prompt);
    EXPECT_EQ(again.disk_tokens, 0);
    EXPECT_EQ(AnswerOf(again), AnswerOf(read));
    EXPECT_EQ(Generate(2, session, prompt).disk_tokens, 303);
  }
}

// Ranks that share weights and no context save the whole text, each for its heads.
TEST_F(SavedRanks, TensorParallelRanksGoOnWithinAText) {
  const SessionOptions session = {.kv_type = "f32"};
  const Tokens prompt = Asked(1, 2, 333);
  const auto read = Generate(2, session, prompt, 2);
  const auto again = Generate(2, session, prompt, 2);
  EXPECT_EQ(again.disk_tokens, 320);
  EXPECT_EQ(AnswerOf(again), AnswerOf(read));
  EXPECT_EQ(Generate(2, session, Asked(1, 9, 333), 2).disk_tokens, 256);
  const SessionOptions ring = {.prefill = "ring:chunk=64", .kv_type = "f32"};
  const auto groups = Generate(4, ring, prompt, 2);
  EXPECT_EQ(groups.disk_tokens, 0);
  const auto groups_again = Generate(4, ring, prompt, 2);
  EXPECT_EQ(groups_again.disk_tokens, 303);
  EXPECT_EQ(AnswerOf(groups_again), AnswerOf(groups));
}

}  // namespace
}  // namespace godwit::saved_ranks_test
