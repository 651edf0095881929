// Loading takes hardly more memory than the packed weights.

#include <gtest/gtest.h>

#include <fstream>

#include "base/new_file.h"
#include "base/test_folder.h"
#include "model/packed_file.h"
#include "tests/memory/resident.h"
#include "tests/model_runner.h"

namespace godwit::load_memory_test {
namespace {

constexpr int64_t kHidden = 512, kMlp = 2048, kVocab = 4096, kLayers = 12;

constexpr const char* kQuantization = R"(,"quantization_config":{
  "quant_method":"compressed-tensors","format":"int-quantized","ignore":["lm_head"],
  "config_groups":{"group_0":{"targets":["Linear"],
    "weights":{"num_bits":8,"strategy":"channel","symmetric":true,"type":"int"},
    "input_activations":{"num_bits":8,"strategy":"token","dynamic":true,"symmetric":true,
                         "type":"int"}}}})";

// A checkpoint of zeros in bf16, or with layers in int8 whose scales are 1. The file is a hole
// except for the scales. It takes no disk space, but its pages are read and mapped like any others.
class ZeroCheckpoint {
 public:
  ZeroCheckpoint(const TempFolder& folder, bool int8) : int8_(int8) {
    std::vector<std::pair<std::string, std::pair<int64_t, int64_t>>> linears;
    for (int64_t i = 0; i < kLayers; ++i) {
      const std::string layer = fmt::format("model.layers.{}.", i);
      for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
        linears.push_back({layer + "self_attn." + name, {kHidden, kHidden}});
      }
      linears.push_back({layer + "mlp.gate_proj", {kMlp, kHidden}});
      linears.push_back({layer + "mlp.up_proj", {kMlp, kHidden}});
      linears.push_back({layer + "mlp.down_proj", {kHidden, kMlp}});
      for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) {
        Add(layer + norm + ".weight", "BF16", 2, {kHidden});
      }
    }
    // The scales come first, so that all bytes that are not zero lie together.
    std::string scales(end_, '\0');
    for (const auto& [name, shape] : linears) {
      if (int8_) Add(name + ".weight_scale", "BF16", 2, {shape.first, 1});
    }
    for (; std::ssize(scales) < end_; scales += "\x80\x3f") {  // 1 in bf16
    }
    for (const auto& [name, shape] : linears) {
      Add(name + ".weight", int8_ ? "I8" : "BF16", int8_ ? 1 : 2, {shape.first, shape.second});
    }
    Add("model.embed_tokens.weight", "BF16", 2, {kVocab, kHidden});
    Add("lm_head.weight", "BF16", 2, {kVocab, kHidden});
    Add("model.norm.weight", "BF16", 2, {kHidden});
    header_.back() = '}';
    const auto size = static_cast<uint64_t>(header_.size());
    const std::string prefix(reinterpret_cast<const char*>(&size), sizeof(size));
    const auto file = folder.Write("model.safetensors", prefix + header_ + scales);
    std::filesystem::resize_file(file, sizeof(size) + size + static_cast<uint64_t>(end_));
    folder.Write("config.json",
                 fmt::format(R"({{"model_type":"llama","vocab_size":{},"hidden_size":{},)"
                             R"("intermediate_size":{},"num_hidden_layers":{},)"
                             R"("num_attention_heads":8{}}})",
                             kVocab, kHidden, kMlp, kLayers, int8_ ? kQuantization : ""));
  }

 private:
  void Add(const std::string& name, const char* dtype, int64_t size,
           const std::vector<int64_t>& shape) {
    const int64_t begin = end_;
    for (const int64_t n : shape) size *= n;
    end_ += size;
    header_ += fmt::format(R"("{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}},)", name,
                           dtype, fmt::join(shape, ","), begin, end_);
  }

  const bool int8_;
  std::string header_ = "{";
  int64_t end_ = 0;
};

struct LoadCase {
  const char* name;
  bool int8_checkpoint;
  std::optional<DType> weights;
  int64_t min_bytes;  // of the packed weights, by hand
};

class LoadMemory : public testing::TestWithParam<LoadCase> {};

TEST_P(LoadMemory, PeaksNearThePackedWeights) {
  if (kSanitized) GTEST_SKIP() << "notice: a sanitizer takes memory of its own";
  const TempFolder folder;
  const ZeroCheckpoint checkpoint(folder, GetParam().int8_checkpoint);
  ResetPeakResidentBytes();
  const int64_t before = ResidentBytes();
  const ModelRunner runner(folder.path(), GetParam().weights);
  const int64_t weights = runner.decoder().weight_bytes();
  ASSERT_GT(weights, GetParam().min_bytes);
  ASSERT_LT(weights, GetParam().min_bytes * 5 / 4);
  EXPECT_GT(PeakResidentBytes() - before, weights * 9 / 10) << "nothing was measured";
  EXPECT_LT(PeakResidentBytes() - before, weights * 13 / 10);
}

// Making a packed copy takes the memory of a tensor at a time. A loaded copy is the system's to
// drop.
TEST(PackMemory, IsThatOfATensor) {
  if (kSanitized) GTEST_SKIP() << "notice: a sanitizer takes memory of its own";
  const TempFolder folder;
  const ZeroCheckpoint checkpoint(folder, /*int8=*/false);
  const DecoderSpec spec = DescribeModel(HfConfig::Load(folder.path() / "config.json"));
  const auto source = OpenWeights(folder.path());
  const int64_t weights = LoadedBytes(ResolveTensors(spec, *source), std::nullopt);
  ThreadPool pool(1);
  ResetPeakResidentBytes();
  const int64_t before = ResidentBytes();
  {
    NewFile file(folder.path() / "packed");
    PackedWriter writer(file);
    PackDecoder(spec, *source, pool, {}, std::nullopt, writer);
    writer.Finish({});
    file.Commit();
  }
  EXPECT_GT(std::filesystem::file_size(folder.path() / "packed"), weights);
  EXPECT_LT(PeakResidentBytes() - before, weights / 4);

  const int64_t own = AnonymousBytes();
  const PackedFile file(folder.path() / "packed");
  const auto decoder = LoadPackedDecoder(spec, *source, pool, std::nullopt, file);
  EXPECT_EQ(decoder->mapped_bytes(), weights);
  EXPECT_GT(ResidentBytes() - before, weights * 9 / 10) << "it was not brought in";
  EXPECT_LT(AnonymousBytes() - own, weights / 50);
}

// A layer has 4 * 512 * 512 + 3 * 2048 * 512 = 4 Mi weights; head and embedding 2 Mi each.
constexpr int64_t kMi = 1 << 20;
INSTANTIATE_TEST_SUITE_P(
    All, LoadMemory,
    testing::Values(LoadCase{"bf16", false, std::nullopt, (48 + 2 + 2) * 2 * kMi - 1},
                    LoadCase{"int8_checkpoint", true, std::nullopt, 48 * kMi + 4 * 2 * kMi - 1},
                    LoadCase{"quantized_while_loading", false, DType::kI8,
                             (48 + 2) * kMi + 2 * 2 * kMi - 1}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace godwit::load_memory_test
