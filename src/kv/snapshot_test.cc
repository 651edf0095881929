#include "kv/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "base/new_file.h"
#include "base/test_folder.h"
#include "base/test_support.h"
#include "kv/kv_cache_test_support.h"

namespace godwit::snapshot_test {
namespace {

using kernels::kTileTokens;
using testing::HasSubstr;

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

SnapshotInfo InfoOf(const KvCache& cache, int64_t begin, int64_t end) {
  SnapshotInfo info{.facts = {{"model", "x"}}};
  if (begin > 0) info.parent = "before";
  info.begin = begin;
  info.tokens.resize(end - begin, 5);
  info.layout = cache.layout();
  info.layout.page_alignment = 1;
  info.dropped = cache.dropped();
  info.skipped = cache.SkippedFrom(begin);
  return info;
}

std::filesystem::path Write(const TempFolder& folder, const KvCache& cache, int64_t begin,
                            int64_t end) {
  const auto path = folder.path() / ("from-" + std::to_string(begin) + ".kv");
  NewFile file(path);
  WriteSnapshot(file, InfoOf(cache, begin, end), cache);
  file.Commit();
  return path;
}

std::shared_ptr<const Snapshot> Open(const std::filesystem::path& path) {
  return std::make_shared<const Snapshot>(path);
}

void LookAtAll(const KvCache& cache) {
  for (int64_t layer = 0; layer < cache.layout().layers; ++layer) {
    cache.WillRead(layer, {0, cache.length()});
  }
}

void FlipBit(const std::filesystem::path& path, int64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(offset);
  const int byte = file.get();
  file.seekp(offset);
  file.put(static_cast<char>(byte ^ 4));
}

TEST(SnapshotTest, ATextGoesOnFromIt) {
  for (const DType dtype : kTypes) {
    for (const KvLayout& layout :
         {Layout(2, 3, 16, dtype), Layout(2, 3, 33, dtype), KeysAlone(Layout(2, 1, 33, dtype))}) {
      const TempFolder folder;
      KvCache cache = NewCache(layout);
      Read(cache, 0, 300);
      const auto first = Open(Write(folder, cache, 0, 128));
      const auto second = Open(Write(folder, cache, 64, 256));
      KvCache again = NewCache(cache.layout());
      again.Restore(first, 64);  // a part of it
      again.Restore(second, 256);
      EXPECT_EQ(again.length(), 256);
      EXPECT_EQ(again.bytes(), cache.layout().BytesFor(256));
      LookAtAll(again);
      ExpectHeld(again, 0, 0, 256);
      Read(again, 1, 50);
      ExpectHeld(again, 0, 0, 256);
      ExpectHeld(again, 1, 256, 306);
    }
  }
}

TEST(SnapshotTest, HoldsPagesOfAFileAndOfAnotherSnapshot) {
  const TempFolder folder;
  const KvLayout layout = Layout(2, 3, 33, DType::kF32);
  const auto file = std::make_shared<KvFile>(folder.path(), int64_t{1} << 30,
                                             std::make_shared<KvBudget>(1 << 20));
  KvCache in_file(std::make_shared<KvPool>(layout, file));
  Read(in_file, 0, 128);
  const auto first = Open(Write(folder, in_file, 0, 128));
  KvCache again(in_file.shared_pool());
  again.Restore(first, 128);
  LookAtAll(again);
  ExpectHeld(again, 0, 0, 128);
  const TempFolder other;
  const auto copy = Open(Write(other, again, 0, 128));
  KvCache in_memory = NewCache(layout);
  in_memory.Restore(copy, 128);
  LookAtAll(in_memory);
  ExpectHeld(in_memory, 0, 0, 128);
}

// No text writes into a snapshot: neither one that goes back into the middle of a tile, nor its
// forks.
TEST(SnapshotTest, StaysAsItIs) {
  const TempFolder folder;
  KvCache cache = NewCache(Layout(2, 3, 16, DType::kBF16));
  Read(cache, 0, 192);
  const auto snapshot = Open(Write(folder, cache, 0, 192));
  KvCache again = NewCache(cache.layout());
  again.Restore(snapshot, 192);
  KvCache fork = again.Fork();
  again.Truncate(100);
  Read(again, 1, 60);
  ExpectHeld(again, 0, 0, 100);
  ExpectHeld(again, 1, 100, 160);
  LookAtAll(fork);
  ExpectHeld(fork, 0, 0, 192);
  fork.Truncate(64);
  Read(fork, 2, 64);
  ExpectHeld(fork, 0, 0, 64);
  ExpectHeld(fork, 2, 64, 128);
  KvCache third = NewCache(cache.layout());
  third.Restore(snapshot, 192);
  LookAtAll(third);
  ExpectHeld(third, 0, 0, 192);
}

// A host's part of a text, in two snapshots: positions 0 to 100, 300 to 400 and the last ones.
TEST(SnapshotTest, SkippedTilesStaySkippedAfterRestore) {
  const TempFolder folder;
  KvCache cache = NewCache(Layout(2, 3, 16, DType::kF32));
  Read(cache, 0, 100);
  cache.Skip(300);
  Read(cache, 0, 100);
  cache.Skip(601);
  cache.FillTile();  // others hold this one
  EXPECT_EQ(cache.length(), 640);
  const auto first = Open(Write(folder, cache, 0, 640));
  EXPECT_EQ(first->info().held_tiles(), 5);
  KvCache longer = cache.Fork();
  Read(longer, 0, 30);
  longer.FillTile();
  EXPECT_EQ(longer.length(), 704);
  const auto second = Open(Write(folder, longer, 576, 704));
  EXPECT_EQ(second->info().held_tiles(), 1);

  KvCache again = NewCache(cache.layout());
  again.Restore(first, 640);
  again.Restore(second, 704);
  EXPECT_EQ(again.bytes(), longer.bytes());
  LookAtAll(again);
  for (const auto& [begin, end] : {ops::KvRange{0, 100}, {300, 400}, {640, 670}}) {
    ExpectHeld(again, 0, begin, end);
  }
  again.Truncate(601);  // a place in a tile of others
  Read(again, 1, 10);
  ExpectHeld(again, 1, 601, 611);
  again.Truncate(350);
  Read(again, 2, 300);
  ExpectHeld(again, 0, 0, 100);
  ExpectHeld(again, 0, 300, 350);
  ExpectHeld(again, 2, 350, 650);
  EXPECT_EQ(cache.bytes(), cache.layout().BytesFor(5 * kTileTokens));
}

TEST(SnapshotTest, DroppedTilesStayDroppedAfterRestore) {
  const TempFolder folder;
  KvCache cache = NewCache(Layout(2, 3, 16, DType::kF32));
  Read(cache, 0, 400);
  cache.Drop({64, 256});
  const auto snapshot = Open(Write(folder, cache, 0, 384));
  EXPECT_EQ(snapshot->info().held_tiles(), 3);
  KvCache again = NewCache(cache.layout());
  again.Restore(snapshot, 384);
  LookAtAll(again);
  EXPECT_EQ(again.dropped().begin, 64);
  EXPECT_EQ(again.dropped().end, 256);
  ExpectHeld(again, 0, 0, 64);
  ExpectHeld(again, 0, 256, 384);
  again.Drop({64, 320});
  Read(again, 1, 10);
  ExpectHeld(again, 0, 320, 384);
  ExpectHeld(again, 1, 384, 394);
}

// All pages of a snapshot count as long as a cache holds one of them.
TEST(SnapshotTest, TakesFromTheBudgetAndGivesBack) {
  const TempFolder folder;
  KvCache cache = NewCache(Layout(2, 3, 16, DType::kF32));
  Read(cache, 0, 256);
  const auto snapshot = Open(Write(folder, cache, 0, 256));
  const int64_t bytes = cache.layout().BytesFor(256);
  const auto pool =
      std::make_shared<KvPool>(cache.layout(), std::make_shared<KvBudget>(bytes * 3 / 2));
  {
    KvCache one(pool), two(pool);
    one.Restore(snapshot, 256);
    EXPECT_EQ(pool->budget().used(), bytes);
    EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { two.Restore(snapshot, 256); }),
                HasSubstr("the KV cache needs another"));
    EXPECT_EQ(two.length(), 0);
    KvCache fork = one.Fork();
    one.Truncate(0);
    one.Reserve(1);
    EXPECT_EQ(pool->budget().used(), bytes + cache.layout().BytesFor(1));
    ExpectHeld(fork, 0, 0, 64);
  }
  EXPECT_EQ(pool->budget().used(), 0);
  EXPECT_EQ(pool->pages_in_use(), 0);
  EXPECT_EQ(snapshot.use_count(), 1);
  KvCache later(pool);
  Read(later, 3, 200);
  ExpectHeld(later, 3, 0, 200);
}

