// HubClient: requests to a Hugging Face hub, and the meaning of its refusals.
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
  // A secret, sent to the endpoint's host alone and never shown in a message.
  std::string token;
  const CancelToken* cancel = nullptr;
  // The pause before a request is tried again. Each further pause in a row is three times as long.
  std::chrono::milliseconds first_pause{200};
  // Receives the news that something is tried again, and the reason.
  std::function<void(const std::string&)> say = {};

  // The options of HF_ENDPOINT and HF_TOKEN. Without HF_TOKEN, the token is what huggingface_hub
  // has written into the file of HF_TOKEN_PATH or "token" in its home. Throws Error(kInput) where
  // the endpoint is no URL, and Error(kUnsupported) where HF_HUB_OFFLINE forbids requests.
  static HubOptions FromEnvironment();
};

class HubClient {
 public:
  explicit HubClient(HubOptions options);

  // The files of "org/name" at a branch, tag or commit. Throws Error(kIo) that says what to do if
  // there is no such model or revision, or if the model needs a token or accepted terms. Also
  // throws what HttpClient::Send and ParseListing throw.
  Listing List(const std::string& repository, const std::string& revision);

  // Asks for the size or content name that the listing lacks, and takes them from the response
  // headers. Throws as List does, and Error(kFormat) where the headers lack them, too.
  void Ask(const Listing& listing, RemoteFile& file);

  // Downloads the rest of a file, from the partial file's end on. A lost connection is resumed, a
  // few times. on_change: called after each change of the partial file's size. Throws as List and
  // PartialFile do, and Error(kFormat) for more bytes than the file has.
  void Fetch(const Listing& listing, const RemoteFile& file, PartialFile& partial,
             const std::function<void()>& on_change);

 private:
  HttpRequest RequestOf(const Listing& listing, const RemoteFile& file) const;
  void FetchOnce(const Listing& listing, const RemoteFile& file, PartialFile& partial,
                 const std::function<void()>& on_change);
  // Calls `work` again where it throws an HttpError that may pass, max_tries times in a row. got:
  // the bytes so far; a try that brought enough is not counted.
  void Retrying(
      int max_tries, const std::function<void()>& work,
      const std::function<int64_t()>& got = [] { return int64_t{0}; });
  void Pause(std::chrono::milliseconds time) const;
  [[noreturn]] void ThrowRefused(const HttpResponse& response, const std::string& repository,
                                 const std::string& of) const;

  HubOptions options_;
  HttpClient http_;
};

}  // namespace godwit::hub
