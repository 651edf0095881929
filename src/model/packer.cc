#include "model/packer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "model/block_weights.h"
#include "model/loaded_storage.h"
#include "model/mapped_table.h"
#include "model/packed_weights.h"
#include "model/row_order.h"
#include "model/stored_scales.h"
#include "ops/pack_weight.h"
#include "ops/quantize_groups.h"
#include "tensor/float_bytes.h"
#include "weights/tensor_rows.h"
#include "weights/transposed_matrix.h"

namespace godwit {
namespace {

constexpr int64_t kTablePieceBytes = int64_t{2} << 20;  // of a table, copied by one thread
constexpr int64_t kPrefetchOutputs = 64;

bool HasNan(const std::vector<float>& values) {
  return HasNan(DType::kF32, reinterpret_cast<const std::byte*>(values.data()), std::ssize(values));
}

// Widened rows of groups for each thread. PackWeight reads the outputs of one panel at a time,
// fewer than there are places.
class WidenedRows {
 public:
  explicit WidenedRows(int64_t inputs) : inputs_(inputs) {}

  // The place where the calling thread may put a row.
  std::span<float> Place(int64_t output) {
    const std::lock_guard lock(mutex_);
    std::vector<float>& rows = rows_[std::this_thread::get_id()];
    rows.resize(kPlaces * inputs_);
    return std::span(rows).subspan(static_cast<size_t>(output) % kPlaces * inputs_, inputs_);
  }

 private:
  static constexpr size_t kPlaces = 64;

  const size_t inputs_;
  std::mutex mutex_;
  std::map<std::thread::id, std::vector<float>> rows_;
};

float SumOfIntegers(const std::byte* bytes, int64_t n) {
  const auto* integers = reinterpret_cast<const int8_t*>(bytes);
  return static_cast<float>(std::accumulate(integers, integers + n, int32_t{0}));
}

// The end of each part, in outputs.
std::vector<int64_t> Ends(const LinearTensors& tensors) {
  std::vector<int64_t> ends;
  for (const TensorInfo* part : tensors.parts) {
    ends.push_back((ends.empty() ? 0 : ends.back()) + tensors.OutputsOf(*part));
  }
  return ends;
}

// Calls visit(part, rows) for the rows of every part that are read. Ranges begin and end with whole
// heads or blocks of rows, inside which alone the order differs.
template <typename Visit>
void VisitRowsRead(const DecoderSpec& stored, const LinearTensors& tensors, const Visit& visit) {
  if (tensors.taken_outputs.empty() || tensors.transposed) {
    for (const TensorInfo* part : tensors.parts) visit(*part, IndexRange{0, part->shape[0]});
    return;
  }
  const std::vector<int64_t> ends = Ends(tensors);
  for (const IndexRange& taken : tensors.taken_outputs) {
    const int64_t begin = SourceRow(stored, tensors, taken.begin);
    const auto part = static_cast<size_t>(std::ranges::upper_bound(ends, begin) - ends.begin());
    const int64_t first = begin - (part == 0 ? 0 : ends[part - 1]);
    visit(*tensors.parts[part],
          IndexRange{first, std::min(first + taken.count(), tensors.parts[part]->shape[0])});
  }
}

}  // namespace

std::vector<float> Packer::Packed(const LinearTensors& linear,
                                  const std::vector<std::vector<float>>& parts) const {
  std::vector<float> all;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto outputs = static_cast<size_t>(linear.OutputsOf(*linear.parts[i]));
    // A whole tensor's single scale stands for each of its outputs.
    for (size_t j = 0; j < outputs; ++j) all.push_back(parts[i][parts[i].size() == 1 ? 0 : j]);
  }
  if (all.empty()) return {};
  std::vector<float> packed(linear.outputs());
  for (size_t i = 0; i < packed.size(); ++i) {
    packed[i] = all[SourceRow(stored_, linear, linear.PlaceOf(static_cast<int64_t>(i)))];
  }
  return packed;
}

