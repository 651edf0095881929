#include "quant/write_checkpoint.h"

#include <array>
#include <fstream>
#include <map>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/open_file.h"
#include "model/draft_heads.h"
#include "quant/linear_layers.h"
#include "quant/quantization_block.h"
#include "quant/quantize_matrix.h"
#include "tensor/float_bytes.h"
#include "weights/open_weights.h"

namespace godwit::quant {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxConfigBytes = 16 << 20;

// Tensor name -> the linear layer in which it is quantized.
std::map<std::string, const LinearTensors*, std::less<>> QuantizedTensors(const QuantPlan& plan) {
  std::map<std::string, const LinearTensors*, std::less<>> quantized;
  for (const LinearTensors* linear : plan.linears) {
    for (const MatrixPart& part : PartsOf(*linear)) quantized.emplace(part.name, linear);
  }
  return quantized;
}

// The parts that are written in place of a tensor.
std::vector<MatrixPart> WrittenParts(const TensorInfo& tensor, const QuantPlan& plan) {
  const auto unstacked = plan.unstacked.find(tensor.name);
  return unstacked == plan.unstacked.end() ? std::vector{WholeTensor(tensor)} : unstacked->second;
}

// The codes of "pack-quantized": bytes of integer + 128, rows padded to whole words.
std::vector<std::byte> PackedBytes(const QuantizedMatrix& matrix, int64_t columns) {
  const auto row_bytes = static_cast<size_t>((columns + 3) / 4 * 4);
  std::vector<std::byte> bytes(matrix.scales.size() * row_bytes);
  for (size_t i = 0; i < matrix.integers.size(); ++i) {
    const size_t row = i / static_cast<size_t>(columns), column = i % static_cast<size_t>(columns);
    bytes[row * row_bytes + column] = static_cast<std::byte>(matrix.integers[i] + 128);
  }
  return bytes;
}

// The zero points of "pack-quantized": + 8, where neighbouring rows share a word: [rows / 8,
// groups].
std::vector<std::byte> PackedZeros(const GroupedMatrix& matrix) {
  const int64_t groups = matrix.columns / matrix.group;
  std::vector<std::byte> bytes((matrix.rows + 7) / 8 * groups * 4);
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t g = 0; g < groups; ++g) {
      const int code = matrix.zeros[row * groups + g] + 8;
      const int64_t word = row / 8 * groups + g, place = row % 8;
      bytes[word * 4 + place / 2] |= static_cast<std::byte>(code << (place % 2 * 4));
    }
  }
  return bytes;
}

class CheckpointWriter {
 public:
  CheckpointWriter(const Exec& exec, const WriteInput& input, const fs::path& to)
      : exec_(exec),
        input_(input),
        quantized_(QuantizedTensors(input.plan)),
        writer_(to, PlanTensors(input.source, input.plan, input.scheme), input.max_shard_bytes) {}

  void Write(const TensorInfo& tensor) {
    if (IsWrittenAsItLies(tensor)) {
      writer_.Write(tensor.name, tensor.bytes);
    } else {
      for (const MatrixPart& part : WrittenParts(tensor, input_.plan)) Write(part);
    }
    input_.source.Release(tensor);
  }

 private:
  bool IsWrittenAsItLies(const TensorInfo& tensor) const {
    return tensor.blocks == nullptr && tensor.row_order == nullptr &&
           !quantized_.contains(tensor.name) && !input_.scalings.contains(tensor.name) &&
           !input_.plan.unstacked.contains(tensor.name);
  }

  void Write(const MatrixPart& part) {
    const auto found = quantized_.find(part.name);
    if (found != quantized_.end()) return WriteQuantized(part, *found->second);
    writer_.Write(part.name, ScaledBytes(part, FindScaling(input_.scalings, part.name)));
  }

