#include "model/linear_finder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>

#include "weights/float_codes_config.h"
#include "weights/packed_config.h"
#include "weights/tensor_rows.h"

namespace godwit {
namespace {

// Rows of blocks are widened, so they can be fused with any others.
bool CanBeFused(const TensorInfo& a, const TensorInfo& b) {
  return a.dtype == b.dtype || ((a.blocks || b.blocks) && HoldsFloats(a) && HoldsFloats(b));
}

// The expected types of codes and scales.
Content CodesOf(const PackedFormat& format) {
  switch (format.layout) {
    case PackedFormat::Layout::kIntQuantized:
      return Content::kQuantized;
    case PackedFormat::Layout::kNf4:
    case PackedFormat::Layout::kFloats4:
      return Content::kBytes;
    case PackedFormat::Layout::kFloats8:
      return Content::kFloats8;
    default:
      return Content::kWords;
  }
}

Content ScalesOf(const PackedFormat& format) {
  if (format.nested) return Content::kBytes;
  if (format.scale_type == PackedFormat::ScaleType::kPowers) return Content::kPowers;
  if (format.scale_type == PackedFormat::ScaleType::kE4M3) return Content::kFloats8;
  return Content::kScale;
}

}  // namespace

std::optional<LayerQuantization> LinearFinder::Quantization(const std::string& module) const {
  const LayerQuantization* found = spec_.quantization.Find(tensors_.Name(module));
  if (found == nullptr) return std::nullopt;
  LayerQuantization result = *found;
  if (!result.packed) return result;
  PackedFormat& format = *result.packed;
  const auto has = [&](std::string_view suffix) {
    return tensors_.Find(module + std::string(suffix)) != nullptr;
  };
  if (format.layout == PackedFormat::Layout::kFloats8 && !has(format.scales_suffix) &&
      has(OtherScalesSuffix(format))) {
    format.scales_suffix = OtherScalesSuffix(format);
  }
  // config.json does not always name the layers that are left alone, such as routers. Experts that
  // lie in one tensor have no weight of this name.
  const TensorInfo* weight = tensors_.Find(module + ".weight");
  if (format.across() && weight != nullptr) return std::nullopt;
  if (format.codes_suffix != ".weight") return result;
  const bool is_float = weight == nullptr ? !has(format.scales_suffix) : HoldsFloats(*weight);
  return is_float ? std::nullopt : std::optional(result);
}

void LinearFinder::WantScales(const std::string& module, int64_t outputs,
                              const LayerQuantization& quantization, LinearTensors& linear) {
  const std::vector<int64_t> one = {1};
  if (quantization.format == Int8Format::kBitsandbytes) {
    linear.scales.push_back(
        tensors_.Want(module + ".SCB", {outputs}, Content::kScale, ", for an int8 weight"));
    const std::string order = module + ".weight_format";
    if (tensors_.Find(order) == nullptr) return;
    linear.row_orders.push_back(tensors_.Want(order, one, Content::kRowOrder));
    return;
  }
  linear.scales.push_back(
      tensors_.Want(module + ".weight_scale",
                    quantization.scale_per_output ? std::vector{outputs, int64_t{1}} : one,
                    Content::kScale, ", for an int8 weight"));
  if (quantization.input.kind != InputScale::kStatic) return;
  linear.input_scales.push_back(
      tensors_.Want(module + ".input_scale", one, Content::kScale, ", for a static input"));
  if (quantization.input.symmetric) return;
  linear.input_zero_points.push_back(tensors_.Want(
      module + ".input_zero_point", one, Content::kZeroPoint, ", for a static asymmetric input"));
}

// Checks the shape that compressed-tensors stores beside the codes of a packed weight.
void LinearFinder::CheckShape(const TensorInfo& tensor, int64_t outputs, int64_t inputs) {
  std::vector<int64_t> found(2);
  const size_t size = SizeOf(*tensor.dtype);
  for (size_t i = 0; i < found.size(); ++i) {
    std::memcpy(&found[i], tensor.bytes.data() + i * size, size);
  }
  if (found == std::vector{outputs, inputs}) return;
  tensors_.problems().Add("tensor {} says that the weight is [{}], expected [{}, {}]", tensor.name,
                          fmt::join(found, ", "), outputs, inputs);
}

float LinearFinder::ReadFactor(const TensorInfo& tensor, const PackedFormat& format) {
  const float stored = ReadAllRows(tensor).front();
  const float factor = format.factor_divides ? 1 / stored : stored;
  if (!(factor > 0 && std::isfinite(factor) && stored > 0)) {
    tensors_.problems().Add("tensor {} is {}, expected a positive number", tensor.name, stored);
  }
  return factor;
}

bool LinearFinder::GroupsDivide(const std::string& module, int64_t inputs,
                                const PackedFormat& format, bool says) {
  if (format.group == 0 || inputs % format.group == 0 || !format.has_groups()) return true;
  if (says) {
    tensors_.problems().Add(
        "config.json packs the weights of {} in groups of {}, which do not divide its {} inputs",
        tensors_.Name(module), format.group, inputs);
  }
  return false;
}

std::shared_ptr<const PackedTensors> LinearFinder::Packed(const std::string& module,
                                                          int64_t outputs, int64_t inputs,
                                                          const PackedFormat& format) {
  packed_ = true;
  if (!GroupsDivide(module, inputs, format)) return nullptr;
  if (format == kMxfp4) {
    tensors_.problems().Add(
        "config.json packs {} as MXFP4, which is supported for the experts of gpt-oss only",
        tensors_.Name(module));
    return nullptr;
  }
  const PackedShapes shapes = ShapesOf(format, outputs, inputs);
  const size_t before = tensors_.problems().count();
  const auto want = [&](const PackedShape& part, Content content, std::string_view why) {
    return tensors_.Want(module + std::string(part.suffix), part.shape, content, why);
  };
  const bool nf4 = format.layout == PackedFormat::Layout::kNf4;
  const TensorInfo* codes = want(shapes.codes, CodesOf(format), ", for a packed weight");
  const TensorInfo* scales = want(shapes.scales, ScalesOf(format), ", for a packed weight");
  const TensorInfo* factor = nullptr;
  if (!format.factor_suffix.empty()) {
    factor = want({format.factor_suffix, {1}}, Content::kScale, ", for all scales of a weight");
  }
  const TensorInfo* zeros =
      format.has_zeros() ? want(shapes.zeros, Content::kWords, ", for zero points") : nullptr;
  // GPTQ stores g_idx whether or not there is an order.
  const bool order =
      format.act_order || (format.layout == PackedFormat::Layout::kGptq &&
                           tensors_.Find(module + std::string(shapes.groups.suffix)) != nullptr);
  const TensorInfo* groups =
      order ? want(shapes.groups, Content::kWords, ", for act order") : nullptr;
  const TensorInfo* shape = format.layout == PackedFormat::Layout::kPackQuantized
                                ? tensors_.Want(module + ".weight_shape", {2}, Content::kShape)
                                : nullptr;
  if (tensors_.problems().count() != before || codes == nullptr) return nullptr;
  auto packed = std::make_shared<PackedTensors>(
      PackedTensors{.format = format, .weight = *codes, .codes = *codes, .scales = *scales});
  if (zeros != nullptr) packed->zeros = *zeros;
  for (const TensorInfo* other : {groups, shape, factor}) {
    if (other != nullptr) packed->others.push_back(*other);
  }
  if (groups != nullptr && format.group != 0) packed->order = InputOrder(*groups, format.group);
  if (shape != nullptr) CheckShape(*shape, outputs, inputs);
  if (factor != nullptr) packed->factor = ReadFactor(*factor, format);
  if (nf4 && !FinishNf4(module, outputs, inputs, *packed)) return nullptr;
  packed->weight.name = tensors_.Name(module) + ".weight";
  packed->weight.shape = {outputs, inputs};
  packed->weight.dtype.reset();
  packed->weight.dtype_name = ShortName(format);
  return packed;
}

// Returns whether all tensors were found.
bool LinearFinder::FinishNf4(const std::string& module, int64_t outputs, int64_t inputs,
                             PackedTensors& packed) {
  const size_t before = tensors_.problems().count();
  const auto want = [&](const std::string& suffix, std::vector<int64_t> shape, Content content) {
    return tensors_.Want(module + ".weight." + suffix, shape, content, ", for an nf4 weight");
  };
  const TensorInfo* levels = want("quant_map", {16}, Content::kScale);
  const std::string state_name = "quant_state.bitsandbytes__nf4";
  const TensorInfo* state = tensors_.Find(module + ".weight." + state_name);
  state =
      want(state_name, state == nullptr ? std::vector<int64_t>{1} : state->shape, Content::kBytes);
  if (tensors_.problems().count() != before) return false;
  CheckNf4Levels(*levels);
  const Nf4State found = ReadNf4State(*state, packed.format, outputs, inputs);
  packed.others = {*levels, *state};
  if (!packed.format.nested) return true;
  const int64_t groups = packed.scales.NumElements();
  const TensorInfo* nested_levels = want("nested_quant_map", {256}, Content::kScale);
  const TensorInfo* nested_scales = want(
      "nested_absmax", {(groups + found.nested_group - 1) / found.nested_group}, Content::kScale);
  if (tensors_.problems().count() != before) return false;
  packed.nested = {.levels = *nested_levels,
                   .scales = *nested_scales,
                   .group = found.nested_group,
                   .offset = found.nested_offset};
  packed.others.push_back(*nested_levels);
  packed.others.push_back(*nested_scales);
  return true;
}

LinearTensors LinearFinder::Find(const std::vector<std::pair<std::string, int64_t>>& parts,
                                 int64_t inputs, bool bias, bool transposed) {
  LinearTensors linear;
  linear.transposed = transposed;
  std::vector<std::optional<LayerQuantization>> quantizations;
  for (const auto& [module, outputs] : parts) {
    quantizations.push_back(Quantization(module));
    const auto packed = quantizations.back() ? quantizations.back()->packed : std::nullopt;
    // Some tools write zero biases for a model without biases.
    if (packed && packed->across() && tensors_.Find(module + ".bias") != nullptr) bias = true;
  }
  for (const auto& [module, outputs] : parts) {
    const auto& quantization = quantizations[linear.parts.size()];
    if (linear.parts.empty()) linear.quantization = quantization;
    const bool like_first = linear.quantization == quantization;
    if (!like_first) {
      tensors_.problems().Add(
          "config.json quantizes {} differently from {}, with which it is fused",
          tensors_.Name(module), tensors_.Name(parts.front().first));
    }
    if (bias) linear.biases.push_back(tensors_.Want(module + ".bias", {outputs}));
    if (quantization && quantization->packed) {
      linear.transposed = false;  // even if the layer was before
      linear.packed.push_back(Packed(module, outputs, inputs, *quantization->packed));
      linear.parts.push_back(linear.packed.back() ? &linear.packed.back()->weight : nullptr);
    } else {
      linear.parts.push_back(
          tensors_.Want(module + ".weight",
                        transposed ? std::vector{inputs, outputs} : std::vector{outputs, inputs},
                        quantization ? Content::kQuantized : Content::kFloats));
      if (quantization) WantScales(module, outputs, *quantization, linear);
      int8_ |= quantization.has_value();
    }
    const TensorInfo* first = linear.parts.front();
    const TensorInfo* part = linear.parts.back();
    if (like_first && first != nullptr && part != nullptr && !CanBeFused(*first, *part)) {
      tensors_.problems().Add("tensor {} has type {}, expected {} like {}, with which it is fused",
                              part->name, part->dtype_name, first->dtype_name, first->name);
    }
  }
  return linear;
}

std::shared_ptr<const PackedTensors> LinearFinder::Mxfp4Slice(const std::string& module,
                                                              int64_t outputs, int64_t inputs,
                                                              int64_t expert, int64_t experts) {
  packed_ = true;
  if (!GroupsDivide(module, inputs, kMxfp4, /*says=*/expert == 0)) return nullptr;
  const int64_t groups = inputs / kMxfp4.group;
  const auto slice = [&](const char* ending, const std::vector<int64_t>& shape) {
    return tensors_.WantSlice(module, ending, shape, expert, experts, Content::kBytes);
  };
  const TensorInfo* blocks = slice("_blocks", {outputs, groups, kMxfp4.group / 2});
  const TensorInfo* scales = slice("_scales", {outputs, groups});
  if (blocks == nullptr || scales == nullptr) return nullptr;
  return std::make_shared<const PackedTensors>(Mxfp4Tensors(*blocks, *scales));
}

std::optional<PackedFormat> LinearFinder::StackedFloats8(const std::string& module) const {
  const LayerQuantization* found = spec_.quantization.Find(tensors_.Name(module));
  const TensorInfo* whole = tensors_.Find(module + spec_.names.expert_weight);
  if (found == nullptr || !found->packed || whole == nullptr) return std::nullopt;
  const bool floats8 = found->packed->layout == PackedFormat::Layout::kFloats8;
  return floats8 && whole->dtype_name == "F8_E4M3" ? found->packed : std::nullopt;
}

const TensorInfo* LinearFinder::StackedScales(const std::string& module, const MlpSpec& mlp,
                                              int64_t outputs, int64_t inputs, int64_t expert,
                                              PackedFormat& format) {
  // transformers' names, ModelOpt's and those of fbgemm.
  const std::string tensor = module + spec_.names.expert_weight;
  std::string name = tensor + "_scale_inv";
  for (const std::string& other : {module + "_weight_scale", tensor + "_scale"}) {
    if (tensors_.Find(name) == nullptr && tensors_.Find(other) != nullptr) name = other;
  }
  const TensorInfo* whole = tensors_.Find(name);
  const int64_t count = whole == nullptr ? 0 : whole->NumElements();
  if (format.group == 0) {
    const bool halves = outputs == 2 * mlp.intermediate && inputs == spec_.hidden_size;
    format.group_outputs = 1;
    if (count == 1 || count == mlp.experts) format.group_outputs = 0;
    // Gate and up were tensors of their own when they were quantized.
    if (halves && count == 2 * mlp.experts) format.group_outputs = mlp.intermediate;
  }
  const bool shared = count == 1;
  std::vector<int64_t> shape = ShapesOf(format, outputs, inputs).scales.shape;
  if (expert == 0) {
    std::vector<int64_t> all = {shared ? 1 : mlp.experts};
    all.insert(all.end(), shape.begin(), shape.end());
    tensors_.Want(name, all, Content::kScale, ", for experts in FP8");
  }
  if (whole == nullptr || !HoldsFloats(*whole) || !whole->dtype) return nullptr;
  if (shared) return whole;
  if (count != mlp.experts * shape[0] * shape[1]) return nullptr;
  const int64_t rows = shape[0];
  return tensors_.Slice(*whole, expert * rows, std::move(shape),
                        fmt::format("{} of expert {}", whole->name, expert));
}

std::shared_ptr<const PackedTensors> LinearFinder::Floats8Slice(const std::string& module,
                                                                const MlpSpec& mlp,
                                                                PackedFormat format,
                                                                int64_t outputs, int64_t inputs,
                                                                int64_t expert) {
  packed_ = true;
  format.transposed = mlp.transposed;
  // Blocks are of the matrix as it is stored.
  if (mlp.transposed && format.group != 0) std::swap(format.group, format.group_outputs);
  const TensorInfo* scales = StackedScales(module, mlp, outputs, inputs, expert, format);
  const TensorInfo* codes = tensors_.WantSlice(module, spec_.names.expert_weight,
                                               ShapesOf(format, outputs, inputs).codes.shape,
                                               expert, mlp.experts, Content::kFloats8);
  if (scales == nullptr || codes == nullptr) return nullptr;
  auto packed = std::make_shared<PackedTensors>(
      PackedTensors{.format = format, .weight = *codes, .codes = *codes, .scales = *scales});
  packed->codes.dtype = DType::kU8;
  packed->weight.name = fmt::format("{}.{}.weight", tensors_.Name(module), expert);
  packed->weight.shape = {outputs, inputs};
  packed->weight.dtype.reset();
  packed->weight.dtype_name = ShortName(format);
  return packed;
}

LinearTensors LinearFinder::FindStacked(const std::string& module, const MlpSpec& mlp,
                                        int64_t outputs, int64_t inputs, int64_t expert) {
  const ModuleNames& names = spec_.names;
  LinearTensors linear;
  linear.quantization = Quantization(module);
  if (linear.quantization && linear.quantization->packed == kMxfp4) {
    linear.packed = {Mxfp4Slice(module, outputs, inputs, expert, mlp.experts)};
    linear.parts = {linear.packed[0] ? &linear.packed[0]->weight : nullptr};
  } else if (const auto format = StackedFloats8(module)) {
    linear.quantization = *spec_.quantization.Find(tensors_.Name(module));
    linear.packed = {Floats8Slice(module, mlp, *format, outputs, inputs, expert)};
    linear.parts = {linear.packed[0] ? &linear.packed[0]->weight : nullptr};
  } else {
    if (linear.quantization && expert == 0) {
      tensors_.problems().Add(
          "config.json quantizes {}, whose experts lie in one tensor: expected MXFP4 or FP8 there",
          tensors_.Name(module));
    }
    linear.transposed = mlp.transposed;
    linear.parts = {tensors_.WantSlice(
        module, names.expert_weight,
        mlp.transposed ? std::vector{inputs, outputs} : std::vector{outputs, inputs}, expert,
        mlp.experts)};
  }
  if (mlp.bias)
    linear.biases = {tensors_.WantSlice(module, names.expert_bias, {outputs}, expert, mlp.experts)};
  return linear;
}

}  // namespace godwit
