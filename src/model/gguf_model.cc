#include "model/gguf_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_config.h"
#include "model/gguf_fields.h"
#include "model/gguf_row_orders.h"
#include "weights/mapped_source.h"
#include "weights/tensor_rows.h"

namespace godwit {
namespace {

using RowOrder = std::shared_ptr<const std::vector<int64_t>>;

// The parts of "blk.12.attn_q.weight".
struct SplitName {
  std::optional<int64_t> layer;
  std::string_view module;  // "attn_q"
  std::string_view ending;  // ".weight"
};

SplitName Split(std::string_view name) {
  SplitName split;
  constexpr std::string_view kBlock = "blk.";
  if (name.starts_with(kBlock)) {
    int64_t layer = 0;
    const char* const end = name.data() + name.size();
    const auto number = std::from_chars(name.data() + kBlock.size(), end, layer);
    if (number.ec == std::errc() && number.ptr != end && *number.ptr == '.' && layer >= 0) {
      split.layer = layer;
      name.remove_prefix(static_cast<size_t>(number.ptr - name.data()) + 1);
    }
  }
  const size_t dot = std::min(name.rfind('.'), name.size());
  split.module = name.substr(0, dot);
  split.ending = name.substr(dot);
  return split;
}

class Translator {
 public:
  Translator(const GgufShape& shape, const GgufFamily& family) : shape_(shape), family_(family) {}

  std::vector<TensorInfo> Translate(const GgufFiles& model) {
    layers_ = ReadLayers(model.metadata);
    for (const GgufName& list : family_.lists) AddList(model, list);
    for (const TensorInfo& tensor : model.tensors) Add(tensor);
    CheckNames();
    return std::move(translated_);
  }

 private:
  // Makes the numbers of a list tensors. A missing list is missing tensors.
  void AddList(const GgufFiles& model, const GgufName& name) {
    const GgufMetadata& metadata = model.metadata;
    if (!metadata.Has(name.gguf)) return;
    // The limit is the families' own.
    const int64_t layers = metadata.Int(metadata.ArchitectureKey("block_count"), {1, 4096});
    const auto found = std::ssize(metadata.Floats(name.gguf));
    if (found != layers) {
      metadata.Refuse(name.gguf, fmt::format("one for each of {} layers", layers),
                      fmt::format("{}", found));
    }
    const std::span<const std::byte> bytes = metadata.values().find(name.gguf)->second.bytes;
    const bool number = name.rows == GgufRows::kNumber;
    const std::vector<int64_t> shape = number ? std::vector<int64_t>{} : std::vector<int64_t>{1};
    // The fuzzer has no files.
    const uint64_t begin =
        model.files.empty()
            ? 0
            : static_cast<uint64_t>(bytes.data() - model.files.front().Span().data());
    for (int64_t layer = 0; layer < layers; ++layer) {
      const size_t at = static_cast<size_t>(layer) * sizeof(float);
      translated_.push_back({.name = fmt::format(fmt::runtime(name.hf), layer),
                             .dtype = DType::kF32,
                             .dtype_name = "F32",
                             .shape = shape,
                             .bytes = bytes.subspan(at, sizeof(float)),
                             .file = metadata.file_name(),
                             .offset_bytes = begin + at});
    }
  }

