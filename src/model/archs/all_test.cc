#include "model/archs/all.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "model/model_test_support.h"

namespace godwit::all_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::filesystem::path RealConfigs() {
  return std::filesystem::path(GODWIT_SOURCE_DIR) / "../shared/data/configs";
}

struct ModelNumbers {
  const char* folder;
  const char* family;
  int64_t vocab, hidden, layers, heads, kv_heads, head_dim, intermediate, context, rotary_dim;
  double theta;
  bool tied;
};

// Numbers from the models' cards.
constexpr ModelNumbers kRealModels[] = {
    {"llama-3-8b", "llama", 128256, 4096, 32, 32, 8, 128, 14336, 8192, 128, 5e5, false},
    {"llama-3-70b", "llama", 128256, 8192, 80, 64, 8, 128, 28672, 8192, 128, 5e5, false},
    {"llama-3.1-8b-instruct", "llama", 128256, 4096, 32, 32, 8, 128, 14336, 131072, 128, 5e5,
     false},
    {"llama-3.2-1b-instruct", "llama", 128256, 2048, 16, 32, 8, 64, 8192, 131072, 64, 5e5, true},
    {"smollm2-135m", "llama", 49152, 576, 30, 9, 3, 64, 1536, 8192, 64, 1e5, true},
    {"mistral-7b-v0.1", "mistral", 32000, 4096, 32, 32, 8, 128, 14336, 32768, 128, 1e4, false},
    {"mistral-7b-instruct-v0.3", "mistral", 32768, 4096, 32, 32, 8, 128, 14336, 32768, 128, 1e6,
     false},
    {"qwen1.5-0.5b", "qwen2", 151936, 1024, 24, 16, 16, 64, 2816, 32768, 64, 1e6, true},
    {"qwen1.5-4b", "qwen2", 151936, 2560, 40, 20, 20, 128, 6912, 32768, 128, 5e6, false},
    {"qwen1.5-72b", "qwen2", 152064, 8192, 80, 64, 64, 128, 24576, 32768, 128, 1e6, false},
    {"qwen2-7b", "qwen2", 152064, 3584, 28, 28, 4, 128, 18944, 32768, 128, 1e6, false},
    {"qwen2.5-0.5b-instruct", "qwen2", 151936, 896, 24, 14, 2, 64, 4864, 32768, 64, 1e6, true},
    {"qwen2.5-14b", "qwen2", 152064, 5120, 48, 40, 8, 128, 13824, 32768, 128, 1e6, false},
    {"qwen3-0.6b", "qwen3", 151936, 1024, 28, 16, 8, 128, 3072, 32768, 128, 1e6, true},
    {"qwen3-8b", "qwen3", 151936, 4096, 36, 32, 8, 128, 12288, 40960, 128, 1e6, false},
    {"qwen3-30b", "qwen3_moe", 151936, 2048, 48, 32, 4, 128, 768, 40960, 128, 1e6, false},
    {"qwen3-235b", "qwen3_moe", 151936, 4096, 94, 64, 4, 128, 1536, 40960, 128, 1e6, false},
    {"qwen3-32b", "qwen3", 151936, 5120, 64, 64, 8, 128, 25600, 40960, 128, 1e6, false},
    {"internlm2.5-7b-chat", "internlm2", 92544, 4096, 32, 32, 8, 128, 14336, 65536, 128, 1e6,
     false},
    {"internlm2.5-7b-chat-1m.UNCONFIRMED", "internlm2", 92544, 4096, 32, 32, 8, 128, 14336, 655360,
     128, 5e7, false},
    {"pythia-70m", "gpt_neox", 50304, 512, 6, 8, 8, 64, 2048, 2048, 16, 1e4, false},
    {"pythia-410m", "gpt_neox", 50304, 1024, 24, 16, 16, 64, 4096, 2048, 16, 1e4, false},
    {"falcon-7b", "falcon", 65024, 4544, 32, 71, 1, 64, 18176, 2048, 64, 1e4, true},
    {"falcon-40b", "falcon", 65024, 8192, 60, 128, 8, 64, 32768, 2048, 64, 1e4, true},
    {"mpt-7b", "mpt", 50432, 4096, 32, 32, 32, 128, 16384, 2048, 0, 1e4, true},
    {"opt-125m", "opt", 50272, 768, 12, 12, 12, 64, 3072, 2048, 0, 1e4, true},
    {"opt-6.7b", "opt", 50272, 4096, 32, 32, 32, 128, 16384, 2048, 0, 1e4, true},
    {"bloom-560m", "bloom", 250880, 1024, 24, 16, 16, 64, 4096, 2048, 0, 1e4, true},
    {"mixtral-8x7b-v0.1", "mixtral", 32000, 4096, 32, 32, 8, 128, 14336, 32768, 128, 1e6, false},
};

