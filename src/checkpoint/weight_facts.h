// Facts about a model's weights that need no reading of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/decoder.h"
#include "model/spec.h"
#include "tensor/dtype.h"
#include "weights/weight_source.h"

namespace godwit {

struct WeightFacts {
  int64_t parameters = 0;
  int64_t file_bytes = 0;
  // Memory of the loaded weights, and what they are stored as; nullopt where the tensors are not
  // those of the model, then `problem` says why.
  std::optional<int64_t> loaded_bytes;
  // The model as a rank computes it (model/weight_share.h): the one with most of the weights, if
  // several share them. loaded_bytes is the memory of that rank.
  DecoderSpec spec;
  std::optional<WeightTypes> loaded_types;
  std::string problem;
  // Packed tensors that do not come into memory as they are stored (model/packed_weights.h).
  std::vector<std::string> roundings;
};

// storage: as LoadDecoder takes it. ranks: how many share the weights. Throws as TakeShare does.
WeightFacts FactsOf(const DecoderSpec& spec, const WeightSource& source,
                    std::optional<DType> storage, int ranks = 1);

// How many tensors there are of each type, as files spell them, the most frequent first.
std::vector<std::pair<std::string, int64_t>> CountTypes(const WeightSource& source);

// "model.layers.12.mlp.weight" -> "model.layers.*.mlp.weight"
std::string WithoutNumbers(const std::string& name);

// Tensors that all layers have, as one line: "model.layers.*.mlp.up_proj.weight".
struct TensorGroup {
  std::string name;
  const TensorInfo* first = nullptr;
  int64_t count = 0;
};
std::vector<TensorGroup> GroupTensors(const WeightSource& source);

}  // namespace godwit
