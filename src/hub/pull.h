// Pull: downloads files of a model from the hub into the cache that programs share.
//
// A file is there whole or not at all. An interrupted download stays in the cache, and the next
// pull resumes it. If several pull at once, one downloads and the others wait.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "hub/hub_client.h"
#include "hub/listing.h"

namespace godwit::hub {

struct PullPlan {
  std::filesystem::path folder;  // the model's, in the cache
  Listing listing;
  std::string revision;
  std::vector<RemoteFile> files;  // each with its size and its blob
  std::vector<int64_t> present;   // for each file, bytes that are there already

  int64_t bytes() const;
  int64_t missing_bytes() const;
  std::filesystem::path snapshot() const;
};

// Plans the pull of these files. Asks the hub for sizes and content names that its listing lacks.
// Throws as HubClient does.
PullPlan PlanPull(HubClient& client, const Listing& listing, const std::string& revision,
                  std::vector<RemoteFile> files, const std::filesystem::path& cache);

// Throws Error(kIo) if the missing bytes do not fit on the disk.
void RequireDiskSpace(const PullPlan& plan);

struct PullHooks {
  // start: bytes that were there before.
  std::function<void(int64_t done, int64_t total, int64_t start)> progress = {};
  std::function<void(const std::string&)> say = {};
  const CancelToken* cancel = nullptr;
};

// Runs the plan; then the revision points to the listing's commit. Throws as HubClient does, and
// Error(kIo). Throws Error(kFormat) for a file whose SHA-256 differs from the hub's, and removes
// the file.
void Pull(HubClient& client, const PullPlan& plan, const PullHooks& hooks);

}  // namespace godwit::hub