void ExpectNumbers(const DecoderSpec& spec, const ModelNumbers& model) {
  EXPECT_EQ(spec.family, model.family);
  EXPECT_EQ(spec.vocab_size, model.vocab);
  EXPECT_EQ(spec.hidden_size, model.hidden);
  EXPECT_EQ(spec.layers, model.layers);
  EXPECT_EQ(spec.heads, model.heads);
  EXPECT_EQ(spec.kv_heads, model.kv_heads);
  EXPECT_EQ(spec.head_dim, model.head_dim);
  EXPECT_EQ(spec.mlp.intermediate, model.intermediate);
  EXPECT_EQ(spec.max_context, model.context);
  EXPECT_EQ(spec.rotary.rotary_dim, model.rotary_dim);
  EXPECT_EQ(spec.rotary.theta, model.theta);
  EXPECT_EQ(spec.tied_head, model.tied);
}

// Models made for these tests, with published field names: every family, every kind of rope
// scaling.
constexpr ModelNumbers kOwnModels[] = {
    {"llama-llama3", "llama", 320, 96, 3, 6, 2, 16, 256, 1024, 16, 5e5, true},
    {"llama-linear", "llama", 320, 96, 3, 6, 2, 16, 256, 4096, 16, 1e4, false},
    {"llama-dynamic", "llama", 320, 96, 3, 6, 2, 16, 256, 2048, 16, 5e5, true},
    {"llama-parameters", "llama", 320, 96, 3, 6, 2, 16, 256, 1024, 16, 2.5e5, true},
    {"llama4", "llama4", 320, 64, 4, 4, 2, 32, 48, 10485760, 32, 5e5, false},
    {"llama4_text", "llama4_text", 320, 64, 4, 4, 2, 32, 48, 1048576, 32, 5e5, false},
    {"ministral3", "ministral3", 320, 64, 2, 4, 2, 32, 224, 262144, 32, 1e6, true},
    {"mistral", "mistral", 320, 64, 2, 4, 2, 16, 224, 2048, 16, 1e4, false},
    {"mistral3", "mistral3", 320, 64, 2, 4, 2, 32, 224, 131072, 32, 1e9, false},
    {"mixtral", "mixtral", 320, 64, 2, 4, 2, 16, 224, 2048, 16, 1e6, false},
    {"phimoe", "phimoe", 320, 64, 2, 4, 2, 16, 224, 2048, 16, 1e6, false},
    {"qwen2-yarn", "qwen2", 512, 56, 4, 7, 1, 8, 304, 2048, 8, 1e6, false},
    {"qwen2-windows", "qwen2", 512, 56, 4, 7, 1, 8, 304, 512, 8, 1e6, true},
    {"qwen3", "qwen3", 512, 56, 4, 7, 1, 32, 304, 512, 32, 1e6, true},
    {"internlm2", "internlm2", 320, 64, 2, 8, 2, 8, 224, 640, 8, 1e6, false},
    {"gpt_neox", "gpt_neox", 320, 64, 2, 4, 4, 16, 256, 128, 4, 1e4, false},
    {"falcon-7b", "falcon", 320, 64, 2, 8, 1, 8, 256, 2048, 8, 1e4, true},
    {"falcon-40b", "falcon", 320, 64, 2, 8, 2, 8, 256, 2048, 8, 1e4, true},
    {"falcon-rw", "falcon", 320, 64, 2, 8, 8, 8, 256, 2048, 0, 1e4, true},
    {"RefinedWebModel", "RefinedWebModel", 320, 64, 2, 8, 1, 8, 256, 2048, 8, 1e4, true},
    {"RefinedWeb", "RefinedWeb", 320, 64, 2, 8, 2, 8, 256, 2048, 8, 1e4, true},
    {"mpt", "mpt", 320, 64, 2, 4, 4, 16, 256, 128, 0, 1e4, true},
    {"opt", "opt", 320, 64, 2, 4, 4, 16, 256, 128, 0, 1e4, true},
    {"bloom", "bloom", 320, 64, 2, 4, 4, 16, 256, 128, 0, 1e4, true},
    {"glm", "glm", 320, 64, 2, 4, 2, 16, 214, 1024, 8, 1e4, false},
    {"glm4", "glm4", 320, 64, 2, 4, 2, 16, 214, 1024, 8, 1e4, false},
    {"phi3-longrope", "phi3", 320, 64, 2, 4, 2, 16, 256, 2048, 12, 1e4, true},
    {"qwen3_moe", "qwen3_moe", 320, 64, 3, 4, 2, 32, 48, 2048, 32, 1e6, false},
    {"qwen3_next", "qwen3_next", 320, 64, 4, 4, 2, 32, 48, 262144, 8, 1e7, false},
    {"qwen3_5", "qwen3_5", 320, 64, 4, 4, 2, 32, 256, 262144, 8, 1e7, false},
    {"qwen3_5_text", "qwen3_5_text", 320, 64, 4, 4, 2, 32, 256, 262144, 8, 1e7, false},
    {"qwen3_5_moe", "qwen3_5_moe", 320, 64, 4, 4, 2, 32, 48, 262144, 8, 1e7, false},
    {"qwen3_5_moe_text", "qwen3_5_moe_text", 320, 64, 4, 4, 2, 32, 48, 262144, 8, 1e7, false},
    {"smollm3", "smollm3", 320, 64, 4, 4, 1, 16, 256, 2048, 16, 5e6, true},
    {"lfm2", "lfm2", 320, 64, 4, 4, 2, 16, 256, 128000, 16, 1e6, true},
    {"lfm2_moe", "lfm2_moe", 320, 64, 4, 4, 2, 16, 48, 128000, 16, 1e6, true},
    {"granite", "granite", 320, 64, 2, 4, 2, 16, 256, 2048, 16, 1e4, true},
    {"granitemoe", "granitemoe", 320, 64, 2, 4, 2, 16, 48, 2048, 16, 1e4, true},
    {"granitemoeshared", "granitemoeshared", 320, 64, 2, 4, 2, 16, 48, 4096, 16, 1e4, true},
    {"granitemoehybrid", "granitemoehybrid", 320, 64, 4, 4, 2, 16, 48, 131072, 0, 1e4, true},
    {"bamba", "bamba", 320, 64, 4, 4, 2, 16, 256, 262144, 8, 1e4, false},
    {"falcon_h1", "falcon_h1", 320, 64, 2, 4, 2, 32, 256, 131072, 32, 1e11, false},
    {"nemotron_h", "nemotron_h", 320, 64, 7, 4, 2, 32, 48, 262144, 0, 1e4, false},
    {"olmo", "olmo", 320, 64, 2, 4, 4, 16, 256, 2048, 16, 1e4, false},
    {"olmo2", "olmo2", 320, 64, 2, 4, 4, 16, 256, 4096, 16, 5e5, false},
    {"olmo3", "olmo3", 320, 64, 4, 4, 4, 16, 256, 65536, 16, 5e5, false},
    {"olmo_hybrid", "olmo_hybrid", 320, 64, 4, 4, 4, 16, 256, 65536, 0, 1e4, false},
    {"cohere", "cohere", 320, 64, 2, 4, 4, 16, 256, 8192, 16, 8e6, true},
    {"cohere2", "cohere2", 320, 64, 4, 4, 1, 16, 256, 8192, 16, 5e4, true},
    {"stablelm", "stablelm", 320, 64, 2, 4, 4, 16, 256, 4096, 4, 1e4, false},
    {"starcoder2", "starcoder2", 320, 64, 2, 4, 2, 16, 256, 16384, 16, 1e5, true},
    {"gpt2", "gpt2", 320, 64, 2, 4, 4, 16, 256, 1024, 0, 1e4, true},
    {"gpt_oss", "gpt_oss", 320, 64, 4, 4, 2, 32, 48, 131072, 32, 1.5e5, false},
    {"deepseek_v2", "deepseek_v2", 320, 64, 3, 4, 1, 40, 48, 163840, 8, 1e4, false},
    {"deepseek_v3", "deepseek_v3", 320, 64, 4, 4, 1, 40, 48, 163840, 8, 1e4, false},
    {"deepseek_v32", "deepseek_v32", 320, 64, 4, 4, 1, 40, 48, 163840, 8, 1e4, false},
    {"glm_moe_dsa", "glm_moe_dsa", 320, 64, 4, 4, 1, 40, 48, 202752, 8, 1e6, false},
    {"glm4_moe", "glm4_moe", 320, 64, 3, 4, 2, 32, 48, 131072, 16, 1e6, false},
    {"kimi_k2", "kimi_k2", 320, 64, 4, 4, 1, 40, 48, 131072, 8, 5e4, false},
    {"kimi_linear", "kimi_linear", 320, 64, 5, 4, 1, 40, 48, 1048576, 0, 1e4, false},
    {"minimax_m2", "minimax_m2", 320, 64, 2, 4, 2, 32, 48, 196608, 16, 5e6, false},
    {"seed_oss", "seed_oss", 320, 64, 2, 4, 2, 32, 256, 524288, 32, 1e7, false},
    {"exaone4", "exaone4", 320, 64, 4, 4, 2, 16, 256, 131072, 16, 1e6, false},
    {"hunyuan_v1_dense", "hunyuan_v1_dense", 320, 64, 2, 4, 2, 32, 256, 32768, 32,
     15848931.924611134, true},
    {"hunyuan_v1_moe", "hunyuan_v1_moe", 320, 64, 2, 4, 2, 32, 48, 32768, 32, 15848931.924611134,
     true},
    {"apertus", "apertus", 320, 64, 2, 4, 2, 16, 256, 65536, 16, 1.2e7, false},
    {"ernie4_5", "ernie4_5", 320, 64, 2, 4, 2, 32, 256, 131072, 32, 5e5, true},
    {"ernie4_5_moe", "ernie4_5_moe", 320, 64, 3, 4, 2, 16, 48, 131072, 16, 5e5, true},
    {"mistral4", "mistral4", 320, 64, 2, 4, 1, 40, 48, 1048576, 8, 1e4, false},
    {"gemma", "gemma", 320, 64, 2, 4, 1, 32, 256, 512, 32, 1e4, true},
    {"gemma2", "gemma2", 320, 64, 2, 4, 2, 32, 256, 8192, 32, 1e4, true},
    {"gemma3_text", "gemma3_text", 320, 64, 7, 4, 1, 32, 256, 512, 32, 1e6, true},
    {"gemma3n_text", "gemma3n_text", 320, 64, 4, 4, 2, 32, 256, 512, 32, 1e6, true},
    {"gemma3n", "gemma3n", 262400, 64, 5, 8, 2, 256, 256, 32768, 256, 1e6, true},
    {"gemma4_text", "gemma4_text", 320, 64, 6, 4, 1, 32, 256, 512, 32, 1e4, true},
    {"gemma4", "gemma4", 262144, 64, 7, 8, 4, 256, 48, 262144, 256, 1e4, true},
    {"gemma3", "gemma3", 262208, 64, 7, 8, 4, 256, 256, 131072, 256, 1e6, true},
};

