#include "attention/kv_store.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/checked.h"
#include "base/error.h"
#include "base/machine_memory.h"
#include "kernels/kernel_table.h"
#include "ops/quantize.h"

namespace godwit {
namespace {

using kernels::kTileTokens;
using kernels::PadToLanes;

constexpr int64_t kMaxHeadDim = 1024;

template <typename T>
using Convert = void (*)(const float*, int64_t, T*) noexcept;

// One row into a tile: its keys go down a column, its values along a row.
template <typename T>
void StoreRow(Convert<T> convert, const float* k, const float* v, int64_t head_dim, int64_t slot,
              std::byte* keys, std::byte* values) {
  std::array<T, kMaxHeadDim> narrow;
  convert(k, head_dim, narrow.data());
  T* column = reinterpret_cast<T*>(keys) + slot;
  for (int64_t d = 0; d < head_dim; ++d) column[d * kTileTokens] = narrow[static_cast<size_t>(d)];
  convert(v, head_dim, reinterpret_cast<T*>(values) + slot * PadToLanes(head_dim));
}

void StoreInt8Row(const kernels::KernelTable& kernels, const float* k, const float* v,
                  int64_t head_dim, int64_t slot, std::byte* keys, std::byte* values,
                  float* scales) {
  std::array<int8_t, kMaxHeadDim> narrow;
  scales[slot] = ops::QuantizeRow(kernels, k, head_dim, narrow.data()).scale;
  auto* column = reinterpret_cast<int8_t*>(keys) + slot;
  for (int64_t d = 0; d < head_dim; ++d) column[d * kTileTokens] = narrow[static_cast<size_t>(d)];
  auto* row = reinterpret_cast<int8_t*>(values) + slot * PadToLanes(head_dim);
  scales[kTileTokens + slot] = ops::QuantizeRow(kernels, v, head_dim, row).scale;
}

// What f16 would turn into infinity.
void CheckRangeOfF16(const kernels::KernelTable& kernels, const char* what, int64_t layer,
                     const float* x, int64_t n) {
  constexpr float kFirstInfinite = 65520;
  const float largest = kernels.largest_magnitude(x, n);
  if (!(largest >= kFirstInfinite)) return;
  Throw(ErrorKind::kUnsupported,
        "a {} of layer {} has an element of magnitude {}, and an f16 KV cache holds up to 65504: "
        "take --kv-type bf16 or f32",
        what, layer, largest);
}

void CopyFloats(const float* x, int64_t n, float* out) noexcept { std::copy_n(x, n, out); }

}  // namespace

KvStore::KvStore(const AttentionGeometry& geometry, DType dtype)
    : shape_(geometry.shape), dtype_(dtype) {
  if (shape_.head_dim > kMaxHeadDim) {
    Throw(ErrorKind::kUnsupported, "head_dim {} is larger than the {} that the KV cache supports",
          shape_.head_dim, kMaxHeadDim);
  }
  const auto element = static_cast<int64_t>(SizeOf(dtype));
  key_bytes_ = shape_.head_dim * kTileTokens * element;
  value_bytes_ = kTileTokens * PadToLanes(shape_.head_dim) * element;
  scale_bytes_ = dtype == DType::kI8 ? 2 * kTileTokens * int64_t{sizeof(float)} : 0;
  page_bytes_ = geometry.layers * shape_.kv_heads * head_bytes();
}

void KvStore::Reserve(int64_t pages) {
  const auto before = this->pages();
  if (pages <= before) return;
  RequireMemory(CheckedMul(pages - before, page_bytes_).value_or(INT64_MAX),
                "a KV cache that grows from {} to {} tokens takes another", before * kTileTokens,
                pages * kTileTokens);
  try {
    while (this->pages() < pages) {
      pages_.emplace_back(page_bytes_);
      page_data_.push_back(pages_.back().data());
    }
  } catch (...) {
    Shrink(before);
    throw;
  }
}

void KvStore::ReserveTable(int64_t pages) {
  pages_.reserve(static_cast<size_t>(pages));
  page_data_.reserve(static_cast<size_t>(pages));
}

void KvStore::Shrink(int64_t pages) {
  if (pages >= this->pages()) return;
  pages_.resize(static_cast<size_t>(pages));
  page_data_.resize(static_cast<size_t>(pages));
}

void KvStore::Write(const Exec& exec, int64_t layer, int64_t first, MatrixView<const float> k,
                    MatrixView<const float> v) {
  assert(k.rows == shape_.kv_heads * v.rows && first >= 0 && pages() > 0);
  if (v.rows < 8) {  // too little work to wake the other cores
    for (int64_t head = 0; head < shape_.kv_heads; ++head) {
      WriteHead(exec, layer, head, first, k, v);
    }
  } else {
    exec.Parallel(shape_.kv_heads,
                  [&](int64_t head) { WriteHead(exec, layer, head, first, k, v); });
  }
}

void KvStore::WriteHead(const Exec& exec, int64_t layer, int64_t head, int64_t first,
                        MatrixView<const float> k, MatrixView<const float> v) {
  for (int64_t token = 0; token < v.rows; ++token) {
    const int64_t position = first + token;
    const auto page = static_cast<size_t>(position / kTileTokens % pages());
    std::byte* keys = pages_[page].data() + (layer * shape_.kv_heads + head) * head_bytes();
    std::byte* values = keys + key_bytes_;
    const float* k_row = k.Row(head * v.rows + token);
    const float* v_row = v.Row(token) + head * shape_.head_dim;
    const int64_t slot = position % kTileTokens;
    switch (dtype_) {
      case DType::kF16:
        CheckRangeOfF16(exec.kernels, "key", layer, k_row, shape_.head_dim);
        CheckRangeOfF16(exec.kernels, "value", layer, v_row, shape_.head_dim);
        StoreRow<F16>(exec.kernels.f32_to_f16, k_row, v_row, shape_.head_dim, slot, keys, values);
        break;
      case DType::kBF16:
        StoreRow<BF16>(exec.kernels.f32_to_bf16, k_row, v_row, shape_.head_dim, slot, keys, values);
        break;
      case DType::kI8:
        StoreInt8Row(exec.kernels, k_row, v_row, shape_.head_dim, slot, keys, values,
                     reinterpret_cast<float*>(values + value_bytes_));
        break;
      default:
        StoreRow<float>(CopyFloats, k_row, v_row, shape_.head_dim, slot, keys, values);
    }
  }
}

ops::KvView KvStore::View(int64_t layer) const {
  return {.dtype = dtype_,
          .pages = page_data_,
          .layer_offset = layer * shape_.kv_heads * head_bytes(),
          .head_bytes = head_bytes(),
          .value_offset = key_bytes_,
          .scale_offset = key_bytes_ + value_bytes_};
}

int64_t KvBytesPerToken(const AttentionGeometry& geometry, DType dtype) {
  return KvStore(geometry, dtype).page_bytes() / kTileTokens;
}

}  // namespace godwit
