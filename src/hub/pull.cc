#include "hub/pull.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/machine_memory.h"
#include "base/new_file.h"
#include "base/quote.h"
#include "hub/hub_cache.h"
#include "hub/partial_file.h"

namespace godwit::hub {
namespace {

namespace fs = std::filesystem;

fs::path BlobOf(const fs::path& folder, const RemoteFile& file) {
  return folder / "blobs" / file.blob;
}

fs::path PartialOf(const fs::path& folder, const RemoteFile& file) {
  return folder / "blobs" / (file.blob + ".incomplete");
}

// A file's size. 0: there is none.
int64_t SizeOf(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

bool IsPresent(const fs::path& folder, const RemoteFile& file) {
  const fs::path blob = BlobOf(folder, file);
  return !file.blob.empty() && fs::is_regular_file(blob) && SizeOf(blob) == file.bytes;
}

void MakeFolders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    Throw(ErrorKind::kIo, "{}: cannot make the folder: {}", QuoteUnlessPlain(folder.native()),
          error.message());
  }
}

// Links the snapshot's file to its blob by a relative path, so that the cache can move.
void Link(const PullPlan& plan, const RemoteFile& file) {
  const fs::path link = plan.snapshot() / file.name;
  MakeFolders(link.parent_path());
  fs::path target;
  for (auto folders = std::count(file.name.begin(), file.name.end(), '/') + 2; folders > 0;
       --folders) {
    target /= "..";
  }
  target /= fs::path("blobs") / file.blob;
  std::error_code error;
  if (fs::read_symlink(link, error) == target) return;
  const fs::path fresh = link.native() + fmt::format(".{}{}", getpid(), NewFile::kSuffix);
  fs::remove(fresh, error);
  fs::create_symlink(target, fresh, error);
  if (!error) fs::rename(fresh, link, error);
  if (error) {
    Throw(ErrorKind::kIo, "{}: cannot make the link: {}", QuoteUnlessPlain(link.native()),
          error.message());
  }
}

// The progress of the whole pull.
struct Progress {
  const PullHooks& hooks;
  int64_t total, start;
  int64_t others;  // bytes of the other files

  void Tell(int64_t of_this_file) const {
    const int64_t done = others + of_this_file;
    if (hooks.progress) hooks.progress(done, total, std::min(start, done));
  }
};

void Download(HubClient& client, const PullPlan& plan, const RemoteFile& file,
              const Progress& progress) {
  const fs::path locks = plan.folder.parent_path() / ".locks" / plan.folder.filename();
  MakeFolders(locks);
  const BlobLock lock(
      locks / (file.blob + ".lock"),
      [&] {
        if (progress.hooks.say) {
          progress.hooks.say("waiting for another process that downloads " + Quote(file.name));
        }
      },
      progress.hooks.cancel);
  if (IsPresent(plan.folder, file)) return;
  PartialFile partial(PartialOf(plan.folder, file), !file.sha256.empty(), progress.hooks.cancel);
  client.Fetch(plan.listing, file, partial, [&] { progress.Tell(partial.size()); });
  if (!file.sha256.empty() && partial.sha256() != file.sha256) {
    partial.Remove();
    Throw(ErrorKind::kFormat,
          "{}: the SHA-256 of the downloaded file is {}, expected {}; the file was removed, and "
          "the same command downloads it again",
          Quote(file.name), partial.sha256(), file.sha256);
  }
  partial.Finish(BlobOf(plan.folder, file));
}

void WriteRef(const PullPlan& plan) {
  if (plan.revision == plan.listing.commit) return;
  const fs::path ref = plan.folder / "refs" / plan.revision;
  MakeFolders(ref.parent_path());
  NewFile file(ref);
  file.Write(std::as_bytes(std::span(plan.listing.commit)));
  file.CopyPermissions(BlobOf(plan.folder, plan.files.front()));
  file.Commit();
}

}  // namespace

int64_t PullPlan::bytes() const {
  return std::accumulate(files.begin(), files.end(), int64_t{0},
                         [](int64_t sum, const RemoteFile& file) { return sum + file.bytes; });
}

int64_t PullPlan::missing_bytes() const {
  return bytes() - std::accumulate(present.begin(), present.end(), int64_t{0});
}

fs::path PullPlan::snapshot() const { return folder / "snapshots" / listing.commit; }

PullPlan PlanPull(HubClient& client, const Listing& listing, const std::string& revision,
                  std::vector<RemoteFile> files, const fs::path& cache) {
  PullPlan plan{.folder = fs::absolute(cache) / RepositoryFolder(listing.repository),
                .listing = listing,
                .revision = revision,
                .files = std::move(files)};
  int64_t sum = 0;
  for (RemoteFile& file : plan.files) {
    if (file.bytes < 0 || file.blob.empty()) client.Ask(listing, file);
    const auto all = CheckedAdd(sum, file.bytes);
    if (!all)
      Throw(ErrorKind::kFormat, "{}: the sizes of its files are too large", listing.repository);
    sum = *all;
    plan.present.push_back(IsPresent(plan.folder, file)
                               ? file.bytes
                               : std::min(SizeOf(PartialOf(plan.folder, file)), file.bytes));
  }
  return plan;
}

void RequireDiskSpace(const PullPlan& plan) {
  fs::path place = plan.folder;
  struct statvfs disk;
  while (statvfs(place.c_str(), &disk) != 0) {
    if (!place.has_relative_path()) return;  // the write reports why
    place = place.parent_path();
  }
  const auto available =
      CheckedMul(static_cast<int64_t>(disk.f_bavail), static_cast<int64_t>(disk.f_frsize));
  if (!available || plan.missing_bytes() <= *available) return;
  Throw(ErrorKind::kIo,
        "{} to download, and the disk of {} has {} free: choose another folder with HF_HUB_CACHE",
        FormatBytes(plan.missing_bytes()), QuoteUnlessPlain(plan.folder.parent_path().native()),
        FormatBytes(*available));
}

void Pull(HubClient& client, const PullPlan& plan, const PullHooks& hooks) {
  const int64_t start = plan.bytes() - plan.missing_bytes();
  Progress progress{.hooks = hooks, .total = plan.bytes(), .start = start, .others = start};
  MakeFolders(plan.folder / "blobs");
  for (size_t i = 0; i < plan.files.size(); ++i) {
    const RemoteFile& file = plan.files[i];
    progress.others -= plan.present[i];
    if (!IsPresent(plan.folder, file)) Download(client, plan, file, progress);
    progress.Tell(file.bytes);
    progress.others += file.bytes;
    Link(plan, file);
  }
  // Files that were pulled before belong to this commit, too, if they are the same. Without links
  // the new snapshot would lack them.
  for (const RemoteFile& file : plan.listing.files) {
    if (file.bytes >= 0 && IsPresent(plan.folder, file)) Link(plan, file);
  }
  WriteRef(plan);
}

}  // namespace godwit::hub
