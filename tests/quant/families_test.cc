// Families whose checkpoints are not matrices alone. The written checkpoint represents the weights
// that it was made from, in their places.

#include <gtest/gtest.h>

#include <cmath>

#include "base/test_folder.h"
#include "model/model_test_support.h"
#include "quant/group_codes.h"
#include "quant/quant_test_support.h"
#include "quant/quantize_matrix.h"
#include "quant/quantize_model.h"
#include "weights/open_weights.h"
#include "weights/safetensors_writer.h"

namespace godwit::quant::families_test {
namespace {

namespace fs = std::filesystem;

struct Family {
  const char* name;
  const char* fields;
};
void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }

constexpr Family kFamilies[] = {
    {"gpt_oss", R"("num_key_value_heads":2,"head_dim":16,"num_local_experts":4,)"
                R"("num_experts_per_tok":2)"},
    {"granitemoe", R"("num_local_experts":4,"num_experts_per_tok":2)"},
    {"granitemoeshared", R"("num_local_experts":4,"shared_intermediate_size":64)"},
    {"granitemoehybrid", R"("num_local_experts":4,"shared_intermediate_size":64,)"
                         R"("layer_types":["mamba","attention"],"mamba_n_heads":8,)"
                         R"("mamba_d_state":16)"},
    {"falcon_h1", R"("mamba_d_ssm":64,"mamba_n_heads":4,"mamba_d_state":16)"},
    {"llama4_text", R"("num_key_value_heads":2,"head_dim":16,"num_local_experts":4,)"
                    R"("num_experts_per_tok":1,"interleave_moe_layer_step":1,)"
                    R"("intermediate_size_mlp":64,"attention_chunk_size":16)"},
    {"deepseek_v2", R"("q_lora_rank":null,"kv_lora_rank":32,"qk_nope_head_dim":16,)"
                    R"("qk_rope_head_dim":8,"v_head_dim":16,"moe_intermediate_size":32,)"
                    R"("n_routed_experts":4,"num_experts_per_tok":2,"n_shared_experts":1)"},
    {"deepseek_v3", R"("q_lora_rank":32,"kv_lora_rank":32,"qk_nope_head_dim":16,)"
                    R"("qk_rope_head_dim":8,"v_head_dim":16,"moe_intermediate_size":32,)"
                    R"("n_routed_experts":4,"num_experts_per_tok":2,"n_shared_experts":1,)"
                    R"("n_group":2,"topk_group":1,"first_k_dense_replace":1)"},
    {"deepseek_v32", R"("q_lora_rank":32,"kv_lora_rank":32,"qk_nope_head_dim":16,)"
                     R"("qk_rope_head_dim":8,"v_head_dim":16,"moe_intermediate_size":32,)"
                     R"("n_routed_experts":4,"num_experts_per_tok":2,"n_shared_experts":1,)"
                     R"("n_group":2,"topk_group":1,"first_k_dense_replace":1,)"
                     R"("index_n_heads":4,"index_head_dim":16,"index_topk":9)"},
    {"gemma4_text", R"("num_key_value_heads":2,"head_dim":16,"global_head_dim":32,)"
                    R"("attention_k_eq_v":true,"enable_moe_block":true,"num_experts":4,)"
                    R"("top_k_experts":2,"moe_intermediate_size":32,"num_kv_shared_layers":1,)"
                    R"("layer_types":["full_attention","full_attention"],)"
                    R"("hidden_size_per_layer_input":16,"vocab_size_per_layer_input":31)"},
    {"gemma3n_text", R"("num_key_value_heads":2,"head_dim":16,"num_kv_shared_layers":1,)"
                     R"("layer_types":["full_attention","full_attention"],"laurel_rank":8,)"
                     R"("hidden_size_per_layer_input":16,"vocab_size_per_layer_input":31)"}};

class FamilyTest : public testing::TestWithParam<Family> {
 protected:
  FamilyTest() {
    const std::string config = fmt::format(
        R"({{"model_type":"{}","vocab_size":31,"hidden_size":64,"num_hidden_layers":2,)"
        R"("num_attention_heads":4,"intermediate_size":32,"max_position_embeddings":64,{}}})",
        GetParam().name, GetParam().fields);
    spec_ = DescribeModel(HfConfig::Parse(config, "config.json"));
    std::vector<FileTensor> tensors;
    for (const WantedTensor& wanted : WantedTensors(spec_)) {
      weights_.Add(wanted.name, DType::kF32, wanted.shape);
      tensors.push_back({{wanted.name, DType::kF32, wanted.shape}, weights_.Bytes(wanted.name)});
    }
    place_.Write("from/config.json", config);
    place_.Write("from/model.safetensors", SafetensorsBytes(tensors, {}));
  }

  std::vector<float> Quantized(const QuantizeOptions& options, const std::string& to) {
    const ModelFolder model((place_.path() / "from").string());
    QuantizeModel(*TestExec(), model, PlanModel(model, options), options, TestPieces(8, 32, 31),
                  place_.path() / to, {});
    const ModelFolder quantized((place_.path() / to).string());
    EXPECT_EQ(PlanModel(model, options).after_bytes, BytesOf(quantized.weights()));
    return Logits(quantized.spec(), quantized.weights());
  }