TEST(OwnConfigsTest, CoverEveryFamilyAndEveryRopeScaling) {
  std::set<std::string_view> families;
  std::set<RotaryScaling::Kind> scalings;
  std::map<std::string, DecoderSpec> specs;
  for (const ModelNumbers& model : kOwnModels) {
    SCOPED_TRACE(model.folder);
    const DecoderSpec spec = DescribeModel(HfConfig::Load(
        fmt::format("{}/tests/data/configs/{}.json", GODWIT_SOURCE_DIR, model.folder)));
    ExpectNumbers(spec, model);
    if (FindArchitecture(spec.family)->text_config.empty()) {  // else the vision part is left out
      EXPECT_THAT(spec.warnings, IsEmpty());
    }
    families.insert(model.family);
    scalings.insert(spec.rotary.scaling.kind);
    specs[model.folder] = spec;
  }
  EXPECT_EQ(families.size(), AllArchitectures().size());
  EXPECT_EQ(scalings.size(), 6u);

  EXPECT_EQ(specs["llama-llama3"].rotary.scaling.original_context, 64);
  EXPECT_EQ(specs["qwen2-yarn"].rotary.scaling.factor, 4);
  EXPECT_THAT(WindowsOf(specs["mistral"]), Each(256));
  EXPECT_THAT(WindowsOf(specs["qwen2-windows"]), ElementsAre(0, 0, 0, 512));
  EXPECT_EQ(specs["mixtral"].mlp.experts, 4);
  EXPECT_EQ(specs["falcon-rw"].topology, Topology::kSequential);
  EXPECT_EQ(specs["RefinedWebModel"].topology, Topology::kParallelSharedNorm);
  EXPECT_EQ(specs["RefinedWeb"].topology, Topology::kParallel);
  EXPECT_THAT(ExpertsOf(specs["qwen3_moe"]), ElementsAre(8, 0, 8));
  EXPECT_THAT(RotaryDimsOf(specs["smollm3"]), ElementsAre(16, 16, 16, 0));
  EXPECT_THAT(RotaryDimsOf(specs["cohere2"]), ElementsAre(16, 16, 16, 0));
  EXPECT_THAT(WindowsOf(specs["olmo3"]), ElementsAre(4096, 4096, 4096, 0));
  EXPECT_THAT(WindowsOf(specs["llama4"]), ElementsAre(8192, 8192, 8192, 0));
  EXPECT_EQ(KindOf(specs["llama4"], 3).rotary.temperature.growth, 0.1);
  EXPECT_THAT(ExpertsOf(specs["llama4_text"]), ElementsAre(0, 8, 0, 8));
  EXPECT_THAT(ExpertsOf(specs["glm4_moe"]), ElementsAre(0, 8, 8));
  EXPECT_THAT(ExpertsOf(specs["kimi_k2"]), ElementsAre(0, 16, 16, 16));
  EXPECT_THAT(ExpertsOf(specs["kimi_linear"]), ElementsAre(0, 16, 16, 16, 16));
  EXPECT_THAT(ExpertsOf(specs["ernie4_5_moe"]), ElementsAre(0, 8, 8));
  EXPECT_THAT(WindowsOf(specs["exaone4"]), ElementsAre(4096, 4096, 4096, 0));
  EXPECT_THAT(RotaryDimsOf(specs["exaone4"]), ElementsAre(16, 16, 16, 0));
  EXPECT_TRUE(specs["glm"].qkv_bias);
  EXPECT_FALSE(specs["glm4"].qkv_bias);
}

class RealConfigsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::is_directory(RealConfigs())) {
      GTEST_SKIP() << "notice: no real configs in " << RealConfigs();
    }
  }
};

TEST_F(RealConfigsTest, GiveTheNumbersOfTheirCards) {
  for (const ModelNumbers& model : kRealModels) {
    SCOPED_TRACE(model.folder);
    const DecoderSpec spec =
        DescribeModel(HfConfig::Load(RealConfigs() / model.folder / "config.json"));
    ExpectNumbers(spec, model);
    const std::string family = model.family, folder = model.folder;
    const bool neox = family == "gpt_neox", falcon = family == "falcon", mpt = family == "mpt";
    const bool opt = family == "opt", bloom = family == "bloom", mixtral = family == "mixtral";
    const bool qwen3_moe = family == "qwen3_moe";
    const bool plain = neox || falcon || mpt || opt || bloom;
    const bool biased = neox || opt || bloom;
    EXPECT_EQ(spec.norm, plain ? ops::NormKind::kLayer : ops::NormKind::kRms);
    EXPECT_EQ(spec.norm_bias, biased || falcon);
    EXPECT_EQ(spec.topology, folder == "falcon-7b" ? Topology::kParallelSharedNorm
                             : neox || falcon      ? Topology::kParallel
                                                   : Topology::kSequential);
    EXPECT_EQ(spec.mlp.gated, !plain);
    EXPECT_EQ(spec.mlp.bias, biased);
    EXPECT_EQ(spec.mlp.activation, opt     ? ops::Activation::kRelu
                                   : bloom ? ops::Activation::kGeluTanh
                                   : plain ? ops::Activation::kGeluErf
                                           : ops::Activation::kSilu);
    EXPECT_EQ(spec.mlp.experts, mixtral ? 8 : qwen3_moe ? 128 : 0);
    EXPECT_EQ(spec.mlp.experts_per_token, mixtral ? 2 : qwen3_moe ? 8 : 0);
    EXPECT_THAT(ExpertsOf(spec), Each(spec.mlp.experts));
    EXPECT_EQ(spec.qkv_bias, biased || family == "qwen2");
    EXPECT_EQ(spec.attention_out_bias, biased);
    EXPECT_EQ(spec.qk_norm, family == "qwen3" || qwen3_moe ? QkNorm::kHeads : QkNorm::kNone);
    EXPECT_EQ(spec.qkv_layout, mpt ? QkvLayout::kFused
                               : neox || falcon || bloom || family == "internlm2"
                                   ? QkvLayout::kGrouped
                                   : QkvLayout::kSeparate);
    EXPECT_EQ(std::ssize(spec.alibi.slopes), mpt || bloom ? spec.heads : 0);
    EXPECT_EQ(Geometry(spec).learned_positions, opt ? 2048 : 0);
    EXPECT_FALSE(spec.embedding_size);
    EXPECT_EQ(spec.embedding_norm, bloom);
    EXPECT_FALSE(spec.clip_qkv || spec.score_scale);
    const bool windowed = spec.family == "mistral" && spec.vocab_size == 32000;
    EXPECT_THAT(WindowsOf(spec), Each(windowed ? 4096 : 0));
  }
}

