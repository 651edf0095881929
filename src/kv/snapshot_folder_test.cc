#include "kv/snapshot_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <vector>

#include "base/new_file.h"
#include "base/test_folder.h"
#include "base/test_support.h"
#include "kv/kv_cache_test_support.h"

namespace godwit::snapshot_folder_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

constexpr int64_t kRoom = int64_t{1} << 30;
const SnapshotFacts kFacts = {{"model", "x"}};

using Tokens = std::vector<int32_t>;

// Texts differ from their first token on.
Tokens Text(int i, int64_t length) {
  Tokens tokens(static_cast<size_t>(length));
  std::iota(tokens.begin(), tokens.end(), 1000 * i);
  return tokens;
}

Tokens Join(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

KvCache CacheOf(int64_t text, int64_t length) {
  KvCache cache = NewCache(Layout(2, 2, 16, DType::kBF16));
  Read(cache, text, length);
  return cache;
}

int64_t Save(SnapshotFolder& folder, const Tokens& tokens, const KvCache& cache) {
  return folder.Save(kFacts, "a model", tokens, cache);
}

int64_t Found(SnapshotFolder& folder, const Tokens& tokens, const SnapshotFacts& facts = kFacts) {
  const auto pieces = folder.Longest(facts, tokens);
  return pieces.empty() ? 0 : pieces.back().end;
}

// The folder finds `length` tokens of the text, and they are those of `cache`.
void ExpectFound(SnapshotFolder& folder, const Tokens& tokens, int64_t text, int64_t length) {
  KvCache again = NewCache(Layout(2, 2, 16, DType::kBF16));
  for (const auto& [name, end] : folder.Longest(kFacts, tokens)) {
    again.Restore(folder.Open(name), end);
  }
  ASSERT_EQ(again.length(), length);
  for (int64_t layer = 0; layer < 2; ++layer) again.WillRead(layer, {0, length});
  ExpectHeld(again, text, 0, length);
}

std::vector<fs::path> FilesIn(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& file : fs::directory_iterator(folder)) files.push_back(file.path());
  std::ranges::sort(files);
  return files;
}

TEST(SnapshotFolderTest, FindsTheLongestBeginning) {
  const TempFolder temp;
  SnapshotFolder folder(temp.path() / "cache", kRoom);
  const Tokens text = Text(0, 400);
  const KvCache cache = CacheOf(0, 400);
  EXPECT_EQ(Found(folder, text), 0);
  EXPECT_EQ(Save(folder, {text.begin(), text.begin() + 100}, cache), 64);
  EXPECT_EQ(Save(folder, {text.begin(), text.begin() + 300}, cache), 192);
  EXPECT_EQ(Save(folder, text, cache), 128);
  EXPECT_EQ(Save(folder, text, cache), 0) << "all of it is there";
  ExpectFound(folder, text, 0, 384);
  ExpectFound(folder, {text.begin(), text.begin() + 383}, 0, 320);
  ExpectFound(folder, {text.begin(), text.begin() + 70}, 0, 64);
  EXPECT_EQ(Found(folder, {text.begin(), text.begin() + 63}), 0);
  EXPECT_EQ(Found(folder, Text(1, 400)), 0);
  EXPECT_EQ(Found(folder, text, {{"model", "y"}}), 0);
  EXPECT_EQ(Found(folder, text, {}), 0);
  SnapshotFolder later(temp.path() / "cache", kRoom);
  ExpectFound(later, text, 0, 384);
}

