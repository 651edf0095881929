#include "model/mapped_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/test_folder.h"
#include "kernels/dispatch.h"
#include "ops/embedding.h"
#include "tensor/workspace.h"
#include "weights/gguf_blocks.h"
#include "weights/tensor_rows.h"

namespace godwit::mapped_table_test {
namespace {

constexpr int64_t kRows = 5, kColumns = 64;

// Rows of Q8_0 at any place of a file, with scales and codes that differ.
std::string Bytes(size_t before) {
  std::string bytes(before, '?');
  for (int64_t block = 0; block < kRows * kColumns / 32; ++block) {
    bytes += '\0';
    bytes += static_cast<char>(0x30 + block % 9);  // the upper byte of an F16
    for (int code = 0; code < 32; ++code) bytes += static_cast<char>(7 * code + block);
  }
  return bytes;
}

std::vector<float> Rows(const Table& table, std::vector<int32_t> tokens) {
  ThreadPool pool(2);
  Workspace workspace;
  const Exec exec{.pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace};
  Workspace::Scope scope(workspace);
  const auto out = workspace.Matrix<float>(std::ssize(tokens), table.cols);
  ops::Embed(exec, tokens, table, out);
  std::vector<float> rows;
  for (int64_t i = 0; i < out.rows; ++i) {
    rows.insert(rows.end(), out.RowSpan(i).begin(), out.RowSpan(i).end());
  }
  return rows;
}

TensorInfo Matrix(std::span<const std::byte> bytes) {
  return {.name = "table",
          .dtype_name = "Q8_0",
          .blocks = FindBlockFormat("Q8_0"),
          .shape = {kRows, kColumns},
          .bytes = bytes};
}

std::vector<float> Expected(const TensorInfo& tensor, const std::vector<int32_t>& tokens) {
  std::vector<float> rows;
  for (const int32_t token : tokens) {
    std::vector<float> row(kColumns);
    ReadRow(tensor, token, row);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

TEST(MapTable, BlocksAreDecodedWhereTheyLie) {
  const TempFolder folder;
  for (const size_t before : {0, 1, 32}) {
    const auto path = folder.path() / std::to_string(before);
    std::ofstream(path, std::ios::binary) << Bytes(before);
    auto file = std::make_shared<const MappedFile>(path);
    const TensorInfo tensor = Matrix(file->Span().subspan(before));
    const auto expected = Expected(tensor, {4, 0, 2, 2});
    const Table table = MapTable(tensor, std::move(file));  // keeps the file
    EXPECT_EQ(table.data.bytes(), 0) << "nothing is copied";
    EXPECT_EQ(Rows(table, {4, 0, 2, 2}), expected) << before;
  }
}

TEST(MapTable, BlocksWithoutAFileAreCopied) {
  std::string bytes = Bytes(0);
  const TensorInfo tensor = Matrix(std::as_bytes(std::span(bytes)));
  const auto expected = Expected(tensor, {1, 3});
  const Table table = MapTable(tensor, nullptr);
  std::ranges::fill(bytes, '!');
  EXPECT_EQ(Rows(table, {1, 3}), expected);
}

TEST(MapTable, FloatsAreMappedWhereTheyAreAligned) {
  const TempFolder folder;
  std::string bytes(1, '?');
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    const float number = 0.5f * static_cast<float>(i);
    bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  for (const size_t skipped : {0, 1}) {
    const auto path = folder.path() / std::to_string(skipped);
    std::ofstream(path, std::ios::binary) << bytes.substr(skipped);
    auto file = std::make_shared<const MappedFile>(path);
    TensorInfo tensor = Matrix(file->Span().subspan(1 - skipped));
    tensor.blocks = nullptr;
    tensor.dtype = DType::kF32;
    const Table table = MapTable(tensor, std::move(file));
    EXPECT_EQ(table.data.is_mapped(), skipped == 1);
    EXPECT_EQ(Rows(table, {3}).front(), 0.5f * 3 * kColumns);
  }
}

}  // namespace
}  // namespace godwit::mapped_table_test