void Packer::PrefetchNext(int64_t begin, int64_t end, int64_t all) const {
  if (next_.empty()) return;
  VisitRowsRead(stored_, *next_.back(), [&](const TensorInfo& part, const IndexRange& rows) {
    const auto row_bytes = std::ssize(part.bytes) / std::max<int64_t>(1, part.shape[0]);
    const auto place = [&](int64_t i) {
      return static_cast<size_t>(row_bytes * rows.begin + row_bytes * rows.count() * i / all);
    };
    source_.Prefetch(part, place(begin), place(end) - place(begin));
  });
}

Packer::Place Packer::PlaceOf(const LinearTensors& tensors, std::span<const int64_t> ends,
                              int64_t output) const {
  if (output % kPrefetchOutputs == 0) {
    const int64_t outputs = tensors.outputs();
    PrefetchNext(output, std::min(output + kPrefetchOutputs, outputs), outputs);
  }
  const int64_t source = SourceRow(stored_, tensors, tensors.PlaceOf(output));
  const auto part = static_cast<size_t>(std::ranges::upper_bound(ends, source) - ends.begin());
  return {.part = part, .row = source - (part == 0 ? 0 : ends[part - 1])};
}

Weight Packer::Linear(const LinearTensors& tensors, std::optional<DType> storage) {
  if (tensors.parts.empty()) return {};
  assert(next_.back() == &tensors);
  next_.pop_back();
  const auto format = storage ? std::nullopt : FormatAsStored(tensors);
  if (places_.from != nullptr) return TakeLinear(tensors, storage, format);
  Weight weight = format ? PackGroups(tensors, *format) : PackFloats(tensors, storage);
  weight.name = ModuleName(tensors);
  if (places_.to == nullptr) return weight;
  places_.to->Write(weight);
  return {};
}

Weight Packer::TakeLinear(const LinearTensors& tensors, std::optional<DType> storage,
                          const std::optional<GroupFormat>& format) const {
  Weight weight{.dtype = StoredType(tensors, storage),
                .outputs = tensors.outputs(),
                .inputs = tensors.inputs(),
                .panels = {},
                .bias = {},
                .name = ModuleName(tensors)};
  if (weight.dtype == DType::kGrouped) weight.groups = format.value_or(ops::kQuantizedGroups);
  if (format && !tensors.packed.empty()) weight.input_order = tensors.packed.front()->order;
  if (tensors.quantization && weight.dtype == DType::kI8)
    weight.input = tensors.quantization->input;
  // A static input with a zero point always has a bias.
  const bool shifted = weight.input.kind == InputScale::kStatic && !weight.input.symmetric;
  return places_.from->Read(std::move(weight), shifted || !tensors.biases.empty());
}

void Packer::FinishRows(const LinearTensors& tensors, std::span<const std::atomic<bool>> nan,
                        Weight& weight) {
  for (size_t i = 0; i < tensors.parts.size(); ++i) Done(*tensors.parts[i], nan[i]);
  for (const auto& part : tensors.packed) {
    Done(part->scales, /*has_nan=*/false);
    if (part->zeros) Done(*part->zeros, /*has_nan=*/false);
    for (const TensorInfo& tensor : part->others) Done(tensor, /*has_nan=*/false);
  }
  std::vector<std::vector<float>> biases;
  if (tensors.takes_biases) {
    for (const TensorInfo* part : tensors.biases) biases.push_back(Floats(*part));
  }
  weight.bias = Packed(tensors, biases);
}

std::vector<PackedRows> Packer::ReadPackedParts(const LinearTensors& tensors) {
  std::vector<PackedRows> parts;
  for (const auto& part : tensors.packed) parts.emplace_back(pool_, *part);
  return parts;
}

Weight Packer::PackGroups(const LinearTensors& tensors, const GroupFormat& format) {
  const std::vector<int64_t> ends = Ends(tensors);
  const std::vector<PackedRows> packed = ReadPackedParts(tensors);
  std::vector<std::atomic<bool>> nan(tensors.parts.size());
  const auto fill = [&](int64_t output, ops::GroupedRow& row, float& factor) {
    const auto [part, source] = PlaceOf(tensors, ends, output);
    if (!packed.empty()) {
      ReadPacked(*tensors.packed[part], packed[part], source, tensors.first_input(), format, row,
                 factor);
    } else if (ReadBlocks(*tensors.parts[part], source, tensors.first_input(), format, row,
                          factor)) {
      nan[part] = true;
    }
  };
  Weight weight =
      ops::PackGroups(pool_, format, tensors.outputs(), tensors.inputs(), fill, places_.memory);
  if (!packed.empty()) weight.input_order = tensors.packed.front()->order;
  FinishRows(tensors, nan, weight);
  return weight;
}

