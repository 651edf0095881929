// Numbers to the quantized blocks of GGUF: the inverse of gguf_blocks.h, which is the measure of
// what comes out.
//
// Pure functions, thread-safe, the same bits on every machine.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "weights/gguf_blocks.h"

namespace godwit {

// Q8_0 and Q4_K.
bool IsEncoded(const BlockFormat& format);

// Encodes a row of whole blocks of finite numbers, whose scale an F16 can hold: up to 65504 times
// the largest code. out: format.bytes for each block. For such a format alone. Numbers are rounded
// to the nearest multiple of the scale that is stored. Q8_0 takes the scale that its largest number
// asks for. Q4_K takes scales and minimums of least squared error among many that are tried.
void EncodeRow(const BlockFormat& format, std::span<const float> row, std::byte* out);

// The largest magnitude that a block of the format holds.
float LargestEncoded(const BlockFormat& format);

}  // namespace godwit
