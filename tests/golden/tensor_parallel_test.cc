// Every family and variant with its weights shared by ranks: the same bits on all ranks, and the
// logits of Hugging Face.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/test_support.h"
#include "dist/local.h"
#include "model/gguf_model.h"
#include "tests/golden/reference.h"
#include "tests/model_runner.h"

namespace godwit::tensor_parallel_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A checkpoint, however it is stored.
struct Model {
  DecoderSpec spec;
  std::shared_ptr<const WeightSource> source;
  std::optional<DType> weights;

  ModelRunner Load(std::shared_ptr<Communicator> ranks = nullptr) const {
    ThreadPool pool(1);
    return ModelRunner(LoadDecoder(spec, *source, pool, {}, weights, std::move(ranks)));
  }
};

Model OfFolder(const fs::path& folder, std::optional<DType> weights) {
  return {DescribeModel(HfConfig::Load(folder / "config.json")), OpenWeights(folder), weights};
}

Model OfGguf(const std::string& name, std::optional<DType> weights) {
  GgufModel model = OpenGgufModel(GgufGoldenFile(name));
  return {DescribeModel(HfConfig::Parse(model.config, "config.json")), std::move(model.weights),
          weights};
}

struct Shared {
  std::vector<std::vector<float>> logits;  // one for each of the options
  std::string error;
};