Weight Packer::PackFloats(const LinearTensors& tensors, std::optional<DType> storage) {
  const DType dtype = SourceType(tensors);
  const bool widened = HoldsGroups(tensors);
  const std::vector<PackedRows> packed = ReadPackedParts(tensors);
  const int64_t stored_inputs = tensors.stored_inputs(), inputs = tensors.inputs();
  const auto element_bytes = static_cast<int64_t>(SizeOf(dtype));
  const int64_t first_byte = tensors.first_input() * element_bytes;
  WidenedRows widened_rows(stored_inputs);
  const std::vector<int64_t> ends = Ends(tensors);
  std::vector<Buffer> transposed;
  for (const TensorInfo* part : tensors.parts) {
    if (tensors.transposed) transposed.push_back(TransposedMatrix(pool_, *part));
  }
  std::vector<std::vector<float>> scales;
  for (const TensorInfo* part : tensors.scales) {
    scales.push_back(WeightScalesOf(*part, tensors.quantization->format, Floats(*part)));
  }
  for (const TensorInfo* part : tensors.row_orders) {
    CheckRowOrder(*part);
    Done(*part, /*has_nan=*/false);
  }
  const InputQuantization input = Input(tensors);
  std::vector<float> row_sums(input.symmetric ? 0 : static_cast<size_t>(tensors.outputs()));
  std::vector<std::atomic<bool>> nan(tensors.parts.size());
  const auto row = [&](int64_t output) -> const void* {
    const auto [part, source] = PlaceOf(tensors, ends, output);
    const std::byte* bytes = nullptr;
    if (widened) {
      const std::span<float> floats = widened_rows.Place(output);
      if (packed.empty()) {
        ReadRow(*tensors.parts[part], source, floats);
      } else {
        packed[part].Dequantize(source, floats);
      }
      bytes = std::as_bytes(floats).data();
    } else if (tensors.transposed) {
      bytes = transposed[part].data() + source * stored_inputs * element_bytes;
    } else {
      bytes = RowBytes(*tensors.parts[part], source);
    }
    bytes += first_byte;
    // PackedRows accepts no NaN.
    if (packed.empty() && HasNan(dtype, bytes, inputs)) nan[part] = true;
    if (!row_sums.empty()) row_sums[output] = SumOfIntegers(bytes, inputs);
    return bytes;
  };
  Weight weight =
      ops::PackWeight(pool_, dtype, tensors.outputs(), inputs, row, StoredType(tensors, storage),
                      Packed(tensors, scales), places_.memory);
  FinishRows(tensors, nan, weight);
  if (weight.dtype == dtype) SetInput(input, std::move(row_sums), weight);
  return weight;
}

InputQuantization Packer::Input(const LinearTensors& tensors) {
  if (!tensors.quantization || tensors.quantization->packed) return {};
  if (tensors.quantization->input.kind != InputScale::kStatic) return tensors.quantization->input;
  std::vector<InputQuantization> parts(tensors.parts.size(), tensors.quantization->input);
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].scale = InputScaleOf(*tensors.input_scales[i], Floats(*tensors.input_scales[i]));
    if (parts[i].symmetric) continue;
    parts[i].zero_point = ZeroPointOf(*tensors.input_zero_points[i]);
    Done(*tensors.input_zero_points[i], /*has_nan=*/false);
  }
  const InputQuantization joint = JoinInputs(parts);
  if (hooks_.warn && std::ranges::count(parts, joint) != std::ssize(parts)) {
    hooks_.warn(
        fmt::format("tensor {} differs from those of the layers that it is fused with: all of "
                    "their inputs are quantized with the scale {}, which covers them",
                    tensors.input_scales.front()->name, joint.scale));
  }
  return joint;
}

