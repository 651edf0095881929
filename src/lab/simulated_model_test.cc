// Texts read by a simulated model's reader against those of a session.

#include "lab/simulated_model.h"

#include <gtest/gtest.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "checkpoint/packed_copy.h"
#include "godwit/engine.h"
#include "kernels/dispatch.h"

namespace godwit::lab::simulated_model_test {
namespace {

const std::string kTiny = GODWIT_SOURCE_DIR "/tests/data/tiny-llama";

// The bits of a session's logits, from the first row on or from a later one, also behind a chunk.
TEST(SimulatedModelTest, ReadsAsASessionDoes) {
  std::vector<int32_t> tokens{1};
  for (int i = 1; i < 530; ++i) tokens.push_back(tokens.back() * 7 % 500 + 3);
  LoadOptions options;
  options.weights = "f32";
  options.threads = 2;
  const Engine engine(kTiny, options);
  Session session = engine.NewSession({.kv_type = "f32"});
  std::map<int64_t, std::vector<float>> expected;
  session.Logits(tokens, [&](int64_t position, std::span<const float> logits) {
    expected[position] = {logits.begin(), logits.end()};
  });
  ThreadPool pool(2);
  Workspace workspace;
  const Exec exec{.pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace};
  const auto decoder = LoadModel(ModelFolder(kTiny), pool, {}, DType::kF32, {});
  for (const int64_t first : {0, 77, 511, 512, 529}) {
    int64_t next = first;
    ReadLogits(
        exec, *decoder, tokens,
        [&](int64_t position, std::span<const float> logits) {
          ASSERT_EQ(position, next++);
          EXPECT_EQ(std::vector<float>(logits.begin(), logits.end()), expected[position]);
        },
        first);
    EXPECT_EQ(next, 530);
  }
}

}  // namespace
}  // namespace godwit::lab::simulated_model_test