// Every config in the folder is either understood, or refused by the name of its family.
TEST_F(RealConfigsTest, AreUnderstoodOrRefused) {
  int understood = 0, refused = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(RealConfigs())) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path());
    const HfConfig config = HfConfig::Load(entry.path());
    if (!config.Has("model_type")) continue;
    const std::string type = config.model_type();
    const auto known = AllArchitectures();
    if (std::any_of(known.begin(), known.end(), [&](const Architecture& architecture) {
          return architecture.model_type == type;
        })) {
      const DecoderSpec spec = DescribeModel(config);
      EXPECT_GT(spec.max_context, 0);
      EXPECT_THAT(spec.warnings, IsEmpty());
      EXPECT_EQ(spec.heads % spec.kv_heads, 0);
      ++understood;
    } else {
      const Error error = ErrorOf([&] { DescribeModel(config); });
      EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
      EXPECT_THAT(error.what(), HasSubstr(type));
      ++refused;
    }
  }
  EXPECT_GE(understood, static_cast<int>(std::size(kRealModels)));
  EXPECT_GT(refused, 0);
}

TEST(ArchitecturesTest, AnUnknownModelTypeIsToldTheKnownOnes) {
  for (const char* type : {"mamba", "", "Llama", "llama "}) {
    const Error error = ErrorOf([&] { SmallSpec(fmt::format(R"("model_type":"{}")", type)); });
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr(fmt::format("\"{}\"", type)));
    for (const Architecture& architecture : AllArchitectures()) {
      EXPECT_THAT(error.what(), HasSubstr(std::string(architecture.model_type)));
    }
  }
  EXPECT_EQ(ErrorOf([] { SmallSpec(R"("x":1)"); }).kind(), ErrorKind::kFormat);
}

