#include "model/model_tensors.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "base/problem_list.h"
#include "base/quote.h"
#include "weights/packed_config.h"
#include "weights/tensor_rows.h"

namespace godwit {
namespace {

// Beginnings of names, and what is in their place.
using Renaming = std::vector<std::pair<std::string, std::string>>;

std::string Renamed(const Renaming& renaming, const std::string& name) {
  for (const auto& [here, there] : renaming) {
    if (name.starts_with(here)) return there + name.substr(here.size());
  }
  return name;
}

// How this checkpoint spells the names, by that of the embedding.
Renaming SpellingOf(const ModuleNames& names, const WeightSource& source) {
  const std::string name = names.embedding + ".weight";
  if (source.Find(name) != nullptr) return {};
  for (const Renaming& renaming : {Renaming{{names.prefix, ""}}, names.renamed}) {
    if (source.Find(Renamed(renaming, name)) != nullptr) return renaming;
  }
  return {};
}

// What a tensor is to be.
enum class Content {
  kFloats,
  kQuantized,  // int8, by config.json
  kScale,      // floats that belong to a quantized tensor
  kZeroPoint,  // int8, likewise
  kRowOrder,   // a byte, likewise
  kWords,      // I32, likewise: codes, zero points, or which group an input belongs to
  kShape,      // I64 or I32, likewise
  kBytes,      // U8, likewise
};

bool HasType(const TensorInfo& tensor, Content content) {
  if (content == Content::kRowOrder || content == Content::kBytes) {
    return tensor.dtype == DType::kU8;
  }
  if (content == Content::kWords) return tensor.dtype == DType::kI32;
  if (content == Content::kShape) {
    return tensor.dtype == DType::kI64 || tensor.dtype == DType::kI32;
  }
  const bool integers = content == Content::kQuantized || content == Content::kZeroPoint;
  if (integers) return tensor.dtype == DType::kI8;
  const bool matrix = content == Content::kFloats && tensor.shape.size() == 2;
  return HoldsFloats(tensor) && (tensor.blocks == nullptr || matrix);
}

// Rows of blocks are widened, and so can be fused with any others.
bool CanBeFused(const TensorInfo& a, const TensorInfo& b) {
  return a.dtype == b.dtype || ((a.blocks || b.blocks) && HoldsFloats(a) && HoldsFloats(b));
}

std::string_view ExpectedType(const TensorInfo& found, Content content) {
  switch (content) {
    case Content::kQuantized:
      return "I8, as config.json quantizes it";
    case Content::kRowOrder:
    case Content::kBytes:
      return "U8";
    case Content::kZeroPoint:
      return "I8";
    case Content::kWords:
      return "I32";
    case Content::kShape:
      return "I64";
    case Content::kFloats:
      if (found.dtype == DType::kI8) return "F32, F16 or BF16, as config.json does not quantize it";
      return "F32, F16 or BF16";
    case Content::kScale:
      return "F32, F16 or BF16";
  }
  return "";
}

// Some tools leave out the dimensions of size 1 that scales have.
bool HasShape(const TensorInfo& tensor, std::vector<int64_t> shape, Content content) {
  std::vector<int64_t> found = tensor.shape;
  if (content != Content::kFloats && content != Content::kQuantized) {
    std::erase(found, 1);
    std::erase(shape, 1);
  }
  return found == shape;
}

// Finds what the spec asks for and collects what is wrong with the checkpoint.
class Resolver {
 public:
  Resolver(const DecoderSpec& spec, const WeightSource& source)
      : spec_(spec), source_(source), renaming_(SpellingOf(spec.names, source)) {}

  ModelTensors Resolve();
  // Looks for everything without a word about what is missing: name -> shape.
  std::map<std::string, std::vector<int64_t>, std::less<>> Wanted();

