#include "kv/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/test_folder.h"
#include "base/test_support.h"
#include "kernels/dispatch.h"
#include "kernels/kernel_table.h"
#include "kernels/kernel_test_support.h"
#include "kv/kv_cache_test_support.h"

namespace godwit::kv_cache_test {
namespace {

using kernels::kTileTokens;
using ::testing::HasSubstr;

constexpr DType kFloatTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

TEST(KvCacheTest, HoldsWhatWasWritten) {
  for (const DType dtype : kFloatTypes) {
    for (const int64_t dim : {1, 8, 16, 20, 33}) {
      KvCache cache = NewCache(Layout(2, 3, dim, dtype));
      for (const int64_t tokens : {1, 7, 60, 1, 100, 20}) Read(cache, 0, tokens);
      EXPECT_EQ(cache.length(), 189);
      EXPECT_EQ(cache.bytes(), cache.layout().BytesFor(189));
      ExpectHeld(cache, 0, 0, 189);
    }
  }
}

TEST(KvCacheTest, HoldsKeysAlone) {
  for (const DType dtype : kFloatTypes) {
    KvCache cache = NewCache(KeysAlone(Layout(2, 1, 33, dtype)));
    for (const int64_t tokens : {1, 70, 20}) Read(cache, 0, tokens);
    EXPECT_EQ(cache.bytes(), cache.layout().BytesFor(91));
    ExpectHeld(cache, 0, 0, 91);
  }
  KvCache cache = NewCache(KeysAlone(Layout(2, 1, 33, DType::kI8)));
  Read(cache, 0, 70);
  const ops::KvView view = cache.View(1);
  for (int64_t p = 0; p < 70; ++p) {
    const float scale = view.Scales(0, p / kTileTokens)[p % kTileTokens];
    const auto* keys = reinterpret_cast<const uint8_t*>(view.Keys(0, p / kTileTokens));
    for (int64_t d = 0; d < 33; ++d) {
      const int key = keys[kernels::KeyAt(kernels::kQuad, d, p % kTileTokens)] - 128;
      ASSERT_NEAR(scale * static_cast<float>(key), KeyOf(0, 1, p, 0, d), scale * 0.501);
    }
  }
}

// Each row has its own scale, and its integers lie within half a step of the original. Keys are
// turned by a Hadamard matrix. A text may go back into the middle of a quad and continue
// differently.
TEST(KvCacheTest, HoldsInt8WithScales) {
  for (const int64_t dim : {1, 16, 33}) {
    KvCache cache = NewCache(Layout(2, 3, dim, DType::kI8));
    Read(cache, 0, 75);
    cache.Truncate(70);
    Read(cache, 1, 3);
    const ops::KvView view = cache.View(1);
    for (int64_t p = 0; p < 73; ++p) {
      const int64_t text = p < 70 ? 0 : 1;
      for (int64_t head = 0; head < 3; ++head) {
        const int64_t tile = p / kTileTokens, slot = p % kTileTokens;
        const float k_scale = view.Scales(head, tile)[slot];
        const float v_scale = view.Scales(head, tile)[kTileTokens + slot];
        std::vector<float> turned;
        for (int64_t d = 0; d < dim; ++d) turned.push_back(KeyOf(text, 1, p, head, d));
        Kernels().hadamard(dim, turned.data());
        ASSERT_EQ(k_scale, Kernels().largest_magnitude(turned.data(), dim) / 127);
        const auto* keys = reinterpret_cast<const uint8_t*>(view.Keys(head, tile));
        const auto* values = reinterpret_cast<const int8_t*>(view.Values(head, tile));
        const auto key = [&](int64_t d) {
          return static_cast<float>(keys[kernels::KeyAt(kernels::kQuad, d, slot)]) - 128;
        };
        int64_t d = 0;
        for (; d < dim; ++d) {
          const int8_t value = values[kernels::ValueAt(kernels::kQuad, dim, slot, d)];
          ASSERT_NEAR(k_scale * key(d), turned[d], k_scale * 0.501);
          ASSERT_NEAR(v_scale * value, ValueOf(text, 1, p, head, d), v_scale * 0.501);
        }
        for (; d % kernels::kQuad != 0; ++d) ASSERT_EQ(key(d), 0);
      }
    }
  }
}

// Rounding accepts numbers up to half a step above 65504, the largest number of f16.
TEST(KvCacheTest, NumberBeyondF16IsRefused) {
  const auto write = [&](DType dtype, float key, float value) {
    KvCache cache = NewCache(Layout(4, 1, 2, dtype));
    cache.Reserve(1);
    const float k[] = {1, key}, v[] = {value, 1};
    ops::StoreRow(Kernels(), cache.layout(), cache.View(3), 3, 0, 0, k, v);
    return Load(dtype, cache.View(3).Keys(0, 0), kernels::KeyAt(kernels::KvDepth(dtype), 1, 0));
  };
  EXPECT_EQ(write(DType::kF16, -65519, 65504), -65504);
  EXPECT_EQ(write(DType::kBF16, 1e30f, 1e30f), ToFloat(ToBF16(1e30f)));
  const auto message = [&](float key, float value) {
    return ErrorOf(ErrorKind::kUnsupported, [&] { write(DType::kF16, key, value); });
  };
  EXPECT_THAT(message(-65520, 0), HasSubstr("a key of layer 3 has an element of magnitude 65520"));
  EXPECT_THAT(message(0, 1e30f), HasSubstr("a value of layer 3"));
}

// A tenth of the cache fits into memory. Covers a fork, a text that goes back, and dropped pages.
TEST(KvCacheTest, HoldsInAFileWhatWasWritten) {
  const TempFolder folder;
  for (const DType dtype : kFloatTypes) {
    const KvLayout layout = Layout(2, 3, 40, dtype);
    const auto memory = std::make_shared<KvBudget>(layout.BytesFor(128));
    const auto file = std::make_shared<KvFile>(folder.path(), 1 << 24, memory);
    KvCache cache(std::make_shared<KvPool>(layout, file));
    for (int64_t tokens = 0; tokens < 1290; tokens += 30) {
      file->BeginTurn();
      Read(cache, 0, 30);
    }
    EXPECT_LT(cache.BytesInMemory(), cache.bytes() / 5);
    KvCache fork = cache.Fork();
    file->BeginTurn();
    fork.Truncate(1000);
    Read(fork, 1, 200);
    file->BeginTurn();
    cache.WillRead(1, {0, 5000});  // beyond the end
    EXPECT_GT(cache.file_read_bytes(), 0);
    ExpectHeld(cache, 0, 0, 1290);
    ExpectHeld(fork, 0, 0, 1000);
    ExpectHeld(fork, 1, 1000, 1200);
    fork.Drop({64, 640});
    file->BeginTurn();
    fork.WillRead(0, {0, 1200});
    ExpectHeld(fork, 0, 640, 1000);
    ExpectHeld(cache, 0, 0, 1290);
  }
}

TEST(KvCacheTest, FileLoadsTheTilesOfAHead) {
  const TempFolder folder;
  const KvLayout layout = Layout(2, 4, 64, DType::kF32);  // a head's tile: two system pages
  const auto memory = std::make_shared<KvBudget>(layout.page_bytes());
  const auto file = std::make_shared<KvFile>(folder.path(), 1 << 26, memory);
  KvCache cache(std::make_shared<KvPool>(layout, file));
  Read(cache, 0, 640);
  const KvCache other = cache.Fork();
  file->BeginTurn();
  const ops::TilePart parts[] = {{1, 0, 64}, {7, 0, 64}};
  KvCache pushes_out(std::make_shared<KvPool>(layout, file));
  pushes_out.Reserve(64);
  EXPECT_EQ(cache.BytesInMemory(), 0);
  cache.WillRead(1, parts, 2, 3);
  const int64_t read = cache.file_read_bytes();
  EXPECT_GE(read, 2 * layout.head_bytes());
  EXPECT_LT(read, 2 * layout.head_bytes() + 4 * KvFile::kAlignment);
  EXPECT_EQ(cache.BytesInMemory(), read);
  cache.WillRead(1, parts, 2, 3);
  EXPECT_EQ(cache.file_read_bytes(), read);
  other.WillRead(1, parts, 2, 3);
  EXPECT_EQ(other.file_read_bytes(), 0) << "the pages are shared";
}

TEST(KvCacheTest, GrowingMovesNoPage) {
  KvCache cache = NewCache(Layout(2, 2, 20, DType::kF16));
  Read(cache, 0, 64);
  const std::byte* page = cache.View(1).Keys(0, 0);
  for (int i = 0; i < 20; ++i) Read(cache, 0, 50);
  EXPECT_EQ(cache.View(1).Keys(0, 0), page);
  ExpectHeld(cache, 0, 0, 1064);
}

TEST(KvCacheTest, MovesTakeThePagesAlong) {
  KvCache cache = NewCache(Layout(1, 1, 8, DType::kF32));
  Read(cache, 0, 100);
  KvCache moved = std::move(cache);
  EXPECT_EQ(moved.length(), 100);
  KvCache other(moved.Fork());
  other = std::move(moved);
  ExpectHeld(other, 0, 0, 100);
  EXPECT_EQ(other.pool().pages_in_use(), 2);
}

TEST(KvCacheTest, TruncatedPagesAreReleased) {
  KvCache cache = NewCache(Layout(2, 2, 8, DType::kF32));
  Read(cache, 0, 200);
  const int64_t page = 2 * cache.layout().page_bytes();
  for (const int64_t length : {199, 193, 192, 129, 128, 127, 64, 1}) {
    cache.Truncate(length);
    EXPECT_EQ(cache.length(), length);
    EXPECT_EQ(cache.bytes(), (length + 63) / 64 * page);
    EXPECT_EQ(cache.pool().budget().used(), cache.bytes());
    ExpectHeld(cache, 0, 0, length);
  }
  Read(cache, 1, 100);
  ExpectHeld(cache, 0, 0, 1);
  ExpectHeld(cache, 1, 1, 101);
  cache.Truncate(0);
  EXPECT_EQ(cache.pool().pages_in_use(), 0);
}

// The rows that were met under each stamp, which may not change.
class RowsUnderStamps {
 public:
  // writers: of every position of the text.
  void Check(const KvCache& cache, const std::vector<int64_t>& writers) {
    const ops::KvView view = cache.View(0);
    ASSERT_EQ(view.length, cache.length());
    for (int64_t p = 0; p < view.length; ++p) {
      const int64_t tile = p / kTileTokens;
      if (!view.Holds(tile)) continue;
      const std::pair<int64_t, int64_t> row{p, writers[p]};
      const auto [met, is_new] =
          rows_.try_emplace({view.stamps[view.Slot(tile)], p % kTileTokens}, row);
      ASSERT_EQ(met->second, row) << "under the stamp of tile " << tile;
    }
  }