// Fields that the families below spell differently from Llama. "": the family has no such field.
using Spelling = std::map<std::string, std::string, std::less<>>;
const Spelling kFalcon = {
    {"num_key_value_heads", "num_kv_heads"}, {"intermediate_size", ""}, {"head_dim", ""}};
const Spelling kFirstFalcon = {{"num_attention_heads", "n_head"},
                               {"num_hidden_layers", "n_layer"},
                               {"num_key_value_heads", "n_head_kv"},
                               {"intermediate_size", ""},
                               {"head_dim", ""}};
const Spelling kMpt = {{"hidden_size", "d_model"},
                       {"num_attention_heads", "n_heads"},
                       {"num_hidden_layers", "n_layers"},
                       {"num_key_value_heads", ""},
                       {"intermediate_size", ""},
                       {"head_dim", ""},
                       {"max_position_embeddings", "max_seq_len"}};
const Spelling kOpt = {
    {"num_key_value_heads", ""}, {"intermediate_size", "ffn_dim"}, {"head_dim", ""}};
const Spelling kBloom = {{"num_attention_heads", "n_head"},
                         {"num_hidden_layers", "n_layer"},
                         {"num_key_value_heads", ""},
                         {"intermediate_size", ""},
                         {"head_dim", ""},
                         {"max_position_embeddings", "seq_length"}};
const Spelling kGpt2 = {{"hidden_size", "n_embd"},
                        {"num_attention_heads", "n_head"},
                        {"num_hidden_layers", "n_layer"},
                        {"num_key_value_heads", ""},
                        {"intermediate_size", ""},
                        {"head_dim", ""},
                        {"max_position_embeddings", "n_positions"}};
const Spelling kHeadsOfOneSize = {{"head_dim", ""}};
const Spelling kExpertsOnly = {{"intermediate_size", ""}};
const Spelling kListedLayers = {{"num_hidden_layers", ""}, {"intermediate_size", ""}};
const Spelling kLatent = {{"num_key_value_heads", ""}, {"head_dim", ""}};
const Spelling kKimiLinear = {
    {"num_key_value_heads", ""}, {"head_dim", ""}, {"max_position_embeddings", "model_max_length"}};
