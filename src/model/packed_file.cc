#include "model/packed_file.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "base/checksum.h"
#include "base/error.h"
#include "base/quote.h"
#include "ops/pack_weight.h"

namespace godwit {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);

bool HasScales(DType dtype) { return dtype == DType::kI8 || dtype == DType::kGrouped; }

int64_t PanelBytes(const Weight& weight) {
  const int64_t bytes = weight.dtype == DType::kGrouped
                            ? ops::PackedBytes(weight.groups, weight.outputs, weight.inputs)
                            : ops::PackedBytes(weight.dtype, weight.outputs, weight.inputs);
  return bytes - (HasScales(weight.dtype) ? weight.outputs * kFloatBytes : 0);
}

// Whether each output of an int8 layer needs the sum of its row, to subtract the zero point of the
// input.
bool HasRowSums(const InputQuantization& input) {
  return !input.symmetric && input.kind != InputScale::kStatic;
}

// Names of a weight's parts behind its panels.
std::string ScalesOf(std::string_view name) { return std::string(name) + " scales"; }
std::string InputOf(std::string_view name) { return std::string(name) + " input"; }
std::string RowSumsOf(std::string_view name) { return std::string(name) + " row sums"; }
std::string BiasOf(std::string_view name) { return std::string(name) + " bias"; }

}  // namespace

PackedWriter::PackedWriter(NewFile& file) : file_(file) { file_.Write(PackedBeginning()); }

void PackedWriter::WritePart(std::string name, std::span<const std::byte> bytes) {
  const int64_t offset = PackedHeader::OffsetFor(file_.size(), std::ssize(bytes));
  file_.PadTo(offset % PackedHeader::kAlignment == 0 ? PackedHeader::kAlignment : 64);
  parts_.push_back({.name = std::move(name),
                    .offset = offset,
                    .bytes = std::ssize(bytes),
                    .checksum = Checksum(bytes)});
  file_.Write(bytes);
}

void PackedWriter::Write(const Weight& weight) {
  // Fields are bound by name: a new field needs a place in a copy, or this does not compile.
  const auto& [dtype, outputs, inputs, panels, bias, scales, input, row_sums, name, groups, order] =
      weight;
  WritePart(name, {panels.data(), static_cast<size_t>(panels.bytes())});
  if (HasScales(dtype)) Write(ScalesOf(name), scales);
  if (input.kind == InputScale::kStatic) {
    const float numbers[] = {input.scale, static_cast<float>(input.zero_point)};
    Write(InputOf(name), numbers);
  }
  if (HasRowSums(input)) Write(RowSumsOf(name), row_sums);
  if (!bias.empty()) Write(BiasOf(name), bias);
}

void PackedWriter::Write(std::string_view name, const Table& table) {
  WritePart(std::string(name), {table.data.data(), static_cast<size_t>(table.data.bytes())});
}

void PackedWriter::Write(std::string_view name, std::span<const float> values) {
  WritePart(std::string(name), std::as_bytes(values));
}

void PackedWriter::Finish(PackedInfo info) {
  file_.Write(PackedEnd({.info = std::move(info), .parts = std::move(parts_)}));
}

PackedFile::PackedFile(const std::filesystem::path& path)
    : file_(std::make_shared<const MappedFile>(path)),
      header_(ParsePackedHeader(file_->Span(), QuoteUnlessPlain(path.native()))) {}

Buffer PackedFile::Part(const PackedPart& part) const {
  return {file_, file_->Span().subspan(part.offset, part.bytes)};
}

void PackedFile::LoadIntoMemory(ThreadPool& pool) const {
  file_->Advise(0, file_->Span().size(), MappedFile::Advice::kLargePages);
  std::atomic<bool> failed = false;
  std::mutex mutex;
  std::optional<size_t> first;
  pool.Run(std::ssize(header_.parts), [&](int64_t i, int /*worker*/) {
    const PackedPart& part = header_.parts[i];
    const auto offset = static_cast<size_t>(part.offset), bytes = static_cast<size_t>(part.bytes);
    if (!file_->LoadIntoMemory(offset, bytes)) {
      failed = true;
      return;
    }
    if (Checksum(file_->Span().subspan(offset, bytes)) == part.checksum) return;
    const std::lock_guard lock(mutex);
    first = std::min(first.value_or(SIZE_MAX), static_cast<size_t>(i));
  });
  if (failed) Throw(ErrorKind::kIo, "{}: cannot be read", QuoteUnlessPlain(path()));
  if (!first) return;
  Throw(ErrorKind::kFormat, "{}: damaged: {} has another checksum", QuoteUnlessPlain(path()),
        Quote(header_.parts[*first].name));
}

Buffer PackedReader::Take(std::string_view name, int64_t bytes) {
  const PackedPart* const next = next_ < file_.parts().size() ? &file_.parts()[next_] : nullptr;
  if (next == nullptr || next->name != name || next->bytes != bytes) {
    Throw(
        ErrorKind::kFormat,
        "{}: the packed copy of another model: expected {} of {} bytes, found {}",
        QuoteUnlessPlain(file_.path()), Quote(name), bytes,
        next == nullptr ? "nothing more" : fmt::format("{} of {}", Quote(next->name), next->bytes));
  }
  ++next_;
  return file_.Part(*next);
}

Weight PackedReader::Read(Weight weight, bool has_bias) {
  auto& [dtype, outputs, inputs, panels, bias, scales, input, row_sums, name, groups, order] =
      weight;
  panels = Take(name, PanelBytes(weight));
  if (HasScales(dtype)) scales = Read(ScalesOf(name), outputs);
  if (input.kind == InputScale::kStatic) {
    const std::vector<float> numbers = Read(InputOf(name), 2);
    input.scale = numbers[0];
    if (!(std::abs(numbers[1]) <= 128)) {
      Throw(ErrorKind::kFormat, "{}: {} has the zero point {}, expected -128 to 128",
            QuoteUnlessPlain(file_.path()), Quote(name), numbers[1]);
    }
    input.zero_point = static_cast<int32_t>(numbers[1]);
  }
  if (HasRowSums(input)) row_sums = Read(RowSumsOf(name), outputs);
  if (has_bias) bias = Read(BiasOf(name), outputs);
  return weight;
}

Table PackedReader::Read(std::string_view name, Table table) {
  table.data = Take(name, table.rows * table.cols * static_cast<int64_t>(SizeOf(table.dtype)));
  return table;
}

std::vector<float> PackedReader::Read(std::string_view name, int64_t count) {
  const Buffer bytes = Take(name, count * kFloatBytes);
  std::vector<float> values(count);
  if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.bytes());
  return values;
}

void PackedReader::Finish() const {
  if (next_ == file_.parts().size()) return;
  Throw(ErrorKind::kFormat,
        "{}: the packed copy of another model: expected no further part, found {}",
        QuoteUnlessPlain(file_.path()), Quote(file_.parts()[next_].name));
}

}  // namespace godwit