std::vector<ops::Expert> Packer::Experts(const std::vector<MlpTensors>& experts) {
  std::vector<ops::Expert> packed;
  for (const MlpTensors& expert : experts) {
    packed.push_back({.up = Linear(expert.up), .down = Linear(expert.down)});
  }
  return packed;
}

Table Packer::Rows(const TensorInfo& tensor, const std::optional<IndexRange>& rows) {
  const IndexRange taken = rows.value_or(IndexRange{0, tensor.shape[0]});
  Table table{.dtype = TableType(tensor, storage_),
              .rows = taken.count(),
              .cols = tensor.shape[1],
              .data = {}};
  if (places_.from != nullptr) return places_.from->Read(tensor.name, std::move(table));
  table = PackRows(tensor, taken.begin, std::move(table));
  if (places_.to == nullptr) return table;
  places_.to->Write(tensor.name, table);
  return {};
}

Table Packer::MappedRows(const TensorInfo& tensor) {
  if (places_.to != nullptr) return {};
  Table table = MapTable(tensor, source_.FileOf(tensor));
  Done(tensor, /*has_nan=*/false);
  return table;
}

Table Packer::PackRows(const TensorInfo& tensor, int64_t first, Table table) {
  table.data = NewBuffer(places_.memory,
                         TableBytes(tensor, storage_, IndexRange{first, first + table.rows}));
  std::atomic<bool> nan = false;
  if (tensor.blocks != nullptr) {
    pool_.Run(table.rows, [&](int64_t row, int /*worker*/) {
      std::vector<float> values(table.cols);
      ReadRow(tensor, first + row, values);
      if (HasNan(values)) nan = true;
      WriteFloats(values, table.dtype, table.data.data() + row * (table.data.bytes() / table.rows));
    });
    Done(tensor, nan);
    return table;
  }
  const std::byte* const from =
      tensor.bytes.data() + first * (std::ssize(tensor.bytes) / tensor.shape[0]);
  const int64_t pieces = (table.data.bytes() + kTablePieceBytes - 1) / kTablePieceBytes;
  pool_.Run(pieces, [&](int64_t piece, int /*worker*/) {
    const int64_t begin = piece * kTablePieceBytes;
    const int64_t bytes = std::min(kTablePieceBytes, table.data.bytes() - begin);
    std::memcpy(table.data.data() + begin, from + begin, bytes);
    const auto elements = bytes / static_cast<int64_t>(SizeOf(table.dtype));
    if (HasNan(table.dtype, table.data.data() + begin, elements)) nan = true;
  });
  Done(tensor, nan);
  return table;
}

std::vector<float> Taken(const std::vector<float>& numbers, const IndexRange& range) {
  return {numbers.begin() + range.begin, numbers.begin() + range.end};
}

ops::NormWeights Packer::Norm(const NormTensors& tensors) {
  ops::NormWeights norm{
      .kind = spec_.norm, .epsilon = spec_.norm_epsilon, .weight = {}, .bias = {}};
  norm.weight.assign(tensors.size, 1.0f);  // DecoderSpec::norm_gain
  if (tensors.weight != nullptr) norm.weight = Numbers(*tensors.weight);
  if (!tensors.heads.empty()) norm.weight.clear();
  for (const TensorInfo* head : tensors.heads) {
    const std::vector<float> gains = Numbers(*head);
    norm.weight.insert(norm.weight.end(), gains.begin(), gains.end());
  }
  if (tensors.taken) norm.weight = Taken(norm.weight, *tensors.taken);
  if (spec_.norm_gain_less_one) {
    for (float& gain : norm.weight) gain += 1;
  }
  if (tensors.bias != nullptr) norm.bias = Numbers(*tensors.bias);
  return norm;
}

// Reads stored numbers. The changes that a spec makes to them cost nothing.
std::vector<float> Packer::Numbers(const TensorInfo& tensor) {
  if (places_.from != nullptr) return places_.from->Read(tensor.name, tensor.NumElements());
  std::vector<float> values = Floats(tensor);
  if (places_.to != nullptr) places_.to->Write(tensor.name, values);
  return values;
}

