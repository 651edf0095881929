// A check before any work that a result fits on the disk.
#pragma once

#include <cstdint>
#include <filesystem>

namespace godwit::quant {

// Throws Error(kIo) that names the folder if fewer bytes are free in it.
void CheckDisk(const std::filesystem::path& folder, int64_t bytes);

}  // namespace godwit::quant