  void Add(TensorInfo tensor) {
    const SplitName split = Split(tensor.name);
    if (split.layer && layers_.Predicts(*split.layer)) return;
    const std::span<const GgufName> names = split.layer ? family_.layers : family_.whole;
    const auto name = std::ranges::find(names, split.module, &GgufName::gguf);
    if (name == names.end()) {
      // config.json holds the content of these tensors. Any other tensor is refused by its own
      // name.
      constexpr std::string_view kRope[] = {"rope_freqs", "rope_factors_long",
                                            "rope_factors_short"};
      if (std::ranges::find(kRope, split.module) == std::end(kRope)) {
        translated_.push_back(std::move(tensor));
      }
      return;
    }
    if (!HoldsFloats(tensor)) {
      Throw(ErrorKind::kUnsupported,
            "{}: tensor {} has type {}, which is not supported; supported are F32, F16, BF16, {}",
            tensor.file, Quote(tensor.name), tensor.dtype_name,
            NameList(AllBlockFormats(), &BlockFormat::name));
    }
    const std::string ending(split.ending == name->only_ending ? "" : split.ending);
    const int64_t layer = split.layer.value_or(0);
    if (name->rows == GgufRows::kExperts) {
      const bool bias = ending == ".bias";
      return AddParts(tensor, bias ? "biases" : "matrices", "experts", bias ? 2 : 3, *name, layer,
                      ending);
    }
    if (name->rows == GgufRows::kHeadMatrices) {
      return AddParts(tensor, "matrices", "heads", 3, *name, layer, ending);
    }
    if (name->rows == GgufRows::kHeads) {
      return AddParts(tensor, "rows", "heads", 2, *name, layer, ending);
    }
    tensor.name = fmt::format(fmt::runtime(name->hf), layer) + ending;
    if (name->rows == GgufRows::kVector) tensor.shape = {tensor.NumElements()};
    if (name->rows == GgufRows::kOneRow && tensor.shape.size() == 1) {
      tensor.shape.insert(tensor.shape.begin(), 1);
    }
    if (name->rows == GgufRows::kTaps && tensor.shape.size() == 2) {
      tensor.shape.insert(tensor.shape.begin() + 1, 1);
    }
    // A file may have one number without a dimension where a matrix should be.
    tensor.row_order = OrderOf(name->rows, tensor.shape.empty() ? 1 : tensor.shape[0]);
    translated_.push_back(std::move(tensor));
  }

  // The order of a tensor with `count` rows. Null: the rows do not fit, and the shape is refused
  // later. A file's claim of many heads therefore takes no memory beyond its tensors.
  RowOrder OrderOf(GgufRows rows, int64_t count) {
    const auto made = orders_.find({rows, count});
    if (made != orders_.end()) return made->second;
    std::vector<int64_t> order = GgufRowOrder(rows, shape_, count);
    if (order.empty()) return nullptr;
    return orders_[{rows, count}] = std::make_shared<const std::vector<int64_t>>(std::move(order));
  }

  // "blk.01" differs from "blk.1" and means the same layer.
  void CheckNames() const {
    std::set<std::string_view> names;
    for (const TensorInfo& tensor : translated_) {
      if (names.insert(tensor.name).second) continue;
      Throw(ErrorKind::kFormat, "{}: expected one tensor that is {}, found two", tensor.file,
            Quote(tensor.name));
    }
  }

  // merged: [owners, ...], with that many dimensions
  void AddParts(const TensorInfo& merged, std::string_view parts, std::string_view owners,
                size_t dimensions, const GgufName& name, int64_t layer, const std::string& ending) {
    constexpr int64_t kMaxOwners = 4096;
    if (merged.shape.size() != dimensions || merged.shape[0] > kMaxOwners) {
      Throw(ErrorKind::kFormat, "{}: tensor {}: expected the {} of up to {} {}, found {}",
            merged.file, Quote(merged.name), parts, kMaxOwners, owners, merged.Describe());
    }
    const size_t bytes = merged.bytes.size() / static_cast<size_t>(merged.shape[0]);
    for (int64_t part = 0; part < merged.shape[0]; ++part) {
      const size_t begin = static_cast<size_t>(part) * bytes;
      TensorInfo tensor = merged;
      tensor.name = fmt::format(fmt::runtime(name.hf), layer, part) + ending;
      tensor.shape.erase(tensor.shape.begin());
      tensor.bytes = merged.bytes.subspan(begin, bytes);
      tensor.offset_bytes = merged.offset_bytes + begin;
      translated_.push_back(std::move(tensor));
    }
  }

  const GgufShape& shape_;
  const GgufFamily& family_;
  GgufLayers layers_;
  std::map<std::pair<GgufRows, int64_t>, RowOrder> orders_;
  std::vector<TensorInfo> translated_;
};

}  // namespace

GgufModel TranslateGguf(GgufFiles files) {
  const GgufFamily& family = FindGgufFamily(files.metadata, HasSecondAttentionNorm(files));
  const GgufShape shape = ShapeOf(files, family);
  std::string config = GgufConfig(files, shape, family);
  std::vector<TensorInfo> tensors = Translator(shape, family).Translate(files);
  return {.weights = MakeMappedSource(std::move(files.files), std::move(tensors), {}),
          .config = std::move(config),
          .metadata = std::move(files.metadata)};
}

GgufModel OpenGgufModel(const std::filesystem::path& file) {
  return TranslateGguf(OpenGgufFiles(file));
}

}  // namespace godwit
