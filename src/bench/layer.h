// The parts of one layer, counted and timed: where a prompt's time goes, and where it must not.
//
// Every part runs alone, over and over, on one thread, and its best time is kept. Beside it stands
// the least time that the machine's limits allow. Multiplications run at the peak, and bytes come
// at the bandwidth of memory and of the second-level cache. The weights are synthetic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "kernels/dispatch.h"
#include "model/spec.h"
#include "ops/profile.h"
#include "tensor/dtype.h"

namespace godwit::bench {

struct LayerOptions {
  int64_t rows = 512;  // that a step reads together
  int64_t depth = 0;   // tokens in the cache before
  DType weights = DType::kBF16;
  DType kv_type = DType::kBF16;
  bool int8_products = false;  // of attention
  const kernels::Isa* isa = nullptr;
  Probe* probe = nullptr;
  int64_t runs = 5;                // of each part
  Profile::Clock clock = nullptr;  // null: Profile's own
};

struct LayerPart {
  std::string name;
  double multiply_adds = 0;
  // Bytes that memory must give or take once: weights, keys and values.
  double memory_bytes = 0;
  // Bytes that the cache gives. A product reads its rows once for each panel of outputs. Attention
  // reads keys and values once for each block of query rows. Rows are read and written besides.
  double cache_bytes = 0;
  double seconds = 0;  // measured alone
  // The seconds that its multiplications, memory_bytes and cache_bytes would take at the limits.
  double multiply_seconds = 0, memory_seconds = 0, cache_seconds = 0;
  bool inside = false;  // a share of the part before, which has its time, too

  double limit_seconds() const;  // the longest of the three
};

struct LayerCount {
  LayerOptions options;
  std::vector<LayerPart> parts;
  // The seconds of all parts, one after the other, as in a step.
  double in_order_seconds = 0;
  // The limits of one thread.
  double product_peak = 0, attention_peak = 0;  // multiply-adds in a second
  double memory_bytes_per_second = 0, cache_bytes_per_second = 0;

  // Sums over the parts, without those inside others.
  double alone_seconds() const;
  double limit_seconds() const;
  // The time if everything overlapped: the longest of the sums of multiplying, of reading memory
  // and of reading the cache.
  double overlapped_seconds() const;
};

// Counts the first layer of a model without experts and latent attention; throws
// Error(kUnsupported) for others.
LayerCount CountLayer(const DecoderSpec& spec, const LayerOptions& options);

}  // namespace godwit::bench
