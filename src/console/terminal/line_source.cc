#include "console/terminal/line_source.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace godwit::console {

Line PipedLines::Read(const std::string& /*prompt*/) {
  size_t searched = 0;
  while (true) {
    const size_t newline = buffer_.find('\n', searched);
    if (newline != std::string::npos) {
      Line line{.text = buffer_.substr(0, newline)};
      buffer_.erase(0, newline + 1);
      return line;
    }
    searched = buffer_.size();
    if (searched > kMaxMessageBytes) {
      Throw(ErrorKind::kInput,
            "expected lines of at most {} MiB on standard input, found a longer one",
            kMaxMessageBytes >> 20);
    }
    if (ended_) {
      if (buffer_.empty()) return {.kind = Line::Kind::kEnd, .text = ""};
      return {.text = std::exchange(buffer_, "")};
    }
    char bytes[1 << 14];
    const ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (got < 0 && errno != EINTR) {
      Throw(ErrorKind::kIo, "cannot read standard input: {}",
            std::generic_category().message(errno));
    }
    if (got > 0) buffer_.append(bytes, static_cast<size_t>(got));
    ended_ = got == 0;
  }
}

}  // namespace godwit::console
