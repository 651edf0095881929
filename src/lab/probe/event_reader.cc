#include "lab/probe/event_reader.h"

#include <utility>

#include "base/error.h"

namespace godwit::lab::probe {

void EventReader::TakeLine(std::vector<std::string>& events) {
  const std::string line = std::exchange(line_, "");
  if (line.empty()) {
    if (std::exchange(has_data_, false)) events.push_back(std::exchange(data_, ""));
    return;
  }
  constexpr std::string_view kData = "data";
  const size_t colon = line.find(':');
  if (line.substr(0, colon) != kData) return;
  std::string_view value;
  if (colon != line.npos) value = std::string_view(line).substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (std::exchange(has_data_, true)) data_ += '\n';
  data_ += value;
}

std::vector<std::string> EventReader::Push(std::string_view bytes) {
  std::vector<std::string> events;
  for (const char c : bytes) {
    if (std::exchange(after_return_, false) && c == '\n') continue;
    if (c == '\n' || c == '\r') {
      after_return_ = c == '\r';
      TakeLine(events);
      continue;
    }
    if (line_.size() + data_.size() >= kMaxEventBytes) {
      Throw(ErrorKind::kFormat, "an event of the stream is longer than {} bytes", kMaxEventBytes);
    }
    line_ += c;
  }
  return events;
}

}  // namespace godwit::lab::probe
