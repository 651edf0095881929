// LineSource: where `godwit chat` gets its input from, line by line.
#pragma once

#include <cstddef>
#include <string>

namespace godwit::console {

// Of one line, and of all lines of a message: far beyond any context.
inline constexpr size_t kMaxMessageBytes = size_t{64} << 20;

struct Line {
  enum class Kind {
    kText,         // `text`
    kEnd,          // end of the input
    kInterrupted,  // Ctrl-C; `text` is what stood on the line
  };
  Kind kind = Kind::kText;
  std::string text;     // without its newline
  bool pasted = false;  // the newline was pasted, not typed: the message goes on
};

class LineSource {
 public:
  virtual ~LineSource() = default;
  // prompt: shown where somebody types.
  virtual Line Read(const std::string& prompt) = 0;
};

}  // namespace godwit::console
