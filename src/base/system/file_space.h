// The space that a file takes on its disk.
#pragma once

#include <cstdint>

namespace godwit {

// Takes the space of a part of a file, which becomes as long. Returns 0 or an errno, as ENOSPC.
int TakeFileSpace(int file, int64_t begin, int64_t bytes) noexcept;

// Gives the space of a part back where the file system can; what it held is lost.
void GiveFileSpace(int file, int64_t begin, int64_t bytes) noexcept;

// Waits until what was written has reached the disk.
void SyncData(int file) noexcept;

}  // namespace godwit
