// Whether a result will have room, before there is any work.
#pragma once

#include <cstdint>
#include <filesystem>

namespace godwit::quant {

// Throws Error(kIo) that names the folder where fewer bytes are free in it.
void CheckDisk(const std::filesystem::path& folder, int64_t bytes);

}  // namespace godwit::quant
