// A cache and queries of random numbers, and what their rows see. Only attention_test.cc includes
// it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "kernels/kernel_table.h"
#include "ops/attention.h"
#include "ops/test_support.h"
#include "tensor/buffer.h"

namespace godwit::ops {

using kernels::kTileTokens;

// The second of two layers of keys and values. Numbers that were not written are NaN, padding
// included.
class Cache {
 public:
  Cache(const AttentionShape& shape, DType dtype, int64_t capacity, uint32_t seed)
      : shape_(shape), dtype_(dtype), random_(seed) {
    for (int64_t page = 0; page * kTileTokens < capacity; ++page) {
      pages_.emplace_back(2 * layer_bytes());
      std::memset(pages_.back().data(), 0xff, pages_.back().bytes());
      page_data_.emplace_back(pages_.back().data());
      page_data_.emplace_back(pages_.back().data() + layer_bytes());
    }
  }

  void WriteRandom(int64_t begin, int64_t end) {
    for (int64_t position = begin; position < end; ++position) {
      for (int64_t head = 0; head < shape_.kv_heads; ++head) {
        for (int64_t d = 0; d < shape_.head_dim; ++d) {
          Store(KeyElement(head, position, d), random_(-2, 2));
          Store(ValueElement(head, position, d), random_(-1, 1));
        }
        for (int64_t d = shape_.head_dim; d % depth() != 0; ++d) {
          Store(KeyElement(head, position, d), 0);
        }
      }
    }
  }

  // The keys or the values of a head at the first positions, [positions, head_dim].
  std::vector<double> Keys(int64_t head, int64_t positions) const {
    return Numbers(&Cache::KeyElement, head, positions);
  }
  std::vector<double> Values(int64_t head, int64_t positions) const {
    return Numbers(&Cache::ValueElement, head, positions);
  }
  // A number of a query as it meets the keys.
  double Query(double x) const {
    return dtype_ == DType::kBF16 ? ToFloat(ToBF16(static_cast<float>(x))) : x;
  }
  // The relative error by which a weight is rounded.
  double rounding() const { return dtype_ == DType::kBF16 ? 0x1p-9 : 0; }

  // Turns written keys into keys whose values are their own numbers from `first` on, with zeros
  // behind them.
  void CopyValuesOfKeys(int64_t begin, int64_t end, int64_t first) const {
    for (int64_t position = begin; position < end; ++position) {
      for (int64_t head = 0; head < shape_.kv_heads; ++head) {
        for (int64_t d = 0; d < shape_.head_dim; ++d) {
          Store(ValueElement(head, position, d),
                first + d < shape_.head_dim ? Load(KeyElement(head, position, first + d)) : 0);
        }
      }
    }
  }

  // Takes tiles out, as a cache that streams does.
  void Drop(int64_t begin, int64_t end) {
    page_data_.erase(page_data_.begin() + 2 * begin, page_data_.begin() + 2 * end);
    dropped_begin_ = begin;
    dropped_end_ = end;
  }

  KvView View() const {
    return {.dtype = dtype_,
            .pages = page_data_.data() + 1,
            .page_stride = 2,
            .slots = std::ssize(page_data_) / 2,
            .dropped_begin = dropped_begin_,
            .dropped_end = dropped_end_,
            .head_bytes = key_bytes() + value_bytes(),
            .value_offset = key_bytes()};
  }

 private:
  int64_t element() const { return static_cast<int64_t>(SizeOf(dtype_)); }
  int64_t depth() const { return kernels::KvDepth(dtype_); }
  int64_t key_bytes() const { return kernels::KeyElements(depth(), shape_.head_dim) * element(); }
  int64_t value_bytes() const {
    return kTileTokens * kernels::PadToLanes(shape_.head_dim) * element();
  }
  int64_t layer_bytes() const { return shape_.kv_heads * (key_bytes() + value_bytes()); }

