#include "cuda/ops/embedding.h"

#include "cuda/test_support.h"
#include "kernels/packing.h"

namespace godwit::cuda::embedding_test {
namespace {

const std::vector<int32_t> kTokens = {0, 69, 3, 64, 63, 70, -1, 12};
constexpr int64_t kRows = 70;

std::vector<float> Embedded(const std::vector<std::byte>& data, const DeviceTable& table,
                            int64_t first) {
  return InBothOrders([&](TestGpu& gpu) {
    DeviceTable there = table;
    there.data = gpu.Put(data);
    const auto out = gpu.NewMatrix<float>(std::ssize(kTokens), table.cols);
    EmbedTokens(gpu.stream(), gpu.Put(kTokens), there, first, out);
    return gpu.GetMatrix(out);
  });
}

// Element (row, col) of the tables: every bit of a half is in use.
uint16_t ElementBits(int64_t row, int64_t col) {
  return static_cast<uint16_t>(row * 1021 + col * 257 + 11);
}

float Widened(DType dtype, uint16_t bits) {
  return dtype == DType::kF16 ? ToFloat(F16{bits}) : ToFloat(BF16{bits});
}

void ExpectRows(const std::vector<float>& out, DType dtype, int64_t cols, int64_t first) {
  for (int64_t i = 0; i < std::ssize(kTokens); ++i) {
    const int64_t row = kTokens[i] - first;
    for (int64_t col = 0; col < cols; ++col) {
      const float expected = row >= 0 && row < kRows ? Widened(dtype, ElementBits(row, col)) : 0.0f;
      const float found = out[i * cols + col];
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(found)) << "token " << kTokens[i] << ", column " << col;
      } else {
        ASSERT_EQ(Bits(found), Bits(expected)) << "token " << kTokens[i] << ", column " << col;
      }
    }
  }
}

TEST(EmbedTokens, WidensRowsOfATable) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    for (const int64_t cols : {1, 33, 400}) {
      std::vector<std::byte> data(kRows * cols * 2);
      for (int64_t i = 0; i < kRows * cols; ++i) {
        const uint16_t bits = ElementBits(i / cols, i % cols);
        std::memcpy(data.data() + 2 * i, &bits, sizeof(bits));
      }
      for (const int64_t first : {0, 3}) {
        ExpectRows(Embedded(data, {.dtype = dtype, .rows = kRows, .cols = cols}, first), dtype,
                   cols, first);
      }
    }
  }
}

TEST(EmbedTokens, CopiesRowsOfFloats) {
  const std::vector<float> table = RandomNumbers(kRows * 5, 1);
  std::vector<std::byte> data(table.size() * sizeof(float));
  std::memcpy(data.data(), table.data(), data.size());
  const std::vector<float> out =
      Embedded(data, {.dtype = DType::kF32, .rows = kRows, .cols = 5}, 0);
  EXPECT_EQ(RowsOf(out, 5, 1, 1), RowsOf(table, 5, 69, 1));
  EXPECT_EQ(RowsOf(out, 5, 5, 2), std::vector<float>(10, 0.0f));
}

TEST(EmbedTokens, ReadsAPackedWeight) {
  for (const int64_t cols : {2, 33}) {
    std::vector<uint16_t> table(kRows * cols);
    for (int64_t i = 0; i < kRows * cols; ++i) table[i] = ElementBits(i / cols, i % cols);
    const int64_t panel_bytes = kernels::PanelBytes(DType::kBF16, cols);
    std::vector<std::byte> data(kernels::PanelCount(kRows) * panel_bytes);
    for (int64_t panel = 0; panel < kernels::PanelCount(kRows); ++panel) {
      const void* rows[kernels::kPanelColumns] = {};
      for (int64_t c = 0; c < kernels::kPanelColumns; ++c) {
        const int64_t row = panel * kernels::kPanelColumns + c;
        if (row < kRows) rows[c] = table.data() + row * cols;
      }
      kernels::PackPanel(DType::kBF16, rows, cols, data.data() + panel * panel_bytes);
    }
    ExpectRows(
        Embedded(data, {.dtype = DType::kBF16, .packed = true, .rows = kRows, .cols = cols}, 0),
        DType::kBF16, cols, 0);
  }
}

// Heads, KV heads, width of a head, half of the rotated dimensions, whether queries have factors
// and are rounded to bf16.
struct RotaryCase {
  int64_t heads, kv_heads, head_dim, half;
  bool factors;
  bool rounded = false;
};

TEST(RotateHeads, HasTheBitsOfTheScalarKernel) {
  for (const RotaryCase& c : {RotaryCase{1, 1, 2, 1, false}, RotaryCase{4, 2, 64, 32, false},
                              RotaryCase{6, 2, 40, 10, true}, RotaryCase{3, 3, 130, 65, true},
                              RotaryCase{2, 1, 80, 0, true, true}}) {
    const int64_t tokens = 5, cols = c.heads * c.head_dim, group = c.heads / c.kv_heads;
    const std::vector<float> x = RandomNumbers(tokens * cols, 1);
    const std::vector<float> cos = RandomNumbers(tokens * c.half, 2);
    const std::vector<float> sin = RandomNumbers(tokens * c.half, 3);
    const std::vector<float> scale = RandomNumbers(tokens, 4), gain = RandomNumbers(c.head_dim, 5);
    const std::vector<float> out = InBothOrders([&](TestGpu& gpu) {
      const auto result = gpu.NewMatrix<float>(tokens * c.heads, c.head_dim);
      RotateHeads(gpu.stream(), gpu.PutMatrix(x, tokens, cols), c.heads, c.kv_heads,
                  {.cos = gpu.Put(cos),
                   .sin = gpu.Put(sin),
                   .half = c.half,
                   .query_scale = c.factors ? gpu.Put(scale) : nullptr,
                   .query_gain = c.factors ? gpu.Put(gain) : nullptr,
                   .rounded = c.rounded},
                  result);
      return gpu.GetMatrix(result);
    });
    for (int64_t i = 0; i < tokens * c.heads; ++i) {
      const int64_t token = i / c.heads, head = i % c.heads;
      std::vector<float> row = RowsOf(x, c.head_dim, i, 1);
      Scalar().rotate_half(cos.data() + token * c.half, sin.data() + token * c.half, c.half,
                           row.data());
      for (int64_t d = 0; c.factors && d < c.head_dim; ++d)
        row[d] = row[d] * gain[d] * scale[token];
      for (int64_t d = 0; c.rounded && d < c.head_dim; ++d) row[d] = ToFloat(ToBF16(row[d]));
      const int64_t place = (head / group * tokens + token) * group + head % group;
      EXPECT_EQ(BitsOf(RowsOf(out, c.head_dim, place, 1)), BitsOf(row)) << "row " << i;
    }
  }
}

}  // namespace
}  // namespace godwit::cuda::embedding_test
