#include "engine/stop_strings.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace godwit {
namespace {

// The length of the longest end of `text` with which `stop` begins.
size_t Overlap(std::string_view text, std::string_view stop) {
  for (size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n) {
    if (text.ends_with(stop.substr(0, n))) return n;
  }
  return 0;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_) {
    if (stop.empty()) Throw(ErrorKind::kInput, "a stop string is empty");
  }
}

std::string StopStrings::Push(std::string_view text) {
  if (stopped_) return {};
  held_ += text;
  size_t first = std::string::npos;
  size_t overlap = 0;
  for (const std::string& stop : stops_) {
    first = std::min(first, held_.find(stop));
    overlap = std::max(overlap, Overlap(held_, stop));
  }
  stopped_ = first != std::string::npos;
  const size_t certain = stopped_ ? first : held_.size() - overlap;
  std::string out = held_.substr(0, certain);
  held_.erase(0, certain);
  return out;
}

std::string StopStrings::Flush() {
  return stopped_ ? std::string() : std::exchange(held_, std::string());
}

}  // namespace godwit
