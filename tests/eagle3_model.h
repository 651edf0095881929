// For tests: EAGLE-3 heads (model/eagle3_head.h), written into folders.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/rng.h"
#include "model/archs/all.h"
#include "model/model_tensors.h"
#include "model/spec.h"
#include "tensor/float_bytes.h"
#include "tests/mtp_model.h"
#include "weights/hf_config.h"
#include "weights/safetensors_source.h"

namespace godwit {

// Changes a file of JSON.
inline void ChangeJson(const std::filesystem::path& file,
                       const std::function<void(nlohmann::json&)>& change) {
  auto fields = nlohmann::json::parse(ReadTextFile(file, 1 << 20));
  change(fields);
  WriteTestFile(file, fields.dump());
}

// Writes a file of the tensor d2t alone.
inline void WriteD2t(const std::vector<int64_t>& differences, const std::filesystem::path& file) {
  std::string data(differences.size() * sizeof(int64_t), '\0');
  std::memcpy(data.data(), differences.data(), data.size());
  const nlohmann::json header = {
      {"d2t",
       {{"dtype", "I64"}, {"shape", {differences.size()}}, {"data_offsets", {0, data.size()}}}}};
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t size = text.size();
  std::string bytes(sizeof(size), '\0');
  std::memcpy(bytes.data(), &size, sizeof(size));
  WriteTestFile(file, bytes + text + data);
}

// The tokens of which a head of WriteEagle3Head knows nothing.
constexpr std::array<int32_t, 3> kTokensUnknownToHead = {4, 17, 18};

// Writes a head for the model in a folder. Its heads and their size are other than the model's.
//
// One that agrees mostly predicts what a model of WriteModelByLastToken chooses. Attention finds
// the token itself, and takes the state before it away: x = h + e - norm(h), about e. The first
// state, which is the embedding before, is brought to the size of a normalised one. Other heads are
// random.
inline void WriteEagle3Head(const std::filesystem::path& model, const std::filesystem::path& folder,
                            bool agrees) {
  const DecoderSpec spec = DescribeModel(HfConfig::Load(model / "config.json"));
  const int64_t hidden = spec.hidden_size, vocab = spec.vocab_size, inner = 24;
  const int64_t heads = 2, dim = hidden;
  std::vector<int64_t> known, differences;
  for (int32_t token = 0; token < vocab; ++token) {
    if (std::ranges::count(kTokensUnknownToHead, token) > 0) continue;
    differences.push_back(token - std::ssize(known));
    known.push_back(token);
  }
  std::filesystem::create_directories(folder);
  const nlohmann::json config = {
      {"architectures", {"LlamaForCausalLMEagle3"}},
      {"model_type", "llama"},
      {"hidden_size", hidden},
      {"intermediate_size", inner},
      {"num_hidden_layers", 1},
      {"num_attention_heads", heads},
      {"num_key_value_heads", 1},
      {"head_dim", dim},
      {"hidden_act", "silu"},
      {"rms_norm_eps", 1e-6},
      {"rope_theta", 10000.0},
      {"tie_word_embeddings", false},
      {"vocab_size", vocab},
      {"draft_vocab_size", known.size()},
      {"eagle_aux_hidden_state_layer_ids", {0, 1, spec.layers}},
  };
  WriteTestFile(folder / "config.json", config.dump());
  std::vector<float> embedding;
  if (agrees) {
    const auto source = OpenSafetensors(model / "model.safetensors");
    const TensorInfo& rows = *source->Find(spec.names.embedding + ".weight");
    embedding.resize(rows.NumElements());
    ReadFloats(*rows.dtype, rows.bytes.data(), embedding);
  }
  // The numbers of embeddings lie evenly in [-0.5, 0.5].
  const float size_of_embedding = std::sqrt(1.0f / 12);
  const auto random = [](const std::string& name, int64_t i) {
    return static_cast<float>(Uniform(std::hash<std::string>()(name), 1, i, 0) - 0.5);
  };
  const auto value = [&](const WantedTensor& tensor, int64_t i) -> float {
    const std::string& name = tensor.name;
    if (tensor.shape.size() == 1) return agrees ? 1.0f : 1 + 0.5f * random(name, i);
    const int64_t inputs = tensor.shape[1], row = i / inputs, input = i % inputs;
    const float noise = 3 * random(name, i) / std::sqrt(static_cast<float>(inputs));
    if (!agrees) return noise;
    const float one = input == row % hidden ? 1.0f : 0.0f;
    if (name == "fc.weight") return one / size_of_embedding;
    if (name.find("q_proj") != std::string::npos || name.find("k_proj") != std::string::npos) {
      return 3 * one;
    }
    if (name.find("v_proj") != std::string::npos) {
      return one - (input == hidden + row ? 1.0f : 0.0f);
    }
    if (name.find("o_proj") != std::string::npos) return input % hidden == row ? 0.5f : 0.0f;
    if (name == "lm_head.weight") {
      const int64_t before = (known[row] + vocab - 1) % vocab;
      return embedding[before * hidden + input];
    }
    return 0.1f * noise;
  };
  std::vector<WantedTensor> wanted;
  const auto want = [&](const std::string& name, std::vector<int64_t> shape) {
    wanted.push_back({.name = name + ".weight", .shape = std::move(shape)});
  };
  want("fc", {hidden, 3 * hidden});
  want("lm_head", {std::ssize(known), hidden});
  want("norm", {hidden});
  for (const char* norm : {"hidden_norm", "input_layernorm", "post_attention_layernorm"}) {
    want(std::string("midlayer.") + norm, {hidden});
  }
  want("midlayer.self_attn.q_proj", {heads * dim, 2 * hidden});
  want("midlayer.self_attn.k_proj", {dim, 2 * hidden});
  want("midlayer.self_attn.v_proj", {dim, 2 * hidden});
  want("midlayer.self_attn.o_proj", {hidden, heads * dim});
  want("midlayer.mlp.gate_proj", {inner, hidden});
  want("midlayer.mlp.up_proj", {inner, hidden});
  want("midlayer.mlp.down_proj", {hidden, inner});
  WriteFloatTensors(wanted, value, folder / "model-00001-of-00002.safetensors");
  WriteD2t(differences, folder / "model-00002-of-00002.safetensors");
  nlohmann::json index;
  for (const WantedTensor& tensor : wanted) {
    index["weight_map"][tensor.name] = "model-00001-of-00002.safetensors";
  }
  index["weight_map"]["d2t"] = "model-00002-of-00002.safetensors";
  WriteTestFile(folder / "model.safetensors.index.json", index.dump());
}

}  // namespace godwit