const std::map<std::string, Spelling, std::less<>> kSpellings = {{"falcon", kFalcon},
                                                                 {"gpt2", kGpt2},
                                                                 {"deepseek_v2", kLatent},
                                                                 {"deepseek_v3", kLatent},
                                                                 {"deepseek_v32", kLatent},
                                                                 {"glm_moe_dsa", kLatent},
                                                                 {"kimi_k2", kLatent},
                                                                 {"kimi_linear", kKimiLinear},
                                                                 {"mistral4", kLatent},
                                                                 {"qwen3_5_moe", kExpertsOnly},
                                                                 {"qwen3_5_moe_text", kExpertsOnly},
                                                                 {"nemotron_h", kListedLayers},
                                                                 {"cohere", kHeadsOfOneSize},
                                                                 {"cohere2", kHeadsOfOneSize},
                                                                 {"stablelm", kHeadsOfOneSize},
                                                                 {"RefinedWeb", kFirstFalcon},
                                                                 {"RefinedWebModel", kFirstFalcon},
                                                                 {"mpt", kMpt},
                                                                 {"opt", kOpt},
                                                                 {"bloom", kBloom}};

// Whether the family states the size of heads, independent of the hidden size.
bool HasItsOwnHeadDim(std::string_view type) {
  return type.starts_with("gemma") || type.starts_with("deepseek") || type.starts_with("llama4") ||
         type == "ministral3" || type == "gpt_oss" || type.starts_with("kimi") ||
         type == "mistral4" || type == "minimax_m2" || type == "seed_oss" || type == "ernie4_5" ||
         type == "nemotron_h" || type == "glm_moe_dsa" || type.starts_with("qwen3_next") ||
         type.starts_with("qwen3_5");
}

class EveryArchitecture : public testing::TestWithParam<Architecture> {
 protected:
  // The family's spelling of a key.
  static std::string Key(const std::string& key) {
    const auto family = kSpellings.find(GetParam().model_type);
    if (family == kSpellings.end()) return key;
    const auto found = family->second.find(key);
    return found == family->second.end() ? key : found->second;
  }

  // A good config of the family with one value replaced, or with the key missing for "".
  static DecoderSpec With(const std::string& key, const std::string& value) {
    std::map<std::string, std::string> fields = {{Key("hidden_size"), "16"},
                                                 {Key("num_hidden_layers"), "2"},
                                                 {Key("num_attention_heads"), "4"},
                                                 {Key("intermediate_size"), "10"},
                                                 {Key("max_position_embeddings"), "64"}};
    fields.erase("");
    fields["vocab_size"] = "11";
    if (HasItsOwnHeadDim(GetParam().model_type)) fields["head_dim"] = "4";
    const std::string_view type = GetParam().model_type;
    fields["model_type"] = fmt::format("\"{}\"", type == "mistral3" ? "mistral" : type);
    fields["mamba_n_heads"] = "4";  // of families that have any; the default does not fit
    if (type == "nemotron_h") fields["hybrid_override_pattern"] = R"("M*-")";
    // Falcon states its number of KV heads in the new architecture only.
    if (GetParam().model_type == "falcon" || GetParam().model_type.starts_with("RefinedWeb")) {
      fields["new_decoder_architecture"] = fields["parallel_attn"] = "true";
    }
    fields[Key(key)] = value;
    std::string text;
    for (const auto& [name, content] : fields) {
      if (!content.empty())
        text += fmt::format("{}\"{}\":{}", text.empty() ? "{" : ",", name, content);
    }
    text += "}";
    if (!GetParam().text_config.empty()) {
      text = fmt::format(R"({{"model_type":"{}","{}":{}}})", GetParam().model_type,
                         GetParam().text_config, text);
    }
    return DescribeModel(HfConfig::Parse(text, "config.json"));
  }

  static void ExpectRefused(const std::string& key, const std::string& value,
                            const std::string& expected = "") {
    if (Key(key).empty()) return;
    SCOPED_TRACE(key + ": " + value);
    const Error error = ErrorOf([&] { With(key, value); });
    EXPECT_EQ(error.kind(), ErrorKind::kFormat);
    EXPECT_THAT(error.what(), HasSubstr("config.json: "));
    EXPECT_THAT(error.what(), HasSubstr(expected.empty() ? Key(key) : expected));
  }
};

TEST_P(EveryArchitecture, TakesAMinimalConfig) {
  const DecoderSpec spec = With("use_cache", "true");
  EXPECT_EQ(spec.family, GetParam().model_type);
  EXPECT_EQ(spec.head_dim, spec.latent ? spec.latent->cached_dim() : 4);
  const bool two = GetParam().model_type.starts_with("gemma3n");  // unless told otherwise
  EXPECT_EQ(spec.kv_heads, spec.latent ? 1 : two ? 2 : 4);
  EXPECT_EQ(spec.max_context, 64);
}

