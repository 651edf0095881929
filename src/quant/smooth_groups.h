// Groups of tensors that can take a scale for every channel and stay the same function together.
// They are read off the DecoderSpec: no family is known here.
//
// A channel is divided by s where it is made and multiplied by s where it is read (section 3.3 of
// the thesis). A norm, with gain and bias, or the rows of a linear layer make it. Columns of linear
// layers read it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/model_tensors.h"
#include "model/spec.h"
#include "quant/matrix_part.h"

namespace godwit::quant {

enum class SmoothKind {
  kNone,
  kNorm,  // norms into the linear layers that read them, as in the paper
  kAll,   // also v into the projection behind attention, up into down
};

inline constexpr int64_t kNoChannel = -1;

// A weight, norm gain or bias whose rows are divided; a row of a vector is an element.
struct DividedTensor {
  MatrixPart part;
  std::vector<int64_t> channels;  // of each row; kNoChannel: it stays as it is
};

struct SmoothGroup {
  std::string name;  // "model.layers.0.input_layernorm -> q_proj, k_proj, v_proj"
  int64_t channels = 0;
  std::vector<DividedTensor> divided;
  // The readers: all read the same channels in the same order.
  std::vector<const LinearTensors*> linears;
  std::vector<int64_t> input_channels;  // [inputs of the linears] the channel of each column
};

// A part of the model that cannot be smoothed although smoothing was asked for.
struct LeftOut {
  std::string name;
  std::string reason;
};

struct SmoothGroups {
  std::vector<SmoothGroup> groups;  // layer by layer; within one, those that divide rows first
  std::vector<LeftOut> left_out;
  // Readers of the residual stream itself, with nothing that could be divided: only a division of
  // the tokens on the branch can smooth them (residual_factors.h).
  std::vector<SmoothGroup> residual;
};

// tensors: those of the spec, to which the groups point.
SmoothGroups FindSmoothGroups(const DecoderSpec& spec, const ModelTensors& tensors,
                              SmoothKind kind);

}  // namespace godwit::quant
