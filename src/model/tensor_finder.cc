#include "model/tensor_finder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weights/tensor_rows.h"

namespace godwit {
namespace {

bool HasType(const TensorInfo& tensor, Content content) {
  if (content == Content::kRowOrder || content == Content::kBytes) {
    return tensor.dtype == DType::kU8;
  }
  if (content == Content::kPowers) {
    return tensor.dtype == DType::kU8 || tensor.dtype_name == "F8_E8M0";
  }
  if (content == Content::kWords) return tensor.dtype == DType::kI32;
  if (content == Content::kFloats8) return tensor.dtype_name == "F8_E4M3";
  if (content == Content::kShape) {
    return tensor.dtype == DType::kI64 || tensor.dtype == DType::kI32;
  }
  const bool integers = content == Content::kQuantized || content == Content::kZeroPoint;
  if (integers) return tensor.dtype == DType::kI8;
  const bool matrix = content == Content::kFloats && tensor.shape.size() == 2;
  return HoldsFloats(tensor) && (tensor.blocks == nullptr || matrix);
}

std::string_view ExpectedType(const TensorInfo& found, Content content) {
  switch (content) {
    case Content::kQuantized:
      return "I8, because config.json quantizes it";
    case Content::kRowOrder:
    case Content::kBytes:
    case Content::kPowers:
      return "U8";
    case Content::kZeroPoint:
      return "I8";
    case Content::kWords:
      return "I32";
    case Content::kFloats8:
      return "F8_E4M3";
    case Content::kShape:
      return "I64";
    case Content::kFloats:
      if (found.dtype == DType::kI8)
        return "F32, F16 or BF16, because config.json does not quantize it";
      return "F32, F16 or BF16";
    case Content::kScale:
      return "F32, F16 or BF16";
  }
  return "";
}

// Some tools leave out dimensions of size 1 in the shapes of scales.
bool HasShape(const TensorInfo& tensor, std::vector<int64_t> shape, Content content) {
  std::vector<int64_t> found = tensor.shape;
  if (content != Content::kFloats && content != Content::kQuantized) {
    std::erase(found, 1);
    std::erase(shape, 1);
  }
  return found == shape;
}

}  // namespace

std::string TensorFinder::Renamed(const Renaming& renaming, const std::string& name) {
  for (const auto& [here, there] : renaming) {
    if (name.starts_with(here)) return there + name.substr(here.size());
  }
  return name;
}

// The spelling of tensor names in this checkpoint, taken from its embedding.
TensorFinder::Renaming TensorFinder::SpellingOf(const ModuleNames& names,
                                                const WeightSource& source) {
  const std::string name = names.embedding + ".weight";
  if (source.Find(name) != nullptr) return {};
  for (const Renaming& renaming : {Renaming{{names.prefix, ""}}, names.renamed}) {
    if (source.Find(Renamed(renaming, name)) != nullptr) return renaming;
  }
  return {};
}

TensorFinder::TensorFinder(const DecoderSpec& spec, const WeightSource& source)
    : source_(source), renaming_(SpellingOf(spec.names, source)) {}

std::string TensorFinder::Name(const std::string& name) const { return Renamed(renaming_, name); }

const TensorInfo* TensorFinder::Want(const std::string& spec_name,
                                     const std::vector<int64_t>& shape, Content content,
                                     std::string_view why) {
  const std::string name = Name(spec_name);
  wanted_.emplace(name, shape);
  const TensorInfo* tensor = source_.Find(name);
  if (tensor == nullptr) {
    problems_.Add("missing tensor {}, expected [{}]{}", name, fmt::join(shape, ", "), why);
    return nullptr;
  }
  if (!HasType(*tensor, content)) {
    problems_.Add("tensor {} has type {}, expected {}", name, tensor->dtype_name,
                  ExpectedType(*tensor, content));
  }
  if (!HasShape(*tensor, shape, content)) {
    problems_.Add("tensor {} has shape [{}], expected [{}]", name, fmt::join(tensor->shape, ", "),
                  fmt::join(shape, ", "));
  }
  return tensor;
}

const TensorInfo* TensorFinder::Slice(const TensorInfo& whole, int64_t begin,
                                      std::vector<int64_t> shape, const std::string& part) {
  TensorInfo slice = whole;
  slice.name = part;
  slice.whole = whole.name;
  slice.shape = std::move(shape);
  const size_t element = whole.dtype ? SizeOf(*whole.dtype) : 1;  // F8_E4M3 has no type
  const size_t row = element * static_cast<size_t>(slice.NumElements() / slice.shape.front());
  const size_t first = static_cast<size_t>(begin) * row;
  slice.bytes = whole.bytes.subspan(first, static_cast<size_t>(slice.shape.front()) * row);
  slice.offset_bytes += first;
  return slices_.emplace_back(std::make_shared<const TensorInfo>(std::move(slice))).get();
}

const TensorInfo* TensorFinder::WantSlice(const std::string& module, const std::string& ending,
                                          const std::vector<int64_t>& shape, int64_t expert,
                                          int64_t experts, Content content) {
  std::vector<int64_t> whole_shape = {experts};
  whole_shape.insert(whole_shape.end(), shape.begin(), shape.end());
  const std::string name = module + ending;
  // A fault of the whole tensor is reported once.
  const TensorInfo* whole = expert == 0 ? Want(name, whole_shape, content) : Find(name);
  if (whole == nullptr || whole->shape != whole_shape) return nullptr;
  if (!whole->dtype && whole->dtype_name != "F8_E4M3") return nullptr;
  return Slice(*whole, expert * shape.front(), shape,
               fmt::format("{}.{}{}", Name(module), expert, ending));
}

}  // namespace godwit