// A shared beginning is stored once, wherever the texts part.
TEST(SnapshotFolderTest, TextsShareTheirBeginning) {
  const TempFolder temp;
  SnapshotFolder folder(temp.path(), kRoom);
  const KvCache cache = CacheOf(0, 400);
  const Tokens text = Text(0, 400);
  EXPECT_EQ(Save(folder, text, cache), 384);
  for (const int64_t same : {64, 100, 200, 384, 390}) {
    const Tokens other =
        Join({text.begin(), text.begin() + same}, Text(10 + static_cast<int>(same), 200));
    KvCache fork = cache.Fork();
    fork.Truncate(same);
    Read(fork, same, 200);
    const int64_t shared = same / 64 * 64;
    EXPECT_EQ(Save(folder, other, fork), (same + 200) / 64 * 64 - shared);
    EXPECT_EQ(Found(folder, other), (same + 200) / 64 * 64);
    KvCache again = NewCache(cache.layout());
    for (const auto& [name, end] : folder.Longest(kFacts, other)) {
      again.Restore(folder.Open(name), end);
    }
    for (int64_t layer = 0; layer < 2; ++layer) again.WillRead(layer, {0, again.length()});
    ExpectHeld(again, 0, 0, same);
    ExpectHeld(again, same, same, again.length());
  }
  EXPECT_EQ(folder.Entries().size(), 6u);
  ExpectFound(folder, text, 0, 384);
}

// An index serves all texts that share the keys that it was made from.
class SavedIndexesTest : public testing::Test {
 protected:
  // Saves an index of the first `of` tokens.
  void SaveIndex(const Tokens& tokens, int64_t of, const std::string& content,
                 const std::string& kind = "signs") {
    folder_.SaveIndex(kFacts, tokens,
                      {.kind = kind, .tokens = of, .parts = {std::as_bytes(std::span(content))}});
  }
  // Tokens and content of the index; 0 without one.
  std::pair<int64_t, std::string> Open(const Tokens& tokens, const std::string& kind = "signs") {
    const auto saved = folder_.OpenIndex(folder_.Longest(kFacts, tokens), kind);
    if (saved == nullptr) return {0, ""};
    const auto content = saved->index().parts[0];
    return {saved->index().tokens, {reinterpret_cast<const char*>(content.data()), content.size()}};
  }
  std::vector<fs::path> Indexes() const {
    std::vector<fs::path> files;
    for (const fs::path& file : FilesIn(temp_.path())) {
      if (file.extension() == ".index") files.push_back(file);
    }
    return files;
  }

  TempFolder temp_;
  SnapshotFolder folder_{temp_.path(), kRoom};
};

TEST_F(SavedIndexesTest, TextsThatShareKeysShareThem) {
  const Tokens text = Text(0, 640);
  const Tokens other = Join({text.begin(), text.begin() + 320}, Text(1, 320));
  SaveIndex(text, 320, "too early");
  EXPECT_EQ(Save(folder_, {text.begin(), text.begin() + 256}, CacheOf(0, 256)), 256);
  EXPECT_EQ(Save(folder_, text, CacheOf(0, 640)), 384);
  KvCache parted = CacheOf(0, 320);
  Read(parted, 1, 320);
  EXPECT_EQ(Save(folder_, other, parted), 320);
  EXPECT_EQ(Open(text).first, 0);
  SaveIndex(text, 0, "nothing");
  EXPECT_EQ(Open(text).first, 0);
  SaveIndex(text, 576, "of all");
  EXPECT_EQ(Open(text), std::pair(int64_t{576}, std::string("of all")));
  EXPECT_EQ(Open(text, "boxes").first, 0);
  EXPECT_EQ(Open(text, "").first, 0);
  EXPECT_EQ(Open(other), std::pair(int64_t{320}, std::string("of all")));
  EXPECT_EQ(Open({text.begin(), text.begin() + 130}).first, 128);
  EXPECT_EQ(Open(Text(2, 640)).first, 0);
  SaveIndex({text.begin(), text.begin() + 256}, 256, "no more of it");
  EXPECT_EQ(Indexes().size(), 1u);
  SaveIndex(text, 576, "another", "boxes");
  EXPECT_EQ(Open(text, "boxes").second, "another");
  EXPECT_EQ(Open(text).second, "of all");
  SnapshotFolder later(temp_.path(), kRoom);
  EXPECT_NE(later.OpenIndex(later.Longest(kFacts, text), "boxes"), nullptr);
  EXPECT_THAT(later.Verify(), IsEmpty());
}