 private:
  std::map<std::pair<uint64_t, int64_t>, std::pair<int64_t, int64_t>> rows_;
};

// A copy of a tile elsewhere is known by its stamp.
TEST(KvCacheTest, WholeTilesKeepTheirStamps) {
  KvCache cache = NewCache(Layout(2, 1, 8, DType::kF32));
  Read(cache, 0, 150);
  const auto stamps = [](const KvCache& of) {
    const ops::KvView view = of.View(1);
    return std::vector<uint64_t>(view.stamps, view.stamps + view.slots);
  };
  const std::vector<uint64_t> before = stamps(cache);
  EXPECT_EQ(std::set(before.begin(), before.end()).size(), 3u);
  Read(cache, 0, 1);
  EXPECT_EQ(stamps(cache), before);
  const KvCache fork = cache.Fork();
  EXPECT_EQ(stamps(fork)[0], before[0]);
  EXPECT_EQ(stamps(fork)[1], before[1]);
  EXPECT_NE(stamps(fork)[2], before[2]);
  cache.Truncate(100);
  ASSERT_EQ(stamps(cache).size(), 2u);
  EXPECT_EQ(stamps(cache)[0], before[0]);
  EXPECT_NE(stamps(cache)[1], before[1]);
}

// Fork and original may stand at any length.
TEST(KvCacheTest, TruncatedForkContinuesLikeItsOriginal) {
  for (const int64_t first : {0, 50, 64, 70, 128}) {
    for (const int64_t astray : {0, 1, 14, 100}) {
      for (const int64_t more : {0, 1, 14, 200}) {
        SCOPED_TRACE(testing::Message() << first << " " << astray << " " << more);
        KvCache text = NewCache(Layout(3, 2, 8, DType::kF32));
        if (first > 0) Read(text, 0, first);
        KvCache fork = text.Fork();
        if (astray > 0) Read(fork, 1, astray);
        if (more > 0) Read(text, 0, more);
        const int64_t had = fork.ContinueAs(text);
        EXPECT_LE(had, first);
        EXPECT_GE(had, first - first % kTileTokens);
        EXPECT_EQ(fork.length(), first + more);
        ExpectHeld(fork, 0, 0, first + more);
        EXPECT_EQ(text.pool().pages_in_use() * text.layout().page_bytes(),
                  text.layout().BytesFor(first + more))
            << "all shared";
        RowsUnderStamps stamped;
        std::vector<int64_t> writers(first + more, 0);
        stamped.Check(text, writers);
        stamped.Check(fork, writers);
        Read(text, 2, 3);
        Read(fork, 3, 3);
        ExpectHeld(text, 2, first + more, first + more + 3);
        ExpectHeld(fork, 3, first + more, first + more + 3);
        writers.resize(first + more + 3, 2);
        stamped.Check(text, writers);
        std::fill(writers.end() - 3, writers.end(), 3);
        stamped.Check(fork, writers);
      }
    }
  }
}

// Forks are taken at every offset of a page. The first text to append copies the page.
TEST(KvCacheTest, AForkSharesPagesUntilOneOfTheTwoWrites) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    KvCache text = NewCache(Layout(2, 2, 8, dtype));
    Read(text, 0, 70);
    for (int64_t length = 70; length <= 70 + kTileTokens; ++length) {
      const KvPool& pool = text.pool();
      const int64_t tiles = (length + 63) / 64;
      ASSERT_EQ(pool.pages_in_use(), 2 * tiles);
      for (const bool fork_first : {false, true}) {
        KvCache original = text.Fork();
        KvCache fork = original.Fork();
        EXPECT_EQ(pool.pages_in_use(), 2 * tiles) << "nothing is copied yet";
        KvCache& first = fork_first ? fork : original;
        KvCache& second = fork_first ? original : fork;
        Read(first, 1, 5);
        Read(second, 2, 140);
        first.Truncate(length + 3);
        Read(first, 3, 66);
        ExpectHeld(text, 0, 0, length);
        ExpectHeld(first, 0, 0, length);
        ExpectHeld(first, 1, length, length + 3);
        ExpectHeld(first, 3, length + 3, length + 69);
        ExpectHeld(second, 0, 0, length);
        ExpectHeld(second, 2, length, length + 140);
        // Whole pages of the beginning exist once.
        const auto own = [&](int64_t end) { return 2 * ((end + 63) / 64 - length / 64); };
        EXPECT_EQ(pool.pages_in_use(), 2 * tiles + own(length + 69) + own(length + 140));
      }
      Read(text, 0, 1);
    }
  }
}

