// Answers of a model whose index chooses the keys that a token sees. They do not depend on chunks,
// drafts, memory in a file, branches or saved texts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "attention/make_policy.h"
#include "base/test_folder.h"
#include "base/test_support.h"
#include "dist/local.h"
#include "engine/engine_impl.h"
#include "engine/engine_test_support.h"
#include "engine/generation_impl.h"
#include "model/archs/all.h"
#include "model/loader.h"
#include "model/synthetic_weights.h"
#include "tests/laws/answers_test_support.h"
#include "tests/session_of.h"
#include "weights/hf_config.h"

namespace godwit::indexed_answers_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// All layers behind the second share what that chose, so that index keys have pages of their own.
DecoderSpec IndexedSpec() {
  return DescribeModel(HfConfig::Parse(
      R"({"model_type": "glm_moe_dsa", "hidden_size": 24, "intermediate_size": 32,
          "num_hidden_layers": 8, "num_attention_heads": 3, "vocab_size": 128,
          "max_position_embeddings": 65536, "q_lora_rank": 16, "kv_lora_rank": 12,
          "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8,
          "moe_intermediate_size": 12, "n_routed_experts": 4, "num_experts_per_tok": 2,
          "first_k_dense_replace": 2, "index_n_heads": 5, "index_head_dim": 6, "index_topk": 40,
          "indexer_types": ["full", "full", "shared", "shared", "shared", "shared", "shared",
                            "shared"]})",
      "the indexed model of tests"));
}

std::unique_ptr<Decoder> IndexedDecoder() {
  ThreadPool pool(1);
  const DecoderSpec spec = IndexedSpec();
  return LoadDecoder(spec, *SyntheticWeights(spec, DType::kF32), pool, {}, DType::kF32);
}

class IndexedAnswers : public AnswersTest {
 protected:
  std::unique_ptr<Engine::Impl> MakeEngine(const LoadOptions& options) override {
    return std::make_unique<Engine::Impl>(IndexedDecoder(), IndexedSpec(), nullptr, SpecialTokens{},
                                          options, SteadyMs);
  }
};

TEST_F(IndexedAnswers, DraftsAndChunksChangeNothing) {
  const Tokens prompt = Join(Words(1, 150), Words(1, 150));  // repeats itself, which drafts need
  const Answer alone = Alone(prompt, 100);
  const auto engine = NewEngine();
  for (const int64_t chunk : {1, 50, 512}) {
    for (const char* draft : {"", "ngram"}) {
      GenerateOptions options = GreedyWithLogprobs(100);
      options.draft = draft;
      Session session = SessionOf(*engine, {.chunk_tokens = chunk});
      EXPECT_EQ(AnswerOf(session.Generate(prompt, options)), alone) << chunk << draft;
    }
  }
}

TEST_F(IndexedAnswers, KeysInAFileChangeNothing) {
  const Tokens prompt = Words(1, 700);
  const KvLayout layout = LayoutOf(Geometry(IndexedSpec()), DType::kF32);
  const auto engine = NewEngine({.kv_memory_bytes = layout.BytesFor(256),
                                 .kv_file = folder_.path().string(),
                                 .kv_file_bytes = 1 << 28});
  const auto result = SessionOf(*engine).Generate(prompt, GreedyWithLogprobs(30));
  EXPECT_EQ(AnswerOf(result), Alone(prompt, 30));
  EXPECT_TRUE(result.kv.file);
}

TEST_F(IndexedAnswers, TurnsAndBranchesChangeNothing) {
  const Tokens base = Words(4, 150);
  const Tokens branches[] = {Join(base, Words(41, 40)), Join(base, Words(42, 90)), base};
  std::vector<Answer> alone;
  for (const Tokens& branch : branches) alone.push_back(Alone(branch, 10));
  const auto engine = NewSavingEngine();
  Session session = SessionOf(*engine);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < std::size(branches); ++i) {
      const auto result = session.Generate(branches[i], GreedyWithLogprobs(10));
      ASSERT_EQ(AnswerOf(result), alone[i]) << round;
      EXPECT_GE(result.cached_tokens, round > 0 ? 128 : 0) << round;
    }
  }
  EXPECT_THAT(notices_, IsEmpty());
}

TEST_F(IndexedAnswers, ALaterProcessGoesOn) { ExpectALaterProcessGoesOn(); }

TEST_F(IndexedAnswers, RanksAndPartsOfTheTextAreRefused) {
  LocalWorld world(2);
  const AttentionGeometry geometry = Geometry(IndexedSpec());
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                      [&] { MakePolicy(geometry, {.context = 100, .ranks = world.Rank(0)}); }),
              HasSubstr("chooses the 40 keys that a token sees"));
  const auto engine = NewEngine();
  GenerateOptions options = Greedy(5);
  options.draft = "partial:budget=256";
  EXPECT_THAT(
      ErrorOf(ErrorKind::kUnsupported, [&] { SessionOf(*engine).Generate(Words(1, 50), options); }),
      HasSubstr("use the KV policy dense"));
}

}  // namespace
}  // namespace godwit::indexed_answers_test