// Orders the gains as the rows of q and k.
ops::NormWeights Packer::HeadNorm(const NormTensors& tensors) {
  ops::NormWeights norm = Norm(tensors);
  if (!spec_.interleaved_rotary) return norm;
  const std::vector<float> stored = norm.weight;
  for (size_t i = 0; i < stored.size(); ++i) {
    norm.weight[i] = stored[PairedRow(spec_, static_cast<int64_t>(i))];
  }
  return norm;
}

std::vector<float> Packer::Floats(const TensorInfo& tensor) {
  std::vector<float> values = ReadAllRows(tensor);
  Done(tensor, HasNan(values));
  return values;
}

void Packer::Done(const TensorInfo& tensor, bool has_nan) {
  if (has_nan && hooks_.warn) hooks_.warn(fmt::format("tensor {} holds NaN", tensor.name));
  source_.Release(tensor);
  done_bytes_ += static_cast<int64_t>(tensor.bytes.size());
  if (hooks_.progress) hooks_.progress(done_bytes_, total_bytes_);
  if (hooks_.cancel != nullptr) hooks_.cancel->ThrowIfCancelled();
}

// Some tools store the head of a tied model, too. If it differs, one of the two tensors is wrong.
void Packer::WarnIfUntied(const TensorInfo& embedding) const {
  const TensorInfo* head = source_.Find(spec_.names.head + ".weight");
  if (!spec_.tied_head || head == nullptr || !hooks_.warn) return;
  if (!std::ranges::equal(head->bytes, embedding.bytes)) {
    hooks_.warn(
        fmt::format("tensor {} differs from {}, but {} ties them: using the latter for both",
                    head->name, embedding.name, spec_.described_by));
  }
  source_.Release(*head);
}
void Packer::BeginToRead(const ModelTensors& tensors) const {
  if (!tensors.taken_tokens) WarnIfUntied(*tensors.head.parts[0]);
  for (const TensorInfo* table : {tensors.embedding, tensors.positions}) {
    if (table == nullptr) continue;
    const IndexRange rows = table == tensors.embedding && tensors.taken_tokens
                                ? *tensors.taken_tokens
                                : IndexRange{0, table->shape[0]};
    const size_t row_bytes = table->bytes.size() / static_cast<size_t>(table->shape[0]);
    source_.Prefetch(*table, rows.begin * row_bytes, rows.count() * row_bytes);
  }
  PrefetchNext(0, 1, 1);
}

DecoderWeights Packer::Pack(const ModelTensors& tensors) {
  total_bytes_ = tensors.bytes;
  next_ = LinearsOf(tensors);
  std::ranges::reverse(next_);
  if (places_.from == nullptr) BeginToRead(tensors);
  DecoderWeights weights;
  if (tensors.embedding != nullptr) {
    weights.embedding = Rows(*tensors.embedding, tensors.taken_tokens);
  }
  // Blocks of the embedding stay as they are, because rows are only looked up.
  weights.embedding_blocks = Linear(tensors.embedding_blocks, std::nullopt);
  if (tensors.positions != nullptr) weights.positions = Rows(*tensors.positions);
  weights.embedding_norm = Norm(tensors.embedding_norm);
  weights.project_in = Linear(tensors.project_in);
  weights.project_out = Linear(tensors.project_out);
  if (tensors.layer_table != nullptr) weights.layer_table = MappedRows(*tensors.layer_table);
  weights.layer_model = Linear(tensors.layer_model);
  weights.layer_model_norm = Norm(tensors.layer_model_norm);
  for (const LinearTensors& in : tensors.streams_in) weights.streams_in.push_back(Linear(in));
  for (const LinearTensors& out : tensors.streams_out) weights.streams_out.push_back(Linear(out));
  for (const LayerTensors& layer : tensors.layers) {
    weights.layers.push_back(Layer(layer));
  }
  weights.final_norm = Norm(tensors.final_norm);
  weights.head = Linear(tensors.head, HeadStorage(storage_));
  if (tensors.prediction && places_.to == nullptr) {
    weights.prediction = std::make_unique<PredictionWeights>(Prediction(*tensors.prediction));
  }
  return weights;
}

}  // namespace godwit
