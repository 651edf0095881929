#include "base/file.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "base/open_file.h"
#include "base/quote.h"

namespace godwit {

std::string ReadTextFile(const std::filesystem::path& path, size_t max_bytes) {
  const OpenedFile file = OpenRegularFile(path);
  if (file.size_bytes > max_bytes) {
    Throw(ErrorKind::kFormat, "{}: {} bytes, expected at most {}", QuoteUnlessPlain(path.native()),
          file.size_bytes, max_bytes);
  }
  const auto size = static_cast<size_t>(file.size_bytes);
  std::string text(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t got = read(file.descriptor.get(), text.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) ThrowErrno(path, "read");
    if (got == 0) break;  // truncated while we read it
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return text;
}

bool IsListed(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::symlink_status(path, error).type() !=
         std::filesystem::file_type::not_found;
}

}  // namespace godwit
