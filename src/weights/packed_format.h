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
    kMxfp4,          // gpt-oss: w = 2^(scale - 127) * level of the code, a float of four bits
    kNf4,            // bitsandbytes: w = scale * level of the code
    kFp8Blocks,      // w = scale of a block of outputs and inputs * a float of 8 bits, E4M3
  };

  Layout layout = Layout::kPackQuantized;
  int bits = 4;
  // Inputs that share a scale; 0: all. They divide those of a layer, but of kFp8Blocks.
  int64_t group = 0;
  int64_t group_outputs = 1;  // outputs that share a scale
  bool zeros = false;         // groups have zero points
  bool zeros_less_1 = false;  // which are one more than is stored: GPTQ's first version
  bool act_order = false;     // which group an input belongs to is a tensor of the layer
  bool nested = false;        // nf4: scales are codes of 8 bits, whose scales are floats

  // across: whether neighbouring outputs lie side by side. has_zeros: whether there is a tensor of
  // zero points, if only to say that they are all the same.
  bool across() const { return layout == Layout::kGptq || layout == Layout::kAwq; }
  bool has_zeros() const { return zeros || across(); }
  // Whether a group layout of the kernels (tensor/group_format.h) has such weights.
  bool has_groups() const { return layout != Layout::kFp8Blocks; }

  bool operator==(const PackedFormat&) const = default;
};

// The numbers that the codes stand for where they are no integers; else empty.
std::span<const float> LevelsOf(const PackedFormat& format);

// "GPTQ-Int4", for a line with others.
std::string_view ShortName(const PackedFormat& format);

// "4-bit weights (GPTQ) with a scale and a zero point for each 128 inputs, in act order"
std::string Describe(const PackedFormat& format);

}  // namespace godwit
