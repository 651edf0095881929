#include "hub/hub_client.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "base/split_text.h"
#include "http/url.h"
#include "hub/environment.h"
#include "hub/hub_cache.h"

namespace godwit::hub {
namespace {

constexpr int kMaxTries = 5;
// Tries of a request whose answer a user waits for.
constexpr int kMaxTriesToAsk = 2;
// A try that brought so many bytes does not count as failed.
constexpr int64_t kProgressBytes = 1 << 20;
constexpr int kMaxRedirects = 8;
constexpr size_t kMaxTokenBytes = 4096;

std::string TokenOfUser() {
  const std::string said = Variable("HF_TOKEN");
  if (const auto token = Stripped(said); !token.empty()) return std::string(token);
  if (IsSet("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return "";
  const std::string named = Variable("HF_TOKEN_PATH");
  const std::filesystem::path file =
      named.empty() ? HomeFolder() / "token" : std::filesystem::path(named);
  return IsListed(file) ? std::string(Stripped(ReadTextFile(file, kMaxTokenBytes))) : "";
}

std::optional<int64_t> Number(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() && number >= 0;
  return whole ? std::optional(number) : std::nullopt;
}

// A header of the hub itself, from the answer or a redirect before it, whichever host has the
// bytes.
const std::string* HubHeader(const HttpResponse& response, std::string_view name) {
  for (const HttpResponse::Redirect& redirect : response.redirects) {
    if (const std::string* value = FindHeader(redirect.headers, name)) return value;
  }
  return response.Header(name);
}

// Whether a 206 begins at that byte of a file of that size.
bool BeginsAt(const HttpResponse& response, int64_t at, int64_t size) {
  const std::string* range = response.Header("Content-Range");  // "bytes 7-99/100"
  if (range == nullptr || !range->starts_with("bytes ")) return false;
  const std::string_view text = std::string_view(*range).substr(6);
  const size_t dash = text.find('-'), slash = text.find('/');
  if (dash == text.npos || slash == text.npos) return false;
  const std::string_view all = text.substr(slash + 1);
  return Number(text.substr(0, dash)) == at && (all == "*" || Number(all) == size);
}

bool IsTransient(int status) { return status == 408 || status == 429 || status >= 500; }

std::string StatusOf(const HttpResponse& response) {
  const std::string* said = HubHeader(response, "X-Error-Message");
  return fmt::format("{} answers {}{}", HostAndPort(OriginOf(response.url)), response.status,
                     said == nullptr ? "" : ": " + Quote(*said));
}

}  // namespace

HubOptions HubOptions::FromEnvironment() {
  if (IsSet("HF_HUB_OFFLINE")) {
    Throw(ErrorKind::kUnsupported, "HF_HUB_OFFLINE is set: unset it to download");
  }
  HubOptions options{.endpoint = Variable("HF_ENDPOINT")};
  if (options.endpoint.empty()) options.endpoint = "https://huggingface.co";
  while (options.endpoint.ends_with('/')) options.endpoint.pop_back();
  try {
    OriginOf(options.endpoint);
  } catch (const Error& error) {
    Throw(error.kind(), "HF_ENDPOINT: {}", error.what());
  }
  options.token = TokenOfUser();
  return options;
}

HubClient::HubClient(HubOptions options)
    : options_(std::move(options)), http_({.cancel = options_.cancel}) {}

Listing HubClient::List(const std::string& repository, const std::string& revision) {
  const HttpRequest request{
      .url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", options_.endpoint, repository,
                         PercentEncoded(revision)),
      .headers = {{"User-Agent", "godwit"}, {"Accept", "application/json"}},
      .bearer_token = options_.token,
      .max_redirects = kMaxRedirects};
  Listing listing;
  Retrying(kMaxTriesToAsk, [&] {
    const HttpResponse response = http_.Send(request);
    if (response.status != 200) {
      ThrowRefused(response, repository, "revision " + Quote(revision));
    }
    listing = ParseListing(repository, response.body);
  });
  return listing;
}

HttpRequest HubClient::RequestOf(const Listing& listing, const RemoteFile& file) const {
  return {.url = fmt::format("{}/{}/resolve/{}/{}", options_.endpoint, listing.repository,
                             listing.commit, PercentEncoded(file.name, /*keep_slashes=*/true)),
          .headers = {{"User-Agent", "godwit"}},
          .bearer_token = options_.token,
          .max_redirects = kMaxRedirects};
}

// Sends a GET and ends it after the headers. A HEAD would not do: storage hosts sign URLs for GET
// alone.
void HubClient::Ask(const Listing& listing, RemoteFile& file) {
  Retrying(kMaxTriesToAsk, [&] {
    const HttpResponse response =
        http_.Send(RequestOf(listing, file),
                   {.on_headers = [](const HttpResponse&) { return false; }, .on_body = {}});
    if (response.status != 200) {
      ThrowRefused(response, listing.repository, "file " + Quote(file.name));
    }
    const auto header = [&](const char* linked, const char* plain) {
      const std::string* value = HubHeader(response, linked);
      return value != nullptr ? value : response.Header(plain);
    };
    const std::string* tag = header("X-Linked-Etag", "ETag");
    const std::string* size = header("X-Linked-Size", "Content-Length");
    const auto bytes = size == nullptr ? std::nullopt : Number(*size);
    if (file.blob.empty() && tag != nullptr) file.blob = BlobOfTag(*tag);
    if (file.bytes < 0 && bytes) file.bytes = *bytes;
    if (file.blob.empty() || file.bytes < 0) {
      Throw(ErrorKind::kFormat, "{}: expected its ETag and size from {}, found neither or one",
            Quote(file.name), HostAndPort(OriginOf(options_.endpoint)));
    }
    if (IsSha256(file.blob)) file.sha256 = file.blob;
  });
}

void HubClient::Fetch(const Listing& listing, const RemoteFile& file, PartialFile& partial,
                      const std::function<void()>& on_change) {
  Retrying(
      kMaxTries,
      [&] {
        if (partial.size() > file.bytes) partial.Restart();
        // An empty file is requested, too: only the answer tells whether it may be read.
        if (partial.size() == 0 || partial.size() < file.bytes) {
          FetchOnce(listing, file, partial, on_change);
        }
      },
      [&] { return partial.size(); });
}

void HubClient::FetchOnce(const Listing& listing, const RemoteFile& file, PartialFile& partial,
                          const std::function<void()>& on_change) {
  HttpRequest request = RequestOf(listing, file);
  const int64_t begin = partial.size();
  if (begin > 0) request.headers.emplace_back("Range", fmt::format("bytes={}-", begin));
  bool no_such_range = false;
  const auto on_headers = [&](const HttpResponse& response) {
    if (begin > 0 && response.status == 416) {
      no_such_range = true;
      return false;
    }
    if (response.status == 206 && BeginsAt(response, begin, file.bytes)) return true;
    if (response.status == 206) {
      Throw(ErrorKind::kFormat, "{}: asked for bytes from {} of {} on, found the range {}",
            Quote(file.name), begin, file.bytes,
            Quote(response.Header("Content-Range") ? *response.Header("Content-Range") : ""));
    }
    if (response.status != 200) {
      ThrowRefused(response, listing.repository, "file " + Quote(file.name));
    }
    partial.Restart();  // a server without ranges sends the whole file
    return true;
  };
  const auto on_body = [&](std::string_view bytes) {
    if (static_cast<int64_t>(bytes.size()) > file.bytes - partial.size()) {
      Throw(ErrorKind::kFormat, "{}: expected {} bytes, found more", Quote(file.name), file.bytes);
    }
    partial.Append(bytes);
    on_change();
    return true;
  };
  http_.Send(request, {.on_headers = on_headers, .on_body = on_body});
  if (no_such_range) {
    partial.Restart();
    on_change();
    // The file is fetched from its beginning, where no range can be refused.
    return FetchOnce(listing, file, partial, on_change);
  }
  if (partial.size() < file.bytes) {
    throw HttpError(
        ErrorKind::kIo,
        fmt::format("{}: received {} of {} bytes", Quote(file.name), partial.size(), file.bytes),
        /*is_transient=*/true);
  }
}

void HubClient::Retrying(int max_tries, const std::function<void()>& work,
                         const std::function<int64_t()>& got) {
  std::chrono::milliseconds pause = options_.first_pause;
  for (int tries = 1;; ++tries) {
    const int64_t before = got();
    std::string why;
    try {
      return work();
    } catch (const HttpError& error) {
      if (got() - before >= kProgressBytes) {
        tries = 1;
        pause = options_.first_pause;
      }
      if (!error.is_transient() || tries == max_tries) throw;
      why = error.what();
    }
    if (options_.say) {
      options_.say(fmt::format("{}; trying again in {:g} s", why,
                               static_cast<double>(pause.count()) / 1000));
    }
    Pause(pause);
    pause *= 3;
  }
}

void HubClient::Pause(std::chrono::milliseconds time) const {
  constexpr std::chrono::milliseconds kLook(50);
  for (auto left = time; left.count() > 0; left -= kLook) {
    if (options_.cancel != nullptr) options_.cancel->ThrowIfCancelled();
    std::this_thread::sleep_for(std::min(left, kLook));
  }
}

void HubClient::ThrowRefused(const HttpResponse& response, const std::string& repository,
                             const std::string& of) const {
  const std::string* code = HubHeader(response, "X-Error-Code");
  const auto is = [&](std::string_view name) { return code != nullptr && *code == name; };
  const std::string page = options_.endpoint + "/" + repository;
  const std::string status = StatusOf(response);
  // The answer is from a storage host, whose signed URL expires.
  if (code == nullptr && OriginOf(response.url) != OriginOf(options_.endpoint)) {
    throw HttpError(ErrorKind::kIo, fmt::format("{}: {}", repository, status),
                    /*is_transient=*/true);
  }
  if (response.status == 404 && (is("RevisionNotFound") || is("EntryNotFound"))) {
    Throw(ErrorKind::kIo, "{} has no {} ({})", repository, of, status);
  }
  if (response.status == 404) {
    Throw(ErrorKind::kIo, "{}: there is no such model ({}); see {}", repository, status, page);
  }
  if (is("GatedRepo") || response.status == 403) {
    Throw(ErrorKind::kIo, "{} requires that you accept its terms ({}): accept them at {}, {}",
          repository, status, page,
          options_.token.empty()
              ? "and set HF_TOKEN to a token of your account"
              : "with the account of your token, which needs permission to read gated models");
  }
  if (response.status == 401) {
    Throw(ErrorKind::kIo, "{}: {} ({}): {}", repository,
          options_.token.empty() ? "the model does not exist, or it is private or gated"
                                 : "the token is not accepted, or the model does not exist",
          status,
          options_.token.empty()
              ? "if it exists, set HF_TOKEN to a token of an account that may read " + page
              : "HF_TOKEN, or the token file of huggingface_hub, must belong to an account that "
                "may read " +
                    page);
  }
  const std::string message = fmt::format("{}: {}", repository, status);
  throw HttpError(ErrorKind::kIo, message, IsTransient(response.status));
}

}  // namespace godwit::hub