 private:
  ModelTensors FindAll();
  // As the checkpoint has it.
  std::string Name(const std::string& full_name) const { return Renamed(renaming_, full_name); }
  // why: only if it is not the architecture that asks for the tensor.
  const TensorInfo* Want(const std::string& full_name, const std::vector<int64_t>& shape,
                         Content content = Content::kFloats, std::string_view why = "");
  void WantScales(const std::string& module, int64_t outputs, const LayerQuantization& quantization,
                  LinearTensors& linear);
  bool Has(const std::string& full_name) const { return source_.Find(Name(full_name)) != nullptr; }
  // How a module is quantized, if it is.
  std::optional<LayerQuantization> Quantization(const std::string& module) const;
  bool GroupsDivide(const std::string& module, int64_t inputs, const PackedFormat& format,
                    bool says = true);
  // Null where something is missing or wrong.
  std::shared_ptr<const PackedTensors> Packed(const std::string& module, int64_t outputs,
                                              int64_t inputs, const PackedFormat& format);
  bool FinishNf4(const std::string& module, int64_t outputs, int64_t inputs, PackedTensors& packed);
  void CheckShape(const TensorInfo& tensor, int64_t outputs, int64_t inputs);
  LinearTensors Linear(const std::vector<std::pair<std::string, int64_t>>& parts, int64_t inputs,
                       bool bias, bool transposed = false);
  // Of a tensor of all experts, [experts, ...], that of one, which has this shape.
  const TensorInfo* WantSlice(const std::string& module, const std::string& ending,
                              const std::vector<int64_t>& shape, int64_t expert,
                              Content content = Content::kFloats);
  std::shared_ptr<const PackedTensors> Mxfp4Slice(const std::string& module, int64_t outputs,
                                                  int64_t inputs, int64_t expert);
  // The rows [begin, begin + shape[0]) of a matrix; `part`: what they are called.
  const TensorInfo* Slice(const TensorInfo& whole, int64_t begin, std::vector<int64_t> shape,
                          const std::string& part);
  LatentTensors Latent(int64_t layer);
  void LatentHeads(const std::string& module, LatentTensors& latent);
  LinearTensors StackedLinear(const std::string& module, int64_t outputs, int64_t inputs,
                              int64_t expert);
  NormTensors Norm(const std::string& module, int64_t size, bool bias);
  NormTensors HeadNorm(const std::string& pattern, int64_t layer, int64_t heads);
  LinearTensors Qkv(int64_t layer);
  struct MlpNames {
    const std::string &gate, &up, &down;
  };
  MlpTensors Mlp(const MlpSpec& mlp, const MlpNames& names, int64_t layer, int64_t expert = 0);
  MlpTensors StackedExpert(int64_t layer, int64_t expert);
  LayerTensors Layer(int64_t index);
  void Embedding(ModelTensors& tensors);
  void ReportUnexpected();

