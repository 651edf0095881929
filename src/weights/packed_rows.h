// Linear layers that a checkpoint holds packed (weights/packed_format.h): their tensors, and rows
// of codes, scales and zero points out of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "tensor/buffer.h"
#include "weights/packed_format.h"
#include "weights/weight_source.h"

namespace godwit {

// The ending of a packed tensor's name, behind the module's, and its shape.
struct PackedShape {
  std::string_view suffix;
  std::vector<int64_t> shape;
};
struct PackedShapes {
  PackedShape codes;   // I32, of nf4 and FP4 U8, of "int-quantized" I8, of FP8 F8_E4M3
  PackedShape scales;  // floats, of nested ones and powers of two U8, F8_E4M3
  PackedShape zeros;   // I32, if the format has some
  PackedShape groups;  // I32 [inputs]: the group of every input, if there is act order
};
PackedShapes ShapesOf(const PackedFormat& format, int64_t outputs, int64_t inputs);

// Where the scales of groups are codes, too: of group i it is
// levels[code] * scales[i / group] + offset.
struct NestedScales {
  TensorInfo levels;  // F32 [256]
  TensorInfo scales;  // F32
  int64_t group = 0;
  float offset = 0;
};

struct PackedTensors {
  PackedFormat format;
  // Stands for all: the name of a weight, its shape [outputs, inputs], no type, and the bytes
  // of the codes.
  TensorInfo weight;
  TensorInfo codes;
  TensorInfo scales;
  std::optional<TensorInfo> zeros;
  std::vector<TensorInfo> others;  // small, read when the layer was found
  std::vector<int32_t> order;      // InputOrder
  std::optional<NestedScales> nested;
  float factor = 1;  // what all scales are multiplied by: positive
};

// The weight of an expert of gpt-oss, of which there is a slice of two tensors. blocks: U8
// [outputs, groups, 16], scales: U8 [outputs, groups], to be checked before; "x_blocks" are those
// of "x".
PackedTensors Mxfp4Tensors(const TensorInfo& blocks, const TensorInfo& scales);

// The inputs sorted by their groups, [inputs], those of a group as they were; empty if they are
// sorted. groups: I32 [inputs]. Throws Error(kFormat) that names the tensor unless every group has
// `group` inputs.
std::vector<int32_t> InputOrder(const TensorInfo& groups, int64_t group);

// Immutable, thread-safe. Holds scales and zero points, and the codes once more where they lie
// across. The tensors outlive it.
class PackedRows {
 public:
  // Throws Error(kFormat) that names a tensor and its element. The reason is a number that is
  // not finite, an integer of more bits, or a zero point other than the format's.
  PackedRows(ThreadPool& pool, const PackedTensors& tensors);

  // Inputs that share a scale.
  int64_t group() const { return tensors_.format.group == 0 ? inputs_ : tensors_.format.group; }
  // [groups], scales without `factor`, the zero points empty if the format has none.
  std::span<const float> Scales(int64_t row) const { return Numbers(scales_, row); }
  std::span<const uint8_t> Zeros(int64_t row) const { return Numbers(zeros_, row); }
  float factor() const { return tensors_.factor; }
  // codes [inputs], in the order of PackedTensors.
  void ReadCodes(int64_t row, std::span<uint8_t> codes) const;
  // The weights of a row in the order of the model's inputs: [inputs].
  void Dequantize(int64_t row, std::span<float> weights) const;

 private:
  template <typename T>
  std::span<const T> Numbers(const std::vector<T>& all, int64_t row) const {
    if (all.empty()) return {};
    return std::span(all).subspan(row * groups_, groups_);
  }
  // As ReadCodes, in the order of the model's inputs.
  void ReadStored(int64_t row, std::span<uint8_t> codes) const;
  std::vector<float> StoredScales() const;
  void ReadScales();
  void ReadZeros();
  void CheckIntegers() const;
  void CheckLevels(ThreadPool& pool) const;

  const PackedTensors& tensors_;
  const int64_t outputs_, inputs_, groups_;
  Buffer transposed_;
  const std::byte* codes_;  // rows of them, or of words with codes of several rows
  std::vector<float> scales_;
  std::vector<uint8_t> zeros_;
};

}  // namespace godwit
