#include "engine/stop_strings.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace godwit {
namespace {

// The length of the longest end of `text` that begins `stop`.
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
  if (stopped()) return {};
  held_ += text;
  size_t first = std::string::npos;
  size_t overlap = 0;
  for (const std::string& stop : stops_) {
    if (const size_t found = held_.find(stop); found < first) {
      first = found;
      stop_ = stop;
    }
    overlap = std::max(overlap, Overlap(held_, stop));
  }
  const size_t certain = stopped() ? first : held_.size() - overlap;
  std::string out = held_.substr(0, certain);
  held_.erase(0, certain);
  return out;
}

std::string StopStrings::Flush() {
  return stopped() ? std::string() : std::exchange(held_, std::string());
}

}  // namespace godwit
