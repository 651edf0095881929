#include "kv/kv_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "base/machine_memory.h"
#include "base/test_folder.h"
#include "base/test_support.h"
#include "kv/kv_file_test_support.h"
#include "ops/attention_state.h"

namespace godwit::kv_pool_test {
namespace {

using ::testing::HasSubstr;

// Pages of 2 MiB, eight in a slab.
const KvLayout kLayout{.layers = 3, .kv_heads = 8, .head_dim = 512, .dtype = DType::kF32};
constexpr int64_t kPageBytes = int64_t{2} << 20;
constexpr size_t kPerSlab = 8;

struct Pages {
  explicit Pages(size_t n) : ids(n), data(n) {}
  std::vector<KvPool::PageId> ids;
  std::vector<PageData> data;
  std::byte* At(size_t i) const { return HostPointer(data[i]); }
};

Pages Take(KvPool& pool, size_t n) {
  Pages pages(n);
  pool.Take(pages.ids, pages.data);
  return pages;
}

TEST(KvLayoutTest, CountsItsBytes) {
  EXPECT_EQ(kLayout.page_bytes(), kPageBytes);
  for (const KvType& type : kKvTypes) {
    // Keys have no padding, values are padded to 16 elements. Integers have a scale for each key
    // and value.
    const int64_t scales = HasIntegers(type.dtype) ? 2 * 4 : 0;
    const auto bits = static_cast<int64_t>(8 * SizeOf(kernels::WidenedType(type.dtype)));
    const int64_t key_bits = type.name == "int4" ? 4 : bits;
    const int64_t value_bits = type.name == "int4" || type.name == "k8v4" ? 4 : bits;
    const KvLayout narrow{.layers = 3, .kv_heads = 2, .head_dim = 20, .dtype = type.dtype};
    EXPECT_EQ(narrow.page_bytes(), 64 * 2 * ((20 * key_bits + 32 * value_bits) / 8 + scales));
    EXPECT_EQ(narrow.BytesFor(0), 0);
    EXPECT_EQ(narrow.BytesFor(1), 3 * narrow.page_bytes());
    EXPECT_EQ(narrow.BytesFor(64), 3 * narrow.page_bytes());
    EXPECT_EQ(narrow.BytesFor(65), 2 * 3 * narrow.page_bytes());
    EXPECT_EQ(narrow.BytesFor(INT64_MAX), INT64_MAX);
    // DeepSeek V2 and V3: 576 numbers a token, where separate values would make it 1152.
    const KvLayout latent{
        .layers = 3, .kv_heads = 1, .head_dim = 576, .dtype = type.dtype, .values_in_keys = true};
    EXPECT_EQ(latent.bytes_per_token(), 3 * (576 * key_bits / 8 + scales / 2));
    // DeepSeek V3.2: 128 numbers more.
    KvLayout indexed = latent;
    indexed.index_dim = 128;
    EXPECT_EQ(indexed.bytes_per_token(), 3 * (704 * key_bits / 8 + scales));
    const KvLayout wide{.layers = 32, .kv_heads = 8, .head_dim = 128, .dtype = type.dtype};
    EXPECT_EQ(wide.page_bytes(), 64 * 8 * (16 * (key_bits + value_bits) + scales));
  }
}

// GLM-5: index keys of a few layers share pages behind those of all layers.
TEST(KvLayoutTest, IndexKeysOfFewLayersShareTheirPages) {
  KvLayout layout{.layers = 12, .kv_heads = 1, .head_dim = 576, .values_in_keys = true};
  const int64_t keys = layout.page_bytes();
  layout.index_dim = 128;
  const int64_t both = layout.page_bytes(), index = layout.index_bytes();
  ASSERT_EQ(both, keys + index);
  const auto placed = [&](const std::vector<int>& layers) {
    std::vector<bool> has_index(12);
    for (const int layer : layers) has_index[static_cast<size_t>(layer)] = true;
    KvLayout of = layout;
    of.PlaceIndexes(has_index);
    return of;
  };
  const KvLayout few = placed({0, 1, 2, 5, 8});
  EXPECT_EQ(few.page_bytes(), keys);
  EXPECT_EQ(few.BytesFor(1), 14 * keys) << "576 / 128 are four in a page";
  EXPECT_EQ(few.PageOf(8), 8);
  EXPECT_EQ(few.OffsetOf(8), 0);
  EXPECT_EQ(few.IndexPageOf(0), 12);
  EXPECT_EQ(few.IndexPageOf(5), 12);
  EXPECT_EQ(few.IndexOffsetOf(5), 3 * index);
  EXPECT_EQ(few.IndexPageOf(8), 13);
  EXPECT_EQ(few.IndexOffsetOf(8), 0);
  EXPECT_EQ(few.UsedBytes(8), keys);
  EXPECT_EQ(few.UsedBytes(12), 4 * index);
  EXPECT_EQ(few.UsedBytes(13), index);
  // Where it takes more, as with all layers, index keys stay behind the keys of their layer.
  for (const KvLayout& same :
       {placed({0, 1, 2, 3, 4, 5, 6, 7, 8}), placed({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})}) {
    EXPECT_EQ(same.BytesFor(1), 12 * both);
    EXPECT_EQ(same.IndexPageOf(8), 8);
    EXPECT_EQ(same.IndexOffsetOf(8), keys);
  }
}

TEST(KvBudgetTest, TakesNoMoreThanThereIs) {
  KvBudget budget(100);
  EXPECT_TRUE(budget.Take(60));
  EXPECT_FALSE(budget.Take(41));
  EXPECT_FALSE(budget.Take(INT64_MAX));
  EXPECT_EQ(budget.used(), 60);
  EXPECT_TRUE(budget.Take(40));
  EXPECT_FALSE(budget.Take(1));
  budget.Release(60);
  EXPECT_TRUE(budget.Take(60));
  EXPECT_EQ(budget.used(), 100);
}

// The system counts memory with mapped weights as free. When weights fill all of it, a pool cannot
// grow.
TEST(KvBudgetTest, MappedFilesAreNotFree) {
  const int64_t all = ReadMachineMemory().total_bytes;
  KvPool pool(kLayout, std::make_shared<KvBudget>(100 * kPageBytes, /*mapped_bytes=*/all));
  EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { Take(pool, 1); }),
              HasSubstr("a KV cache of 0 B that grows takes another 16.0 MiB"));
  KvPool other(kLayout, std::make_shared<KvBudget>(100 * kPageBytes));
  Take(other, 1);
}

