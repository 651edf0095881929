#include "cuda/ops/linear.h"

#include <algorithm>
#include <array>

#include "cuda/kernels/product_bf16.h"
#include "cuda/test_support.h"
#include "kernels/group_packing.h"
#include "kernels/packing.h"

namespace godwit::cuda::linear_test {
namespace {

using kernels::kPanelColumns;
using kernels::PanelCount;

struct Shape {
  int64_t k;
  int64_t columns;
};

// Depths around the parts of a sum.
constexpr Shape kShapes[] = {{1, 1},   {2, 64},    {7, 65},   {31, 63},  {255, 10},
                             {256, 3}, {257, 130}, {513, 70}, {2303, 65}};

// Rows as bf16, each padded with a zero to an even number, and a gap of two.
std::vector<BF16> PaddedRows(const std::vector<BF16>& x, int64_t rows, int64_t k) {
  const int64_t stride = (k + 1) / 2 * 2 + 2;
  std::vector<BF16> padded(rows * stride, BF16{0xffff});
  for (int64_t row = 0; row < rows; ++row) {
    std::copy_n(x.begin() + row * k, k, padded.begin() + row * stride);
    if (k % 2 != 0) padded[row * stride + k] = BF16{0};
  }
  return padded;
}

class ProductBF16 {
 public:
  ProductBF16(const Shape& shape, int64_t rows)
      : shape_(shape),
        x_(RoundedToBF16(RandomNumbers(rows * shape.k, 1))),
        w_(RoundedToBF16(RandomNumbers(shape.columns * shape.k, 2))),
        bias_(RandomNumbers(shape.columns, 3)),
        panels_(Packed(DType::kBF16, w_, shape.columns, shape.k)) {}

  // The rows [begin, begin + count) of the product.
  std::vector<float> Compute(TestGpu& gpu, int64_t begin, int64_t count) const {
    const std::vector<BF16> rows = PaddedRows(RowsOf(x_, shape_.k, begin, count), count, shape_.k);
    const auto out = gpu.NewMatrix<float>(count, shape_.columns);
    const DeviceMatrix<const BF16> x = {gpu.Put(rows), count, shape_.k, (shape_.k + 1) / 2 * 2 + 2};
    LinearBF16(gpu.stream(), x,
               {.panels = gpu.Put(panels_),
                .outputs = shape_.columns,
                .inputs = shape_.k,
                .bias = gpu.Put(bias_)},
               out);
    return gpu.GetMatrix(out);
  }

  // Compares with the product in double. Each step of the longest chain may be off by half an
  // epsilon of the sum of magnitudes.
  void Expect(const std::vector<float>& out, int64_t rows) const {
    const double steps =
        static_cast<double>(std::min<int64_t>(shape_.k, kPartDepth) + shape_.k / kPartDepth + 2);
    for (int64_t i = 0; i < rows * shape_.columns; ++i) {
      const int64_t row = i / shape_.columns, column = i % shape_.columns;
      double sum = bias_[column], magnitudes = std::fabs(bias_[column]);
      for (int64_t d = 0; d < shape_.k; ++d) {
        const double product =
            double{ToFloat(x_[row * shape_.k + d])} * double{ToFloat(w_[column * shape_.k + d])};
        sum += product;
        magnitudes += std::fabs(product);
      }
      ASSERT_NEAR(out[i], sum, steps * kEpsilon / 2 * magnitudes)
          << "k " << shape_.k << ", row " << row << ", column " << column;
    }
  }

