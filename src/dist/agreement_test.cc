#include "dist/agreement.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/error.h"
#include "dist/local.h"

namespace godwit::agreement_test {
namespace {

TEST(AgreementTest, NamesTheRankAndTheDifference) {
  for (const bool differ : {false, true}) {
    LocalWorld world(3);
    std::vector<std::string> errors(3);
    std::vector<ErrorCode> codes(3);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        const std::vector<Fact> facts = {{"the version", "1"},
                                         {"the model", differ && rank == 2 ? "other" : "tiny"}};
        try {
          Agree(*world.Rank(rank), facts);
        } catch (const Error& error) {
          errors[rank] = error.what();
          codes[rank] = error.data().code;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& error : errors) {
      EXPECT_EQ(error, differ
                           ? "the ranks differ in the model: rank 0 has tiny, and rank 2 has other"
                           : "");
    }
    EXPECT_EQ(codes[0], ErrorCode::kOther);
    EXPECT_EQ(codes[1], differ ? ErrorCode::kOtherRank : ErrorCode::kOther);
  }
}

}  // namespace
}  // namespace godwit::agreement_test
