#include "attention/core/step_work.h"

#include <algorithm>

#include "attention/core/kv_cost.h"
#include "base/function_ref.h"

namespace godwit {
namespace {

// Multiplications by a key of the model's own index, in keys of attention.
double CostOfIndexKey(const AttentionGeometry& geometry) {
  const ops::AttentionShape& shape = geometry.shape;
  const int64_t of_key = shape.heads / shape.kv_heads * (shape.head_dim + shape.value_dim());
  const ops::KeyIndexShape& index = *geometry.key_index;
  return static_cast<double>(index.heads * index.head_dim) / static_cast<double>(of_key);
}

// Calls piece(first, last) for rows [begin, end) cut at tiles and at `cut`, between which the
// number of seen keys grows evenly or stays.
void ForPieces(int64_t begin, int64_t end, int64_t cut,
               FunctionRef<void(int64_t first, int64_t last)> piece) {
  while (begin < end) {
    int64_t next = std::min(end, (begin / kTileTokens + 1) * kTileTokens);
    if (begin < cut) next = std::min(next, cut);
    piece(begin, next - 1);
    begin = next;
  }
}

}  // namespace

StepWork WorkOf(const AttentionPolicy& policy, const AttentionGeometry& geometry,
                const KvLayout& layout, int64_t begin, int64_t rows, int64_t question_begin) {
  StepWork work{.rows = rows};
  const int64_t end = begin + rows, last_row = end - 1;
  const auto seen = [&](int64_t layer, int64_t position) {
    return position < question_begin ? policy.ContextKeys(layer, position)
                                     : policy.SeenKeys(layer, position);
  };
  int64_t alone_from = rows == 1 ? begin : end;  // in any layer
  for (int64_t layer = 0; layer < geometry.layers; ++layer) {
    const int64_t heads = geometry.ShapeOf(layer).kv_heads;
    const auto times =
        static_cast<double>(geometry.readers.empty() ? 1 : 1 + geometry.readers[layer]);
    const double key_bytes = static_cast<double>(layout.OfLayer(layer).head_bytes() * heads) /
                             static_cast<double>(kTileTokens);
    const int64_t alone = rows == 1 ? begin : std::clamp(policy.row_by_row_from(layer), begin, end);
    alone_from = std::min(alone_from, alone);
    const auto sum = [&](int64_t first, int64_t last) {
      return static_cast<double>(last + 1 - first) *
             static_cast<double>(seen(layer, first) + seen(layer, last)) / 2;
    };
    ForPieces(begin, alone, question_begin, [&](int64_t first, int64_t last) {
      work.keys += times * static_cast<double>(heads) * sum(first, last);
    });
    if (alone > begin) {
      const auto together = static_cast<double>(seen(layer, alone - 1) + alone - 1 - begin);
      work.bytes += times * key_bytes * std::min(together, static_cast<double>(alone));
    }
    ForPieces(alone, end, question_begin, [&](int64_t first, int64_t last) {
      work.alone_bytes += times * key_bytes * sum(first, last);
    });
  }
  ForPieces(alone_from, end, question_begin, [&](int64_t first, int64_t last) {
    const auto count = static_cast<double>(last + 1 - first);
    work.alone_bytes += count * static_cast<double>(IndexAt(policy, layout, last).read_bytes);
  });
  // The model's own choice scores all keys before a row.
  if (geometry.key_index && end > geometry.ChoosesFrom()) {
    const int64_t first = std::max(begin, geometry.ChoosesFrom());
    const auto layers = static_cast<double>(geometry.index_layers);
    const double before = static_cast<double>(first + last_row + 2) / 2;
    const double bytes = before * layers * static_cast<double>(layout.index_bytes()) /
                         static_cast<double>(kTileTokens);
    if (rows == 1) {
      work.alone_bytes += bytes;
    } else {
      work.keys += CostOfIndexKey(geometry) * static_cast<double>(end - first) * before * layers;
      work.bytes += bytes;
    }
  }
  return work;
}

}  // namespace godwit