// The last text to hold a page writes into it without a copy.
TEST(KvCacheTest, SoleOwnerCopiesNothing) {
  KvCache text = NewCache(Layout(1, 1, 8, DType::kF32));
  Read(text, 0, 70);
  const std::byte* tail = text.View(0).Keys(0, 1);
  { const KvCache fork = text.Fork(); }
  Read(text, 0, 1);
  EXPECT_EQ(text.View(0).Keys(0, 1), tail);
  const KvCache fork = text.Fork();
  Read(text, 0, 1);
  EXPECT_NE(text.View(0).Keys(0, 1), tail);
  EXPECT_EQ(fork.View(0).Keys(0, 1), tail);
}

// A step may reserve pages and then not happen.
TEST(KvCacheTest, UnusedReservedPagesAreNotShared) {
  KvCache text = NewCache(Layout(2, 1, 8, DType::kF32));
  Read(text, 0, 60);
  text.Reserve(200);
  KvCache fork = text.Fork();
  EXPECT_EQ(fork.bytes(), fork.layout().BytesFor(60));
  Read(fork, 1, 100);
  Read(text, 0, 200);
  ExpectHeld(fork, 1, 60, 160);
  ExpectHeld(text, 0, 0, 260);
  text.Reserve(500);
  text.Truncate(260);
  EXPECT_EQ(text.bytes(), text.layout().BytesFor(260)) << "to give it back";
}

