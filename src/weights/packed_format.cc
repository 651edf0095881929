#include "weights/packed_format.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace godwit {
namespace {

using Layout = PackedFormat::Layout;

// OCP Microscaling Formats 1.0, section 5.3.3.
constexpr std::array<float, 16> kE2M1 = {0,     0.5f,  1,  1.5f,  2,  3,  4,  6,
                                         -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

// Quantiles of a normal distribution: QLoRA (Dettmers et al. 2023), appendix E.
constexpr std::array<float, 16> kNormalFloat4 = {-1.0f,
                                                 -0.6961928009986877f,
                                                 -0.5250730514526367f,
                                                 -0.39491748809814453f,
                                                 -0.28444138169288635f,
                                                 -0.18477343022823334f,
                                                 -0.09105003625154495f,
                                                 0.0f,
                                                 0.07958029955625534f,
                                                 0.16093020141124725f,
                                                 0.24611230194568634f,
                                                 0.33791524171829224f,
                                                 0.44070982933044434f,
                                                 0.5626170039176941f,
                                                 0.7229568362236023f,
                                                 1.0f};

// The floats of 8 bits with 4 of exponent and 3 of mantissa: OCP 8-bit Floating Point 1.0, table 1.
// There are no infinities.
const std::array<float, 256>& E4M3() {
  static const std::array<float, 256> levels = [] {
    std::array<float, 256> all;
    for (size_t code = 0; code < all.size(); ++code) {
      const int exponent = static_cast<int>(code >> 3 & 15), mantissa = static_cast<int>(code & 7);
      const float magnitude = exponent == 0
                                  ? std::ldexp(static_cast<float>(mantissa), -9)
                                  : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
      const bool is_nan = exponent == 15 && mantissa == 7;
      all[code] = is_nan ? NAN : code < 128 ? magnitude : -magnitude;
    }
    return all;
  }();
  return levels;
}

// The name of a format of float codes.
std::string_view FloatsName(const PackedFormat& format) {
  const bool powers = format.scale_type == PackedFormat::ScaleType::kPowers;
  if (format.layout == Layout::kFloats4) return powers ? "MXFP4" : "NVFP4";
  return powers ? "MXFP8" : "FP8";
}

std::string_view LayoutName(const PackedFormat& format) {
  switch (format.layout) {
    case Layout::kPackQuantized:
      return "pack-quantized";
    case Layout::kIntQuantized:
      return "int-quantized";
    case Layout::kGptq:
      return "GPTQ";
    case Layout::kAwq:
      return "AWQ";
    case Layout::kNf4:
      return "bitsandbytes nf4";
    case Layout::kFloats4:
    case Layout::kFloats8:
      return format.group_outputs > 1 ? "block FP8" : FloatsName(format);
  }
  return "";
}

std::string ScaledPart(const PackedFormat& format) {
  if (format.group_outputs == 0) return "each tensor";
  if (format.group == 0) return "each output";
  return format.group_outputs > 1
             ? fmt::format("{} inputs of {} outputs", format.group, format.group_outputs)
             : fmt::format("each {} inputs", format.group);
}

}  // namespace

std::span<const float> E4M3Levels() { return E4M3(); }

std::span<const float> LevelsOf(const PackedFormat& format) {
  if (format.layout == Layout::kFloats4) return kE2M1;
  if (format.layout == Layout::kNf4) return kNormalFloat4;
  if (format.layout == Layout::kFloats8) return E4M3();
  return {};
}

std::span<const std::string_view> UnusedCacheSuffixes() {
  static constexpr std::array<std::string_view, 8> kSuffixes = {
      ".q_scale",      ".k_scale",      ".v_scale",        ".q_zero_point",
      ".k_zero_point", ".v_zero_point", ".k_global_scale", ".v_global_scale"};
  return kSuffixes;
}

std::span<const std::string_view> UnusedSuffixes(const PackedFormat& format) {
  static constexpr std::array<std::string_view, 9> kSuffixes = {".input_scale",
                                                                ".input_global_scale",
                                                                ".input_scale_ub",
                                                                ".activation_scale",
                                                                ".q_scale",
                                                                ".k_scale",
                                                                ".v_scale",
                                                                "_proj_input_scale",
                                                                "_proj_activation_scale"};
  if (!format.has_float_codes()) return {};
  return kSuffixes;
}

std::string_view ShortName(const PackedFormat& format) {
  const bool four = format.bits == 4;
  switch (format.layout) {
    case Layout::kPackQuantized:
      return four ? "W4A16" : "W8A16";
    case Layout::kIntQuantized:
      return four ? "W4A8" : "W8A8";
    case Layout::kGptq:
      return four ? "GPTQ-Int4" : "GPTQ-Int8";
    case Layout::kAwq:
      return "AWQ-Int4";
    case Layout::kNf4:
      return "NF4";
    case Layout::kFloats4:
    case Layout::kFloats8:
      return FloatsName(format);
  }
  return "";
}

std::string Describe(const PackedFormat& format) {
  return fmt::format("{}-bit weights ({}) with {}a scale{} for {}{}", format.bits,
                     LayoutName(format), format.nested ? "the 8-bit code of " : "",
                     format.zeros ? " and a zero point" : "", ScaledPart(format),
                     format.act_order ? ", in act order" : "");
}

}  // namespace godwit
