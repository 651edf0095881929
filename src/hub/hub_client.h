// HubClient: what is asked of a Hugging Face hub, and what its refusals mean.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/cancel.h"
#include "http/client.h"
#include "hub/listing.h"
#include "hub/partial_file.h"

namespace godwit::hub {

struct HubOptions {
  std::string endpoint;  // "https://huggingface.co"
  // For the endpoint's host alone, and for no message.
  std::string token;
  const CancelToken* cancel = nullptr;
  // Before a request is tried again; of each further time in a row three times as long.
  std::chrono::milliseconds first_pause{200};
  // That something is tried again, and why.
  std::function<void(const std::string&)> say = {};

  // HF_ENDPOINT; HF_TOKEN, or else what huggingface_hub has written into the file of HF_TOKEN_PATH
  // or "token" in its home. Throws Error(kInput) where the endpoint is no URL; Error(kUnsupported)
  // where HF_HUB_OFFLINE forbids to ask anyone.
  static HubOptions FromEnvironment();
};

class HubClient {
 public:
  explicit HubClient(HubOptions options);

  // The files of "org/name" at a branch, tag or commit. Throws Error(kIo) that says what to do
  // where there is no such model or revision, or where it asks for a token or to accept terms; and
  // as HttpClient::Send and ParseListing do.
  Listing List(const std::string& repository, const std::string& revision);

  // Of a file that the list says no size or content of, what its headers say. Throws likewise, and
  // Error(kFormat) where they do not either.
  void Ask(const Listing& listing, RemoteFile& file);

  // From what the partial file has on to the end; a lost connection is gone on with, a few times.
  // on_change: after each change of its size. Throws as List does, Error(kFormat) for more bytes
  // than the file has, and as PartialFile does.
  void Fetch(const Listing& listing, const RemoteFile& file, PartialFile& partial,
             const std::function<void()>& on_change);

 private:
  HttpRequest RequestOf(const Listing& listing, const RemoteFile& file) const;
  void FetchOnce(const Listing& listing, const RemoteFile& file, PartialFile& partial,
                 const std::function<void()>& on_change);
  // Calls `work` again where it throws an HttpError that may pass, most_tries times in a row. got:
  // how far it is by now.
  void Retrying(
      int most_tries, const std::function<void()>& work,
      const std::function<int64_t()>& got = [] { return int64_t{0}; });
  void Pause(std::chrono::milliseconds time) const;
  [[noreturn]] void ThrowRefused(const HttpResponse& response, const std::string& repository,
                                 const std::string& of) const;

  HubOptions options_;
  HttpClient http_;
};

}  // namespace godwit::hub