TEST(KvCacheTest, DroppedTilesAreGivenBackAndTheRestStays) {
  for (const int64_t first : {0, 4, 64, 70}) {
    KvCache cache = NewCache(Layout(2, 1, 8, DType::kF32));
    constexpr int64_t kWindow = 100;
    int64_t most = 0;
    while (cache.length() < 3000) {
      Read(cache, 0, 37);
      const int64_t end = cache.length() - kWindow;
      if (end > first) cache.Drop({first, end});
      const ops::KvRange dropped = cache.dropped();
      if (dropped.begin < dropped.end) {
        EXPECT_EQ(dropped.begin, (first + 63) / 64 * 64);
        EXPECT_EQ(dropped.end, end / 64 * 64);
      }
      most = std::max(most, cache.bytes());
      EXPECT_EQ(cache.bytes(), cache.layout().BytesFor(cache.length()) -
                                   cache.layout().BytesFor(dropped.end - dropped.begin));
      EXPECT_EQ(cache.bytes(), cache.pool().budget().used());
    }
    EXPECT_LE(most, cache.layout().BytesFor(first) + cache.layout().BytesFor(kWindow + 64 + 37));
    const ops::KvRange dropped = cache.dropped();
    ExpectHeld(cache, 0, 0, dropped.begin);
    ExpectHeld(cache, 0, dropped.end, cache.length());
    for (int64_t tile = dropped.begin / 64; tile < dropped.end / 64; ++tile) {
      EXPECT_FALSE(cache.View(0).Holds(tile));
    }
    EXPECT_FALSE(cache.View(0).Holds(cache.length() / 64 + 1));

    // The text goes back behind the gap, and then before it.
    cache.Truncate(dropped.end);
    Read(cache, 1, 70);
    ExpectHeld(cache, 1, dropped.end, dropped.end + 70);
    cache.Truncate(first);
    EXPECT_EQ(cache.bytes(), cache.layout().BytesFor(first));
    Read(cache, 2, 200);
    ExpectHeld(cache, 0, 0, first);
    ExpectHeld(cache, 2, first, first + 200);
  }
}

