// LineSource: the input of `godwit chat`, line by line.
#pragma once

#include <cstddef>
#include <string>

namespace godwit::console {

// The most bytes of a line, and of all lines of a message: far beyond any context.
inline constexpr size_t kMaxMessageBytes = size_t{64} << 20;

struct Line {
  enum class Kind {
    kText,         // `text`
    kEnd,          // end of the input
    kInterrupted,  // Ctrl-C; `text` is the unfinished line
  };
  Kind kind = Kind::kText;
  std::string text;     // without its newline
  bool pasted = false;  // the newline was pasted, not typed: the message goes on
};

class LineSource {
 public:
  virtual ~LineSource() = default;
  // prompt: shown where a person types.
  virtual Line Read(const std::string& prompt) = 0;
};

// PipedLines: lines of standard input from a pipe or a file.
class PipedLines : public LineSource {
 public:
  // Throws Error(kIo), and Error(kInput) for a line of more than kMaxMessageBytes.
  Line Read(const std::string& prompt) override;

 private:
  std::string buffer_;
  bool ended_ = false;
};

}  // namespace godwit::console
