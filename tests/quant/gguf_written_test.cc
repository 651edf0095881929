// Models as godwit quantize --to gguf writes them, read again: Hugging Face's families and GGUF's
// own. Floats come back with the same logits. A model without a form in GGUF is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "quant/write_gguf.h"
#include "tests/golden/reference.h"
#include "tests/model_runner.h"
#include "tests/mtp_model.h"

namespace godwit::gguf_written_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Copies a golden and changes its config.json to published values: no key of GGUF has the scale of
// Gemma's scores, nor that of its embeddings.
void CopyAsPublished(const fs::path& from, const fs::path& to) {
  for (const auto& entry : fs::directory_iterator(from)) {
    fs::copy(entry.path(), to / entry.path().filename());
  }
  const fs::path file = to / "config.json";
  auto config = ParseJson(ReadTextFile(file, 1 << 20), "config.json");
  config.erase("torch_dtype");
  config["dtype"] = "bfloat16";
  if (from.parent_path().filename() != "gemma") {
    config["query_pre_attn_scalar"] = config.value("head_dim", 256);
  }
  fs::remove(file);
  std::ofstream(file) << config.dump();
}

class Written {
 public:
  // golden: a folder, or a GGUF file.
  explicit Written(const fs::path& golden, const char* type = "f32") {
    fs::path from = golden;
    const std::string family = golden.parent_path().filename();
    if (family == "gemma" || family == "gemma2" || family.starts_with("gemma3_")) {
      CopyAsPublished(golden, copy_.path());
      from = copy_.path();
    }
    source_.emplace(from.native());
    ThreadPool pool(2);
    Workspace workspace;
    const Exec exec{.pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace};
    plan_ = quant::PlanGguf(*source_, quant::FindGgufScheme(type));
    quant::WriteGguf(exec, *source_, plan_, file(), {});
    written_.emplace(file().native());
  }

  fs::path file() const { return folder_.path() / "written.gguf"; }
  const ModelFolder& source() const { return *source_; }
  const ModelFolder& written() const { return *written_; }
  const quant::GgufPlan& plan() const { return plan_; }

  static std::vector<float> Logits(const ModelFolder& model) {
    const ModelRunner runner(model.spec(), model.weights(), DType::kF32);
    std::vector<int32_t> ids;
    const int64_t count = std::min<int64_t>(24, DefaultContext(model.spec()));
    for (int32_t i = 0; i < count; ++i) ids.push_back((7 * i + 1) % 32);
    return runner.Logits(ids, {});
  }

 private:
  const TempFolder copy_, folder_;
  std::optional<ModelFolder> source_, written_;
  quant::GgufPlan plan_;
};

// Whether GGUF has no name for the family here, or cannot hold the numbers of this golden.
bool HasNoForm(const Golden& golden) {
  static const std::set<std::string> kFamilies = {
      "mistral3",         "ministral3",   "internlm2",        "opt",          "glm",
      "smollm3",          "gpt2",         "gpt_oss",          "llama4_text",  "llama4",
      "mistral4",         "phimoe",       "deepseek_v32",     "glm_moe_dsa",  "gemma3",
      "gemma3n",          "gemma3n_text", "gemma4",           "gemma4_text",  "granitemoe",
      "granitemoeshared", "qwen3_next",   "qwen3_5",          "qwen3_5_text", "qwen3_5_moe",
      "qwen3_5_moe_text", "bamba",        "granitemoehybrid", "falcon_h1",    "nemotron_h",
      "kimi_linear",      "olmo_hybrid"};
  static const std::set<std::string> kOthers = {
      "llama/softmax1",                // attention sinks
      "llama/rope_llama3",             // other factors than the published ones
      "llama/rope_llama3_new_config",  //
      "llama/rope_yarn_betas",         // a ramp that is not cut off
      "llama/rope_yarn_attention_factor",
      "llama/rope_yarn_mscale",
      "llama/rope_dynamic_active",
      "llama/rope_dynamic_inactive",
      "qwen2/window",  // windows of some layers
      "qwen3/layer_types",
      "qwen3_moe/window",
      "gpt_neox/gelu_new",  // activations
      "gpt_neox/gelu_fast",
      "mixtral/gelu_tied",
      "starcoder2/gelu",
      "falcon/relu",
      "falcon/sequential",  // norms and biases that Falcon lacks
      "falcon/alibi",
      "falcon/alibi_new_architecture",
      "falcon/head_of_its_own",
      "RefinedWebModel/rw",
      "mpt/softmax_scale",
      "qwen3_moe/shares_among_all",
      "qwen3_moe/sparse_step",
      "qwen3_moe/dense_layers",
      "deepseek_v2/lite",  // an attention factor of the rotations
      "deepseek_v2/new_config",
      "deepseek_v3/groups",
      "deepseek_v3/sigmoids",  // rotary pairs that are not side by side
      "exaone4/hybrid",        // factors as of llama/rope_llama3
      "exaone4/no_windows",
      "exaone4/period",
      "exaone4/new_config",
      "apertus/xielu",
      "apertus/new_config",
      "ernie4_5_moe/between",  // the layers with experts
      "ernie4_5_moe/new_config",
      "lfm2/biases",
      "lfm2_moe/scaled",  // shares
      "gemma2/no_caps"};
  return kFamilies.contains(golden.family) || kOthers.contains(golden.path);
}

