// The report of bench --layer: the parts of one layer beside the limits of one thread.
#pragma once

#include <span>
#include <string>

#include "bench/layer.h"

namespace godwit::lab {

struct LayerReport {
  std::string model;    // the name of its folder or shape
  std::string weights;  // "int8"
  std::string kv_type;
  std::string isa;
};

std::string LayerText(const LayerReport& report, std::span<const bench::LayerCount> counts);
std::string LayerJson(const LayerReport& report, std::span<const bench::LayerCount> counts);

}  // namespace godwit::lab