// The logits that ranks compute together, the same on all of them.
Shared OnRanks(int ranks, const Model& model, const std::vector<int32_t>& ids,
               const std::vector<RunOptions>& options) {
  LocalWorld world(ranks);
  std::vector<Shared> all(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto communicator = world.Rank(rank);
      try {
        const ModelRunner runner = model.Load(communicator);
        for (const RunOptions& one : options) all[rank].logits.push_back(runner.Logits(ids, one));
      } catch (const Error& error) {
        all[rank].error = error.what();
        communicator->Leave(error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Shared& one : all) {
    EXPECT_EQ(one.logits, all[0].logits);
    EXPECT_EQ(one.error.empty(), all[0].error.empty()) << one.error;
  }
  return all[0];
}

class TensorParallelTest : public testing::TestWithParam<Golden> {
 protected:
  // Expects the logits of one process, whatever the chunks and threads.
  void ExpectAsAlone(const std::vector<int>& numbers_of_ranks) const {
    const Golden& golden = GetParam();
    const fs::path folder = GoldenRoot() / golden.path;
    const std::vector<int32_t> ids = ReadReference(folder / "golden.safetensors").ids;
    const Model model = OfFolder(folder, golden.Weights());
    const ModelRunner alone = model.Load();
    const RunOptions whole{.context = golden.context};
    RunOptions chunks = whole;
    chunks.threads = 2;
    chunks.chunk = 5;
    const auto expected = alone.Logits(ids, whole);
    for (const int ranks : numbers_of_ranks) {
      const Shared shared = OnRanks(ranks, model, ids, {whole, chunks});
      ASSERT_EQ(shared.error, "") << ranks << " ranks";
      if (!alone.InputsShareAScale()) {
        EXPECT_EQ(shared.logits[1], shared.logits[0]);
      }
      ExpectClose(Compare(shared.logits[0], expected), golden.dtype);
    }
  }

 private:
  // A sum in another order differs by its rounding. bf16 and int8 round what comes after it, and a
  // rank quantizes its columns of a row by their own largest.
  static void ExpectClose(const Errors& errors, const std::string& dtype) {
    RecordProperty("max", fmt::format("{:.1e}", errors.max));
    RecordProperty("rms", fmt::format("{:.1e}", errors.rms));
    if (dtype == "int8") {
      EXPECT_LE(errors.rms, 0.06);
    } else if (dtype == "bfloat16") {
      EXPECT_LE(errors.rms, 3e-3);
    } else {
      EXPECT_LE(errors.max, kTolerance);
    }
  }
};

// Whether a norm joins the heads of a recurrent layer.
bool JoinsHeads(const DecoderSpec& spec) {
  const auto joins = OfEachLayer(spec, [](const LayerKind& kind) {
    return int64_t{kind.mixer == Mixer::kMamba2 && kind.mamba.norm != Mamba2Norm::kNone &&
                   kind.mamba.shape.key_heads == 1};
  });
  return std::ranges::count(joins, 1) > 0;
}

TEST_P(TensorParallelTest, FULL_TwoRanksComputeAsOne) {
  const DecoderSpec spec = OfFolder(GoldenRoot() / GetParam().path, {}).spec;
  if (spec.qk_norm == QkNorm::kAllHeads || JoinsHeads(spec)) GTEST_SKIP() << "is refused below";
  if (HasUnequalKeys(spec) || spec.layer_embedding || spec.branch_norms) {
    const Shared shared = OnRanks(2, OfFolder(GoldenRoot() / GetParam().path, {}), {1}, {{}});
    EXPECT_THAT(shared.error, testing::HasSubstr("whose layers have different heads"));
    return;
  }
  ExpectAsAlone({2});
}

INSTANTIATE_TEST_SUITE_P(All, TensorParallelTest, testing::ValuesIn(AllGoldens()),
                         [](const auto& info) { return TestName(info.param.path); });

// A model for each way in which weights are cut.
using CutTest = TensorParallelTest;

TEST_P(CutTest, RanksComputeAsOne) { ExpectAsAlone({2, 4}); }

std::vector<Golden> Cuts() {
  std::vector<Golden> goldens;
  for (const char* path : {"llama/gqa",
                           "llama/biases",
                           "llama/tied",
                           "llama/mqa_five_heads",
                           "llama/softmax1",
                           "llama/bf16",
                           "qwen2/window",
                           "qwen3/gqa_head_dim",
                           "internlm2/gqa",
                           "falcon/alibi",
                           "falcon/new_architecture",
                           "RefinedWeb/forty",
                           "gpt_oss/window",
                           "deepseek_v2/groups",
                           "deepseek_v3/sigmoids",
                           "gemma3_text/pattern",
                           "cohere/command_r_plus",
                           "mixtral/window",
                           "qwen3_moe/dense_layers",
                           "granitemoeshared/shared",
                           "llama4_text/chunks",
                           "phi3/window",
                           "starcoder2/window",
                           "falcon_h1/factors",
                           "int8/llama/channel_token",
                           "int8/llama/asymmetric_static",
                           "int8/mixtral/experts",
                           "int8/llama/llm_int8"}) {
    goldens.push_back(GoldenOf(path));
  }
  return goldens;
}

INSTANTIATE_TEST_SUITE_P(Some, CutTest, testing::ValuesIn(Cuts()),
                         [](const auto& info) { return TestName(info.param.path); });

// Rows of blocks and of packed groups are cut between two of them, so that numbers stay as they
// are. `rms`: of the form in which they are stored, where a rank quantizes its columns of a row by
// their own largest.
void ExpectAsAlone(Model model, const Reference& reference, double rms) {
  const RunOptions options{.context = reference.context};
  for (const std::optional<DType> weights : {std::optional(DType::kF32), std::optional<DType>()}) {
    model.weights = weights;
    const Shared shared = OnRanks(2, model, reference.ids, {options});
    ASSERT_EQ(shared.error, "");
    const Errors errors = Compare(shared.logits[0], model.Load().Logits(reference.ids, options));
    if (weights) {
      EXPECT_LE(errors.max, kTolerance);
    } else {
      EXPECT_LE(errors.rms, rms);
    }
  }
}

TEST(TensorParallel, CutsBetweenBlocks) {
  for (const std::string name :
       {"bloom", "falcon_40b", "falcon_7b", "mpt", "qwen3moe", "granitemoe"}) {
    SCOPED_TRACE(name);
    ExpectAsAlone(OfGguf(name, {}), ReadReference(GoldenRoot() / "gguf" / (name + ".safetensors")),
                  0.04);
  }
}

TEST(TensorParallel, CutsBetweenPackedGroups) {
  for (const char* name : {"awq", "awq_channel", "gptq", "gptq_int8", "gpt_oss_mxfp4", "w4a16",
                           "w4a16_channel", "w4a16_zeros", "w4a8", "w8a16"}) {
    SCOPED_TRACE(name);
    const fs::path folder = GoldenRoot() / "packed" / name;
    ExpectAsAlone(OfFolder(folder, {}), ReadReference(folder / "golden.safetensors"), 0.05);
  }
}

TEST(TensorParallel, RefusesWhatCannotBeCut) {
  const auto refusal = [](int ranks, const Model& model) {
    return OnRanks(ranks, model, {}, {}).error;
  };
  const auto of_folder = [](const char* path) { return OfFolder(GoldenRoot() / path, {}); };
  EXPECT_EQ(refusal(3, of_folder("llama/gqa")),
            "3 ranks cannot share the weights: the llama model has 4 query heads for 2 KV heads: "
            "let fewer ranks share them");
  EXPECT_THAT(refusal(8, of_folder("llama/gqa")), HasSubstr("4 query heads for 2 KV heads"));
  EXPECT_THAT(refusal(8, of_folder("deepseek_v3/groups")), HasSubstr("query heads"));
  EXPECT_EQ(
      refusal(2, OfGguf("llama_q4_0", {})),
      "2 ranks cannot share the weights: the llama model has 2 query heads for 1 KV head, cut "
      "between blocks of 32 numbers in model.layers.0.self_attn.o_proj: let fewer ranks share "
      "them");
  EXPECT_EQ(
      refusal(2, OfGguf("qwen2", {})),
      "2 ranks cannot share the weights: the qwen2 model has 32 columns in an MLP, cut between "
      "blocks of 32 numbers in model.layers.0.mlp.down_proj: let fewer ranks share them");
  EXPECT_EQ(refusal(2, of_folder("packed/gptq_order")),
            "ranks cannot share the weights: the inputs of model.layers.0.self_attn.o_proj are "
            "packed in an order of their own (act order): let one rank have them");
  EXPECT_EQ(
      refusal(2, of_folder("olmo2/gqa")),
      "ranks cannot share the weights of the olmo2 model, which normalises the queries of all "
      "heads together: let one rank have them");
  EXPECT_EQ(refusal(2, of_folder("bamba/listed")),
            "ranks cannot share the weights of the bamba model, which normalises the results of "
            "all heads of a recurrent layer together: let one rank have them");
  EXPECT_EQ(refusal(4, of_folder("nemotron_h/experts")),
            "4 ranks cannot share the weights: the nemotron_h model has 2 groups in recurrent "
            "layers: let fewer ranks share them");
}

}  // namespace
}  // namespace godwit::tensor_parallel_test