TEST(KvPoolTest, PagesAreApartAndAligned) {
  KvPool pool(kLayout);
  const Pages pages = Take(pool, 3 * kPerSlab);
  EXPECT_EQ(std::set(pages.ids.begin(), pages.ids.end()).size(), 3 * kPerSlab);
  for (size_t i = 0; i < pages.data.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pages.At(i)) % 64, 0u);
    std::memset(pages.At(i), static_cast<int>(i), kPageBytes);
  }
  for (size_t i = 0; i < pages.data.size(); ++i) {
    EXPECT_EQ(pages.At(i)[0], static_cast<std::byte>(i));
    EXPECT_EQ(pages.At(i)[kPageBytes - 1], static_cast<std::byte>(i));
  }
  EXPECT_EQ(pool.pages_in_use(), std::ssize(pages.ids));
  pool.Release(pages.ids);
  EXPECT_EQ(pool.pages_in_use(), 0);
}

TEST(KvPoolTest, APageLivesAsLongAsItsLastReference) {
  KvPool pool(kLayout);
  const Pages page = Take(pool, 1);
  EXPECT_FALSE(pool.IsShared(page.ids[0]));
  pool.Share(page.ids);
  pool.Share(page.ids);
  EXPECT_TRUE(pool.IsShared(page.ids[0]));
  EXPECT_EQ(pool.pages_in_use(), 1) << "a page that is shared is one page";
  EXPECT_EQ(pool.budget().used(), kPageBytes);
  pool.Release(page.ids);
  EXPECT_TRUE(pool.IsShared(page.ids[0]));
  pool.Release(page.ids);
  EXPECT_FALSE(pool.IsShared(page.ids[0]));
  EXPECT_NE(Take(pool, 1).data[0], page.data[0]) << "it is still in use";
  pool.Release(page.ids);
  EXPECT_EQ(pool.pages_in_use(), 1);
  EXPECT_EQ(pool.budget().used(), kPageBytes);
  EXPECT_EQ(Take(pool, 1).data[0], page.data[0]);
}

TEST(KvPoolTest, ARefusalNamesTheNumbersAndTakesNothing) {
  const auto budget = std::make_shared<KvBudget>(10 * kPageBytes);
  KvPool pool(kLayout, budget);
  const Pages before = Take(pool, 3);
  Pages pages(8);
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { pool.Take(pages.ids, pages.data); }),
                HasSubstr("needs another 16.0 MiB, and 6.0 MiB of its 20.0 MiB are taken"));
    EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { pool.Require(8); }),
                HasSubstr("needs another 16.0 MiB"));
    EXPECT_EQ(pool.pages_in_use(), 3);
    EXPECT_EQ(budget->used(), 3 * kPageBytes);
  }
  pool.Require(7);
  EXPECT_EQ(pool.pages_in_use(), 3) << "Require takes none";
  const Pages rest = Take(pool, 7);
  ErrorOf(ErrorKind::kMemory, [&] { Take(pool, 1); });
  pool.Release(before.ids);
  pool.Release(Take(pool, 3).ids);
  pool.Release(rest.ids);
  EXPECT_EQ(budget->used(), 0);
}