TEST(KvCacheTest, ARefusedReserveChangesNothing) {
  const KvLayout layout = Layout(4, 4, 64, DType::kF32);
  KvCache cache = NewCache(layout, layout.BytesFor(256));
  Read(cache, 0, 100);
  const KvCache fork = cache.Fork();
  const auto expect_unchanged = [&] {
    EXPECT_EQ(cache.length(), 100);
    EXPECT_EQ(cache.bytes(), layout.BytesFor(100));
    EXPECT_EQ(cache.pool().budget().used(), layout.BytesFor(128));
    EXPECT_EQ(cache.View(3).slots, 2);
    ExpectHeld(cache, 0, 0, 100);
  };
  // Two of four tiles are taken, and one of these needs a copy.
  EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { cache.Reserve(157); }), HasSubstr(" are taken"));
  expect_unchanged();
  EXPECT_EQ(ErrorOf([&] { cache.Reserve(93); }).kind(), ErrorKind::kMemory)
      << "no room for the copy";
  expect_unchanged();
  Read(cache, 1, 92);
  ExpectHeld(cache, 1, 100, 192);
  ExpectHeld(fork, 0, 0, 100);
}

// More than an address space, or more than a number holds. The refusal is immediate, not after
// hours of taking pages, and has the right error kind.
TEST(KvCacheTest, ImpossibleSizeIsRefusedAtOnce) {
  for (const int64_t budget : {int64_t{1} << 30, INT64_MAX}) {
    KvCache cache = NewCache(Layout(4, 4, 64, DType::kF32), budget);
    Read(cache, 0, 100);
    for (const int64_t tokens : {int64_t{1} << 31, int64_t{1} << 50, INT64_MAX}) {
      EXPECT_EQ(ErrorOf([&] { cache.Reserve(tokens); }).kind(), ErrorKind::kMemory);
    }
    EXPECT_EQ(cache.bytes(), cache.layout().BytesFor(100));
    Read(cache, 0, 100);
    ExpectHeld(cache, 0, 0, 200);
  }
}

