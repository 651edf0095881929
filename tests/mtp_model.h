// For tests: checkpoints with a layer that predicts tokens (DecoderSpec::prediction), written into
// folders.
#pragma once

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/rng.h"
#include "model/archs/all.h"
#include "model/model_tensors.h"
#include "model/spec.h"
#include "tensor/float_bytes.h"
#include "weights/hf_config.h"
#include "weights/safetensors_source.h"
#include "weights/safetensors_writer.h"

namespace godwit {

inline void WriteTestFile(const std::filesystem::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

// The golden models whose layers lie in tests/golden/mtp, by family.
struct MtpGolden {
  std::string family;
  std::string model;

  friend std::ostream& operator<<(std::ostream& out, const MtpGolden& golden) {
    return out << golden.family;
  }
};
inline std::vector<MtpGolden> MtpGoldens() {
  return {{"deepseek_v3", "new_config"}, {"glm4_moe", "air"}, {"qwen3_next", "experts"}};
}

// Writes the golden model and its layer into a folder, as two shards.
inline void WriteMtpGolden(const MtpGolden& golden, const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  const fs::path root = GODWIT_SOURCE_DIR "/tests/golden";
  const fs::path model = root / golden.family / golden.model;
  fs::create_directories(folder);
  fs::copy_file(model / "config.json", folder / "config.json");
  nlohmann::json index;
  const auto add = [&](const fs::path& from, const std::string& shard) {
    fs::copy_file(from, folder / shard);
    const auto source = OpenSafetensors(from);
    for (const std::string& name : source->Names()) {
      index["weight_map"][name] = shard;
    }
  };
  add(model / "model.safetensors", "model-00001-of-00002.safetensors");
  add(root / "mtp" / (golden.family + ".safetensors"), "model-00002-of-00002.safetensors");
  WriteTestFile(folder / "model.safetensors.index.json", index.dump());
}

// Writes floats of these shapes, each by its place: value(tensor, i).
inline void WriteFloatTensors(
    const std::vector<WantedTensor>& wanted,
    const std::function<float(const WantedTensor& tensor, int64_t i)>& value,
    const std::filesystem::path& file) {
  std::vector<FileTensor> tensors;
  for (const WantedTensor& tensor : wanted) {
    int64_t elements = 1;
    for (const int64_t size : tensor.shape) elements *= size;
    std::vector<float> values;
    for (int64_t i = 0; i < elements; ++i) values.push_back(value(tensor, i));
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    WriteFloats(values, DType::kF32, bytes.data());
    tensors.push_back({.tensor = {.name = tensor.name, .dtype = DType::kF32, .shape = tensor.shape},
                       .bytes = bytes});
  }
  WriteTestFile(file, SafetensorsBytes(tensors, {}));
}

// Writes a model of the golden's config that chooses a token by the last one above all. Its output
// head has the embeddings, each a row further, and what layers add is small. With `predicts`, its
// layer that predicts tokens does the same.
inline void WriteModelByLastToken(const std::filesystem::path& golden,
                                  const std::filesystem::path& folder, bool predicts) {
  std::filesystem::create_directories(folder);
  auto fields = nlohmann::json::parse(ReadTextFile(golden / "config.json", 1 << 20));
  fields["max_position_embeddings"] = 4096;
  WriteTestFile(folder / "config.json", fields.dump());
  DecoderSpec spec = DescribeModel(HfConfig::Load(folder / "config.json"));
  if (predicts) RequestPrediction(spec);
  const std::string embedding = spec.names.embedding + ".weight",
                    head = spec.names.head + ".weight",
                    join = predicts ? spec.prediction->join + ".weight" : "";
  const int64_t hidden = spec.hidden_size, vocab = spec.vocab_size;
  const auto random = [](const std::string& name, int64_t i) {
    return static_cast<float>(Uniform(std::hash<std::string>()(name), 0, i, 0) - 0.5);
  };
  const auto value = [&](const WantedTensor& tensor, int64_t i) -> float {
    const std::string& name = tensor.name;
    if (name == embedding) return random(name, i);
    if (name == head) {
      const int64_t token = i / hidden, before = (token + vocab - 1) % vocab;
      return random(embedding, before * hidden + i % hidden);
    }
    if (name == join) {
      const int64_t output = i / (2 * hidden), input = i % (2 * hidden);
      return (output == input ? 1.0f : 0.0f) + 0.02f * random(name, i);
    }
    const bool gain = tensor.shape.size() == 1 && name.find("norm") != std::string::npos;
    if (gain) {
      const bool less_one = spec.norm_gain_less_one && !name.ends_with("linear_attn.norm.weight");
      return (less_one ? 0.0f : 1.0f) + 0.1f * random(name, i);
    }
    if (tensor.shape.size() == 1) return 0.1f * random(name, i);
    const bool adds = name.find("o_proj") != std::string::npos ||
                      name.find("out_proj") != std::string::npos ||
                      name.find("down_proj") != std::string::npos;
    return (adds ? 0.1f : 3.0f) * random(name, i) /
           std::sqrt(static_cast<float>(tensor.shape.back()));
  };
  WriteFloatTensors(WantedTensors(spec), value, folder / "model.safetensors");
}

// The same of a golden with a layer, which mostly predicts what the model chooses.
inline void WriteAgreeingModel(const MtpGolden& golden, const std::filesystem::path& folder) {
  const std::filesystem::path root = GODWIT_SOURCE_DIR "/tests/golden";
  WriteModelByLastToken(root / golden.family / golden.model, folder, /*predicts=*/true);
}

}  // namespace godwit
