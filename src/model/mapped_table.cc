#include "model/mapped_table.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

#include "weights/tensor_rows.h"

namespace godwit {
namespace {

std::shared_ptr<const Buffer> CopyOf(std::span<const std::byte> bytes) {
  auto copy = std::make_shared<Buffer>(std::ssize(bytes));
  std::memcpy(copy->data(), bytes.data(), bytes.size());
  return copy;
}

Table MapBlocks(const TensorInfo& tensor, std::shared_ptr<const MappedFile> file) {
  Table table{.rows = tensor.shape[0], .cols = tensor.shape[1], .data = {}};
  TensorInfo kept = tensor;
  std::shared_ptr<const void> keeper = file;
  if (file == nullptr) {
    const auto copy = CopyOf(tensor.bytes);
    kept.bytes = {copy->data(), static_cast<size_t>(copy->bytes())};
    keeper = copy;
  }
  table.read = [kept = std::move(kept), keeper = std::move(keeper)](
                   int64_t row, std::span<float> out) { ReadRow(kept, row, out); };
  return table;
}

}  // namespace

Table MapTable(const TensorInfo& tensor, std::shared_ptr<const MappedFile> file) {
  if (tensor.blocks != nullptr) return MapBlocks(tensor, std::move(file));
  Table table{.dtype = *tensor.dtype, .rows = tensor.shape[0], .cols = tensor.shape[1], .data = {}};
  const auto address = reinterpret_cast<uintptr_t>(tensor.bytes.data());
  if (file == nullptr || address % SizeOf(table.dtype) != 0) {
    table.data = Buffer(std::ssize(tensor.bytes));
    std::memcpy(table.data.data(), tensor.bytes.data(), tensor.bytes.size());
  } else {
    table.data = Buffer(std::move(file), tensor.bytes);
  }
  return table;
}

}  // namespace godwit