TEST(KvPoolTest, PoolsOfOneEngineShareABudget) {
  const auto budget = std::make_shared<KvBudget>(4 * kPageBytes);
  KvPool one(kLayout, budget), other(kLayout, budget);
  const Pages pages = Take(one, 3);
  Take(other, 1);
  ErrorOf(ErrorKind::kMemory, [&] { Take(other, 1); });
  one.Release(pages.ids);
  Take(other, 3);
}

// More than any machine has, and more than a number holds.
TEST(KvPoolTest, ImpossibleSizeIsRefusedAtOnce) {
  KvPool pool(kLayout);
  for (const int64_t pages : {int64_t{1} << 40, INT64_MAX}) {
    EXPECT_EQ(ErrorOf([&] { pool.Require(pages); }).kind(), ErrorKind::kMemory);
  }
  EXPECT_EQ(pool.pages_in_use(), 0);
}

// A written page comes back as zeros only if its memory went to the system.
bool WasGivenBack(const Pages& pages) { return pages.At(0)[kPageBytes / 2] == std::byte{0}; }

TEST(KvPoolTest, EmptySlabsGoBackToTheSystemButOne) {
  KvPool pool(kLayout);
  std::vector<Pages> slabs;
  for (int i = 0; i < 3; ++i) {
    slabs.push_back(Take(pool, kPerSlab));
    for (const PageData page : slabs.back().data) std::memset(HostPointer(page), 0xff, kPageBytes);
  }
  pool.Release(slabs[1].ids);  // stays
  pool.Release(slabs[2].ids);  // goes
  const Pages second = Take(pool, kPerSlab);
  EXPECT_EQ(second.ids[0] / kPerSlab, 1u) << "slabs that lie lower come first";
  EXPECT_FALSE(WasGivenBack(second));
  const Pages third = Take(pool, kPerSlab);
  EXPECT_EQ(third.ids[0] / kPerSlab, 2u);
  EXPECT_TRUE(WasGivenBack(third));
  // A single page keeps its slab.
  pool.Release(second.ids);
  pool.Release(std::span(third.ids).subspan(1));
  EXPECT_EQ(pool.pages_in_use(), kPerSlab + 1);
  pool.Release(slabs[0].ids);
  pool.Release(std::span(third.ids).first(1));
  EXPECT_EQ(pool.pages_in_use(), 0);
  for (int round = 0; round < 3; ++round) pool.Release(Take(pool, 3 * kPerSlab).ids);
}

TEST(KvPoolTest, APageLargerThanASlabIsOneOfItsOwn) {
  const KvLayout large{.layers = 1, .kv_heads = 40, .head_dim = 1024, .dtype = DType::kF32};
  ASSERT_GT(large.page_bytes(), 16 << 20);
  KvPool pool(large);
  const Pages pages = Take(pool, 2);
  pages.At(1)[large.page_bytes() - 1] = std::byte{1};
  EXPECT_GE(std::abs(pages.At(1) - pages.At(0)), large.page_bytes());
}

TEST(KvPoolTest, LimitsTheHeadDimension) {
  KvPool(KvLayout{.layers = 1, .kv_heads = 1, .head_dim = kernels::kMaxHeadDim});
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                      [] { KvPool(KvLayout{.layers = 1, .kv_heads = 1, .head_dim = 1025}); }),
              HasSubstr("1025"));
}

TEST(KvPoolTest, FileSizeLimitsThePages) {
  const TempFolder folder;
  const auto memory = std::make_shared<KvBudget>(3 * kPageBytes);
  const auto file = std::make_shared<KvFile>(folder.path(), 20 * kPageBytes, memory);
  KvPool pool(kLayout, file);
  const Pages pages = Take(pool, 20);
  for (size_t i = 0; i < pages.data.size(); ++i) {
    std::memset(pages.At(i), static_cast<int>(i), kPageBytes);
  }
  EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { Take(pool, 1); }),
              HasSubstr("40.0 MiB of its 40.0 MiB are taken"));
  for (size_t i = 0; i < pages.data.size(); ++i) {
    EXPECT_EQ(pages.At(i)[kPageBytes - 1], static_cast<std::byte>(i));
  }
  file->BeginTurn();
  EXPECT_LE(pool.BytesInMemory(pages.ids), 3 * kPageBytes);
  EXPECT_GE(pool.WillRead(pages.ids, 0, kPageBytes), 17 * kPageBytes);
  const Pages index = Take(*pool.in_memory(), 3);
  EXPECT_EQ(memory->used(), 3 * kPageBytes);
  ErrorOf(ErrorKind::kMemory, [&] { Take(*pool.in_memory(), 1); });
  pool.Release(pages.ids);
  EXPECT_EQ(pool.budget().used(), 0);
  EXPECT_EQ(memory->used(), 3 * kPageBytes);
}