  std::byte* Head(int64_t head, int64_t position) const {
    return pages_[position / kTileTokens].data() + layer_bytes() +
           head * (key_bytes() + value_bytes());
  }
  std::byte* KeyElement(int64_t head, int64_t position, int64_t d) const {
    return Head(head, position) + kernels::KeyAt(depth(), d, position % kTileTokens) * element();
  }
  std::byte* ValueElement(int64_t head, int64_t position, int64_t d) const {
    return Head(head, position) + key_bytes() +
           kernels::ValueAt(depth(), shape_.head_dim, position % kTileTokens, d) * element();
  }

  using ElementOf = std::byte* (Cache::*)(int64_t head, int64_t position, int64_t d) const;
  std::vector<double> Numbers(ElementOf element, int64_t head, int64_t positions) const {
    std::vector<double> numbers;
    for (int64_t position = 0; position < positions; ++position) {
      for (int64_t d = 0; d < shape_.head_dim; ++d) {
        numbers.push_back(Load((this->*element)(head, position, d)));
      }
    }
    return numbers;
  }

  void Store(std::byte* to, float x) const {
    if (dtype_ == DType::kF32) *reinterpret_cast<float*>(to) = x;
    if (dtype_ == DType::kF16) *reinterpret_cast<F16*>(to) = ToF16(x);
    if (dtype_ == DType::kBF16) *reinterpret_cast<BF16*>(to) = ToBF16(x);
  }
  float Load(const std::byte* from) const {
    if (dtype_ == DType::kF32) return *reinterpret_cast<const float*>(from);
    if (dtype_ == DType::kF16) return ToFloat(*reinterpret_cast<const F16*>(from));
    return ToFloat(*reinterpret_cast<const BF16*>(from));
  }

  AttentionShape shape_;
  DType dtype_;
  RandomFloats random_;
  std::vector<Buffer> pages_;
  std::vector<PageData> page_data_;  // [tiles that are there, layers]
  int64_t dropped_begin_ = 0, dropped_end_ = 0;
};

inline AttentionShape MakeShape(int64_t heads, int64_t kv_heads, int64_t head_dim) {
  return {.heads = heads,
          .kv_heads = kv_heads,
          .head_dim = head_dim,
          .scale = 1 / std::sqrt(static_cast<float>(head_dim))};
}

// Random queries of a text, [tokens, heads, head_dim].
class Queries {
 public:
  Queries(const AttentionShape& shape, int64_t tokens, uint32_t seed)
      : shape_(shape), values_(tokens, shape.heads * shape.head_dim, seed, -2, 2) {}

  double At(int64_t token, int64_t head, int64_t d) const {
    return values_.At(token, head * shape_.head_dim + d);
  }

  GappedMatrix HeadMajor(int64_t begin, int64_t end) const {
    GappedMatrix out((end - begin) * shape_.heads, shape_.head_dim);
    for (int64_t token = begin; token < end; ++token) {
      for (int64_t head = 0; head < shape_.heads; ++head) {
        const float* from = values_.view().Row(token) + head * shape_.head_dim;
        std::copy_n(from, shape_.head_dim,
                    out.view().Row(HeadMajorRow(shape_, end - begin, token - begin, head)));
      }
    }
    return out;
  }

 private:
  AttentionShape shape_;
  GappedMatrix values_;
};

// Rows of a text over one cache; as a rule the last ones.
struct TextRows {
  const Cache* cache;
  const Queries* queries;
  int64_t position;  // of the first query
  Visible visible = {};
  std::vector<std::vector<TilePart>> parts = {};  // for every KV head, or none: all
  std::optional<int64_t> query_place = {};
  bool keys_move = false;

  // Whether the row at position p looks at position k.
  bool Sees(int64_t p, int64_t kv_head, int64_t k) const {
    const KvRange range = visible.At(p);
    if (k < range.begin || k >= range.end) return false;
    if (parts.empty()) return true;
    return std::ranges::any_of(parts[kv_head], [&](const TilePart& part) {
      const int64_t tile = part.tile * kTileTokens;
      return k >= tile + part.begin && k < tile + part.end && (part.hidden >> (k - tile) & 1) == 0;
    });
  }
};

}  // namespace godwit::ops
