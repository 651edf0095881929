#include "checkpoint/packed_sources.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <span>
#include <thread>
#include <utility>

#include "base/checksum.h"
#include "base/file.h"
#include "base/mapped_file.h"
#include "base/open_file.h"
#include "base/quote.h"

namespace godwit {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPieceBytes = size_t{16} << 20;  // one checksum, by one thread
constexpr size_t kPiecesAtATime = 16;
constexpr size_t kMaxConfigBytes = size_t{1} << 30;
constexpr std::chrono::milliseconds kTick{20};

int64_t Nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

PackedSource StampOf(const fs::path& file) {
  struct stat status;
  if (stat(file.c_str(), &status) != 0) ThrowErrno(file, "look at");
  return {.name = file.filename(),
          .bytes = status.st_size,
#ifdef __APPLE__
          .modified_ns = Nanoseconds(status.st_mtimespec),
          .changed_ns = Nanoseconds(status.st_ctimespec)};
#else
          .modified_ns = Nanoseconds(status.st_mtim),
          .changed_ns = Nanoseconds(status.st_ctim)};
#endif
}

// The checksum of the checksums of a file's pieces, which threads share. on_read: called by the
// calling thread.
uint64_t ChecksumOf(const fs::path& path, ThreadPool& pool,
                    const std::function<void(int64_t bytes)>& on_read) {
  const MappedFile file(path);
  const size_t size = file.Span().size();
  std::vector<uint64_t> checksums((size + kPieceBytes - 1) / kPieceBytes);
  std::atomic<bool> failed = false;
  for (size_t first = 0; first < checksums.size(); first += kPiecesAtATime) {
    const size_t count = std::min(kPiecesAtATime, checksums.size() - first);
    pool.Run(static_cast<int64_t>(count), [&](int64_t piece, int /*worker*/) {
      const size_t at = first + static_cast<size_t>(piece), begin = at * kPieceBytes;
      const auto bytes = file.Span().subspan(begin, std::min(kPieceBytes, size - begin));
      if (!file.LoadIntoMemory(begin, bytes.size())) {
        failed = true;
        return;
      }
      checksums[at] = Checksum(bytes);
      file.Advise(begin, bytes.size(), MappedFile::Advice::kDontNeed);
    });
    if (failed) Throw(ErrorKind::kIo, "{}: cannot be read", QuoteUnlessPlain(path.native()));
    on_read(static_cast<int64_t>(std::min(count * kPieceBytes, size - first * kPieceBytes)));
  }
  return Checksum(std::as_bytes(std::span(checksums)));
}

// Whether the content is the same, although times of files differ.
bool IsSameContent(const PackedInfo& info, const ModelFolder& model, ThreadPool& pool,
                   std::vector<PackedSource> found, const OnReadBytes& on_read) {
  AddChecksums(model, pool, on_read, found);
  return std::ranges::equal(info.sources, found, {}, &PackedSource::checksum,
                            &PackedSource::checksum);
}

}  // namespace

std::vector<PackedSource> StampSources(const ModelFolder& model) {
  std::vector<PackedSource> sources;
  for (const fs::path& file : model.weight_files()) sources.push_back(StampOf(file));
  return sources;
}

std::vector<PackedSource> StampSettledSources(const ModelFolder& model) {
  std::this_thread::sleep_for(kTick);
  return StampSources(model);
}

void AddChecksums(const ModelFolder& model, ThreadPool& pool, const OnReadBytes& on_read,
                  std::vector<PackedSource>& sources) {
  int64_t total = 0, done = 0;
  for (const PackedSource& source : sources) total += source.bytes;
  const std::vector<fs::path> files = model.weight_files();
  for (size_t i = 0; i < files.size(); ++i) {
    sources[i].checksum = ChecksumOf(files[i], pool, [&](int64_t bytes) {
      done += bytes;
      if (on_read) on_read(std::min(done, total), total);
    });
  }
}

uint64_t ConfigChecksum(const ModelFolder& model) {
  if (model.is_gguf()) return 0;
  const std::string text = ReadTextFile(fs::path(model.path()) / "config.json", kMaxConfigBytes);
  return Checksum(std::as_bytes(std::span(text)));
}

std::optional<std::string> ChangeSince(const PackedInfo& info, const ModelFolder& model,
                                       ThreadPool& pool, bool read_all,
                                       const OnReadBytes& on_read) {
  if (info.config_checksum != ConfigChecksum(model)) return "config.json has changed";
  const std::vector<PackedSource> found = StampSources(model);
  bool same_times = true;
  for (size_t i = 0; i < std::max(found.size(), info.sources.size()); ++i) {
    if (i >= found.size() || i >= info.sources.size() || found[i].name != info.sources[i].name) {
      return "the model has other weight files";
    }
    const PackedSource& then = info.sources[i];
    if (found[i].bytes != then.bytes) {
      return fmt::format("{} had {} bytes, and has {}", QuoteUnlessPlain(then.name), then.bytes,
                         found[i].bytes);
    }
    same_times &=
        found[i].modified_ns == then.modified_ns && found[i].changed_ns == then.changed_ns;
  }
  if (same_times && !read_all) return std::nullopt;
  if (IsSameContent(info, model, pool, found, on_read)) return std::nullopt;
  return "the content of its weights has changed";
}

}  // namespace godwit
