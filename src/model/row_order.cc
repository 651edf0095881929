#include "model/row_order.h"

#include <vector>

namespace godwit {
namespace {

// The source of `place` when two halves of `half` rows alternate.
int64_t ByTurns(int64_t place, int64_t half) {
  return place < half ? 2 * place : 2 * (place - half) + 1;
}

// The source of `place` where blocks of every group follow one another.
int64_t ByBlocks(int64_t place, const std::vector<int64_t>& blocks, int64_t rows) {
  int64_t size = 0;
  for (const int64_t block : blocks) size += block;
  const int64_t groups = rows / size;
  int64_t before = 0;  // of the group's rows
  for (const int64_t block : blocks) {
    if (place < groups * block) return place / block * size + before + place % block;
    place -= groups * block;
    before += block;
  }
  return place;
}

// The source of `place` where the first part has the gates of each query head behind its queries.
int64_t ByGatedHeads(int64_t place, const DecoderSpec& spec) {
  const int64_t dim = spec.head_dim, queries = spec.heads * dim;
  const int64_t keys_and_values = 2 * spec.kv_heads * dim;
  if (place < queries) return place / dim * 2 * dim + place % dim;
  place -= queries;
  if (place < keys_and_values) return 2 * queries + place;
  place -= keys_and_values;
  return (place / dim * 2 + 1) * dim + place % dim;
}

}  // namespace

int64_t SourceRow(const DecoderSpec& spec, const LinearTensors& tensors, int64_t output) {
  if (tensors.alternating) {
    return ByTurns(output, tensors.OutputsOf(*tensors.parts.front()) / 2);
  }
  if (tensors.pairs_period > 0) {
    const int64_t d = output % tensors.pairs_period - tensors.pairs_first;
    const int64_t rows =
        tensors.pairs_rows > 0 ? tensors.pairs_rows : tensors.pairs_period - tensors.pairs_first;
    if (d < 0 || d >= rows) return output;
    return output - d + ByTurns(d, rows / 2);
  }
  if (!tensors.blocks.empty()) {
    return ByBlocks(output, tensors.blocks, tensors.OutputsOf(*tensors.parts.front()));
  }
  if (tensors.gated) return ByGatedHeads(output, spec);
  const int64_t dim = spec.head_dim;
  if (tensors.interleaved && output < (spec.heads + spec.kv_heads) * dim) {
    output = PairedRow(spec, output);
  }
  if (!tensors.grouped) return output;
  const int64_t group = spec.heads / spec.kv_heads;
  const int64_t head = output / dim;
  int64_t kv_head = head / group;
  int64_t place = head % group;  // in its group: query heads, key, value
  if (head >= spec.heads) {
    kv_head = (head - spec.heads) % spec.kv_heads;
    place = group + (head - spec.heads) / spec.kv_heads;
  }
  return (kv_head * (group + 2) + place) * dim + output % dim;
}

int64_t PairedRow(const DecoderSpec& spec, int64_t row) {
  const int64_t half = spec.rotary.rotary_dim / 2;
  const int64_t d = row % spec.head_dim;
  if (d >= 2 * half) return row;
  return row - d + ByTurns(d, half);
}

}  // namespace godwit
