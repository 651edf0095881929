// Finds stop strings in text that arrives in pieces. Text that may be the beginning of a stop
// string is held back, so nothing is ever shown that should have been cut.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace godwit {

class StopStrings {
 public:
  // Throws Error(kInput) for an empty stop string.
  explicit StopStrings(std::vector<std::string> stops);

  // Returns the text that is now certain to precede any stop string. Once stopped(), returns
  // nothing more.
  std::string Push(std::string_view text);

  // Returns the text that was held back, at the end of a text that never met a stop string.
  std::string Flush();

  bool stopped() const { return !stop_.empty(); }
  // The stop string that came up first; of several at one place the first given. Empty until then.
  const std::string& stop() const { return stop_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::string stop_;
};

}  // namespace godwit
