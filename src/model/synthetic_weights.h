// The weights of an untrained model: every tensor that a spec asks for, without a file.
//
// Values are pseudo-random, of mean 0 and variance 1 / inputs, so that a layer keeps the size of
// its activations. Weights of norms are around 1. They depend on the spec, the type and the
// tensor's name, and on nothing else: not on the machine or on the order of access.
//
// A tensor is a short block of values that is mapped into memory again and again, from a place of
// its own on. A model of 16 GiB takes some 50 MiB beside the memory of packed weights.
#pragma once

#include <memory>

#include "model/spec.h"
#include "tensor/dtype.h"
#include "weights/weight_source.h"

namespace godwit {

// dtype: F32, F16 or BF16. Throws Error(kMemory) if the system has no space for the mappings.
std::unique_ptr<WeightSource> SyntheticWeights(const DecoderSpec& spec, DType dtype);

}  // namespace godwit