// An index of many more tokens replaces those of shorter beginnings. Indexes go with their texts.
TEST_F(SavedIndexesTest, UselessOnesAreRemoved) {
  const Tokens text = Text(0, 64 * 200);
  const KvCache cache = CacheOf(0, std::ssize(text));
  for (const int64_t length : {64, 64 * 65, 64 * 66, 64 * 200}) {
    const Tokens first{text.begin(), text.begin() + length};
    Save(folder_, first, cache);
    SaveIndex(first, length, std::to_string(length));
    EXPECT_EQ(Indexes().size(), 1u);
    EXPECT_EQ(Open(first).second, std::to_string(length == 64 * 66 ? 64 * 65 : length));
  }
  const auto entries = folder_.Entries();
  EXPECT_GT(entries.back().all_bytes(), entries.back().bytes);
  folder_.Remove(entries.front().name);
  EXPECT_THAT(Indexes(), IsEmpty());
}

TEST_F(SavedIndexesTest, UseOnlySpareSpace) {
  Save(folder_, Text(0, 128), CacheOf(0, 128));
  const int64_t bytes = folder_.Entries().front().bytes;
  SnapshotFolder small(temp_.path(), bytes + 1000);
  const std::string content(1000, 'x');
  small.SaveIndex(kFacts, Text(0, 128),
                  {.kind = "k", .tokens = 128, .parts = {std::as_bytes(std::span(content))}});
  EXPECT_THAT(Indexes(), IsEmpty());
  EXPECT_EQ(Found(small, Text(0, 128)), 128);
}

TEST_F(SavedIndexesTest, DamageIsReportedAndRemoved) {
  const Tokens text = Text(0, 128);
  Save(folder_, text, CacheOf(0, 128));
  SaveIndex(text, 128, "content");
  ASSERT_EQ(Indexes().size(), 1u);
  const fs::path file = Indexes().front();
  {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(-64, std::ios::end);
    stream.put('C');
  }
  const auto wrong = SnapshotFolder(temp_.path(), kRoom).Verify();
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0].file, file);
  EXPECT_EQ(Open(text).first, 0);
  const auto problems = folder_.TakeProblems();
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].message, HasSubstr("damaged: a part of it has another checksum"));
  EXPECT_THAT(Indexes(), IsEmpty());
  EXPECT_EQ(Found(folder_, text), 128) << "the text itself is as good as ever";
}

TEST(SnapshotFolderTest, LeastValuableSnapshotGoesFirst) {
  const TempFolder temp;
  const auto bytes_of = [&](int64_t tokens) {
    const TempFolder other;
    SnapshotFolder folder(other.path(), kRoom);
    Save(folder, Text(0, tokens), CacheOf(0, tokens));
    return folder.Entries().front().bytes;
  };
  SnapshotFolder folder(temp.path(), bytes_of(128) * 3);
  const auto age = [&](int text, int hours) {
    const auto pieces = folder.Longest(kFacts, Text(text, 128));
    const fs::path file = temp.path() / (pieces.back().name + ".kv");
    fs::last_write_time(file, fs::last_write_time(file) - std::chrono::hours(hours));
  };
  for (int i = 0; i < 3; ++i) Save(folder, Text(i, 128), CacheOf(i, 128));
  age(0, 2);
  age(1, 5);
  age(2, 1);
  Save(folder, Text(3, 128), CacheOf(3, 128));
  EXPECT_EQ(Found(folder, Text(1, 128)), 0) << "the oldest";
  for (const int i : {0, 2, 3}) EXPECT_EQ(Found(folder, Text(i, 128)), 128) << i;
  // A beginning stays as long as another snapshot goes on from it.
  KvCache longer = CacheOf(0, 128);
  Read(longer, 0, 64);
  age(0, 9);
  EXPECT_EQ(Save(folder, Text(0, 192), longer), 64);
  EXPECT_EQ(Found(folder, Text(0, 192)), 192);
  EXPECT_EQ(Found(folder, Text(2, 128)), 0);
  EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { Save(folder, Text(7, 640), CacheOf(7, 640)); }),
              HasSubstr("640 tokens take "));
  EXPECT_EQ(Found(folder, Text(0, 192)), 192) << "nothing was given up for it";
}

