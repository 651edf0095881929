// Small text files, read whole.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace godwit {

// The bytes of the regular file `path`; they need not be UTF-8. Throws Error(kIo) where it is
// missing, unreadable, a folder or anything else that is not a regular file. Throws Error(kFormat)
// where it holds more than max_bytes, before reading it.
std::string ReadTextFile(const std::filesystem::path& path, size_t max_bytes);

// Whether a reader should try `path`, for files that may be absent. Also true of a link that leads
// nowhere and of what cannot be examined: opening it then says why. Never throws Error.
bool IsListed(const std::filesystem::path& path);

}  // namespace godwit
