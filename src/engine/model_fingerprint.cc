#include "engine/model_fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <vector>

#include "base/fnv.h"
#include "model/draft_heads.h"
#include "text/vocabulary_files.h"
#include "weights/gguf_files.h"

namespace godwit {

namespace {

std::vector<std::filesystem::path> FilesOf(const std::string& folder) {
  if (!std::filesystem::is_directory(folder)) return GgufParts(folder);
  const std::optional<std::string> tokenizer = FindTokenizerFile(folder);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto name = entry.path().filename();
    if (name.native().ends_with(DraftHeads::kFileName)) continue;  // only one host needs it
    if (name == "config.json" || name == tokenizer || name.extension() == ".safetensors" ||
        name.extension() == ".gguf" || (name == "merges.txt" && tokenizer == "vocab.json")) {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::string ModelFingerprint(const std::string& folder) {
  constexpr int64_t kBeginning = 1 << 20, kSamples = 256, kSample = 4096;
  std::string all;
  for (const auto& file : FilesOf(folder)) {
    const auto size = static_cast<int64_t>(std::filesystem::file_size(file));
    std::ifstream in(file, std::ios::binary);
    std::string read;
    const auto take = [&](int64_t begin, int64_t end) {
      std::string piece(std::max<int64_t>(0, end - begin), '\0');
      in.seekg(begin);
      in.read(piece.data(), std::ssize(piece));
      read += piece;
    };
    take(0, std::min(size, kBeginning));
    for (int64_t i = 0; i < kSamples; ++i) {
      const int64_t begin = std::max(kBeginning, size / kSamples * i);
      take(begin, std::min(size, begin + kSample));
    }
    all += fmt::format("{} {} {:016x}\n", file.filename().string(), size,
                       Fnv1a(std::as_bytes(std::span(read))));
  }
  return fmt::format("{:016x}", Fnv1a(std::as_bytes(std::span(all))));
}

std::string LastChange(const std::string& folder) {
  auto last = std::filesystem::file_time_type::min();
  for (const auto& file : FilesOf(folder)) last = std::max(last, last_write_time(file));
  return fmt::format("{}", last.time_since_epoch().count());
}

}  // namespace godwit
