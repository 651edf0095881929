#include "quant/write_gguf.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/name_list.h"
#include "base/new_file.h"
#include "base/new_folder.h"
#include "base/quote.h"
#include "quant/check_disk.h"
#include "quant/quantization_block.h"
#include "quant/stage_hooks.h"
#include "tensor/float_bytes.h"
#include "weights/gguf_encode.h"
#include "weights/tensor_rows.h"

namespace godwit::quant {
namespace {

// The scheme's type, or the next one whose blocks divide rows of this many columns.
const GgufTensorType& TypeFor(std::string_view wanted, int64_t columns) {
  for (const std::string_view name : {wanted, std::string_view("Q8_0"), std::string_view("F16")}) {
    const GgufTensorType& type = *FindGgufTensorType(name);
    if (columns % type.elements == 0) return type;
  }
  return *FindGgufTensorType("F16");
}

// A part's numbers, a row at a time, in the file's order.
class PartRows {
 public:
  explicit PartRows(const GgufPart& part) : part_(part), from_(part.rows.size()) {
    for (size_t i = 0; i < part.rows.size(); ++i) {
      from_[part.rows[i]] = static_cast<int64_t>(i);
    }
    if (part.sources.empty()) return;
    const TensorInfo& first = *part.sources.front();
    // A vector is one row, in its order. All experts' matrices follow each other.
    vector_ = first.shape.size() < 2;
    rows_of_source_ = vector_ ? 1 : first.shape[0];
    columns_ = first.NumElements() / rows_of_source_;
  }

  int64_t rows() const {
    return part_.sources.empty() ? 1 : rows_of_source_ * std::ssize(part_.sources);
  }
  int64_t columns() const { return part_.sources.empty() ? std::ssize(part_.values) : columns_; }

  void Read(int64_t row, std::span<float> out) const {
    if (part_.sources.empty()) {
      std::ranges::copy(part_.values, out.begin());
      return;
    }
    const TensorInfo& source = *part_.sources[row / rows_of_source_];
    if (vector_) {
      const std::vector<float> values = ReadAllRows(source);
      for (size_t i = 0; i < values.size(); ++i) {
        out[i] = values[from_.empty() ? i : static_cast<size_t>(from_[i])];
      }
    } else {
      const int64_t at = row % rows_of_source_;
      ReadRow(source, from_.empty() ? at : from_[at], out);
    }
    if (part_.added == 0) return;
    for (float& value : out) value += part_.added;
  }

 private:
  const GgufPart& part_;
  std::vector<int64_t> from_;  // the inverse of the part's order
  bool vector_ = true;
  int64_t rows_of_source_ = 1;
  int64_t columns_ = 0;
};

float LargestOf(const GgufTensorType& type) {
  const BlockFormat* const format = FindBlockFormat(type.name);
  if (format != nullptr) return LargestEncoded(*format);
  return type.dtype == DType::kF16 ? kLargestF16 : std::numeric_limits<float>::max();
}

void EncodeInto(const GgufTensorType& type, std::span<const float> row, std::byte* out) {
  const BlockFormat* const format = FindBlockFormat(type.name);
  format != nullptr ? EncodeRow(*format, row, out) : WriteFloats(row, *type.dtype, out);
}

class GgufWriter {
 public:
  GgufWriter(const Exec& exec, NewFile& file) : exec_(exec), file_(file) {}

  void Write(const GgufPart& part, const NewGgufTensor& tensor,
             const std::function<void(double share)>& progress) {
    constexpr int64_t kChunkFloats = int64_t{4} << 20;
    const PartRows rows(part);
    const int64_t chunk = std::max<int64_t>(1, kChunkFloats / std::max<int64_t>(1, rows.columns()));
    const auto row_bytes =
        static_cast<size_t>(rows.columns() / tensor.type->elements * tensor.type->bytes);
    for (int64_t begin = 0; begin < rows.rows(); begin += chunk) {
      if (exec_.cancel != nullptr) exec_.cancel->ThrowIfCancelled();
      const int64_t count = std::min(chunk, rows.rows() - begin);
      bytes_.resize(static_cast<size_t>(count) * row_bytes);
      EncodeRows(rows, tensor, begin, count, row_bytes);
      file_.Write(bytes_);
      progress(static_cast<double>(begin + count) / static_cast<double>(rows.rows()));
    }
    file_.PadTo(kGgufAlignment);
  }