// Times may lie years back or ahead. All texts are found, and one text takes the place of one.
TEST(SnapshotFolderTest, AClockThatJumpsLosesNothing) {
  const TempFolder temp;
  SnapshotFolder folder(temp.path(), kRoom);
  for (int i = 0; i < 3; ++i) Save(folder, Text(i, 128), CacheOf(i, 128));
  const int64_t bytes = folder.Entries().front().bytes;
  const auto now = fs::file_time_type::clock::now();
  const auto years = std::chrono::hours(24 * 365 * 30);
  int i = 0;
  for (const auto& entry : folder.Entries()) {
    fs::last_write_time(temp.path() / (entry.name + ".kv"), i++ == 0 ? now + years : now - years);
  }
  for (int text = 0; text < 3; ++text) EXPECT_EQ(Found(folder, Text(text, 128)), 128);
  SnapshotFolder small(temp.path(), 3 * bytes);
  Save(small, Text(3, 128), CacheOf(3, 128));
  EXPECT_EQ(small.Entries().size(), 3u);
  EXPECT_EQ(Found(small, Text(3, 128)), 128);
  EXPECT_THAT(small.Verify(), IsEmpty());
}

TEST(SnapshotFolderTest, PinnedSnapshotStays) {
  const TempFolder temp;
  int64_t bytes = 0;
  {
    SnapshotFolder folder(temp.path(), kRoom);
    Save(folder, Text(0, 128), CacheOf(0, 128));
    folder.Pin("the-book", folder.Entries().front().name);
    bytes = folder.Entries().front().bytes;
    EXPECT_THAT(folder.Entries().front().pins, ElementsAre("the-book"));
  }
  SnapshotFolder folder(temp.path(), bytes * 2);
  for (int i = 1; i < 5; ++i) {
    Save(folder, Text(i, 128), CacheOf(i, 128));
    EXPECT_EQ(Found(folder, Text(0, 128)), 128);
    EXPECT_EQ(Found(folder, Text(i, 128)), 128);
    EXPECT_EQ(Found(folder, Text(i - 1, 128)), i == 1 ? 128 : 0);
  }
  EXPECT_FALSE(folder.Unpin("another"));
  EXPECT_TRUE(folder.Unpin("the-book"));
  for (const char* bad : {"", ".x", "a/b", "a b", "../../x"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { folder.Pin(bad, "x"); }),
                HasSubstr("expected a name"));
    EXPECT_FALSE(folder.Unpin(bad));
  }
  // Pinned snapshots may fill the whole folder.
  folder.Pin("a", folder.Longest(kFacts, Text(4, 128)).back().name);
  folder.Pin("b", folder.Longest(kFacts, Text(0, 128)).back().name);
  EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { Save(folder, Text(9, 128), CacheOf(9, 128)); }),
              HasSubstr("what is pinned takes too much of it"));
}

TEST(SnapshotFolderTest, RemovesATextAndWhatGoesOnFromIt) {
  const TempFolder temp;
  SnapshotFolder folder(temp.path(), kRoom);
  const KvCache cache = CacheOf(0, 192);
  Save(folder, Text(0, 64), cache);
  Save(folder, Text(0, 192), cache);
  Save(folder, Text(1, 64), CacheOf(1, 64));
  EXPECT_EQ(folder.Remove("nothing"), 0);
  EXPECT_EQ(folder.Remove(folder.Longest(kFacts, Text(0, 64)).back().name), 2);
  EXPECT_EQ(Found(folder, Text(0, 192)), 0);
  EXPECT_EQ(Found(folder, Text(1, 64)), 64);
}

