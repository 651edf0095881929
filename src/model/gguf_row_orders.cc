#include "model/gguf_row_orders.h"

namespace godwit {
namespace {

// The places of heads' rows (i, i + half) in a file that has these as neighbours.
std::vector<int64_t> PairedOrder(int64_t rows, int64_t dim) {
  std::vector<int64_t> order;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t d = row % dim;
    order.push_back(row - d + d % (dim / 2) * 2 + d / (dim / 2));
  }
  return order;
}

std::vector<int64_t> UngroupedOrder(const GgufShape& shape, int64_t rows) {
  const int64_t dim = shape.head_dim;
  const int64_t queries = shape.heads / shape.kv_heads;  // of a group, before its key and its value
  std::vector<int64_t> order;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t group = row / dim / (queries + 2);
    const int64_t place = row / dim % (queries + 2);
    const int64_t head = place < queries    ? group * queries + place
                         : place == queries ? shape.heads + group
                                            : shape.heads + shape.kv_heads + group;
    order.push_back(head * dim + row % dim);
  }
  return order;
}

}  // namespace

std::vector<int64_t> GgufRowOrder(GgufRows kind, const GgufShape& shape, int64_t rows) {
  const int64_t dim = shape.head_dim;
  if (dim % 2 != 0) return {};
  switch (kind) {
    case GgufRows::kPairedQ:
      return rows == shape.heads * dim ? PairedOrder(rows, dim) : std::vector<int64_t>();
    case GgufRows::kPairedK:
      return rows == shape.kv_heads * dim ? PairedOrder(rows, dim) : std::vector<int64_t>();
    case GgufRows::kUngrouped:
      return rows == (shape.heads + 2 * shape.kv_heads) * dim ? UngroupedOrder(shape, rows)
                                                              : std::vector<int64_t>();
    case GgufRows::kAsTheyWere:
    case GgufRows::kExperts:
    case GgufRows::kFirstHalves:
    case GgufRows::kSecondHalves:
    case GgufRows::kStreams:
    case GgufRows::kHeads:
    case GgufRows::kHeadMatrices:
    case GgufRows::kVector:
    case GgufRows::kOneRow:
    case GgufRows::kTaps:
    case GgufRows::kNumber:
      break;
  }
  return {};
}

}  // namespace godwit
