// EventReader: the data of a stream of server-sent events (text/event-stream), however its bytes
// are cut.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::lab::probe {

class EventReader {
 public:
  static constexpr size_t kMaxEventBytes = size_t{16} << 20;

  // The data of each event that ends in these bytes. Throws Error(kFormat) for an event that is
  // longer than kMaxEventBytes.
  std::vector<std::string> Push(std::string_view bytes);

  // Whether the stream may end here: no event is begun.
  bool is_between_events() const { return line_.empty() && !has_data_; }

 private:
  void TakeLine(std::vector<std::string>& events);

  std::string line_, data_;
  bool has_data_ = false;
  bool after_return_ = false;  // a line feed would belong to the line that has ended
};

}  // namespace godwit::lab::probe