 private:
  Shape shape_;
  std::vector<BF16> x_, w_;
  std::vector<float> bias_;
  std::vector<std::byte> panels_;
};

TEST(LinearBF16, IsTheProduct) {
  for (const Shape& shape : kShapes) {
    for (const int64_t rows : {int64_t{1}, int64_t{5}, kFewRows, kFewRows + 1, int64_t{65}}) {
      const ProductBF16 product(shape, rows);
      product.Expect(InBothOrders([&](TestGpu& gpu) { return product.Compute(gpu, 0, rows); }),
                     rows);
    }
  }
}

TEST(LinearBF16, RowsHaveTheSameBitsInEveryBatch) {
  for (const Shape& shape : kShapes) {
    const int64_t rows = 70;
    const ProductBF16 product(shape, rows);
    TestGpu gpu(ThreadOrder::kAscending);
    const std::vector<uint32_t> all = BitsOf(product.Compute(gpu, 0, rows));
    for (const int64_t chunk : {int64_t{1}, int64_t{7}, kFewRows + 3}) {
      std::vector<uint32_t> chunks;
      for (int64_t row = 0; row < rows; row += chunk) {
        const auto bits = BitsOf(product.Compute(gpu, row, std::min(chunk, rows - row)));
        chunks.insert(chunks.end(), bits.begin(), bits.end());
      }
      EXPECT_EQ(chunks, all) << "k " << shape.k << ", chunks of " << chunk;
    }
  }
}

// Rows of integers on a device. blocks: scales of a row; groups: sums of a row, or 0.
DeviceIntegers NewIntegers(TestGpu& gpu, int64_t rows, int64_t cols, int64_t stride, int64_t blocks,
                           int64_t groups) {
  return {.data = gpu.New<int8_t>(rows * stride),
          .stride = stride,
          .rows = rows,
          .cols = cols,
          .scales = gpu.New<float>(rows * blocks),
          .group_sums = groups == 0 ? nullptr : gpu.New<int16_t>(rows * groups)};
}

// Quantizes n numbers as ops::QuantizeRow does. Returns the scale.
float Quantized(const float* x, int64_t n, int8_t* out) {
  const float largest = Scalar().largest_magnitude(x, n);
  std::fill_n(out, IntegerStride(n), int8_t{0});
  if (std::isnan(largest)) return kNan;
  if (largest < 0x1p-120f) return 0;
  Scalar().quantize(x, 127.0f / largest, n, out);
  return largest / 127.0f;
}

// Rows for products of integers, the last three of them special.
std::vector<float> SpecialRows(int64_t rows, int64_t k, uint32_t seed) {
  std::vector<float> x = RandomNumbers(rows * k, seed, -3, 3);
  std::fill_n(x.end() - k, k, 0x1p-121f);
  if (rows >= 2) x[x.size() - k - 1] = kInfinity;
  if (rows >= 3) x[x.size() - 2 * k - 1] = kNan;
  return x;
}

TEST(LinearInt8, HasTheBitsOfTheScalarKernel) {
  for (const Shape& shape : kShapes) {
    for (const int64_t rows : {1, 5, 8, 9, 16, 17, 67}) {
      const int64_t k = shape.k, stride = IntegerStride(k);
      const std::vector<float> x = SpecialRows(rows, k, 1);
      std::vector<int8_t> w(shape.columns * k);
      RandomFloats random(2);
      for (int8_t& number : w) number = static_cast<int8_t>(random.Extreme(-128, 127));
      const std::vector<std::byte> panels = Packed(DType::kI8, w, shape.columns, k);
      const std::vector<float> scales = RandomNumbers(shape.columns, 3, 0.01f, 1);
      const std::vector<float> bias = RandomNumbers(shape.columns, 4);
      const std::vector<float> out = InBothOrders([&](TestGpu& gpu) {
        const DeviceIntegers integers = NewIntegers(gpu, rows, k, stride + 8, 1, 0);
        QuantizeForInt8(gpu.stream(), gpu.PutMatrix(x, rows, k), integers);
        const auto result = gpu.NewMatrix<float>(rows, shape.columns);
        LinearInt8(gpu.stream(), integers,
                   {.panels = gpu.Put(panels),
                    .outputs = shape.columns,
                    .inputs = k,
                    .bias = rows % 2 == 0 ? nullptr : gpu.Put(bias),
                    .scales = gpu.Put(scales)},
                   result);
        return gpu.GetMatrix(result);
      });

      std::vector<int8_t> a(rows * stride);
      std::vector<float> a_scales(rows), expected(rows * shape.columns);
      for (int64_t row = 0; row < rows; ++row) {
        a_scales[row] = Quantized(x.data() + row * k, k, a.data() + row * stride);
      }
      kernels::Guarded<std::byte> aligned(std::ssize(panels));
      std::ranges::copy(panels, aligned.data());
      Scalar().gemm_i8({.a = a.data(),
                        .a_stride = stride,
                        .w = aligned.data(),
                        .bias = rows % 2 == 0 ? nullptr : bias.data(),
                        .out = expected.data(),
                        .out_stride = shape.columns,
                        .rows = rows,
                        .k = k,
                        .columns = shape.columns,
                        .panel_begin = 0,
                        .panel_end = PanelCount(shape.columns),
                        .a_scales = a_scales.data(),
                        .w_scales = scales.data()});
      for (size_t i = 0; i < out.size(); ++i) {
        if (std::isnan(expected[i])) {
          ASSERT_TRUE(std::isnan(out[i])) << i;
        } else {
          ASSERT_EQ(Bits(out[i]), Bits(expected[i])) << "k " << k << ", element " << i;
        }
      }
    }
  }
}

constexpr std::array<int8_t, 16> kTable = {-128, -104, -83, -65, -49, -35, -22, -10,
                                           1,    13,   25,  38,  53,  69,  89,  127};

std::vector<GroupFormat> AllFormats() {
  std::vector<GroupFormat> formats;
  for (const Codes codes : {Codes::k4, Codes::k4Table, Codes::k5, Codes::k6, Codes::k8}) {
    for (const Scaling scaling : {Scaling::kCentred, Scaling::kZeros, Scaling::kMins,
                                  Scaling::kNested, Scaling::kNestedMins}) {
      for (int32_t group = 16; group <= kMaxGroup; group *= 2) {
        GroupFormat format = {.codes = codes, .scaling = scaling, .group = group};
        if (codes == Codes::k4Table) format.table = kTable;
        if (IsInUse(format)) formats.push_back(format);
      }
    }
  }
  return formats;
}

// A random weight of groups, in panels.
std::vector<std::byte> RandomGroups(const GroupFormat& format, const Shape& shape, uint32_t seed) {
  RandomFloats random(seed);
  const int64_t panel_bytes = kernels::GroupPanelBytes(format, shape.k);
  kernels::Guarded<std::byte> panels(PanelCount(shape.columns) * panel_bytes);
  std::fill_n(panels.data(), panels.size(), std::byte{0});
  for (int64_t column = 0; column < shape.columns; ++column) {
    kernels::GroupedRow row = kernels::NewGroupedRow(format, shape.k);
    const int64_t largest = (int64_t{1} << BitsOf(format.codes)) - 1;
    for (uint8_t& x : row.codes) x = static_cast<uint8_t>(random.Extreme(0, largest));
    for (float& x : row.scales) x = ToFloat(ToF16(random(0.01f, 1)));
    for (float& x : row.mins) x = ToFloat(ToF16(random(-1, 1)));
    for (uint8_t& x : row.zeros) x = static_cast<uint8_t>(random.Extreme(0, 255));
    for (int8_t& x : row.parts) x = static_cast<int8_t>(random.Extreme(-128, 127));
    for (int8_t& x : row.min_parts) x = static_cast<int8_t>(random.Extreme(-128, 127));
    kernels::PackColumn(format, row, column % kPanelColumns,
                        panels.data() + column / kPanelColumns * panel_bytes);
  }
  return {panels.data(), panels.data() + panels.size()};
}

// The product of the scalar kernel.
std::vector<float> ScalarGroups(const GroupFormat& format, const Shape& shape, int64_t rows,
                                const std::vector<float>& x, const std::vector<std::byte>& panels,
                                const float* factors, const float* bias) {
  const int64_t blocks = BlockCount(format, shape.k), inputs = BlockInputs(format);
  const int64_t stride = blocks * inputs, groups = blocks * GroupsOfBlock(format);
  std::vector<int8_t> a(rows * stride);
  std::vector<float> scales(rows * blocks), out(rows * shape.columns);
  std::vector<int16_t> sums(rows * groups);
  for (int64_t i = 0; i < rows * blocks; ++i) {
    const int64_t begin = i % blocks * inputs;
    scales[i] = Quantized(x.data() + i / blocks * shape.k + begin,
                          std::min(inputs, shape.k - begin), a.data() + i * inputs);
  }
  for (int64_t i = 0; i < rows * groups; ++i) {
    for (int64_t j = 0; j < format.group; ++j) sums[i] += a[i * format.group + j];
  }
  kernels::Guarded<std::byte> aligned(std::ssize(panels));
  std::ranges::copy(panels, aligned.data());
  Scalar().gemm_groups({.format = &format,
                        .a = a.data(),
                        .a_stride = stride,
                        .w = aligned.data(),
                        .bias = bias,
                        .out = out.data(),
                        .out_stride = shape.columns,
                        .rows = rows,
                        .k = shape.k,
                        .columns = shape.columns,
                        .panel_begin = 0,
                        .panel_end = PanelCount(shape.columns),
                        .a_scales = scales.data(),
                        .a_scales_stride = blocks,
                        .a_sums = sums.data(),
                        .a_sums_stride = groups,
                        .factors = factors});
  return out;
}

TEST(LinearGroups, HasTheBitsOfTheScalarKernelInEveryFormat) {
  uint32_t seed = 0;
  for (const GroupFormat& format : AllFormats()) {
    for (const Shape& shape : {Shape{1, 3}, Shape{100, 65}, Shape{1300, 20}}) {
      // Many rows of one shape, another one in each format.
      const bool many = (seed + seed / 3) % 3 == 0;
      ++seed;
      const int64_t rows = 1 + seed % 7 + (many ? kFewRows + seed % 61 : 0);
      const std::vector<float> x = SpecialRows(rows, shape.k, seed);
      const std::vector<std::byte> panels = RandomGroups(format, shape, seed);
      const std::vector<float> factors = RandomNumbers(shape.columns, 1, 0.5f, 2);
      const std::vector<float> bias = RandomNumbers(shape.columns, 2);
      const bool extras = seed % 2 == 0;
      const std::vector<float> out = InBothOrders([&](TestGpu& gpu) {
        const int64_t blocks = BlockCount(format, shape.k);
        const DeviceIntegers integers =
            NewIntegers(gpu, rows, shape.k, IntegerStride(format, shape.k), blocks,
                        blocks * GroupsOfBlock(format));
        QuantizeForGroups(gpu.stream(), gpu.PutMatrix(x, rows, shape.k), format, integers);
        const auto result = gpu.NewMatrix<float>(rows, shape.columns);
        LinearGroups(gpu.stream(), integers, format,
                     {.panels = gpu.Put(panels),
                      .outputs = shape.columns,
                      .inputs = shape.k,
                      .bias = extras ? gpu.Put(bias) : nullptr,
                      .scales = extras ? gpu.Put(factors) : nullptr},
                     result);
        return gpu.GetMatrix(result);
      });
      const std::vector<float> expected =
          ScalarGroups(format, shape, rows, x, panels, extras ? factors.data() : nullptr,
                       extras ? bias.data() : nullptr);
      for (size_t i = 0; i < out.size(); ++i) {
        if (std::isnan(expected[i])) {
          ASSERT_TRUE(std::isnan(out[i])) << i;
        } else {
          ASSERT_EQ(Bits(out[i]), Bits(expected[i]))
              << "codes " << static_cast<int>(format.codes) << ", scaling "
              << static_cast<int>(format.scaling) << ", groups of " << format.group << ", k "
              << shape.k << ", element " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace godwit::cuda::linear_test
