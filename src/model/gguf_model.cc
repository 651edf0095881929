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
    const bool predicts = split.layer && layers_.Predicts(*split.layer);
    // Only the first layer that predicts is known, without its copies of embedding and head.
    if (predicts && (family_.prediction.empty() || *split.layer != layers_.decoding)) return;
    const std::vector<const GgufName*> names = NamesOf(split, predicts);
    if (names.empty() && predicts) return;
    if (names.empty()) {
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
    for (const GgufName* name : names) AddUnder(*name, split, tensor);
  }

  // Returns the names for the tensor's ending, else those for any.
  std::vector<const GgufName*> NamesOf(const SplitName& split, bool predicts) const {
    std::vector<const GgufName*> exact, others;
    const auto look = [&](std::span<const GgufName> names) {
      for (const GgufName& name : names) {
        if (name.gguf != split.module) continue;
        if (name.only_ending.empty()) {
          others.push_back(&name);
        } else if (name.only_ending == split.ending) {
          exact.push_back(&name);
        }
      }
    };
    look(split.layer ? family_.layers : family_.whole);
    if (predicts) look(family_.prediction);
    return exact.empty() ? others : exact;
  }

  // part: an expert, a head or a stream.
  std::string HfName(const GgufName& name, int64_t layer, int64_t part = 0) const {
    constexpr std::string_view kLayer = "model.layers.{}";
    if (layers_.Predicts(layer) && name.hf.starts_with(kLayer)) {
      return fmt::format(fmt::runtime(family_.predicting), layer) +
             fmt::format(fmt::runtime(name.hf.substr(kLayer.size())), part);
    }
    return fmt::format(fmt::runtime(name.hf), layer, part);
  }

  void AddUnder(const GgufName& name, const SplitName& split, TensorInfo tensor) {
    const std::string ending(split.ending == name.only_ending ? "" : split.ending);
    const int64_t layer = split.layer.value_or(0);
    const auto parts = [&](std::string_view kind, std::string_view owners, size_t dimensions) {
      AddParts(tensor, kind, owners, dimensions, name, layer, ending);
    };
    switch (name.rows) {
      case GgufRows::kExperts:
      case GgufRows::kFirstHalves:
      case GgufRows::kSecondHalves:
        if (ending == ".bias") return parts("biases", "experts", 2);
        return parts("matrices", "experts", 3);
      case GgufRows::kStreams:
        return parts("matrices", "streams", 3);
      case GgufRows::kHeadMatrices:
        return parts("matrices", "heads", 3);
      case GgufRows::kHeads:
        return parts("rows", "heads", 2);
      default:
        break;
    }
    tensor.name = HfName(name, layer) + ending;
    if (name.rows == GgufRows::kVector) tensor.shape = {tensor.NumElements()};
    if (name.rows == GgufRows::kOneRow && tensor.shape.size() == 1) {
      tensor.shape.insert(tensor.shape.begin(), 1);
    }
    if (name.rows == GgufRows::kTaps && tensor.shape.size() == 2) {
      tensor.shape.insert(tensor.shape.begin() + 1, 1);
    }
    // A file may have one number without a dimension where a matrix should be.
    tensor.row_order = OrderOf(name.rows, tensor.shape.empty() ? 1 : tensor.shape[0]);
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
    const bool first = name.rows == GgufRows::kFirstHalves;
    const bool halves = first || name.rows == GgufRows::kSecondHalves;
    if (halves && merged.shape[1] % 2 != 0) {
      Throw(ErrorKind::kFormat, "{}: tensor {}: expected an even number of rows, found {}",
            merged.file, Quote(merged.name), merged.Describe());
    }
    const size_t bytes = merged.bytes.size() / static_cast<size_t>(merged.shape[0]);
    for (int64_t part = 0; part < merged.shape[0]; ++part) {
      const size_t whole = static_cast<size_t>(part) * bytes;
      const size_t begin = halves && !first ? whole + bytes / 2 : whole;
      TensorInfo tensor = merged;
      tensor.name = HfName(name, layer, part) + ending;
      tensor.shape.erase(tensor.shape.begin());
      if (halves) tensor.shape[0] /= 2;
      tensor.bytes = merged.bytes.subspan(begin, halves ? bytes / 2 : bytes);
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
