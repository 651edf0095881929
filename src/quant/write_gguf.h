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

// The types of matrices: those of layers have `type`, the embedding and the output head `outer`.
struct GgufScheme {
  std::string_view name;  // "q4_k"
  std::string_view type;  // of tensors: "Q4_K"
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

// Throws Error(kInput) with the list of names.
const GgufScheme& FindGgufScheme(std::string_view name);

struct GgufPlan {
  GgufForm form;
  std::vector<NewGgufTensor> tensors;  // one for each of the form's
  int64_t before_bytes = 0;            // of the weights
  int64_t after_bytes = 0;             // of the file
  // Matrices whose rows the blocks of the scheme do not divide, by the type that they got instead.
  std::map<std::string, int64_t, std::less<>> fallbacks;
};

// Points into the folder. Rows that blocks of 256 do not divide get Q8_0, and those that blocks of
// 32 do not divide either F16. Throws Error(kUnsupported) for a model that is quantized in another
// format, and as GgufFormOf does.
GgufPlan PlanGguf(const ModelFolder& model, const GgufScheme& scheme);

// Writes the file under a temporary name beside it, and renames it once it is whole. Throws
// Error(kInput) for a file that exists and for numbers that the type cannot hold, with the tensor;
// Error(kIo) for a disk that cannot hold the result, before any work. The same bytes whatever the
// threads. progress: Stage::kWriting, bytes of the old weights.
void WriteGguf(const Exec& exec, const ModelFolder& model, const GgufPlan& plan,
               const std::filesystem::path& to, const StageHooks& hooks);

}  // namespace godwit::quant