  void WriteQuantized(const MatrixPart& part, const LinearTensors& linear) {
    const Scheme& scheme = input_.plan.SchemeOf(linear, input_.scheme);
    if (scheme.has_groups()) return WriteGroups(part);
    const Scaling& scaling = FindScaling(input_.scalings, part.name);
    const bool bitsandbytes = scheme.is_bitsandbytes();
    const DType stored = bitsandbytes ? DType::kF32 : ScaleType(part.dtype());
    QuantizedMatrix matrix = QuantizeMatrix(
        exec_, part.name, part.rows, part.columns, scheme.outputs_per_scale, stored,
        [&](int64_t row, std::span<float> out) { ReadRow(part, scaling, row, out); });
    if (scheme.weights_alone) {
      WritePacked(part, PackedBytes(matrix, part.columns));
    } else {
      writer_.Write(part.name, std::as_bytes(std::span(matrix.integers)));
    }
    if (bitsandbytes) return WriteMaxima(ModuleName(part), std::move(matrix.scales));
    if (scheme.outputs_per_scale == kAllOutputs) matrix.scales.resize(1);
    WriteScales(part.name + "_scale", matrix.scales, stored);
    if (scheme.input != InputScale::kStatic) return;
    const float largest = input_.input_maxima.at(ModuleName(linear));
    WriteScales(ModuleName(part) + ".input_scale", {StoredScale(largest, stored)}, stored);
  }

  void WritePacked(const MatrixPart& part, std::span<const std::byte> packed) {
    writer_.Write(part.name + "_packed", packed);
    const std::array<int64_t, 2> shape = {part.rows, part.columns};
    writer_.Write(part.name + "_shape", std::as_bytes(std::span(shape)));
  }

  void WriteGroups(const MatrixPart& part) {
    const auto found = input_.rounded.find(part.name);
    if (found != input_.rounded.end()) return WriteGroups(part, found->second);
    WriteGroups(part, QuantizeInGroups(exec_, part, FindScaling(input_.scalings, part.name),
                                       input_.scheme.grouping(), /*feedback=*/nullptr));
  }

  void WriteGroups(const MatrixPart& part, const GroupedMatrix& matrix) {
    if (input_.scheme.weights_alone) {
      WritePacked(part, matrix.packed);
    } else {
      std::vector<int8_t> integers(matrix.rows * matrix.columns);
      exec_.ParallelRows(matrix.rows, matrix.columns, [&](int64_t row) {
        matrix.Integers(row, std::span(integers).subspan(row * matrix.columns, matrix.columns));
      });
      writer_.Write(part.name, std::as_bytes(std::span(integers)));
    }
    WriteScales(part.name + "_scale", matrix.scales, ScaleType(part.dtype()));
    if (!matrix.zeros.empty()) writer_.Write(part.name + "_zero_point", PackedZeros(matrix));
  }

  // A scale that is a float / 127 survives times 127 and / 127.
  void WriteMaxima(const std::string& module, std::vector<float> scales) {
    for (float& scale : scales) scale *= 127;
    WriteScales(module + ".SCB", scales, DType::kF32);
    constexpr std::byte kRowAfterRow{0};
    writer_.Write(module + ".weight_format", {&kRowAfterRow, 1});
  }

  void WriteScales(const std::string& name, const std::vector<float>& scales, DType stored) {
    std::vector<std::byte> bytes(scales.size() * SizeOf(stored));
    WriteFloats(scales, stored, bytes.data());
    writer_.Write(name, bytes);
  }

  const Exec& exec_;
  const WriteInput& input_;
  const std::map<std::string, const LinearTensors*, std::less<>> quantized_;
  SafetensorsWriter writer_;
};

std::vector<std::string> Int8Modules(const QuantPlan& plan) {
  std::vector<std::string> modules;
  for (const LinearTensors* linear : plan.linears) {
    if (!plan.int8.contains(linear)) continue;
    for (const MatrixPart& part : PartsOf(*linear)) modules.push_back(ModuleName(part));
  }
  return modules;
}

void WriteConfig(const WriteInput& input, const fs::path& to) {
  const fs::path from = input.from / "config.json";
  auto config = ParseOrderedJson(ReadTextFile(from, kMaxConfigBytes), from.native(),
                                 {.pythons_infinity = true});
  config["quantization_config"] =
      QuantizationBlock(input.scheme, input.plan.ignore, Int8Modules(input.plan));
  const fs::path path = to / "config.json";
  std::ofstream file(path, std::ios::binary);
  file << config.dump(2) << "\n" << std::flush;
  if (!file) ThrowErrno(path, "write");
}

