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

// What they are called behind the name of the module, and their shapes.
struct PackedShape {
  std::string_view suffix;
  std::vector<int64_t> shape;
};
struct PackedShapes {
  PackedShape codes;   // I32, of nf4 U8
  PackedShape scales;  // floats, of nested ones U8
  PackedShape zeros;   // I32, if the format has some
  PackedShape groups;  // I32 [inputs]: the group of every input, if there is act order
};
PackedShapes ShapesOf(const PackedFormat& format, int64_t outputs, int64_t inputs);

struct PackedTensors {
  PackedFormat format;
  // Stands for all: the name of a weight, its shape [outputs, inputs], no type, the bytes of the
  // codes, and perhaps an order of rows.
  TensorInfo weight;
  TensorInfo codes;
  TensorInfo scales;
  std::optional<TensorInfo> zeros;
  std::vector<TensorInfo> others;  // small, read when the layer was found
  std::vector<int32_t> order;      // InputOrder
};

// The inputs sorted by their groups, [inputs], those of a group as they were; empty if they are
// sorted. groups: I32 [inputs]. Throws Error(kFormat) that names the tensor unless every group has
// `group` inputs.
std::vector<int32_t> InputOrder(const TensorInfo& groups, int64_t group);

// Immutable, thread-safe. Holds scales and zero points, and the codes once more where they lie
// across. The tensors outlive it.
class PackedRows {
 public:
  // Throws Error(kFormat) that names a tensor and its element for a scale that is not finite, and
  // for a zero point other than the one that the format says.
  PackedRows(ThreadPool& pool, const PackedTensors& tensors);

  // Inputs that share a scale.
  int64_t group() const { return inputs_ / groups_; }
  // [groups], the zero points empty if the format has none.
  std::span<const float> Scales(int64_t row) const { return Numbers(scales_, row); }
  std::span<const uint8_t> Zeros(int64_t row) const { return Numbers(zeros_, row); }
  // codes [inputs], in the order of PackedTensors.
  void ReadCodes(int64_t row, std::span<uint8_t> codes) const;
  // The weights of a row in the order of the model's inputs: [inputs].
  void Dequantize(int64_t row, std::span<float> weights) const;

 private:
  int64_t StoredRow(int64_t row) const;
  template <typename T>
  std::span<const T> Numbers(const std::vector<T>& all, int64_t row) const {
    if (all.empty()) return {};
    return std::span(all).subspan(static_cast<size_t>(StoredRow(row) * groups_),
                                  static_cast<size_t>(groups_));
  }
  void ReadScales();
  void ReadZeros();

  const PackedTensors& tensors_;
  const int64_t outputs_, inputs_, groups_;
  Buffer turned_;
  const std::byte* codes_;  // rows of them, or of words with codes of several rows
  std::vector<float> scales_;
  std::vector<uint8_t> zeros_;
};

}  // namespace godwit
