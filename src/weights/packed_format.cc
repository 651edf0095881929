#include "weights/packed_format.h"

#include <fmt/format.h>

namespace godwit {
namespace {

using Layout = PackedFormat::Layout;

std::string_view LayoutName(Layout layout) {
  switch (layout) {
    case Layout::kPackQuantized:
      return "pack-quantized";
    case Layout::kGptq:
      return "GPTQ";
    case Layout::kAwq:
      return "AWQ";
  }
  return "";
}

}  // namespace

std::string_view ShortName(const PackedFormat& format) {
  const bool four = format.bits == 4;
  switch (format.layout) {
    case Layout::kPackQuantized:
      return four ? "W4A16" : "W8A16";
    case Layout::kGptq:
      return four ? "GPTQ-Int4" : "GPTQ-Int8";
    case Layout::kAwq:
      return "AWQ-Int4";
  }
  return "";
}

std::string Describe(const PackedFormat& format) {
  return fmt::format(
      "{}-bit weights ({}) with a scale{} for {}{}", format.bits, LayoutName(format.layout),
      format.zeros ? " and a zero point" : "",
      format.group == 0 ? "each output" : fmt::format("each {} inputs", format.group),
      format.act_order ? ", in act order" : "");
}

}  // namespace godwit
