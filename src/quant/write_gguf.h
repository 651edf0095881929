// A model as a GGUF file: its matrices in blocks of 8 or 4 bits, or as floats, and all else in F32.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/gguf_form.h"
#include "checkpoint/model_folder.h"
#include "ops/exec.h"
#include "quant/quantize_model.h"

namespace godwit::quant {

// The types of matrices: `type` in layers, `outer` for the embedding and the output head.
struct GgufScheme {
  std::string_view name;  // "q4_k"
  std::string_view type;  // "Q4_K"
  std::string_view outer;
  uint32_t file_type;  // general.file_type
  std::string_view description;
};

inline constexpr GgufScheme kGgufSchemes[] = {
    {"q8_0", "Q8_0", "Q8_0", 7, "8 bits, a scale for 32 weights"},
    {"q4_k", "Q4_K", "Q8_0", 14, "4 bits, a scale and a minimum for 32 weights"},
    {"f16", "F16", "F16", 1, "half floats"},
    {"bf16", "BF16", "BF16", 32, "bf16"},
    {"f32", "F32", "F32", 0, "floats"},
};

// The scheme of a name. Throws Error(kInput) with the list of names for any other.
const GgufScheme& FindGgufScheme(std::string_view name);

struct GgufPlan {
  GgufForm form;
  std::vector<NewGgufTensor> tensors;  // one for each tensor of the form
  int64_t before_bytes = 0;            // of the weights
  int64_t after_bytes = 0;             // of the file
  // The number of matrices whose rows the scheme's blocks do not divide, by the type that they got.
  std::map<std::string, int64_t, std::less<>> fallbacks;
};

// The plan points into the folder. Rows that blocks of 256 do not divide get Q8_0; those that
// blocks of 32 do not divide either get F16. Throws Error(kUnsupported) for a model that is
// quantized in another format, and as GgufFormOf does.
GgufPlan PlanGguf(const ModelFolder& model, const GgufScheme& scheme);

// Writes the file under a temporary name beside it, and renames it when it is whole. Throws
// Error(kInput) for a file that exists, and for numbers that the type cannot hold, with the tensor.
// Throws Error(kIo), before any work, for a disk that cannot hold the result. The bytes do not
// depend on the threads. progress: Stage::kWriting, bytes of the old weights.
void WriteGguf(const Exec& exec, const ModelFolder& model, const GgufPlan& plan,
               const std::filesystem::path& to, const StageHooks& hooks);

}  // namespace godwit::quant
