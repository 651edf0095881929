// WeightSource: named tensors and key/values of one model, in any file format.
//
// Immutable after opening; every method may be called from several threads. A TensorInfo and its
// bytes live as long as the source. Every result has been checked against the files. `bytes` lies
// inside the mapping and has exactly the size that shape and dtype ask for, and the product of the
// shape fits in int64. The loader decides whether the model wants such a tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "tensor/dtype.h"
#include "weights/gguf_blocks.h"

namespace godwit {

struct TensorInfo {
  std::string name;
  // nullopt: a type of the file format that this engine does not compute with. Such a tensor is no
  // error until somebody needs it; `dtype_name` is what to put into the message then.
  std::optional<DType> dtype;
  std::string dtype_name;  // as the file spells it: "BF16", "F8_E4M3", "Q4_K"
  // Set: the tensor has no dtype, its rows are such blocks.
  const BlockFormat* blocks = nullptr;
  std::vector<int64_t> shape;  // outermost first, no negative dims; empty for a scalar
  // Row-major, little-endian, and at any alignment: read elements with memcpy.
  std::span<const std::byte> bytes;
  // The order of rows where a format keeps another than the model (weights/tensor_rows.h knows of
  // it). Row i of shape[0] is row (*row_order)[i] of `bytes`. Null: they lie as they are.
  std::shared_ptr<const std::vector<int64_t>> row_order;
  std::string file;           // the file's path
  uint64_t offset_bytes = 0;  // of `bytes` in the file
  std::string whole;          // of a slice: the tensor of the files in which it lies; else empty

  // "BF16 [4096, 128]"
  std::string Describe() const;
  // The product of `shape`; 1 for a scalar.
  int64_t NumElements() const;
};

class WeightSource {
 public:
  WeightSource() = default;
  WeightSource(const WeightSource&) = delete;
  WeightSource& operator=(const WeightSource&) = delete;
  virtual ~WeightSource() = default;

  // nullptr where no tensor has this name.
  virtual const TensorInfo* Find(std::string_view name) const = 0;

  // Names in the order of the files: reading in this order reads the disk sequentially.
  virtual const std::vector<std::string>& Names() const = 0;

  virtual const std::map<std::string, std::string, std::less<>>& Metadata() const = 0;

  // The caller will soon read `size_bytes` of the tensor's bytes from `begin` on: a disk starts on
  // them. A hint, and some sources have no use for it.
  virtual void Prefetch(const TensorInfo& /*tensor*/, size_t /*begin*/,
                        size_t /*size_bytes*/) const {}

  // The mapped file in which the tensor's bytes lie, for a reader that keeps it longer than the
  // source; null: there is none.
  virtual std::shared_ptr<const MappedFile> FileOf(const TensorInfo& /*tensor*/) const {
    return nullptr;
  }

  // Releases a tensor whose bytes the caller has read and will not soon need. Their pages may leave
  // the process, so that loading holds the packed weights and little else. The bytes stay valid.
  virtual void Release(const TensorInfo& tensor) const = 0;
};

}  // namespace godwit
