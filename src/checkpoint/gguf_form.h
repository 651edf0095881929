// A model as a GGUF file has it: keys, and which numbers go into which tensor. The inverse of
// model/gguf_model.h, for all architectures that are read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/model_folder.h"
#include "weights/gguf_writer.h"

namespace godwit {

// A tensor of the file.
struct GgufPart {
  std::string name;
  std::vector<int64_t> shape;
  // The tensors of the model from which it is made, one after another: mostly one, else the
  // matrices of experts or the norms of heads.
  std::vector<const TensorInfo*> sources;
  // The new places of rows: row i of the one source comes to rows[i]; empty: all stay.
  std::vector<int64_t> rows;
  float added = 0;            // to every number
  std::vector<float> values;  // in the place of sources
  bool matrix = false;        // of a linear layer or an embedding: may be quantized
  bool outer = false;         // such a one that is no part of a layer
};

struct GgufForm {
  GgufKeys keys;
  std::vector<GgufPart> tensors;
  std::vector<std::string> warnings;  // what the user should know
};

// The form of a model in GGUF, which points into the folder. Throws Error(kUnsupported) that names
// what has no form in GGUF: the family, a tensor, the tokenizer, or a number. The spec that is read
// back from the keys has to describe the same model.
GgufForm GgufFormOf(const ModelFolder& model);

}  // namespace godwit
