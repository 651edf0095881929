// Lines of standard input where nobody types: a pipe or a file.
#pragma once

#include <string>

#include "console/terminal/line_source.h"

namespace godwit::console {

class PipedLines : public LineSource {
 public:
  // Throws Error(kIo), and Error(kInput) for a line of more than kMaxMessageBytes.
  Line Read(const std::string& prompt) override;

 private:
  std::string buffer_;
  bool ended_ = false;
};

}  // namespace godwit::console
