// Where ranks read, keep and show the positions of a text.
#include "attention/ranks/text_placement.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "attention/core/kv_cost.h"

namespace godwit::text_placement_test {
namespace {

// The placement of a rank among so many.
using Place = std::function<TextPlacement(int rank, int ranks)>;

Place Ring(int64_t chunk) {
  return [=](int rank, int ranks) { return TextPlacement::InRing(rank, ranks, chunk); };
}

Place Star(int64_t block, int64_t anchor) {
  return [=](int rank, int ranks) {
    return TextPlacement::InStar(rank, ranks, {.block = block, .anchor = anchor, .chosen = 1});
  };
}

// How many ranks read each position of a text that is asked about from `context` on.
std::vector<int> Readers(const Place& place, int ranks, int64_t context, int64_t length) {
  std::vector<int> readers(length);
  for (int rank = 0; rank < ranks; ++rank) {
    TextPlacement placement = place(rank, ranks);
    placement.SetQuestion(context);
    int64_t end = 0;
    for (const auto& [first, last] : RangesRead(placement, length)) {
      EXPECT_LE(end, first);
      for (int64_t p = first; p < last; ++p) ++readers[p];
      end = last;
    }
    EXPECT_EQ(end, length) << "the question goes through all";
  }
  return readers;
}

TEST(TextPlacement, OneRankReadsAll) {
  TextPlacement placement;
  placement.SetQuestion(70);
  EXPECT_EQ(placement.Reads(30).begin, 30);
  EXPECT_EQ(placement.Reads(30).end, INT64_MAX);
  EXPECT_EQ(placement.merged_from(), INT64_MAX);
  EXPECT_EQ(placement.ContextLeft(30), 0);
  EXPECT_FALSE(placement.AllReadNext(0));
}

TEST(TextPlacement, InARingEachPositionOfTheContextHasOneReader) {
  for (const int ranks : {2, 3, 5}) {
    for (const int64_t context : {int64_t{ranks} * 64, int64_t{700}, int64_t{1999}}) {
      const auto readers = Readers(Ring(128), ranks, context, context + 9);
      for (int64_t p = 0; p < context + 9; ++p) {
        ASSERT_EQ(readers[p], p < context ? 1 : ranks) << ranks << " " << context << " " << p;
      }
    }
  }
}

// The anchor has a tile for each of two ranks, and none for each of three.
TEST(TextPlacement, InAStarOnlyTheRestOfTheAnchorIsReadByMany) {
  for (const int ranks : {2, 3}) {
    const int64_t together = ranks == 2 ? 128 : 0;
    const auto readers = Readers(Star(150, 150), ranks, 1000, 1009);
    for (int64_t p = 0; p < 1009; ++p) {
      ASSERT_EQ(readers[p], p < together || (p >= 150 && p < 1000) ? 1 : ranks) << p;
    }
  }
}

TEST(TextPlacement, AContextTooShortForARingIsReadByAll) {
  TextPlacement placement = TextPlacement::InRing(1, 3, 64);
  placement.SetQuestion(191);
  EXPECT_EQ(placement.merged_from(), 0);
  EXPECT_EQ(placement.ContextLeft(0), 0);
  for (const int readers : Readers(Ring(64), 3, 191, 200)) EXPECT_EQ(readers, 3);
}

// The tokens left fall by those that were read, for any chunks.
TEST(TextPlacement, TheContextLeftIsWhatIsYetToRead) {
  for (const Place& place : {Ring(64), Star(150, 150), Star(100, 0)}) {
    for (int rank = 0; rank < 3; ++rank) {
      TextPlacement placement = place(rank, 3);
      placement.SetQuestion(1000);
      int64_t length = placement.Reads(0).begin, left = placement.ContextLeft(0);
      while (length < 1000) {
        ASSERT_EQ(placement.ContextLeft(length), left);
        const ops::KvRange next = placement.Reads(length);
        const int64_t rows = placement.AllReadNext(length)
                                 ? next.end - length
                                 : std::min<int64_t>(37, next.end - length);
        left -= std::min(rows, 1000 - length);
        length += rows;
        // A text that keeps what all read together goes on behind the round.
        if (placement.kept_by_all() >= length)
          length = placement.ring().RoundAround(length - 1).end;
        length = std::max(length, placement.Reads(length).begin);
      }
      EXPECT_EQ(left, 0) << rank;
    }
  }
}

}  // namespace
}  // namespace godwit::text_placement_test