 private:
  void EncodeRows(const PartRows& rows, const NewGgufTensor& tensor, int64_t begin, int64_t count,
                  size_t row_bytes) {
    const float largest = LargestOf(*tensor.type);
    std::atomic<bool> beyond = false;
    exec_.ParallelRows(count, rows.columns(), [&](int64_t i) {
      std::vector<float> row(rows.columns());
      rows.Read(begin + i, row);
      // NaN fails every comparison.
      if (!std::ranges::all_of(row, [&](float x) { return std::abs(x) <= largest; })) {
        beyond = true;
        return;
      }
      EncodeInto(*tensor.type, row, bytes_.data() + static_cast<size_t>(i) * row_bytes);
    });
    if (!beyond) return;
    Throw(ErrorKind::kUnsupported,
          "tensor {}: a number is out of range for {}, which holds up to {:g}: use --type f32, "
          "unless it is infinity or NaN",
          tensor.name, tensor.type->name, largest);
  }

  const Exec& exec_;
  NewFile& file_;
  std::vector<std::byte> bytes_;
};

int64_t SourceBytes(const GgufPart& part) {
  int64_t bytes = 0;
  for (const TensorInfo* source : part.sources) bytes += std::ssize(source->bytes);
  return bytes;
}

}  // namespace

const GgufScheme& FindGgufScheme(std::string_view name) {
  const auto found = std::ranges::find(kGgufSchemes, name, &GgufScheme::name);
  if (found != std::end(kGgufSchemes)) return *found;
  Throw(ErrorKind::kInput, "expected {}, found {}",
        NameList(kGgufSchemes, &GgufScheme::name, " or "), Quote(name));
}

GgufPlan PlanGguf(const ModelFolder& model, const GgufScheme& scheme) {
  RefuseQuantized(model.config(), model.path());
  GgufPlan plan{.form = GgufFormOf(model)};
  plan.form.keys.U32("general.file_type", scheme.file_type);
  for (const GgufPart& part : plan.form.tensors) {
    const GgufTensorType* type = FindGgufTensorType("F32");
    if (part.matrix) {
      const std::string_view wanted = part.outer ? scheme.outer : scheme.type;
      type = &TypeFor(wanted, part.shape.back());
      if (type->name != wanted) ++plan.fallbacks[std::string(type->name)];
    }
    plan.tensors.push_back({.name = part.name, .shape = part.shape, .type = type});
    plan.before_bytes += SourceBytes(part);
    plan.after_bytes += GgufAligned(plan.tensors.back().bytes());
  }
  plan.after_bytes += std::ssize(GgufHeader(plan.form.keys, plan.tensors));
  return plan;
}

void WriteGguf(const Exec& exec, const ModelFolder& model, const GgufPlan& plan,
               const std::filesystem::path& to, const StageHooks& hooks) {
  RefuseExisting(to);
  const std::filesystem::path folder = to.has_parent_path() ? to.parent_path() : ".";
  RemoveAbandoned(folder, to.filename().native());
  NewFile file(to);
  CheckDisk(folder, plan.after_bytes);
  file.CopyPermissions(model.weight_files().front());
  const std::string header = GgufHeader(plan.form.keys, plan.tensors);
  file.Write(std::as_bytes(std::span(header)));
  GgufWriter writer(exec, file);
  const auto progress = ProgressOf(Stage::kWriting, hooks);
  int64_t done = 0;
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const GgufPart& part = plan.form.tensors[i];
    const int64_t bytes = SourceBytes(part);
    writer.Write(part, plan.tensors[i], [&](double share) {
      progress(done + static_cast<int64_t>(share * static_cast<double>(bytes)), plan.before_bytes);
    });
    done += bytes;
    for (const TensorInfo* source : part.sources) model.weights().Release(*source);
  }
  file.Sync();
  RefuseExisting(to);
  file.Commit();
}

}  // namespace godwit::quant