TEST(SnapshotTest, DamageIsFoundWhereItIsLookedAtAndNowhereElse) {
  const TempFolder folder;
  KvCache cache = NewCache(Layout(3, 2, 16, DType::kBF16));
  Read(cache, 0, 256);
  const auto path = Write(folder, cache, 0, 256);
  const int64_t page = Open(path)->info().page_bytes();
  for (int64_t layer = 0; layer < 3; ++layer) {
    for (int64_t tile = 0; tile < 4; ++tile) {
      std::vector<int64_t> pages;
      for (int64_t i = 0; i < 12; ++i) {
        if (i != tile * 3 + layer) pages.push_back(i);
      }
      const int64_t offset =
          ParseSnapshotHeader(MappedFile(path).Span(), "f").OffsetOf(layer, tile);
      FlipBit(path, offset + page / 2);
      const auto damaged = Open(path);
      EXPECT_NO_THROW(damaged->Verify(pages));
      KvCache again = NewCache(cache.layout());
      again.Restore(damaged, 256);
      try {
        LookAtAll(again);
        ADD_FAILURE() << "nothing was found";
      } catch (const DamagedSnapshot& damage) {
        EXPECT_EQ(damage.path(), path.string());
        EXPECT_THAT(damage.what(),
                    HasSubstr(fmt::format("damaged: page {} of layer {} has another checksum", tile,
                                          layer)));
      }
      EXPECT_THROW(damaged->VerifyAll(), DamagedSnapshot);
      EXPECT_THROW(WriteSnapshot(*std::make_unique<NewFile>(folder.path() / "copy.kv"),
                                 InfoOf(again, 0, 256), again),
                   DamagedSnapshot)
          << "or it would look sound";
      FlipBit(path, offset + page / 2);
    }
  }
  EXPECT_NO_THROW(Open(path)->VerifyAll());
}