// Each step of an endless text holds all that can be known of it.
TEST(SnapshotFolderTest, LastStepOfAForgettingTextIsKept) {
  const TempFolder temp;
  SnapshotFolder folder(temp.path(), kRoom);
  KvCache cache = CacheOf(0, 256);
  cache.Drop({64, 128});
  EXPECT_EQ(Save(folder, Text(0, 256), cache), 256);
  Read(cache, 0, 128);
  cache.Drop({64, 256});
  EXPECT_EQ(Save(folder, Text(0, 384), cache), 384);
  EXPECT_EQ(folder.Entries().size(), 1u);
  EXPECT_EQ(Found(folder, Text(0, 384)), 384);
  EXPECT_EQ(Found(folder, Text(0, 383)), 0) << "it cannot go back";
}

TEST(SnapshotFolderTest, DamageIsReportedOnceAndReadAgain) {
  const TempFolder temp;
  SnapshotFolder folder(temp.path(), kRoom);
  Save(folder, Text(0, 128), CacheOf(0, 128));
  Save(folder, Text(1, 128), CacheOf(1, 128));
  const fs::path file = temp.path() / (folder.Longest(kFacts, Text(0, 128)).back().name + ".kv");
  fs::resize_file(file, fs::file_size(file) - 1);
  SnapshotFolder later(temp.path(), kRoom);
  EXPECT_EQ(Found(later, Text(0, 128)), 0);
  EXPECT_EQ(Found(later, Text(0, 128)), 0);
  const auto problems = later.TakeProblems();
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].file, file);
  EXPECT_THAT(problems[0].message, HasSubstr("cut short"));
  EXPECT_EQ(later.Verify().size(), 1u);
  EXPECT_EQ(Save(later, Text(0, 128), CacheOf(0, 128)), 128) << "takes its place";
  ExpectFound(later, Text(0, 128), 0, 128);
  EXPECT_THAT(later.TakeProblems(), IsEmpty());
  EXPECT_THAT(later.Verify(), IsEmpty());
}

TEST(SnapshotFolderTest, VerifyNamesEveryFileThatIsWrong) {
  const TempFolder temp;
  SnapshotFolder folder(temp.path(), kRoom);
  for (int i = 0; i < 3; ++i) Save(folder, Text(i, 128), CacheOf(i, 128));
  const KvCache longer = CacheOf(0, 192);
  Save(folder, Text(0, 192), longer);
  EXPECT_THAT(folder.Verify(), IsEmpty());
  const auto file_of = [&](int text) {
    return temp.path() / (folder.Longest(kFacts, Text(text, 128)).back().name + ".kv");
  };
  const fs::path gone = file_of(0), flipped = file_of(1), renamed = file_of(2);
  fs::remove(gone);
  std::fstream(flipped, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(static_cast<int64_t>(fs::file_size(flipped)) / 2)
      .put(static_cast<char>(0x5a));
  fs::rename(renamed, temp.path() / "another.kv");
  std::string all;
  for (const auto& problem : folder.Verify()) all += problem.message + "\n";
  EXPECT_THAT(all, HasSubstr("what it goes on from is gone"));
  EXPECT_THAT(all, HasSubstr(flipped.filename().string() + ": damaged: page "));
  EXPECT_THAT(all, HasSubstr("another.kv: holds something else than its name says"));
}

TEST(SnapshotFolderTest, ForeignFilesAreNotTrusted) {
  if (geteuid() != 0) GTEST_SKIP() << "notice: only root can give files away";
  const TempFolder temp;
  SnapshotFolder folder(temp.path() / "cache", kRoom);
  Save(folder, Text(0, 128), CacheOf(0, 128));
  const fs::path file = FilesIn(temp.path() / "cache").front();
  struct stat status;
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(stat((temp.path() / "cache").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(chown(file.c_str(), 12345, 12345), 0);
  SnapshotFolder later(temp.path() / "cache", kRoom);
  EXPECT_EQ(Found(later, Text(0, 128)), 0);
  ASSERT_EQ(chown((temp.path() / "cache").c_str(), 12345, 12345), 0);
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { SnapshotFolder(temp.path() / "cache", kRoom); }),
              HasSubstr("the folder belongs to another user"));
}

TEST(SnapshotFolderTest, BadFoldersAreRefused) {
  const TempFolder temp({{"file", "x"}});
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { SnapshotFolder(temp.path() / "file", kRoom); }),
              HasSubstr("expected a folder"));
  EXPECT_THAT(ErrorOf(ErrorKind::kIo, [&] { SnapshotFolder("/proc/nothing/here", kRoom); }),
              HasSubstr("/proc/nothing/here: cannot make the folder"));
  SnapshotFolder deep(temp.path() / "a" / "b" / "c", kRoom);
  EXPECT_EQ(Save(deep, Text(0, 64), CacheOf(0, 64)), 64);
  fs::remove_all(temp.path() / "a");
  EXPECT_THAT(ErrorOf(ErrorKind::kIo, [&] { Save(deep, Text(1, 64), CacheOf(1, 64)); }),
              HasSubstr("cannot write"));
}

