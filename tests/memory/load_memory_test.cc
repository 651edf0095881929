// Loading takes hardly more memory than the packed weights.

#include <gtest/gtest.h>

#include <fstream>

#include "base/test_folder.h"
#include "tests/memory/resident.h"
#include "tests/model_runner.h"

namespace godwit {
namespace {

constexpr int64_t kHidden = 512, kMlp = 2048, kVocab = 4096, kLayers = 12;

// A bf16 checkpoint of zeros. The file is a hole: it takes no room on the disk, but its pages are
// read and mapped like any others.
void WriteCheckpoint(const TempFolder& folder) {
  std::string header = "{";
  int64_t end = 0;
  const auto add = [&](const std::string& name, int64_t rows, int64_t cols) {
    const int64_t begin = end;
    end += 2 * rows * cols;
    header += fmt::format(
        R"({}"{}":{{"dtype":"BF16","shape":{},"data_offsets":[{},{}]}})", begin == 0 ? "" : ",",
        name, cols == 1 ? fmt::format("[{}]", rows) : fmt::format("[{},{}]", rows, cols), begin,
        end);
  };
  add("model.embed_tokens.weight", kVocab, kHidden);
  add("lm_head.weight", kVocab, kHidden);
  add("model.norm.weight", kHidden, 1);
  for (int64_t i = 0; i < kLayers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) {
      add(layer + norm + ".weight", kHidden, 1);
    }
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
      add(layer + "self_attn." + name + ".weight", kHidden, kHidden);
    }
    add(layer + "mlp.gate_proj.weight", kMlp, kHidden);
    add(layer + "mlp.up_proj.weight", kMlp, kHidden);
    add(layer + "mlp.down_proj.weight", kHidden, kMlp);
  }
  header += "}";
  const auto size = static_cast<uint64_t>(header.size());
  const std::string prefix(reinterpret_cast<const char*>(&size), sizeof(size));
  const auto file = folder.Write("model.safetensors", prefix + header);
  std::filesystem::resize_file(file, sizeof(size) + size + static_cast<uint64_t>(end));
  folder.Write("config.json",
               fmt::format(R"({{"model_type":"llama","vocab_size":{},"hidden_size":{},)"
                           R"("intermediate_size":{},"num_hidden_layers":{},)"
                           R"("num_attention_heads":8}})",
                           kVocab, kHidden, kMlp, kLayers));
}

TEST(LoadMemory, PeaksNearThePackedWeights) {
  if (kSanitized) GTEST_SKIP() << "notice: a sanitizer takes memory of its own";
  const TempFolder folder;
  WriteCheckpoint(folder);
  const int64_t before = ResidentBytes();
  const ModelRunner runner(folder.path());
  const int64_t weights = runner.decoder().weight_bytes();
  ASSERT_GT(weights, int64_t{90} << 20);
  EXPECT_GT(PeakResidentBytes() - before, weights * 9 / 10) << "nothing was measured";
  EXPECT_LT(PeakResidentBytes() - before, weights * 13 / 10);
}

}  // namespace
}  // namespace godwit
