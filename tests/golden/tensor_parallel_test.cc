// Every family and variant with its weights shared by ranks: the same bits on all ranks, and the
// logits of Hugging Face.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/test_support.h"
#include "checkpoint/model_folder.h"
#include "dist/local.h"
#include "tests/golden/reference.h"
#include "tests/model_runner.h"

namespace godwit::tensor_parallel_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Shared {
  std::vector<std::vector<float>> logits;  // [ranks]
  std::vector<int64_t> bytes;              // of the weights of each rank
  std::string error;
};

// The logits of a text on each rank.
Shared OnRanks(int ranks, const fs::path& model, std::optional<DType> weights,
               const std::vector<int32_t>& ids, const std::vector<RunOptions>& options) {
  LocalWorld world(ranks);
  Shared shared{.logits = std::vector<std::vector<float>>(ranks),
                .bytes = std::vector<int64_t>(ranks)};
  std::vector<std::string> errors(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto communicator = world.Rank(rank);
      try {
        const ModelFolder folder(model);
        ThreadPool pool(1);
        const ModelRunner runner(
            LoadDecoder(folder.spec(), folder.weights(), pool, {}, weights, communicator));
        shared.bytes[rank] = runner.decoder().weight_bytes();
        for (const RunOptions& one : options) {
          const auto logits = runner.Logits(ids, one);
          shared.logits[rank].insert(shared.logits[rank].end(), logits.begin(), logits.end());
        }
      } catch (const Error& error) {
        errors[rank] = error.what();
        communicator->Leave(error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  shared.error = errors[0];
  for (int rank = 1; rank < ranks; ++rank) {
    EXPECT_EQ(errors[rank].empty(), shared.error.empty()) << errors[rank];
    EXPECT_EQ(shared.logits[rank], shared.logits[0]) << "rank " << rank;
  }
  return shared;
}

class TensorParallelTest : public testing::TestWithParam<Golden> {};

TEST_P(TensorParallelTest, Try) {
  const Golden& golden = GetParam();
  const fs::path folder = GoldenRoot() / golden.path;
  const Reference reference = ReadReference(folder / "golden.safetensors");
  const ModelRunner alone(folder, golden.Weights());
  const RunOptions options{.context = golden.context};
  const auto expected = alone.Logits(reference.ids, options);
  for (const int ranks : {2, 3, 4}) {
    const Shared shared = OnRanks(ranks, folder, golden.Weights(), reference.ids, {options});
    if (!shared.error.empty()) {
      printf("TRY %s %d REFUSED %s\n", golden.path.c_str(), ranks, shared.error.c_str());
      continue;
    }
    const Errors errors = Compare(shared.logits[0], expected);
    printf("TRY %s %s %d max %.2g rms %.2g bytes", golden.path.c_str(), golden.dtype.c_str(), ranks, errors.max, errors.rms);
    for (auto b : shared.bytes) printf(" %.3f", double(b) / alone.decoder().weight_bytes());
    printf("\n");
  }
}

INSTANTIATE_TEST_SUITE_P(All, TensorParallelTest, testing::ValuesIn(AllGoldens()),
                         [](const auto& info) { return TestName(info.param.path); });

}  // namespace
}  // namespace godwit::tensor_parallel_test