TEST(KvPoolTest, PagesInAFileAreWholeOnesOfTheSystem) {
  const KvLayout kOdd{.layers = 1, .kv_heads = 3, .head_dim = 20, .dtype = DType::kI8};
  ASSERT_NE(kOdd.page_bytes() % KvFile::kAlignment, 0);
  const TempFolder folder;
  const auto memory = std::make_shared<KvBudget>(1 << 20);
  KvPool pool(kOdd, std::make_shared<KvFile>(folder.path(), 1 << 24, memory));
  EXPECT_EQ(pool.layout().page_bytes() % KvFile::kAlignment, 0);
  EXPECT_GE(pool.layout().page_bytes(), kOdd.page_bytes());
  EXPECT_EQ(pool.in_memory()->layout().page_bytes(), kOdd.page_bytes());
  for (const PageData page : Take(pool, 3).data) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(HostPointer(page)) % KvFile::kAlignment, 0u);
  }
}

TEST(KvPoolTest, AFullDiskTakesNothing) {
  const TempFolder folder;
  const auto memory = std::make_shared<KvBudget>(3 * kPageBytes);
  KvPool pool(kLayout, std::make_shared<KvFile>(folder.path(), 100 * kPageBytes, memory));
  const Pages before = Take(pool, kPerSlab - 1);
  for (const PageData page : before.data) std::memset(HostPointer(page), 1, kPageBytes);
  {
    const FullDisk full(static_cast<int64_t>(kPerSlab) * kPageBytes);
    EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { Take(pool, 2); }), HasSubstr("File too large"));
    EXPECT_EQ(pool.pages_in_use(), kPerSlab - 1);
    EXPECT_EQ(pool.budget().used(), pool.pages_in_use() * kPageBytes);
    Take(pool, 1);  // the file has space for it
  }
  const Pages after = Take(pool, 2);
  for (const PageData page : after.data) std::memset(HostPointer(page), 2, kPageBytes);
  for (const PageData page : before.data) EXPECT_EQ(HostPointer(page)[5], std::byte{1});
}

// Every thread takes, shares and gives back pages, and writes into those that it holds.
void ServeManyThreads(KvPool& pool) {
  std::atomic<int64_t> refused = 0, damaged = 0;
  const auto work = [&](int thread) {
    for (int round = 0; round < 300; ++round) {
      Pages pages(static_cast<size_t>(1 + (round * 7 + thread) % 80));
      try {
        pool.Take(pages.ids, pages.data);
      } catch (const Error&) {
        ++refused;
        continue;
      }
      const auto mark = static_cast<std::byte>(16 * thread + round % 16);
      for (const PageData page : pages.data) HostPointer(page)[5] = mark;
      pool.Share(pages.ids);
      pool.Release(pages.ids);
      if (pool.file() != nullptr) {
        pool.BeginTurn();
        pool.WillRead(pages.ids, 0, 1);
      }
      for (const PageData page : pages.data) damaged += HostPointer(page)[5] == mark ? 0 : 1;
      pool.Release(pages.ids);
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) threads.emplace_back(work, thread);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(damaged, 0);
  EXPECT_EQ(pool.pages_in_use(), 0);
  EXPECT_EQ(pool.budget().used(), 0);
  testing::Test::RecordProperty("refused", static_cast<int>(refused));
}

const KvLayout kSmall{.layers = 1, .kv_heads = 1, .head_dim = 16, .dtype = DType::kI8};

TEST(KvPoolTest, ServesManyThreads) {
  KvPool pool(kSmall, std::make_shared<KvBudget>(200 * kSmall.page_bytes()));
  ServeManyThreads(pool);
}

TEST(KvPoolTest, ServesManyThreadsFromAFile) {
  const TempFolder folder;
  const auto memory = std::make_shared<KvBudget>(20 * KvFile::kAlignment);
  KvPool pool(kSmall, std::make_shared<KvFile>(folder.path(), 200 * KvFile::kAlignment, memory));
  ServeManyThreads(pool);
}

}  // namespace
}  // namespace godwit::kv_pool_test