  static int64_t BytesOf(const WeightSource& source) {
    int64_t bytes = 0;
    for (const std::string& name : source.Names()) bytes += std::ssize(source.Find(name)->bytes);
    return bytes;
  }

  static std::vector<float> Logits(const DecoderSpec& spec, const WeightSource& source) {
    return LogitsOf(*Load(spec, source, {}, DType::kF32), TestPieces(1, 20, 31)[0]);
  }

  const TempFolder place_;
  DecoderSpec spec_;
  FakeWeights weights_;
};

// The float checkpoint with every weight rounded, in its place.
TEST_P(FamilyTest, RELEASE_StandsForTheWeightsThatWereRounded) {
  const ModelTensors tensors = ResolveTensors(spec_, weights_);
  const auto before = Logits(spec_, weights_);
  for (const char* name : {"w4a8", "w4a16", "w4a16-asym", "w8a8"}) {
    SCOPED_TRACE(name);
    QuantizeOptions options{
        .scheme = FindScheme(name), .smooth = SmoothKind::kNone, .compensates = false};
    if (options.scheme.has_groups()) {
      options.scheme.group = 32;
      options.int8 = {"*.self_attn.o_proj"};
    }
    FakeWeights rounded;
    for (const std::string& tensor : weights_.Names()) {
      rounded.Add(tensor, DType::kF32, weights_.Find(tensor)->shape);
      rounded.Bytes(tensor) = weights_.Bytes(tensor);
    }
    const QuantPlan plan = PlanQuantization(spec_, tensors, SmoothKind::kNone, {}, options.int8);
    for (const LinearTensors* linear : plan.linears) {
      for (const MatrixPart& part : PartsOf(*linear)) {
        std::vector<float> values(part.rows * part.columns);
        const auto row_of = [&](int64_t row) {
          return std::span(values).subspan(row * part.columns, part.columns);
        };
        if (plan.SchemeOf(*linear, options.scheme).has_groups()) {
          const GroupedMatrix matrix =
              QuantizeInGroups(*TestExec(), part, {}, options.scheme.grouping(), nullptr);
          for (int64_t row = 0; row < part.rows; ++row) matrix.Values(row, row_of(row));
        } else {
          const QuantizedMatrix matrix = QuantizeMatrix(
              *TestExec(), part.name, part.rows, part.columns, 1, DType::kF32,
              [&](int64_t row, std::span<float> out) { ReadRow(part, {}, row, out); });
          for (size_t i = 0; i < values.size(); ++i) {
            const float scale = matrix.scales[i / static_cast<size_t>(part.columns)];
            values[i] = scale * static_cast<float>(matrix.integers[i]);
          }
        }
        const TensorInfo& slice = *part.tensor;
        const std::string& whole = slice.whole.empty() ? slice.name : slice.whole;
        const int64_t begin =
            part.first +
            (slice.bytes.data() - weights_.Find(whole)->bytes.data()) / int64_t{sizeof(float)};
        for (int64_t row = 0; row < part.rows; ++row) {
          for (int64_t i = 0; i < part.columns; ++i) {
            rounded.Set(whole, begin + row * part.row_step + i * part.column_step, row_of(row)[i]);
          }
        }
      }
    }
    EXPECT_EQ(Quantized(options, name), Logits(spec_, rounded));
    EXPECT_NE(Logits(spec_, rounded), before);
  }
}

// Smoothed and rounded by the text, the model is nearer to the float model than with each weight
// rounded by itself.
TEST_P(FamilyTest, RELEASE_RoundingByTheTextGainsSomething) {
  QuantizeOptions options{.scheme = FindScheme("w4a16")};
  options.scheme.group = 32;
  const auto expected = Logits(spec_, weights_);
  const auto error = [&](const std::vector<float>& logits) {
    double sum = 0;
    for (size_t i = 0; i < logits.size(); ++i) sum += std::pow(logits[i] - expected[i], 2);
    return sum;
  };
  const double by_text = error(Quantized(options, "text"));
  options.smooth = SmoothKind::kNone;
  options.compensates = false;
  EXPECT_LT(by_text, error(Quantized(options, "nearest")));
}

TEST_P(FamilyTest, KeptLayersAreFloat) {
  const std::string last = spec_.mlp.stacked ? spec_.names.per_expert_down : spec_.names.down;
  const std::string down = fmt::format(fmt::runtime(last), 1, 3);
  Quantized({.keep = {down}}, "kept");
  const auto source = OpenWeights(place_.path() / "kept");
  ASSERT_NE(source->Find(down + ".weight"), nullptr);
  EXPECT_EQ(source->Find(down + ".weight")->Describe(), "F32 [64, 32]");
  EXPECT_EQ(source->Find(down + ".weight_scale"), nullptr);
}

INSTANTIATE_TEST_SUITE_P(All, FamilyTest, testing::ValuesIn(kFamilies),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace godwit::quant::families_test
