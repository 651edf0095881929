// How a checkpoint holds linear layers whose weights are codes of 4 or 8 bits in groups that share
// a scale, as config.json tells it. weights/packed_rows.h has the tensors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace godwit {

struct PackedFormat {
  enum class Layout : uint8_t {
    kPackQuantized,  // compressed-tensors: w = scale * (code - zero), zero 8 or 128 if symmetric
    kIntQuantized,   // the same without zeros, each code in a byte, less 8 or 128
    kGptq,           // the same, but packed across
    kAwq,            // likewise, eight outputs in a word
    kNf4,            // bitsandbytes: w = scale * level of the code
    // w = scale * code, a float of 4 bits (E2M1), two in a byte, or of 8 (E4M3). Tensors have the
    // names below.
    kFloats4,
    kFloats8,
  };
  // The scales of float codes: floats, powers of two (E8M0), or E4M3 and a factor for the tensor.
  enum class ScaleType : uint8_t { kFloats, kPowers, kE4M3 };

  Layout layout = Layout::kPackQuantized;
  int bits = 4;
  // Inputs that share a scale; 0: all. They divide those of a layer, but of kFloats8.
  int64_t group = 0;
  int64_t group_outputs = 1;  // outputs that share a scale; 0: all
  bool zeros = false;         // groups have zero points
  bool zeros_less_1 = false;  // which are one more than is stored: GPTQ's first version
  bool act_order = false;     // which group an input belongs to is a tensor of the layer
  bool nested = false;        // nf4: scales are codes of 8 bits, whose scales are floats
  bool transposed = false;    // kFloats8: codes and scales are stored [inputs, outputs]

  // The rest is of float codes only. Endings of names are constants, behind the module's.
  ScaleType scale_type = ScaleType::kFloats;
  std::string_view codes_suffix = {};
  std::string_view scales_suffix = {};
  std::string_view factor_suffix = {};  // empty: there is no factor
  bool factor_divides = false;          // weights are divided by the factor, not multiplied

  // across: whether neighbouring outputs lie side by side, in a layout that is always so;
  // outputs_inside: whether they do in this format. has_zeros: whether there is a tensor of zero
  // points, if only to say that they are all the same.
  bool across() const { return layout == Layout::kGptq || layout == Layout::kAwq; }
  bool outputs_inside() const { return across() || transposed; }
  bool has_zeros() const { return zeros || across(); }
  // Whether a group layout of the kernels (tensor/group_format.h) has such weights.
  bool has_groups() const { return layout != Layout::kFloats8; }
  bool has_float_codes() const { return layout == Layout::kFloats4 || layout == Layout::kFloats8; }

  bool operator==(const PackedFormat&) const = default;
};

// The numbers that the codes stand for where they are no integers; else empty.
std::span<const float> LevelsOf(const PackedFormat& format);

// The floats of 8 bits that codes are, some of them NaN: [256].
std::span<const float> E4M3Levels();

// Endings of tensors beside float codes that tell how inputs or cached keys and values were to be
// rounded. They do not change weights, and nothing here reads them.
std::span<const std::string_view> UnusedSuffixes(const PackedFormat& format);

// Endings of tensors that tell how cached keys and values were to be rounded, beside weights of any
// kind.
std::span<const std::string_view> UnusedCacheSuffixes();

// "GPTQ-Int4", for a line with others.
std::string_view ShortName(const PackedFormat& format);

// "4-bit weights (GPTQ) with a scale and a zero point for each 128 inputs, in act order"
std::string Describe(const PackedFormat& format);

}  // namespace godwit
