#include "attention/core/text_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/attention_test_support.h"

namespace godwit::text_cache_test {
namespace {

const AttentionGeometry kGeometry = TestGeometry(4, 2, 12, 8, {0, 0});
const KvLayout kLayout = LayoutOf(kGeometry, DType::kF32);

std::unique_ptr<TextCache> Make(const std::string& spec) {
  return NewText(kGeometry, {.spec = spec, .kv_type = DType::kF32, .context = 4096});
}

TEST(TextCacheTest, ForksShareWhatTheyHaveInCommon) {
  const TestText text(kGeometry, 300, 1);
  const auto cache = Make("dense");
  ReadText(*cache, text, 200, 100);
  std::vector<std::unique_ptr<TextCache>> forks;
  for (int i = 0; i < 8; ++i) forks.push_back(cache->Fork());
  const KvBudget& budget = cache->cache().pool().budget();
  EXPECT_EQ(budget.used(), kLayout.BytesFor(200));
  for (const auto& fork : forks) {
    EXPECT_EQ(fork->length(), 200);
    EXPECT_EQ(fork->Stats().bytes, kLayout.BytesFor(200));
    EXPECT_EQ(fork->Stats().policy, "dense");
    ReadText(*fork, text, 210, 1);
  }
  EXPECT_EQ(budget.used(), kLayout.BytesFor(200) + 8 * kLayout.BytesFor(64)) << "eight tails";
  forks.clear();
  EXPECT_EQ(budget.used(), kLayout.BytesFor(200));
}

// Text and fork drop their own pages. Shared pages go when both have dropped them.
TEST(TextCacheTest, AForkOfATextThatStreamsStreams) {
  const TestText text(kGeometry, 1000, 2), other(kGeometry, 1000, 3);
  const auto cache = Make("sinks:4+100");
  ReadText(*cache, text, 500, 64);
  const auto fork = cache->Fork();
  EXPECT_EQ(fork->Stats().dropped[0].end, 400);
  ReadText(*cache, text, 1000, 64);
  ReadText(*fork, other, 1000, 64);
  const KvBudget& budget = cache->cache().pool().budget();
  EXPECT_EQ(budget.used(), cache->Stats().bytes + fork->Stats().bytes - kLayout.BytesFor(64))
      << "only the page of the sinks is shared";

  const auto reference = Make("sinks:4+100");
  ReadText(*reference, text, 500, 64);
  ReadText(*reference, other, 900, 64);
  const auto rest = ReadText(*reference, other, 1000, 100);
  const auto again = fork->Fork();
  again->Truncate(996);  // its window begins behind the dropped pages
  EXPECT_EQ(ReadText(*again, other, 1000, 4),
            std::vector<float>(rest.end() - std::ssize(rest) / 25, rest.end()));
}

// A fork takes neither the memory of an unended step nor a tree that is not accepted yet.
TEST(TextCacheTest, ForkHoldsTheTokensThatWereRead) {
  const TestText text(kGeometry, 100, 4);
  const auto cache = Make("dense");
  ReadText(*cache, text, 10, 10);
  cache->Reserve(500);
  EXPECT_EQ(cache->Stats().bytes, kLayout.BytesFor(510));
  EXPECT_EQ(cache->Fork()->Stats().bytes, kLayout.BytesFor(10));
  StepRunner runner;
  const StepRows tree{cache.get(), &text, {10, 11}, {-1, -1}};
  runner.Run({&tree, 1});
  const auto fork = cache->Fork();
  EXPECT_EQ(fork->length(), 10);
  cache->Accept(1);
  EXPECT_EQ(cache->length(), 11);
  EXPECT_EQ(fork->length(), 10);
}

// A view of a text that read its own guesses goes back to the text. It then sees what a new view
// sees, and still has its index.
TEST(TextCacheTest, TruncatedForkContinuesLikeItsText) {
  const TestText text(kGeometry, 1200, 6), draft_tokens(kGeometry, 1200, 7);
  for (const std::string spec :
       {"dense", "sinks:4+200", "blocks:initial=0,local_windows_len=64,second_block_count=3",
        "blocks:initial=0,local_windows_len=64,second_block_count=3,group_blocks=2,group_count=1",
        "blocks:initial=0,local_windows_len=64,second_block_count=3,token_step=64",
        "blocks:meanstd,initial=0,local_windows_len=64,second_block_count=3"}) {
    SCOPED_TRACE(spec);
    const auto cache = Make("dense");
    const auto policy = [&] {
      return MakePolicy(kGeometry, {.spec = spec, .kv_type = DType::kF32, .context = 4096});
    };
    ReadText(*cache, text, 700, 100);
    const auto view = cache->Fork(policy());
    for (const int64_t end : {701, 705, 769, 832, 1000, 1001, 1100}) {
      ReadText(*cache, text, end, 40);
      view->ContinueAs(*cache);
      EXPECT_EQ(view->length(), end);
      EXPECT_EQ(view->index_bytes() > 0, spec.starts_with("blocks") && end > 701);
      const auto fresh = cache->Fork(policy());
      EXPECT_EQ(ReadText(*view, draft_tokens, end + 8, 1),
                ReadText(*fresh, draft_tokens, end + 8, 1));
    }
    const auto alone = Make("dense");
    ReadText(*alone, text, 1100, 100);
    EXPECT_EQ(ReadText(*cache, text, 1200, 1), ReadText(*alone, text, 1200, 1));
  }
}

TEST(TextCacheTest, ImpossibleReserveIsRefusedAndChangesNothing) {
  const TestText text(kGeometry, 100, 5);
  const auto cache = Make("dense");
  ReadText(*cache, text, 70, 70);
  for (const int64_t tokens : {int64_t{1} << 50, INT64_MAX}) {
    EXPECT_EQ(ErrorOf([&] { cache->Reserve(tokens); }).kind(), ErrorKind::kMemory);
    EXPECT_EQ(cache->Stats().bytes, kLayout.BytesFor(70));
  }
  const auto fresh = Make("dense");
  ReadText(*fresh, text, 70, 70);
  EXPECT_EQ(ReadText(*cache, text, 100, 30), ReadText(*fresh, text, 100, 30));
}

}  // namespace
}  // namespace godwit::text_cache_test
