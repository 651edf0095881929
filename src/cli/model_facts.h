// What can be known of a model folder without reading the weights: for godwit inspect.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/decoder.h"
#include "model/spec.h"
#include "tensor/dtype.h"
#include "text/special_tokens.h"
#include "text/tokenizer.h"
#include "text/tokenizer_config.h"
#include "weights/weight_source.h"

namespace godwit::cli {

struct TextFacts {
  TokenizerConfig config;
  std::unique_ptr<const Tokenizer> tokenizer;  // null if there is no tokenizer.json
  SpecialTokens special;
  // Where the chat template stands, or what is wrong with it; empty if there is none.
  std::string chat_template;
  bool can_chat = false;
};

// What the tensors of all layers have in common is one line: "model.layers.*.mlp.up_proj.weight".
struct TensorGroup {
  std::string name;
  const TensorInfo* first = nullptr;
  int64_t count = 0;
};

struct ModelFacts {
  std::string folder;
  DecoderSpec spec;
  TextFacts text;
  std::unique_ptr<const WeightSource> source;
  int64_t parameters = 0;
  int64_t file_bytes = 0;
  bool has_weights = true;  // else the config.json alone told `source` what there would be
  // Memory of the loaded weights; nullopt where the tensors are not those of the model, then
  // `problem` says why.
  std::optional<int64_t> weight_bytes;
  std::optional<WeightTypes> weight_types;  // likewise
  std::string problem;
};

// weights: as LoadOptions::weights.
ModelFacts ReadModelFacts(const std::string& folder, const std::string& weights = "auto");

// "model.layers.12.mlp.weight" -> "model.layers.*.mlp.weight"
std::string WithoutNumbers(const std::string& name);

std::vector<TensorGroup> GroupTensors(const WeightSource& source);

// The longest context whose cache fits beside the weights into `available_bytes`.
int64_t LargestContextBeside(const ModelFacts& facts, DType kv_type, int64_t available_bytes);

}  // namespace godwit::cli
