// The share of a model's weights that one of several ranks has: tensor parallelism, arXiv
// 1909.08053.
//
// A rank has whole query heads with the keys and values that these see. It has columns of MLPs,
// whole experts of a mixture, and tokens of the vocabulary. Norms, routers and learned positions
// are on all ranks. A half of a layer gives each rank a part of a sum, which is the layer's result.
//
// The second matrix of each half is cut by its inputs, between blocks and groups of the checkpoint.
// All numbers thus stay as they are stored, and parts may differ in size.
#pragma once

#include <memory>

#include "dist/communicator.h"
#include "model/model_tensors.h"
#include "model/spec.h"

namespace godwit {

struct WeightShare {
  // The model as a rank alone computes it: with its heads and columns. Experts are counted whole.
  DecoderSpec spec;
  ModelTensors tensors;
};

// The share of part `part` of `parts`. tensors: those of the whole model. Throws
// Error(kUnsupported) that names what cannot be cut into so many parts.
WeightShare TakeShare(const DecoderSpec& spec, ModelTensors tensors, int part, int parts);
// The share of this rank among those that share the weights; null: all.
WeightShare TakeShare(const DecoderSpec& spec, ModelTensors tensors,
                      const std::shared_ptr<Communicator>& ranks);

// The tokens of the vocabulary whose rows of the embedding and the head a part has.
IndexRange TokensOf(int64_t vocab_size, int part, int parts);

}  // namespace godwit