// Copies the tokenizer, the licence and any other file.
void CopyOtherFiles(const fs::path& from, const fs::path& to) {
  for (const auto& entry : fs::directory_iterator(from)) {
    const fs::path name = entry.path().filename();
    const bool is_left = HoldsWeights(name) && name != DraftHeads::kFileName;  // heads still fit
    if (!entry.is_regular_file() || name == "config.json" || is_left) continue;
    std::error_code error;
    fs::copy_file(entry.path(), to / name, error);
    if (!error) continue;
    Throw(ErrorKind::kIo, "{}: cannot copy {} there: {}", to.native(), name.native(),
          error.message());
  }
}

void PlanQuantized(const MatrixPart& part, const Scheme& scheme, std::vector<NewTensor>& tensors) {
  const std::string& name = part.name;
  if (scheme.weights_alone) {
    const int64_t in_word = scheme.has_groups() ? 8 : 4;
    tensors.push_back(
        {name + "_packed", DType::kI32, {part.rows, (part.columns + in_word - 1) / in_word}});
    tensors.push_back({name + "_shape", DType::kI64, {2}});
  } else {
    tensors.push_back({name, DType::kI8, part.shape()});
  }
  if (scheme.is_bitsandbytes()) {
    tensors.push_back({ModuleName(part) + ".SCB", DType::kF32, {part.rows}});
    tensors.push_back({ModuleName(part) + ".weight_format", DType::kU8, {}});
    return;
  }
  const DType stored = ScaleType(part.dtype());
  std::vector<int64_t> scale_shape = {part.rows, 1};
  if (scheme.has_groups()) scale_shape = {part.rows, part.columns / scheme.group};
  if (scheme.outputs_per_scale == kAllOutputs) scale_shape = {1};
  tensors.push_back({name + "_scale", stored, scale_shape});
  if (scheme.zeros) {
    tensors.push_back(
        {name + "_zero_point", DType::kI32, {(part.rows + 7) / 8, part.columns / scheme.group}});
  }
  if (scheme.input == InputScale::kStatic) {
    tensors.push_back({ModuleName(part) + ".input_scale", stored, {1}});
  }
}

}  // namespace

std::vector<NewTensor> PlanTensors(const WeightSource& source, const QuantPlan& plan,
                                   const Scheme& scheme) {
  const auto quantized = QuantizedTensors(plan);
  std::vector<NewTensor> tensors;
  for (const std::string& name : source.Names()) {
    const TensorInfo& tensor = *source.Find(name);
    if (!tensor.dtype && tensor.blocks == nullptr) {
      Throw(ErrorKind::kUnsupported, "tensor {} has type {}, which is not written", name,
            tensor.dtype_name);
    }
    if (!quantized.contains(name) && !plan.unstacked.contains(name)) {
      tensors.push_back({name, WrittenType(tensor), tensor.shape});
      continue;
    }
    for (const MatrixPart& part : WrittenParts(tensor, plan)) {
      const auto found = quantized.find(part.name);
      if (found != quantized.end()) {
        PlanQuantized(part, plan.SchemeOf(*found->second, scheme), tensors);
      } else {
        tensors.push_back({part.name, part.dtype(), part.shape()});
      }
    }
  }
  return tensors;
}

void WriteCheckpoint(const Exec& exec, const WriteInput& input, const fs::path& to,
                     const std::function<void(int64_t done, int64_t total)>& progress) {
  WriteConfig(input, to);
  if (input.from != to) CopyOtherFiles(input.from, to);
  CheckpointWriter writer(exec, input, to);
  const std::vector<std::string>& names = input.source.Names();
  int64_t total = 0, done = 0;
  for (const std::string& name : names) total += std::ssize(input.source.Find(name)->bytes);
  for (const std::string& name : names) {
    const TensorInfo& tensor = *input.source.Find(name);
    writer.Write(tensor);
    done += std::ssize(tensor.bytes);
    if (progress) progress(done, total);
    if (exec.cancel != nullptr) exec.cancel->ThrowIfCancelled();
  }
}

}  // namespace godwit::quant