// A text with a random history, and a list of what it should hold.
struct Told {
  KvCache cache;
  std::vector<int64_t> writers;  // of every position

  void Check() const {
    ASSERT_EQ(cache.length(), std::ssize(writers));
    for (int64_t p = 0; p < cache.length(); ++p) {
      if (p >= cache.dropped().begin && p < cache.dropped().end) continue;
      ExpectRow(cache, writers[p], p);
    }
  }
};

TEST(KvCacheTest, RandomHistoryOfForksHoldsWhatWasWritten) {
  kernels::RandomFloats random(7);
  const auto pool = std::make_shared<KvPool>(Layout(1, 1, 2, DType::kF32));
  std::vector<Told> texts;
  texts.push_back({KvCache(pool), {}});
  RowsUnderStamps stamped;
  for (int64_t step = 0; step < 400; ++step) {
    const auto at = static_cast<size_t>(random.Integer(0, std::ssize(texts) - 1));
    Told& text = texts[at];
    const int64_t length = text.cache.length();
    switch (random.Integer(0, 5)) {
      case 0:
        if (texts.size() < 8) texts.push_back({text.cache.Fork(), text.writers});
        break;
      case 1: {
        const int64_t to = random.Integer(0, length);
        const ops::KvRange dropped = text.cache.dropped();
        if (to > dropped.begin && to < dropped.end) break;
        text.cache.Truncate(to);
        text.writers.resize(to);
        break;
      }
      case 2:
        if (length > 170) text.cache.Drop({64 * (static_cast<int64_t>(at) % 3), length - 90});
        break;
      case 3:
        if (texts.size() > 1) {
          if (at + 1 != texts.size()) text = std::move(texts.back());
          texts.pop_back();
        }
        break;
      default: {
        const int64_t tokens = random.Integer(1, 100);
        Read(text.cache, step % 50, tokens);
        text.writers.resize(length + tokens, step % 50);
      }
    }
    for (const Told& told : texts) told.Check();
    for (const Told& told : texts) stamped.Check(told.cache, told.writers);
    ASSERT_FALSE(HasFatalFailure()) << "after step " << step;
  }
  texts.clear();
  EXPECT_EQ(pool->pages_in_use(), 0);
}