// Another process shortens the file while it is mapped. The result is an error, not a signal.
TEST(SnapshotTest, UnreadablePageIsDamage) {
  const TempFolder folder;
  KvCache cache = NewCache(Layout(2, 2, 64, DType::kF32));
  Read(cache, 0, 640);
  const auto path = Write(folder, cache, 0, 640);
  KvCache again = NewCache(cache.layout());
  again.Restore(Open(path), 640);
  const auto begin = ParseSnapshotHeader(MappedFile(path).Span(), "f").data_begin;
  std::filesystem::resize_file(path, static_cast<uintmax_t>(begin));
  try {
    LookAtAll(again);
    ADD_FAILURE() << "nothing was found";
  } catch (const DamagedSnapshot& damage) {
    EXPECT_THAT(damage.what(), HasSubstr("damaged: page 0 of layer 0 cannot be read"));
  }
}

TEST(SnapshotTest, CopiedPageIsVerifiedFirst) {
  const TempFolder folder;
  KvCache cache = NewCache(Layout(1, 2, 16, DType::kBF16));
  Read(cache, 0, 128);
  const auto path = Write(folder, cache, 0, 128);
  FlipBit(path, ParseSnapshotHeader(MappedFile(path).Span(), "f").OffsetOf(0, 1));
  KvCache again = NewCache(cache.layout());
  again.Restore(Open(path), 128);
  again.Truncate(100);
  EXPECT_THROW(again.Reserve(1), DamagedSnapshot);
  again.Truncate(64);
  EXPECT_NO_THROW(Read(again, 1, 10));
}

TEST(SnapshotTest, SurvivesTheEndOfItsFile) {
  const TempFolder folder;
  KvCache cache = NewCache(Layout(2, 2, 16, DType::kBF16));
  Read(cache, 0, 128);
  const auto path = Write(folder, cache, 0, 128);
  KvCache again = NewCache(cache.layout());
  again.Restore(Open(path), 128);
  std::filesystem::remove(path);
  LookAtAll(again);
  ExpectHeld(again, 0, 0, 128);
}

}  // namespace
}  // namespace godwit::snapshot_test
