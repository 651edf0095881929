#include "kernels/packing.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace godwit::kernels::packing_test {
namespace {

constexpr int64_t kColumns[] = {50, 64};  // the other columns of the panel are padding
constexpr int64_t kDepths[] = {0, 1, 2, 3, 4, 5, 33, 64, 133};

TEST(PackingTest, CountsPanelsAndBytes) {
  EXPECT_EQ(PanelCount(0), 0);
  EXPECT_EQ(PanelCount(1), 1);
  EXPECT_EQ(PanelCount(64), 1);
  EXPECT_EQ(PanelCount(65), 2);
  EXPECT_EQ(PanelBytes(DType::kF32, 5), 5 * 64 * 4);
  EXPECT_EQ(PanelBytes(DType::kF16, 5), 5 * 64 * 2);
  EXPECT_EQ(PanelBytes(DType::kBF16, 5), 6 * 64 * 2);
  EXPECT_EQ(PanelBytes(DType::kBF16, 0), 0);
}

// place(k, c): the index of w[c, k] in the panel.
template <class T, class Place>
void ExpectLayout(DType dtype, int64_t columns, int64_t k, Place place) {
  // Elements start one byte past their alignment, as they may in a mapped file.
  std::vector<char> bytes(1 + columns * k * sizeof(T));
  const auto value = [&](int64_t column, int64_t i) { return static_cast<T>(1 + column * k + i); };
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t i = 0; i < k; ++i) {
      const T x = value(c, i);
      std::memcpy(bytes.data() + 1 + (c * k + i) * sizeof(T), &x, sizeof(T));
    }
  }
  const void* rows[kPanelColumns] = {};
  for (int64_t c = 0; c < columns; ++c) rows[c] = bytes.data() + 1 + c * k * sizeof(T);

  const size_t elements = PanelBytes(dtype, k) / sizeof(T);
  std::vector<T> want(elements, T{0});
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t i = 0; i < k; ++i) want[place(i, c)] = value(c, i);
  }
  const T canary = 123;
  std::vector<T> panel(elements + 1, canary);
  PackPanel(dtype, rows, k, panel.data());
  EXPECT_EQ(panel.back(), canary);
  panel.pop_back();
  EXPECT_EQ(panel, want);
}

template <class T, class Place>
void ExpectLayout(DType dtype, Place place) {
  for (const int64_t columns : kColumns) {
    for (const int64_t k : kDepths) ExpectLayout<T>(dtype, columns, k, place);
  }
}

TEST(PackingTest, LayoutOfF32) {
  ExpectLayout<uint32_t>(DType::kF32, [](int64_t i, int64_t c) { return i * 64 + c; });
}

TEST(PackingTest, LayoutOfF16) {
  ExpectLayout<uint16_t>(DType::kF16, [](int64_t i, int64_t c) { return i * 64 + c; });
}

TEST(PackingTest, LayoutOfBF16) {
  ExpectLayout<uint16_t>(DType::kBF16,
                         [](int64_t i, int64_t c) { return (i / 2 * 64 + c) * 2 + i % 2; });
}

// Expects int8 + 128, unsigned; padding is zero, hence 128.
void ExpectLayoutOfI8(int64_t columns, int64_t k) {
  std::vector<int8_t> w(columns * k);
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<int8_t>(i * 37 - 128);
  const void* rows[kPanelColumns] = {};
  for (int64_t c = 0; c < columns; ++c) rows[c] = w.data() + c * k;
  std::vector<uint8_t> want(PanelBytes(DType::kI8, k), 128);
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t i = 0; i < k; ++i) {
      want[(i / 4 * 64 + c) * 4 + i % 4] = static_cast<uint8_t>(w[c * k + i] + 128);
    }
  }
  std::vector<uint8_t> panel(want.size() + 1, 77);
  PackPanel(DType::kI8, rows, k, panel.data());
  EXPECT_EQ(panel.back(), 77);
  panel.pop_back();
  EXPECT_EQ(panel, want);
}

TEST(PackingTest, LayoutOfI8) {
  EXPECT_EQ(PanelBytes(DType::kI8, 5), 8 * 64);
  for (const int64_t columns : kColumns) {
    for (const int64_t k : kDepths) ExpectLayoutOfI8(columns, k);
  }
}

}  // namespace
}  // namespace godwit::kernels::packing_test
