// For tests: the files that a power cut leaves.
//
// A disk is a folder with what fsync has brought there. It has the bytes of each file, and the
// names in each folder, by the numbers of their inodes. All else that a program has written under
// `live` may be lost in any part: sizes, blocks (which are zeros then), and names. A rename happens
// or does not. The disk keeps a second name of each file, so that no inode's number comes again.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

namespace godwit::power_cut {

// A file or a folder as fsync finds it. A folder's bytes are its names.
struct Durable {
  ino_t inode = 0;
  bool is_folder = false;
  std::string bytes;
};

// Held while names are listed and while they change, as listing folders is not atomic.
std::mutex& NamesMutex();

// Nothing: the descriptor is something else, or cannot be read.
std::optional<Durable> Look(int descriptor);
// Keeps a second name of a file. A file without names has none.
void Hold(const std::filesystem::path& disk, int descriptor, ino_t inode);
void Save(const std::filesystem::path& disk, const Durable& durable);

// Makes a disk that has all that lies under `live`. Both are on one file system, neither in the
// other.
void BeginDisk(const std::filesystem::path& live, const std::filesystem::path& disk);

// Records on a disk what this process brings there from now on. Each call takes up to most_us. An
// empty disk ends it. Programs that preload the recorder have the variables POWER_CUT_LIVE,
// POWER_CUT_DISK and POWER_CUT_US instead.
void Record(const std::filesystem::path& live, const std::filesystem::path& disk, int most_us);

// Makes the folder `image`: what a power cut now could leave of `live`.
void MakeImage(const std::filesystem::path& live, const std::filesystem::path& disk,
               const std::filesystem::path& image, uint64_t seed);

}  // namespace godwit::power_cut