TEST_P(EveryArchitecture, RefusesAbsurdSizes) {
  for (const char* key : {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
                          "intermediate_size"}) {
    for (const char* value : {"", "null", "0", "-1", "-9223372036854775808", "9223372036854775807",
                              "18446744073709551616", "1e30", "3.5", "\"16\"", "[16]", "{}"}) {
      // A text_config beside a vision_config may leave out the sizes of the smallest model.
      const bool none = std::string_view(value).empty() || std::string_view(value) == "null";
      if (none && !GetParam().text_config.empty()) continue;
      ExpectRefused(key, value);
    }
  }
  for (const char* key : {"max_position_embeddings", "num_key_value_heads", "head_dim"}) {
    for (const char* value : {"0", "-1", "1e30", "9223372036854775807", "\"8\""}) {
      ExpectRefused(key, value);
    }
  }
  ExpectRefused("tie_word_embeddings", "1");
}

TEST_P(EveryArchitecture, RefusesSizesThatDoNotDivide) {
  const auto divisor_of = [](const char* size) {
    return fmt::format("{}: expected a divisor of {} {}", Key("num_attention_heads"),
                       Key("hidden_size"), size);
  };
  if (!HasItsOwnHeadDim(GetParam().model_type)) {
    ExpectRefused("num_attention_heads", "3", divisor_of("16"));
    ExpectRefused("hidden_size", "18", divisor_of("18"));
  }
  for (const char* kv_heads : {"3", "5", "8"}) {
    ExpectRefused("num_key_value_heads", kv_heads,
                  Key("num_key_value_heads") + ": expected a divisor of 4 heads");
  }
  if (!Key("head_dim").empty()) {
    EXPECT_EQ(With("num_key_value_heads", "2").kv_heads, 2);
    EXPECT_EQ(With("head_dim", "7").head_dim, 7) << "need not be hidden_size / heads";
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryArchitecture,
                         testing::ValuesIn(AllArchitectures().begin(), AllArchitectures().end()),
                         [](const auto& info) { return std::string(info.param.model_type); });

// The same defaults as in transformers' configuration classes.
TEST(ArchitecturesTest, ASilentConfigHasTheActivationOfItsFamily) {
  for (const Architecture& architecture : AllArchitectures()) {
    const std::string_view type = architecture.model_type;
    // Families with other spellings have tests of their own.
    if (kSpellings.contains(type) || !architecture.text_config.empty()) continue;
    const auto spec = SmallSpec(fmt::format(R"("model_type":"{}","mamba_n_heads":4)", type));
    EXPECT_EQ(spec.mlp.activation, type == "gpt_neox" ? ops::Activation::kGeluErf
                                   : type.starts_with("gemma") || type == "starcoder2"
                                       ? ops::Activation::kGeluTanh
                                       : ops::Activation::kSilu)
        << type;
  }
}

TEST(GptNeoxTest, RotatesAPartOfAHead) {
  const auto rotary_dim = [](const std::string& fields) {
    return SmallSpec(R"("model_type":"gpt_neox","head_dim":20,)" + fields).rotary.rotary_dim;
  };
  EXPECT_EQ(rotary_dim(R"("rotary_pct":1)"), 20);
  EXPECT_EQ(rotary_dim(R"("rotary_pct":0.5)"), 10);
  EXPECT_EQ(rotary_dim(R"("rotary_pct":0.25)"), 4) << "5, made even";
  EXPECT_EQ(rotary_dim(R"("rotary_pct":0)"), 0);
  EXPECT_EQ(rotary_dim(R"("hidden_act":"gelu")"), 4) << "a quarter unless said otherwise";
  EXPECT_EQ(rotary_dim(R"("rope_parameters":{"partial_rotary_factor":0.5,"rope_theta":9})"), 10);
  for (const char* fields :
       {R"("rotary_pct":1.01)", R"("rotary_pct":-0.1)", R"("rotary_pct":"all")",
        R"("rope_parameters":{"partial_rotary_factor":2})", R"("rotary_emb_base":0)",
        R"("layer_norm_eps":-1)"}) {
    EXPECT_EQ(ErrorOf([&] { rotary_dim(fields); }).kind(), ErrorKind::kFormat) << fields;
  }
  EXPECT_EQ(SmallSpec(R"("model_type":"gpt_neox","use_parallel_residual":false)").topology,
            Topology::kSequential);
}

}  // namespace
}  // namespace godwit::all_test
