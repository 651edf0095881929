#include "base/line_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/quote.h"

namespace godwit {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 18;

}  // namespace

LineReader::LineReader(const std::filesystem::path& path, size_t max_line_bytes)
    : path_(path), file_(OpenRegularFile(path)), max_line_bytes_(max_line_bytes) {}

std::string LineReader::where() const {
  return fmt::format("{}:{}", QuoteUnlessPlain(path_.native()), number_);
}

bool LineReader::Fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - end_ < kPieceBytes) buffer_.resize(2 * end_ + kPieceBytes);
  while (true) {
    const ssize_t got = read(file_.descriptor.get(), buffer_.data() + end_, kPieceBytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) ThrowErrno(path_, "read");
    end_ += static_cast<size_t>(got);
    return got > 0;
  }
}

std::optional<std::string_view> LineReader::Next() {
  offset_bytes_ = next_offset_bytes_;
  size_t searched = 0;  // bytes of the line without a newline
  while (true) {
    const std::string_view unread(buffer_.data() + begin_, end_ - begin_);
    const size_t newline = unread.find('\n', searched);
    has_newline_ = newline != unread.npos;
    searched = std::min(newline, unread.size());
    if (!has_newline_ && searched <= max_line_bytes_ && Fill()) continue;
    if (!has_newline_ && searched == 0) return std::nullopt;
    ++number_;
    if (searched > max_line_bytes_) {
      Throw(ErrorKind::kFormat, "{}: a line of more than {} bytes", where(), max_line_bytes_);
    }
    const std::string_view line(buffer_.data() + begin_, searched);
    begin_ += searched + (has_newline_ ? 1 : 0);
    next_offset_bytes_ += static_cast<int64_t>(searched + (has_newline_ ? 1 : 0));
    return line;
  }
}

}  // namespace godwit