class GgufWrittenTest : public testing::TestWithParam<Golden> {};

TEST_P(GgufWrittenTest, ComesBackAsItWasOrIsRefused) {
  const fs::path path = GoldenRoot() / GetParam().path;
  if (HasNoForm(GetParam())) {
    EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { Written{path}; }),
                HasSubstr("this model cannot be written as GGUF: "));
    return;
  }
  const Written written(path);
  // Measured: the same bits, except for LongRoPE, whose factors the file has in F32: 1.5e-6.
  EXPECT_LE(Compare(Written::Logits(written.written()), Written::Logits(written.source())).max,
            5e-6);
}

INSTANTIATE_TEST_SUITE_P(All, GgufWrittenTest, testing::ValuesIn(FloatGoldens()),
                         [](const auto& info) { return TestName(info.param.path); });

class GgufRewrittenTest : public testing::TestWithParam<std::string> {};

TEST_P(GgufRewrittenTest, ComesBackAsItWas) {
  // llama.cpp multiplies these models' attention factor by another one.
  if (GetParam() == "llama_rope_yarn" || GetParam() == "olmo3") {
    EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [] { Written{GgufGoldenFile(GetParam())}; }),
                HasSubstr("the attention factor of rope scaling"));
    return;
  }
  if (IsReadOnlyInGguf(GetParam())) {
    EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [] { Written{GgufGoldenFile(GetParam())}; }),
                HasSubstr("but does not write"));
    return;
  }
  const Written written(GgufGoldenFile(GetParam()));
  EXPECT_LE(Compare(Written::Logits(written.written()), Written::Logits(written.source())).max,
            5e-6);
}

INSTANTIATE_TEST_SUITE_P(All, GgufRewrittenTest, testing::ValuesIn(GgufGoldens()),
                         [](const auto& info) { return TestName(info.param); });

// The weights of such a folder are never opened: only its config.json is there.
TEST(GgufWritten, ARefusalNamesTheReason) {
  const auto refusal = [](const char* golden) {
    return ErrorOf(ErrorKind::kUnsupported, [&] { Written{GoldenRoot() / golden}; });
  };
  EXPECT_THAT(
      refusal("bamba/listed"),
      HasSubstr("cannot be written as GGUF: its Mamba2 layers lie otherwise in GGUF files"));
  EXPECT_THAT(refusal("nemotron_h/dense"), HasSubstr("its Mamba2 layers"));
  EXPECT_THAT(refusal("falcon_h1/factors"), HasSubstr("its Mamba2 layers"));
  EXPECT_THAT(refusal("granitemoehybrid/dense"), HasSubstr("its Mamba2 layers"));
  EXPECT_THAT(refusal("qwen3_next/experts"), HasSubstr("its gated DeltaNets lie otherwise"));
  EXPECT_THAT(refusal("gemma4_text/experts"), HasSubstr("its layers have unequal heads"));
  EXPECT_THAT(refusal("gemma3n_text/streams"), HasSubstr("its layers have unequal heads"));
  EXPECT_THAT(refusal("mistral4/groups"), HasSubstr("GGUF files of Mistral 4"));
  for (const char* golden :
       {"granitemoe/two_of_six", "gpt_oss/new_config", "llama4_text/new_config"}) {
    EXPECT_THAT(refusal(golden), HasSubstr("a tensor of this folder holds all experts")) << golden;
  }
  const std::string unknown = refusal("glm_moe_dsa/shared");
  EXPECT_THAT(unknown, HasSubstr("expected one of the families"));
  EXPECT_THAT(unknown, testing::Not(HasSubstr("bamba")));

  const TempFolder folder;
  fs::copy_file(GoldenRoot() / "bamba/listed/config.json", folder.path() / "config.json");
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { Written{folder.path()}; }),
              HasSubstr("its Mamba2 layers"));
}

// The layer that predicts tokens is left out, and the form says so.
TEST(GgufWritten, WithoutTheLayerThatPredicts) {
  const TempFolder folder;
  WriteMtpGolden({"glm4_moe", "air"}, folder.path() / "model");
  const Written written(folder.path() / "model");
  EXPECT_THAT(written.plan().form.warnings,
              testing::Contains("its layer that predicts tokens is left out"));
  EXPECT_FALSE(written.written().config().Has("num_nextn_predict_layers") &&
               written.written().config().Int("num_nextn_predict_layers", {0, 9}) != 0);
}

TEST(GgufWritten, TypesOfTensorsAndFallbacks) {
  // Rows of 256 and of 32.
  const Written written(GgufGoldenFile("llama_f32"), "q4_k");
  std::set<std::string> norms, matrices;
  for (const NewGgufTensor& tensor : written.plan().tensors) {
    (tensor.shape.size() == 1 ? norms : matrices).insert(std::string(tensor.type->name));
  }
  EXPECT_EQ(norms, std::set<std::string>{"F32"});
  EXPECT_TRUE(matrices.contains("Q8_0"));
  EXPECT_FALSE(written.plan().fallbacks.empty());
  const double rms =
      Compare(Written::Logits(written.written()), Written::Logits(written.source())).rms;
  EXPECT_GT(rms, 1e-4);
  EXPECT_LT(rms, 0.2);
}

}  // namespace
}  // namespace godwit::gguf_written_test
