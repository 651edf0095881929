// Finds tensors of a checkpoint by name, and collects what is wrong with them.
//
// Internal to src/model.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/problem_list.h"
#include "model/spec.h"
#include "weights/weight_source.h"

namespace godwit {

// The expected content of a tensor.
enum class Content {
  kFloats,
  kQuantized,  // int8, by config.json
  kScale,      // floats whose shape may lack dimensions of size 1, such as scales
  kZeroPoint,  // int8 numbers that belong to a quantized tensor
  kRowOrder,   // a byte that belongs to one
  kWords,      // I32 of a packed tensor: codes, zero points, or the group of each input
  kShape,      // I64 or I32 of a packed tensor
  kBytes,      // U8 of a packed tensor
  kFloats8,    // F8_E4M3 of a packed tensor
  kPowers,     // U8 or F8_E8M0 of a packed tensor: exponents of scales
};

// Names are those of the spec, as transformers writes them; the checkpoint may spell them
// otherwise.
class TensorFinder {
 public:
  using Shapes = std::map<std::string, std::vector<int64_t>, std::less<>>;

  TensorFinder(const DecoderSpec& spec, const WeightSource& source);

  // The name as the checkpoint has it.
  std::string Name(const std::string& name) const;
  // Finds a tensor; null where it is missing, which is no problem yet.
  const TensorInfo* Find(const std::string& name) const { return source_.Find(Name(name)); }
  // Finds a tensor that must be there. Adds a problem where it is missing (null then), of another
  // type or another shape. why: only if it is not the architecture that asks for the tensor.
  const TensorInfo* Want(const std::string& name, const std::vector<int64_t>& shape,
                         Content content = Content::kFloats, std::string_view why = "");
  // The rows [begin, begin + shape[0]) of a tensor that is no blocks; `part`: their name.
  const TensorInfo* Slice(const TensorInfo& whole, int64_t begin, std::vector<int64_t> shape,
                          const std::string& part);
  // The slice of one expert, with this shape, in a tensor of all experts, [experts, ...]. Null
  // where it is missing or wrong.
  const TensorInfo* WantSlice(const std::string& module, const std::string& ending,
                              const std::vector<int64_t>& shape, int64_t expert, int64_t experts,
                              Content content = Content::kFloats);

  ProblemList& problems() { return problems_; }
  // The tensors that were wanted, as the checkpoint spells them.
  Shapes& wanted() { return wanted_; }
  std::vector<std::shared_ptr<const TensorInfo>>& slices() { return slices_; }

 private:
  // Beginnings of names, and their replacements.
  using Renaming = std::vector<std::pair<std::string, std::string>>;

  static std::string Renamed(const Renaming& renaming, const std::string& name);
  static Renaming SpellingOf(const ModuleNames& names, const WeightSource& source);

  const WeightSource& source_;
  Renaming renaming_;
  ProblemList problems_;
  std::vector<std::shared_ptr<const TensorInfo>> slices_;
  Shapes wanted_;
};

}  // namespace godwit