// Processes use one folder at the same time. No complete snapshot is lost, none is half there, and
// no temporary files stay.
TEST(SnapshotFolderTest, ProcessesShareIt) {
  const TempFolder temp;
  constexpr int kProcesses = 4, kTexts = 12;
  std::vector<pid_t> processes;
  for (int process = 0; process < kProcesses; ++process) {
    processes.push_back(fork());
    if (processes.back() != 0) continue;
    int wrong = 0;
    try {
      SnapshotFolder folder(temp.path(), kRoom);
      for (int i = 0; i < kTexts; ++i) {
        const int text = (i + 3 * process) % kTexts;
        const KvCache cache = CacheOf(text, 192);
        Save(folder, Text(text, 100), cache);
        Save(folder, Text(text, 192), cache);
        wrong += Found(folder, Text(text, 192)) == 192 ? 0 : 1;
      }
    } catch (...) {
      wrong = 100;
    }
    _exit(wrong);
  }
  for (const pid_t process : processes) {
    int status = 0;
    ASSERT_EQ(waitpid(process, &status, 0), process);
    EXPECT_EQ(status, 0);
  }
  SnapshotFolder folder(temp.path(), kRoom);
  for (int text = 0; text < kTexts; ++text) ExpectFound(folder, Text(text, 192), text, 192);
  EXPECT_THAT(folder.Verify(), IsEmpty());
  for (const fs::path& file : FilesIn(temp.path())) {
    EXPECT_FALSE(file.native().ends_with(NewFile::kSuffix)) << file;
  }
}

// A process killed while it writes leaves complete snapshots. Its temporary file stays until
// another process looks into the folder. GODWIT_KILLS: the number of kills.
TEST(SnapshotFolderTest, SurvivesBeingKilled) {
  const char* const asked = std::getenv("GODWIT_KILLS");
  const int kills = asked == nullptr ? 40 : std::atoi(asked);
  const TempFolder temp;
  const KvCache cache = CacheOf(0, 64 * 40);
  int64_t known = 0;
  for (int i = 0; i < kills; ++i) {
    const pid_t process = fork();
    if (process == 0) {
      SnapshotFolder folder(temp.path(), kRoom);
      for (int64_t length = 64; length <= 64 * 40; length += 64) {
        Save(folder, Text(0, length), cache);
      }
      _exit(0);
    }
    usleep(static_cast<useconds_t>(i * 997 % 20000));
    kill(process, SIGKILL);
    int status = 0;
    waitpid(process, &status, 0);
    SnapshotFolder folder(temp.path(), kRoom);
    const int64_t found = Found(folder, Text(0, 64 * 40));
    EXPECT_GE(found, known) << "what was complete is there";
    known = found == 64 * 40 ? 0 : found;
    EXPECT_THAT(folder.Verify(), IsEmpty());
    for (const fs::path& file : FilesIn(temp.path())) {
      EXPECT_FALSE(file.native().ends_with(NewFile::kSuffix)) << file;
    }
    if (known == 0) {
      for (const auto& entry : folder.Entries()) folder.Remove(entry.name);
    }
  }
}

}  // namespace
}  // namespace godwit::snapshot_folder_test