// Threads continue texts that share a beginning. The last text to hold the tail writes into it, but
// never while another text still copies.
TEST(KvCacheTest, ForksLiveInDifferentThreads) {
  const auto pool = std::make_shared<KvPool>(Layout(40, 1, 4, DType::kF32));
  for (int round = 0; round < 20; ++round) {
    std::vector<KvCache> texts;
    texts.emplace_back(pool);
    Read(texts[0], 0, 70);
    for (int i = 0; i < 2; ++i) texts.push_back(texts[0].Fork());
    std::vector<std::thread> threads;
    for (int64_t i = 0; i < 3; ++i) {
      threads.emplace_back([&, i] { Read(texts[i], i + 1, 2); });
    }
    for (std::thread& thread : threads) thread.join();
    for (int64_t i = 0; i < 3; ++i) {
      ExpectHeld(texts[i], 0, 0, 70);
      ExpectHeld(texts[i], i + 1, 70, 72);
    }
  }
}

// Skipped positions take no pages, and later rows keep their places, in a fork, too.
TEST(KvCacheTest, SkippedPositionsTakeNoPages) {
  const KvLayout layout = Layout(2, 1, 8, DType::kF32);
  const auto pool = std::make_shared<KvPool>(layout);
  {
    KvCache cache(pool);
    Read(cache, 1, 70);
    cache.Reserve(500);  // stays unused
    cache.Skip(300);
    Read(cache, 1, 40);
    cache.Skip(64 * 10);
    Read(cache, 1, 3);
    EXPECT_EQ(cache.length(), 643);
    EXPECT_EQ(cache.bytes(), (2 + 2 + 1) * 2 * layout.page_bytes());
    KvCache fork = cache.Fork();
    Read(fork, 1, 1);
    for (const KvCache* one : {&cache, &fork}) {
      const ops::KvView view = one->View(1);
      for (const int64_t tile : {0, 1, 4, 5, 10}) EXPECT_TRUE(view.Holds(tile));
      for (const int64_t tile : {2, 3, 6, 9, 11}) EXPECT_FALSE(view.Holds(tile));
      EXPECT_EQ(Load(DType::kF32, view.Keys(0, 4), kernels::KeyAt(1, 3, 300 % 64)),
                KeyOf(1, 1, 300, 0, 3));
      EXPECT_EQ(Load(DType::kF32, view.Keys(0, 10), kernels::KeyAt(1, 3, 2)),
                KeyOf(1, 1, 642, 0, 3));
    }
    cache.Truncate(0);
    EXPECT_EQ(cache.bytes(), 0);
  }
  EXPECT_EQ(pool->budget().used(), 0);
}

TEST(KvCacheTest, SkippedPagesMayComeFromAnotherCache) {
  const KvLayout layout = Layout(2, 2, 8, DType::kI8);
  const auto pool =
      std::make_shared<KvPool>(layout, std::make_shared<KvBudget>(layout.BytesFor(64 * 16)));
  KvCache whole(pool), cache(pool);
  Read(whole, 1, 64 * 4);
  Read(cache, 1, 64);
  cache.Skip(64 * 3);
  cache.ReserveSkipped(64);
  cache.ReserveSkipped(64);  // a second call changes nothing
  Read(cache, 1, 64);
  EXPECT_EQ(cache.bytes(), whole.bytes());
  for (const int64_t layer : {0, 1}) {
    for (const int64_t tile : {1, 2}) {
      CopyPage(whole.View(layer).Page(tile), cache.View(layer).Page(tile), layout.tile_bytes());
    }
    for (const int64_t tile : {0, 1, 2, 3}) {
      EXPECT_TRUE(std::ranges::equal(HostBytes(cache.View(layer).Page(tile), layout.tile_bytes()),
                                     HostBytes(whole.View(layer).Page(tile), layout.tile_bytes())));
    }
  }
  cache.Skip(64 * 20);
  EXPECT_EQ(ErrorOf([&] { cache.ReserveSkipped(64 * 4); }).kind(), ErrorKind::kMemory);
  EXPECT_EQ(cache.bytes(), whole.bytes());
  EXPECT_FALSE(cache.View(0).Holds(4));
}

}  // namespace
}  // namespace godwit::kv_cache_test
