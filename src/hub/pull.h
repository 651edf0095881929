// Pull: files of a model from the hub into the cache that other programs share.
//
// Each is there whole or not at all. What was begun stays in the cache, and is gone on with by
// whoever asks for it next; of several at once, one downloads and the others wait.
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
  std::filesystem::path folder;  // of the model in the cache
  Listing listing;
  std::string revision;
  std::vector<RemoteFile> files;  // each with its size and its blob
  std::vector<int64_t> present;   // of each, bytes that are there already

  int64_t bytes() const;
  int64_t missing_bytes() const;
  std::filesystem::path snapshot() const;
};

// What there is to do for these files; asks the hub for what its list does not say. Throws as
// HubClient does.
PullPlan PlanPull(HubClient& client, const Listing& listing, const std::string& revision,
                  std::vector<RemoteFile> files, const std::filesystem::path& cache);

// Throws Error(kIo) where the disk has no room for what is missing.
void RequireRoom(const PullPlan& plan);

struct PullHooks {
  // start: what was there before.
  std::function<void(int64_t done, int64_t total, int64_t start)> progress = {};
  std::function<void(const std::string&)> say = {};
  const CancelToken* cancel = nullptr;
};

// Does it; then the revision is at that commit. Throws as HubClient does, Error(kFormat) for a file
// that is not what the hub says by its SHA-256, which is removed, and Error(kIo).
void Pull(HubClient& client, const PullPlan& plan, const PullHooks& hooks);

}  // namespace godwit::hub
