// Descriptors that programs which are started do not inherit.
#pragma once

#include <string>

namespace godwit {

// Each false with errno where the system refuses. ends: two, of a pipe the one to read first.
bool OpenPipe(int* ends, bool blocks) noexcept;
bool OpenSocketPair(int* ends) noexcept;

// send(), without a signal where the other end is gone.
long SendQuietly(int socket, const void* bytes, unsigned long count) noexcept;

// A file without a name, in memory where the system has such; -1 with errno.
int OpenUnnamedFile(const std::string& purpose) noexcept;

}  // namespace godwit