  const DecoderSpec& spec_;
  const WeightSource& source_;
  Renaming renaming_;                   // of the names that the spec has
  bool int8_ = false, packed_ = false;  // as in ModelTensors
  ProblemList problems_;
  std::vector<std::shared_ptr<const TensorInfo>> slices_;
  std::map<std::string, std::vector<int64_t>, std::less<>> wanted_;
};

const TensorInfo* Resolver::Want(const std::string& full_name, const std::vector<int64_t>& shape,
                                 Content content, std::string_view why) {
  const std::string name = Name(full_name);
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

void Resolver::WantScales(const std::string& module, int64_t outputs,
                          const LayerQuantization& quantization, LinearTensors& linear) {
  const std::vector<int64_t> one = {1};
  if (quantization.format == Int8Format::kBitsandbytes) {
    linear.scales.push_back(
        Want(module + ".SCB", {outputs}, Content::kScale, ", for an int8 weight"));
    const std::string order = module + ".weight_format";
    if (!Has(order)) return;
    linear.row_orders.push_back(Want(order, one, Content::kRowOrder));
    return;
  }
  linear.scales.push_back(
      Want(module + ".weight_scale",
           quantization.scale_per_output ? std::vector{outputs, int64_t{1}} : one, Content::kScale,
           ", for an int8 weight"));
  if (quantization.input.kind != InputScale::kStatic) return;
  linear.input_scales.push_back(
      Want(module + ".input_scale", one, Content::kScale, ", for a static input"));
  if (quantization.input.symmetric) return;
  linear.input_zero_points.push_back(Want(module + ".input_zero_point", one, Content::kZeroPoint,
                                          ", for a static asymmetric input"));
}

// Of compressed-tensors: what is packed, beside the codes.
void Resolver::CheckShape(const TensorInfo& tensor, int64_t outputs, int64_t inputs) {
  std::vector<int64_t> found(2);
  const size_t size = SizeOf(*tensor.dtype);
  for (size_t i = 0; i < found.size(); ++i) {
    std::memcpy(&found[i], tensor.bytes.data() + i * size, size);
  }
  if (found == std::vector{outputs, inputs}) return;
  problems_.Add("tensor {} says that the weight is [{}], expected [{}, {}]", tensor.name,
                fmt::join(found, ", "), outputs, inputs);
}

bool Resolver::GroupsDivide(const std::string& module, int64_t inputs, const PackedFormat& format,
                            bool says) {
  if (format.group == 0 || inputs % format.group == 0) return true;
  if (says) {
    problems_.Add(
        "config.json packs the weights of {} in groups of {}, which do not divide its {} inputs",
        Name(module), format.group, inputs);
  }
  return false;
}

std::shared_ptr<const PackedTensors> Resolver::Packed(const std::string& module, int64_t outputs,
                                                      int64_t inputs, const PackedFormat& format) {
  packed_ = true;
  if (!GroupsDivide(module, inputs, format)) return nullptr;
  if (format.layout == PackedFormat::Layout::kMxfp4) {
    problems_.Add("config.json packs {} as MXFP4, which is read of gpt-oss's experts alone",
                  Name(module));
    return nullptr;
  }
  const PackedShapes shapes = ShapesOf(format, outputs, inputs);
  const size_t before = problems_.count();
  const auto want = [&](const PackedShape& part, Content content, std::string_view why) {
    return Want(module + std::string(part.suffix), part.shape, content, why);
  };
  const bool nf4 = format.layout == PackedFormat::Layout::kNf4;
  const bool integers = format.layout == PackedFormat::Layout::kIntQuantized;
  const TensorInfo* codes = want(shapes.codes,
                                 nf4        ? Content::kBytes
                                 : integers ? Content::kQuantized
                                            : Content::kWords,
                                 ", for a packed weight");
  const TensorInfo* scales = want(shapes.scales, format.nested ? Content::kBytes : Content::kScale,
                                  ", for a packed weight");
  const TensorInfo* zeros =
      format.has_zeros() ? want(shapes.zeros, Content::kWords, ", for zero points") : nullptr;
  // GPTQ stores it whether or not there is an order.
  const bool order = format.act_order || (format.layout == PackedFormat::Layout::kGptq &&
                                          Has(module + std::string(shapes.groups.suffix)));
  const TensorInfo* groups =
      order ? want(shapes.groups, Content::kWords, ", for act order") : nullptr;
  const TensorInfo* shape = format.layout == PackedFormat::Layout::kPackQuantized
                                ? Want(module + ".weight_shape", {2}, Content::kShape)
                                : nullptr;
  if (problems_.count() != before || codes == nullptr) return nullptr;
  auto packed = std::make_shared<PackedTensors>(
      PackedTensors{.format = format, .weight = *codes, .codes = *codes, .scales = *scales});
  if (zeros != nullptr) packed->zeros = *zeros;
  for (const TensorInfo* other : {groups, shape}) {
    if (other != nullptr) packed->others.push_back(*other);
  }
  if (groups != nullptr && format.group != 0) packed->order = InputOrder(*groups, format.group);
  if (shape != nullptr) CheckShape(*shape, outputs, inputs);
  if (nf4 && !FinishNf4(module, outputs, inputs, *packed)) return nullptr;
  packed->weight.name = Name(module) + ".weight";
  packed->weight.shape = {outputs, inputs};
  packed->weight.dtype.reset();
  packed->weight.dtype_name = ShortName(format);
  return packed;
}

// Returns whether it found all.
bool Resolver::FinishNf4(const std::string& module, int64_t outputs, int64_t inputs,
                         PackedTensors& packed) {
  const size_t before = problems_.count();
  const auto want = [&](const std::string& suffix, std::vector<int64_t> shape, Content content) {
    return Want(module + ".weight." + suffix, shape, content, ", for an nf4 weight");
  };
  const TensorInfo* levels = want("quant_map", {16}, Content::kScale);
  const std::string state_name = "quant_state.bitsandbytes__nf4";
  const TensorInfo* state = source_.Find(Name(module + ".weight." + state_name));
  state =
      want(state_name, state == nullptr ? std::vector<int64_t>{1} : state->shape, Content::kBytes);
  if (problems_.count() != before) return false;
  CheckNf4Levels(*levels);
  const Nf4State found = ReadNf4State(*state, packed.format, outputs, inputs);
  packed.others = {*levels, *state};
  if (!packed.format.nested) return true;
  const int64_t groups = packed.scales.NumElements();
  const TensorInfo* nested_levels = want("nested_quant_map", {256}, Content::kScale);
  const TensorInfo* nested_scales = want(
      "nested_absmax", {(groups + found.nested_group - 1) / found.nested_group}, Content::kScale);
  if (problems_.count() != before) return false;
  packed.nested = {.levels = *nested_levels,
                   .scales = *nested_scales,
                   .group = found.nested_group,
                   .offset = found.nested_offset};
  packed.others.push_back(*nested_levels);
  packed.others.push_back(*nested_scales);
  return true;
}

std::optional<LayerQuantization> Resolver::Quantization(const std::string& module) const {
  const LayerQuantization* found = spec_.quantization.Find(Name(module));
  if (found == nullptr) return std::nullopt;
  // What GPTQ and AWQ leave alone, such as routers, config.json does not always say.
  const bool told = !found->packed || !found->packed->across();
  return told || !Has(module + ".weight") ? std::optional(*found) : std::nullopt;
}

LinearTensors Resolver::Linear(const std::vector<std::pair<std::string, int64_t>>& parts,
                               int64_t inputs, bool bias, bool transposed) {
  LinearTensors linear;
  linear.transposed = transposed;
  std::vector<std::optional<LayerQuantization>> quantizations;
  for (const auto& [module, outputs] : parts) {
    quantizations.push_back(Quantization(module));
    const auto packed = quantizations.back() ? quantizations.back()->packed : std::nullopt;
    // Some tools write biases, of zeros, where the model has none.
    if (packed && packed->across() && Has(module + ".bias")) bias = true;
  }
  for (const auto& [module, outputs] : parts) {
    const auto& quantization = quantizations[linear.parts.size()];
    if (linear.parts.empty()) linear.quantization = quantization;
    const bool like_first = linear.quantization == quantization;
    if (!like_first) {
      problems_.Add("config.json quantizes {} otherwise than {}, with which it is fused",
                    Name(module), Name(parts.front().first));
    }
    if (bias) linear.biases.push_back(Want(module + ".bias", {outputs}));
    if (quantization && quantization->packed) {
      linear.transposed = false;  // whatever the layer was before
      linear.packed.push_back(Packed(module, outputs, inputs, *quantization->packed));
      linear.parts.push_back(linear.packed.back() ? &linear.packed.back()->weight : nullptr);
    } else {
      linear.parts.push_back(
          Want(module + ".weight",
               transposed ? std::vector{inputs, outputs} : std::vector{outputs, inputs},
               quantization ? Content::kQuantized : Content::kFloats));
      if (quantization) WantScales(module, outputs, *quantization, linear);
      int8_ |= quantization.has_value();
    }
    const TensorInfo* first = linear.parts.front();
    const TensorInfo* part = linear.parts.back();
    if (like_first && first != nullptr && part != nullptr && !CanBeFused(*first, *part)) {
      problems_.Add("tensor {} has type {}, expected {} like {}, with which it is fused",
                    part->name, part->dtype_name, first->dtype_name, first->name);
    }
  }
  return linear;
}

NormTensors Resolver::Norm(const std::string& module, int64_t size, bool bias) {
  const bool gain = spec_.norm_gain;
  return {.size = size,
          .weight = gain ? Want(module + ".weight", {size}) : nullptr,
          .bias = gain && bias ? Want(module + ".bias", {size}) : nullptr};
}

std::string Numbered(const std::string& pattern, int64_t layer, int64_t expert = 0) {
  return fmt::format(fmt::runtime(pattern), layer, expert);
}

const TensorInfo* Resolver::WantSlice(const std::string& module, const std::string& ending,
                                      const std::vector<int64_t>& shape, int64_t expert,
                                      Content content) {
  std::vector<int64_t> whole_shape = {spec_.mlp.experts};
  whole_shape.insert(whole_shape.end(), shape.begin(), shape.end());
  const std::string name = module + ending;
  // What is wrong with it is said once.
  const TensorInfo* whole =
      expert == 0 ? Want(name, whole_shape, content) : source_.Find(Name(name));
  if (whole == nullptr || whole->shape != whole_shape || !whole->dtype) return nullptr;
  return Slice(*whole, expert * shape.front(), shape,
               fmt::format("{}.{}{}", Name(module), expert, ending));
}

const TensorInfo* Resolver::Slice(const TensorInfo& whole, int64_t begin,
                                  std::vector<int64_t> shape, const std::string& part) {
  TensorInfo slice = whole;
  slice.name = part;
  slice.shape = std::move(shape);
  const size_t row =
      SizeOf(*whole.dtype) * static_cast<size_t>(slice.NumElements() / slice.shape.front());
  const size_t first = static_cast<size_t>(begin) * row;
  slice.bytes = whole.bytes.subspan(first, static_cast<size_t>(slice.shape.front()) * row);
  slice.offset_bytes += first;
  return slices_.emplace_back(std::make_shared<const TensorInfo>(std::move(slice))).get();
}

std::shared_ptr<const PackedTensors> Resolver::Mxfp4Slice(const std::string& module,
                                                          int64_t outputs, int64_t inputs,
                                                          int64_t expert) {
  packed_ = true;
  if (!GroupsDivide(module, inputs, kMxfp4, /*says=*/expert == 0)) return nullptr;
  const int64_t groups = inputs / kMxfp4.group;
  const auto slice = [&](const char* ending, const std::vector<int64_t>& shape) {
    return WantSlice(module, ending, shape, expert, Content::kBytes);
  };
  const TensorInfo* blocks = slice("_blocks", {outputs, groups, kMxfp4.group / 2});
  const TensorInfo* scales = slice("_scales", {outputs, groups});
  if (blocks == nullptr || scales == nullptr) return nullptr;
  return std::make_shared<const PackedTensors>(Mxfp4Tensors(*blocks, *scales));
}

LinearTensors Resolver::StackedLinear(const std::string& module, int64_t outputs, int64_t inputs,
                                      int64_t expert) {
  const MlpSpec& mlp = spec_.mlp;
  const ModuleNames& names = spec_.names;
  LinearTensors linear;
  linear.quantization = Quantization(module);
  if (linear.quantization && linear.quantization->packed == kMxfp4) {
    linear.packed = {Mxfp4Slice(module, outputs, inputs, expert)};
    linear.parts = {linear.packed[0] ? &linear.packed[0]->weight : nullptr};
  } else {
    if (linear.quantization && expert == 0) {
      problems_.Add(
          "config.json quantizes {}, whose experts lie in one tensor: of these MXFP4 is read",
          Name(module));
    }
    linear.transposed = mlp.transposed;
    linear.parts = {WantSlice(
        module, names.expert_weight,
        mlp.transposed ? std::vector{inputs, outputs} : std::vector{outputs, inputs}, expert)};
  }
  if (mlp.bias) linear.biases = {WantSlice(module, names.expert_bias, {outputs}, expert)};
  return linear;
}

NormTensors Resolver::HeadNorm(const std::string& pattern, int64_t layer, int64_t heads) {
  const int64_t dim = spec_.head_dim;
  const std::string module = Numbered(pattern, layer);
  if (spec_.qk_norm == QkNorm::kHeads) return Norm(module, dim, /*bias=*/false);
  if (spec_.qk_norm_by_head) {
    NormTensors norm{.size = heads * dim};
    for (int64_t head = 0; head < heads; ++head) {
      norm.heads.push_back(Want(Numbered(pattern, layer, head) + ".weight", {dim}));
    }
    return norm;
  }
  const std::vector<int64_t> shape =
      spec_.qk_norm == QkNorm::kEachHead ? std::vector{heads, dim} : std::vector{heads * dim};
  return {.size = heads * dim, .weight = Want(module + ".weight", shape)};
}

LatentTensors Resolver::Latent(int64_t layer) {
  const ModuleNames& names = spec_.names;
  const LatentAttention& shape = *spec_.latent;
  const int64_t hidden = spec_.hidden_size;
  LatentTensors latent;
  if (shape.query_rank > 0) {
    latent.query_down =
        Linear({{Numbered(names.query_down, layer), shape.query_rank}}, hidden, spec_.qkv_bias);
    latent.query_norm = Norm(Numbered(names.query_down_norm, layer), shape.query_rank, false);
  }
  latent.query = Linear({{Numbered(names.q, layer), spec_.heads * shape.query_dim()}},
                        shape.query_rank > 0 ? shape.query_rank : hidden, /*bias=*/false);
  latent.kv_down =
      Linear({{Numbered(names.kv_down, layer), shape.cached_dim()}}, hidden, spec_.qkv_bias);
  latent.kv_norm = Norm(Numbered(names.kv_down_norm, layer), shape.kv_rank, /*bias=*/false);
  if (spec_.interleaved_rotary) {
    latent.query.pairs_period = shape.query_dim();
    latent.query.pairs_first = shape.plain_dim;
    latent.kv_down.pairs_period = shape.cached_dim();
    latent.kv_down.pairs_first = shape.kv_rank;
  }
  LatentHeads(Numbered(names.kv_up, layer), latent);
  return latent;
}

// One matrix: of every head what makes its keys, then what makes its values.
void Resolver::LatentHeads(const std::string& module, LatentTensors& latent) {
  const LatentAttention& shape = *spec_.latent;
  const int64_t rows = shape.plain_dim + shape.value_dim;
  const std::vector<int64_t> whole_shape = {spec_.heads * rows, shape.kv_rank};
  const TensorInfo* whole = Want(module + ".weight", whole_shape);
  if (whole == nullptr || whole->shape != whole_shape) return;
  if (!whole->dtype || spec_.quantization.Find(Name(module)) != nullptr) {
    problems_.Add("tensor {} has type {}, expected F32, F16 or BF16, as its heads are split",
                  whole->name, whole->dtype_name);
    return;
  }
  for (int64_t head = 0; head < spec_.heads; ++head) {
    const auto slice = [&](int64_t begin, int64_t count, std::string_view what) {
      return Slice(*whole, head * rows + begin, {count, shape.kv_rank},
                   fmt::format("{}.{}.{}.weight", Name(module), what, head));
    };
    LinearTensors& keys = latent.keys.emplace_back();
    keys.parts = {slice(0, shape.plain_dim, "keys")};
    keys.transposed = true;
    latent.values.emplace_back().parts = {slice(shape.plain_dim, shape.value_dim, "values")};
  }
}

LinearTensors Resolver::Qkv(int64_t layer) {
  const ModuleNames& names = spec_.names;
  const int64_t q_rows = spec_.heads * spec_.head_dim;
  const int64_t kv_rows = spec_.kv_heads * spec_.head_dim;
  std::vector<std::pair<std::string, int64_t>> parts;
  if (spec_.qkv_layout == QkvLayout::kSeparate) {
    parts = {{Numbered(names.q, layer), q_rows},
             {Numbered(names.k, layer), kv_rows},
             {Numbered(names.v, layer), kv_rows}};
  } else {
    parts = {{Numbered(names.qkv, layer), q_rows + 2 * kv_rows}};
  }
  LinearTensors qkv = Linear(parts, spec_.hidden_size, spec_.qkv_bias, spec_.transposed);
  qkv.grouped = spec_.qkv_layout == QkvLayout::kGrouped;
  qkv.interleaved = spec_.interleaved_rotary;
  return qkv;
}

MlpTensors Resolver::Mlp(const MlpSpec& mlp, const MlpNames& names, int64_t layer, int64_t expert) {
  std::vector<std::pair<std::string, int64_t>> up;
  if (mlp.gated && !mlp.fused) {
    up.emplace_back(Numbered(names.gate, layer, expert), mlp.intermediate);
  }
  up.emplace_back(Numbered(names.up, layer, expert),
                  mlp.gated && mlp.fused ? 2 * mlp.intermediate : mlp.intermediate);
  return {.up = Linear(up, spec_.hidden_size, mlp.bias, spec_.transposed),
          .down = Linear({{Numbered(names.down, layer, expert), spec_.hidden_size}},
                         mlp.intermediate, mlp.bias, spec_.transposed)};
}

MlpTensors Resolver::StackedExpert(int64_t layer, int64_t expert) {
  const MlpSpec& mlp = spec_.mlp;
  assert(mlp.gated && mlp.fused);
  MlpTensors tensors{.up = StackedLinear(Numbered(spec_.names.up, layer), 2 * mlp.intermediate,
                                         spec_.hidden_size, expert),
                     .down = StackedLinear(Numbered(spec_.names.down, layer), spec_.hidden_size,
                                           mlp.intermediate, expert)};
  tensors.up.alternating = mlp.alternating;
  return tensors;
}

LayerTensors Resolver::Layer(int64_t index) {
  const ModuleNames& names = spec_.names;
  const int64_t hidden = spec_.hidden_size;
  const auto norm = [&](const std::string& pattern) {
    return Norm(Numbered(pattern, index), hidden, spec_.norm_bias);
  };
  LayerTensors layer;
  if (spec_.input_norms) {
    layer.attention_norm = norm(names.attention_norm);
    if (spec_.topology != Topology::kParallelSharedNorm) layer.mlp_norm = norm(names.mlp_norm);
  }
  if (spec_.output_norms) {
    layer.attention_out_norm = norm(names.attention_out_norm);
    layer.mlp_out_norm = norm(names.mlp_out_norm);
  }
  if (spec_.latent) {
    layer.latent = Latent(index);
  } else {
    layer.qkv = Qkv(index);
  }
  if (spec_.qk_norm != QkNorm::kNone) {
    layer.q_norm = HeadNorm(names.q_norm, index, spec_.heads);
    layer.k_norm = HeadNorm(names.k_norm, index, spec_.kv_heads);
  }
  if (spec_.attention_sink == AttentionSink::kLearned) {
    layer.sinks = Want(Numbered(names.sinks, index), {spec_.heads});
  }
  const int64_t value_dim = spec_.latent ? spec_.latent->value_dim : spec_.head_dim;
  layer.attention_out = Linear({{Numbered(names.attention_out, index), hidden}},
                               spec_.heads * value_dim, spec_.attention_out_bias, spec_.transposed);
  const MlpSpec& mlp = MlpOf(spec_, index);
  const MlpNames own{.gate = names.gate, .up = names.up, .down = names.down};
  const MlpNames dense{.gate = names.dense_gate, .up = names.dense_up, .down = names.dense_down};
  if (mlp.experts == 0) {
    layer.mlp = Mlp(mlp, &mlp == &spec_.dense_mlp ? dense : own, index);
    return layer;
  }
  layer.router = Linear({{Numbered(names.router, index), mlp.experts}}, hidden, mlp.router_bias);
  if (mlp.choice_bias) layer.choice_bias = Want(Numbered(names.choice_bias, index), {mlp.experts});
  for (int64_t i = 0; i < mlp.experts; ++i) {
    layer.experts.push_back(mlp.stacked ? StackedExpert(index, i) : Mlp(mlp, own, index, i));
  }
  if (spec_.shared_mlp.intermediate > 0) {
    layer.mlp =
        Mlp(spec_.shared_mlp, {names.shared_gate, names.shared_up, names.shared_down}, index);
  }
  return layer;
}

void Resolver::Embedding(ModelTensors& tensors) {
  const ModuleNames& names = spec_.names;
  const int64_t hidden = spec_.hidden_size;
  const int64_t width = spec_.embedding_size.value_or(hidden);
  const TensorInfo* embedding = Want(names.embedding + ".weight", {spec_.vocab_size, width});
  if (spec_.tied_head) {
    tensors.head.parts = {embedding};
  } else {
    tensors.head = Linear({{names.head, spec_.vocab_size}}, width, false);
    if (embedding != nullptr && embedding->blocks != nullptr) {
      tensors.embedding_blocks.parts = {embedding};
    } else {
      tensors.embedding = embedding;
    }
  }
  if (spec_.embedding_norm) {
    tensors.embedding_norm = Norm(names.embedding_norm, hidden, spec_.norm_bias);
  }
  if (spec_.first_learned_position) {
    tensors.positions = Want(names.positions + ".weight",
                             {*spec_.first_learned_position + spec_.max_context, hidden});
  }
  if (spec_.embedding_size) {
    tensors.project_in = Linear({{names.project_in, hidden}}, width, false);
    tensors.project_out = Linear({{names.project_out, width}}, hidden, false);
  }
}

ModelTensors Resolver::FindAll() {
  ModelTensors tensors;
  Embedding(tensors);
  for (int64_t i = 0; i < spec_.layers; ++i) tensors.layers.push_back(Layer(i));
  if (spec_.final_norm) {
    tensors.final_norm = Norm(spec_.names.final_norm, spec_.hidden_size, spec_.norm_bias);
  }
  return tensors;
}

std::map<std::string, std::vector<int64_t>, std::less<>> Resolver::Wanted() {
  FindAll();
  return std::move(wanted_);
}

// A config.json may ask for millions of tensors, which take gigabytes to name.
void RefuseOtherSize(const DecoderSpec& spec, const WeightSource& source) {
  constexpr int64_t kMostMissing = 10000;
  const int64_t wanted = CountTensors(spec).tensors;
  const auto found = std::ssize(source.Names());
  if (wanted - found <= kMostMissing) return;
  const std::string experts =
      spec.mlp.experts > 0 ? fmt::format(" of {} experts", spec.mlp.experts) : "";
  Throw(ErrorKind::kFormat,
        "config.json describes a {} model of {} layers{}, which takes {} tensors, and the "
        "checkpoint has {}",
        spec.family, spec.layers, experts, wanted, found);
}

ModelTensors Resolver::Resolve() {
  RefuseOtherSize(spec_, source_);
  ModelTensors tensors = FindAll();
  ReportUnexpected();
  problems_.ThrowIfAny(ErrorKind::kFormat,
                       fmt::format("this checkpoint is not a {} model as its config.json "
                                   "describes it",
                                   spec_.family));
  tensors.int8 = int8_;
  tensors.packed = packed_;
  tensors.slices = std::move(slices_);
  for (const auto& [name, shape] : wanted_) {
    tensors.bytes += static_cast<int64_t>(source_.Find(name)->bytes.size());
  }
  return tensors;
}

void Resolver::ReportUnexpected() {
  std::vector<std::string> harmless = spec_.names.harmless;
  // Saved by some tools although the head is the embedding.
  if (spec_.tied_head) harmless.push_back(Name(spec_.names.head + ".weight"));
  for (const std::string& name : source_.Names()) {
    if (wanted_.contains(name)) continue;
    const bool known = std::ranges::any_of(
                           harmless, [&](const std::string& end) { return name.ends_with(end); }) ||
                       std::ranges::any_of(spec_.names.others, [&](const std::string& begin) {
                         return name.starts_with(begin);
                       });
    if (!known) {
      problems_.Add("unexpected tensor {}, {}", Quote(name), source_.Find(name)->Describe());
    }
  }
}

class NoWeights : public WeightSource {
 public:
  const TensorInfo* Find(std::string_view) const override { return nullptr; }
  const std::vector<std::string>& Names() const override { return names_; }
  const std::map<std::string, std::string, std::less<>>& Metadata() const override {
    return metadata_;
  }
  void Release(const TensorInfo&) const override {}

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

}  // namespace

std::vector<WantedTensor> WantedTensors(const DecoderSpec& spec) {
  const NoWeights none;
  std::vector<WantedTensor> tensors;
  for (auto& [name, shape] : Resolver(spec, none).Wanted()) {
    tensors.push_back({.name = name, .shape = std::move(shape)});
  }
  return tensors;
}

TensorTotals CountTensors(const DecoderSpec& spec) {
  const auto count = [&](int64_t layers, int64_t experts, bool dense = false) {
    DecoderSpec part = spec;
    part.layers = layers;
    part.mlp.experts = experts;
    part.dense_layers.assign(static_cast<size_t>(layers), dense);
    part.quantization = {};
    TensorTotals totals;
    for (const WantedTensor& tensor : WantedTensors(part)) {
      ++totals.tensors;
      int64_t elements = 1;
      for (const int64_t size : tensor.shape) elements *= size;
      totals.elements += elements;
    }
    return totals;
  };
  const TensorTotals none = count(0, 0);
  const TensorTotals first = count(1, std::min<int64_t>(1, spec.mlp.experts));
  const TensorTotals second = spec.mlp.experts > 1 ? count(1, 2) : first;
  const auto dense_layers = std::ranges::count(spec.dense_layers, true);
  const TensorTotals dense = dense_layers > 0 ? count(1, 0, /*dense=*/true) : none;
  const auto total = [&](int64_t TensorTotals::*of) {
    const int64_t layer = first.*of - none.*of + (spec.mlp.experts - 1) * (second.*of - first.*of);
    return none.*of + (spec.layers - dense_layers) * layer + dense_layers * (dense.*of - none.*of);
  };
  return {.tensors = total(&TensorTotals::tensors), .elements = total(&TensorTotals::elements)};
}

std::vector<const LinearTensors*> LinearsOf(const ModelTensors& tensors) {
  std::vector<const LinearTensors*> all = {&tensors.embedding_blocks, &tensors.project_in,
                                           &tensors.project_out};
  for (const LayerTensors& layer : tensors.layers) {
    const LatentTensors& latent = layer.latent;
    for (const LinearTensors* linear :
         {&layer.qkv, &latent.query_down, &latent.query, &latent.kv_down}) {
      all.push_back(linear);
    }
    for (const LinearTensors& keys : latent.keys) all.push_back(&keys);
    for (const LinearTensors& values : latent.values) all.push_back(&values);
    for (const LinearTensors* linear :
         {&layer.attention_out, &layer.mlp.up, &layer.mlp.down, &layer.router}) {
      all.push_back(linear);
    }
    for (const MlpTensors& expert : layer.experts) {
      for (const LinearTensors* linear : {&expert.up, &expert.down}) all.push_back(linear);
    }
  }
  all.push_back(&tensors.head);
  std::erase_if(all, [](const LinearTensors* linear) { return linear->parts.empty(); });
  return all;
}

std::string ModuleName(const TensorInfo& weight) {
  return weight.name.substr(0, weight.name.rfind(".weight"));
}

std::string ModuleName(const LinearTensors& linear) { return ModuleName(*linear.parts.front()); }

ModelTensors ResolveTensors(const DecoderSpec& spec, const WeightSource& source) {
  return Resolver(spec, source).Resolve();
}

}  // namespace godwit
