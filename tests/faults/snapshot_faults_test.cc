// Saving and restoring snapshots on a system whose calls fail in turn. Each failure gives an error
// or none. No complete snapshot is lost, no half one appears, and the next try succeeds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/new_file.h"
#include "base/test_folder.h"
#include "kv/kv_cache_test_support.h"
#include "kv/snapshot_folder.h"
#include "tests/faults/faults.h"

namespace godwit::snapshot_faults_test {
namespace {

using Tokens = std::vector<int32_t>;
namespace fs = std::filesystem;

const SnapshotFacts kFacts = {{"model", "x"}};

Tokens Text(int i, int64_t length) {
  Tokens tokens(static_cast<size_t>(length));
  std::iota(tokens.begin(), tokens.end(), 1000 * i);
  return tokens;
}

KvCache CacheOf(int64_t text, int64_t length) {
  KvCache cache = NewCache(Layout(2, 2, 16, DType::kBF16));
  Read(cache, text, length);
  return cache;
}

// Any text that is found is what was written. Returns its length.
int64_t Look(SnapshotFolder& folder, int text, int64_t length) {
  const auto pieces = folder.Longest(kFacts, Text(text, length));
  if (pieces.empty()) return 0;
  KvCache cache = NewCache(Layout(2, 2, 16, DType::kBF16));
  for (const auto& [name, end] : pieces) {
    const auto snapshot = folder.Open(name);
    if (snapshot == nullptr) return cache.length();
    cache.Restore(snapshot, end);
  }
  for (int64_t layer = 0; layer < 2; ++layer) cache.WillRead(layer, {0, cache.length()});
  ExpectHeld(cache, text, 0, cache.length());
  return cache.length();
}

void SaveIndex(SnapshotFolder& folder, int text, int64_t length) {
  static const std::string content(300, 'x');
  folder.SaveIndex(
      kFacts, Text(text, length),
      {.kind = "kind", .tokens = length, .parts = {std::as_bytes(std::span(content))}});
}

bool HasIndex(SnapshotFolder& folder, int text, int64_t length) {
  return folder.OpenIndex(folder.Longest(kFacts, Text(text, length)), "kind") != nullptr;
}

struct Fault {
  const char* name;
  faults::Kind kind;
  int error;
  bool for_good;
};
class SnapshotFaults : public testing::TestWithParam<Fault> {};
INSTANTIATE_TEST_SUITE_P(Faults, SnapshotFaults,
                         testing::Values(Fault{"FullDisk", faults::Kind::kError, ENOSPC, true},
                                         Fault{"FullOnce", faults::Kind::kError, ENOSPC, false},
                                         Fault{"BrokenDisk", faults::Kind::kError, EIO, true},
                                         Fault{"BrokenOnce", faults::Kind::kError, EIO, false},
                                         Fault{"Forbidden", faults::Kind::kError, EACCES, true},
                                         Fault{"ReadOnly", faults::Kind::kError, EROFS, true},
                                         Fault{"Interrupted", faults::Kind::kError, EINTR, false},
                                         Fault{"ShortWrites", faults::Kind::kShortWrite, 0, true},
                                         Fault{"ShortWrite", faults::Kind::kShortWrite, 0, false}),
                         [](const auto& test) { return test.param.name; });

TEST_P(SnapshotFaults, NothingIsLostAndNothingIsHalfThere) {
  const auto& [name, kind, error, for_good] = GetParam();
  const KvCache before = CacheOf(0, 128), longer = CacheOf(1, 192);
  constexpr int kMaxCalls = 400;
  int call = 0;
  for (; call < kMaxCalls; ++call) {
    SCOPED_TRACE(call);
    const TempFolder temp;
    {
      SnapshotFolder folder(temp.path() / "cache", 1 << 30);
      folder.Save(kFacts, "complete", Text(0, 128), before);
      SaveIndex(folder, 0, 128);
    }
    faults::FailCall(call, kind, error, for_good);
    bool failed = false;
    try {
      SnapshotFolder folder(temp.path() / "cache", 1 << 30);
      folder.Save(kFacts, "new", Text(1, 64), longer);
      folder.Save(kFacts, "new", Text(1, 192), longer);
      SaveIndex(folder, 1, 192);
      HasIndex(folder, 0, 128);
      HasIndex(folder, 1, 192);
      Look(folder, 0, 128);
      Look(folder, 1, 192);
      if (!folder.Entries().empty()) folder.Pin("pin", folder.Entries().front().name);
    } catch (const Error& refused) {
      failed = true;
      EXPECT_NE(refused.kind(), ErrorKind::kFormat) << refused.what();
    }
    const std::string reached = faults::StopFailing();
    if (reached.empty()) break;
    SCOPED_TRACE(reached);
    if (kind == faults::Kind::kShortWrite) {
      EXPECT_FALSE(failed);
    }
    SnapshotFolder folder(temp.path() / "cache", 1 << 30);
    EXPECT_EQ(Look(folder, 0, 128), 128) << "it was complete";
    EXPECT_TRUE(HasIndex(folder, 0, 128)) << "it was complete";
    EXPECT_EQ(Look(folder, 1, 192) % 64, 0);
    EXPECT_TRUE(folder.Verify().empty());
    folder.Save(kFacts, "new", Text(1, 192), longer);
    EXPECT_EQ(Look(folder, 1, 192), 192);
    SaveIndex(folder, 1, 192);
    EXPECT_TRUE(HasIndex(folder, 1, 192));
    for (const auto& file : fs::directory_iterator(temp.path() / "cache")) {
      EXPECT_FALSE(file.path().native().ends_with(NewFile::kSuffix)) << file.path();
    }
  }
  EXPECT_GT(call, 10) << "calls were reached";
  EXPECT_LT(call, kMaxCalls);
}

}  // namespace
}  // namespace godwit::snapshot_faults_test
