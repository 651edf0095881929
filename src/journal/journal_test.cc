// Journals: torn and damaged files, full disks, limits, and modes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/test_folder.h"
#include "journal/facts.h"
#include "journal/folder.h"

namespace godwit::journal::journal_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kLongMs = 60'000;

std::string Bytes(const fs::path& path) { return ReadTextFile(path, size_t{1} << 30); }

void Put(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::vector<std::string> TextsOf(const Records& records) {
  std::vector<std::string> texts;
  for (const Record& record : records.records) texts.push_back(record.bytes);
  return texts;
}

std::string ThreeRecords() {
  return FileHeader() + RecordBytes(0, 1, "one") + RecordBytes(1, 2, "") +
         RecordBytes(2, 3, "three");
}

unsigned ModeOf(const fs::path& path) {
  struct stat status;
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return status.st_mode & 0777;
}

TEST(Journal, TokensComeBack) {
  const std::vector<int32_t> tokens{0, 1, -1, 1 << 30, 70000};
  EXPECT_EQ(TokensOf(BytesOf(tokens)), tokens);
  EXPECT_EQ(TokensOf(BytesOf(tokens).substr(0, 10)), (std::vector<int32_t>{0, 1}));
}

// A file may be cut off anywhere: a beginning of its records is read.
TEST(Journal, FactsComeBack) {
  const Facts facts = {{"model", "a"}, {"kv", "dense"}, {"seed", "12"}};
  EXPECT_EQ(JsonOf(facts).dump(), R"({"model":"a","kv":"dense","seed":"12"})");
  EXPECT_EQ(FactsOf(JsonOf(facts)), facts);
  EXPECT_EQ(JsonOf({}).dump(), "{}");
}

TEST(Journal, TornTails) {
  const TempFolder folder;
  const fs::path path = folder.path() / "a";
  const std::string all = ThreeRecords();
  const std::vector<std::string> texts{"one", "", "three"};
  for (size_t n = 0; n <= all.size(); ++n) {
    Put(path, all.substr(0, n));
    const Records read = ReadRecords(path);
    const auto found = TextsOf(read);
    EXPECT_EQ(found, std::vector<std::string>(texts.begin(), texts.begin() + std::ssize(found)));
    size_t whole = 0;
    for (size_t end : {FileHeader().size() + 19, FileHeader().size() + 35, all.size()}) {
      whole += n >= end ? 1 : 0;
    }
    EXPECT_EQ(found.size(), whole) << n;
  }
}

// A changed byte ends what is read, and changes nothing before it.
TEST(Journal, DamagedBytes) {
  const TempFolder folder;
  const fs::path path = folder.path() / "a";
  const std::string all = ThreeRecords();
  const size_t header = FileHeader().size();
  for (size_t at = header; at < all.size(); ++at) {
    std::string damaged = all;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    Put(path, damaged);
    const Records read = ReadRecords(path);
    EXPECT_EQ(read.records.size(), at < header + 19 ? 0u : at < header + 35 ? 1u : 2u) << at;
    EXPECT_TRUE(read.has_tail);
  }
}

// A record that stands in another place of the file is none.
TEST(Journal, RecordsHaveTheirPlaces) {
  const TempFolder folder;
  const fs::path path = folder.path() / "a";
  Put(path, FileHeader() + RecordBytes(0, 1, "one") + RecordBytes(0, 1, "one"));
  EXPECT_EQ(ReadRecords(path).records.size(), 1u);
}

TEST(Journal, OtherFilesAreRefused) {
  const TempFolder folder;
  const fs::path path = folder.path() / "a";
  Put(path, "a file of something else");
  EXPECT_THROW(ReadRecords(path), Error);
  std::string newer = ThreeRecords();
  newer[8] = 2;
  Put(path, newer);
  try {
    ReadRecords(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected a journal of version 1, found version 2"));
  }
}

TEST(Journal, WritesAndGoesOn) {
  const TempFolder folder;
  const fs::path path = folder.path() / "a";
  {
    Writer writer({});
    const auto file = writer.Begin(path);
    file->Append(1, "one");
    EXPECT_TRUE(file->WaitForDisk(kLongMs));
    EXPECT_EQ(TextsOf(ReadRecords(path)), std::vector<std::string>{"one"});
    file->Append(1, "two");
  }  // the end of the writer writes the rest
  EXPECT_THAT(TextsOf(ReadRecords(path)), ElementsAre("one", "two"));
  EXPECT_EQ(ModeOf(path), 0600u);
  Put(path, Bytes(path) + "torn");
  {
    Writer writer({});
    EXPECT_THROW(writer.Begin(path), Error);
    const Records before = ReadRecords(path);
    EXPECT_TRUE(before.has_tail);
    const auto file = writer.GoOn(path, before);
    file->Append(7, "three");
    EXPECT_TRUE(file->WaitForDisk(kLongMs));
  }
  const Records all = ReadRecords(path);
  EXPECT_THAT(TextsOf(all), ElementsAre("one", "two", "three"));
  EXPECT_EQ(all.records.back().kind, 7u);
  EXPECT_FALSE(all.has_tail);
}

// A file that may not grow stands for a full disk. Written records stay, and further ones have no
// effect.
TEST(Journal, FullDisk) {
  const TempFolder folder;
  const fs::path path = folder.path() / "a";
  std::vector<std::string> notices;
  {
    Writer writer([&](const std::string& message) { notices.push_back(message); });
    const auto file = writer.Begin(path);
    file->Append(1, "one");
    ASSERT_TRUE(file->WaitForDisk(kLongMs));
    rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    auto* const handler = signal(SIGXFSZ, SIG_IGN);
    rlimit small = before;
    small.rlim_cur = static_cast<rlim_t>(file->bytes() + 30);
    setrlimit(RLIMIT_FSIZE, &small);
    file->Append(1, std::string(1000, 'x'));
    EXPECT_FALSE(file->WaitForDisk(kLongMs));
    file->Append(1, "lost");
    EXPECT_FALSE(file->WaitForDisk(kLongMs));
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
  }
  EXPECT_THAT(notices, ElementsAre(HasSubstr("File too large")));
  EXPECT_EQ(TextsOf(ReadRecords(path)), std::vector<std::string>{"one"});
}

TEST(JournalFolder, IsTheOwnersAlone) {
  const TempFolder folder;
  const fs::path path = folder.path() / "of" / "answers";
  Folder journal(path, {}, {});
  EXPECT_EQ(ModeOf(path), 0700u);
  const auto file = journal.Begin("a");
  ASSERT_NE(file, nullptr);
  EXPECT_TRUE(file->WaitForDisk(kLongMs));
  EXPECT_EQ(ModeOf(path / "a.journal"), 0600u);
  try {
    const Folder other(path, {}, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("another server has this journal"));
  }
  const fs::path open = folder.path() / "open";
  fs::create_directory(open);
  fs::permissions(open, fs::perms(0755));
  EXPECT_THROW(Folder(open, {}, {}), Error);
}

TEST(JournalFolder, NamesLeadNowhereElse) {
  const TempFolder folder;
  Folder journal(folder.path() / "j", {}, {});
  Put(folder.path() / "a.journal", ThreeRecords());
  for (const char* const name : {"", "../a", "a/b", ".", "a.b"}) {
    EXPECT_FALSE(journal.Read(name)) << name;
    EXPECT_FALSE(journal.Remove(name)) << name;
  }
  EXPECT_TRUE(fs::exists(folder.path() / "a.journal"));
}

TEST(JournalFolder, EndsAndGoesOn) {
  const TempFolder folder;
  Folder journal(folder.path() / "j", {}, {});
  auto file = journal.Begin("a");
  file->Append(1, "one");
  EXPECT_TRUE(file->WaitForDisk(kLongMs));
  EXPECT_THAT(journal.Unfinished(), ElementsAre("a"));
  journal.Finish("a", *file);
  EXPECT_TRUE(file->WaitForDisk(kLongMs));
  EXPECT_TRUE(journal.Unfinished().empty());
  file.reset();
  const auto records = journal.Read("a");
  ASSERT_TRUE(records);
  file = journal.GoOn("a", *records);
  ASSERT_NE(file, nullptr);
  file->Append(1, "two");
  EXPECT_TRUE(file->WaitForDisk(kLongMs));
  EXPECT_THAT(TextsOf(*journal.Read("a")), ElementsAre("one", "two"));
  EXPECT_TRUE(journal.Remove("a"));
  EXPECT_FALSE(journal.Read("a"));
}

TEST(JournalRecords, TokensThatAreThereAreNotWrittenAgain) {
  const std::vector<int32_t> tokens = {1, 2, 3, 4};
  const auto all = std::span<const int32_t>(tokens);
  size_t count = 0;
  EXPECT_EQ(NotWritten(all.first(2), 3, count).size(), 0u);
  const auto rest = NotWritten(all.subspan(1), 3, count);
  EXPECT_EQ(std::vector(rest.begin(), rest.end()), (std::vector<int32_t>{3, 4}));
  EXPECT_EQ(NotWritten(all, 3, count).size(), 4u);
  EXPECT_EQ(count, 9u);
}

// The oldest answers that have ended go first, and none that goes on.
TEST(JournalFolder, IsBounded) {
  const TempFolder folder;
  const fs::path path = folder.path() / "j";
  fs::create_directory(path);
  fs::permissions(path, fs::perms(0700));
  const std::string big = FileHeader() + RecordBytes(0, 1, std::string(1000, 'x'));
  const auto put = [&](const char* name, int hours) {
    Put(path / name, big);
    fs::last_write_time(path / name, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  put("begun.journal", 9);
  put("old.done", 8);
  put("new.done", 1);
  put("ancient.done", 100);
  put("forgotten.journal", 101);
  Folder journal(path, {.bytes = 2500, .age_s = 24 * 3600}, {});
  EXPECT_FALSE(fs::exists(path / "ancient.done"));
  EXPECT_FALSE(fs::exists(path / "forgotten.journal"));
  EXPECT_FALSE(fs::exists(path / "old.done"));
  EXPECT_TRUE(fs::exists(path / "new.done"));
  const auto file = journal.Begin("now");
  for (int i = 0; i < 10; ++i) {
    file->Append(1, std::string(200, 'y'));
    file->WaitForDisk(kLongMs);
  }
  EXPECT_FALSE(fs::exists(path / "new.done"));
  EXPECT_FALSE(fs::exists(path / "begun.journal"));
  file->Append(1, std::string(1000, 'z'));
  EXPECT_FALSE(file->WaitForDisk(kLongMs)) << "its own file takes all that is allowed";
  EXPECT_EQ(journal.Read("now")->records.size(), 10u);
  int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(path)) {
    bytes += static_cast<int64_t>(entry.file_size());
  }
  EXPECT_LE(bytes, 2500);
}

}  // namespace
}  // namespace godwit::journal::journal_test
