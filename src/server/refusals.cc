#include "server/refusals.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "base/name_list.h"
#include "base/nearest.h"
#include "chat/pinned_messages.h"

namespace godwit::server {
namespace {

// Beginnings of paths of other servers.
struct ForeignEndpoint {
  std::string_view path;
  std::string_view answer;
};
constexpr std::string_view kNoEmbeddings =
    "embeddings are not supported: the model writes text, with POST /v1/chat/completions and POST "
    "/v1/completions; POST /tokenize gives the tokens of a text";
constexpr std::string_view kTextAlone =
    "pictures, sounds and files are not supported: the model reads and writes text, with POST "
    "/v1/chat/completions";
constexpr ForeignEndpoint kForeignEndpoints[] = {
    {"/v1/embeddings", kNoEmbeddings},
    {"/embedding", kNoEmbeddings},
    {"/api/embed", kNoEmbeddings},
    {"/v1/rerank", kNoEmbeddings},
    {"/rerank", kNoEmbeddings},
    {"/v1/audio/", kTextAlone},
    {"/v1/images/", kTextAlone},
    {"/v1/files", kTextAlone},
    {"/v1/messages/batches",
     "batches are not supported: send several requests to POST /v1/messages at the same time"},
    {"/api/chat", "Ollama's API is not supported: send this chat to POST /v1/chat/completions"},
    {"/api/generate", "Ollama's API is not supported: send this prompt to POST /v1/completions"},
    {"/api/tags", "Ollama's API is not supported: GET /v1/models gives the model's name"},
};

// The number of parts in which two paths agree, from their ends.
int CommonEnd(std::string_view a, std::string_view b) {
  int parts = 0;
  while (!a.empty() && !b.empty()) {
    const size_t i = a.rfind('/'), j = b.rfind('/');
    if (i == a.npos || j == b.npos || a.substr(i) != b.substr(j)) break;
    a = a.substr(0, i);
    b = b.substr(0, j);
    ++parts;
  }
  return parts;
}

const Endpoint& NearestTo(std::string_view path, std::span<const Endpoint> endpoints) {
  const auto by_end = std::ranges::max_element(endpoints, {}, [&](const Endpoint& endpoint) {
    return std::pair(CommonEnd(path, endpoint.path), -std::ssize(endpoint.path));
  });
  if (CommonEnd(path, by_end->path) > 0) return *by_end;
  const auto name = Nearest(path, Names(endpoints, &Endpoint::path));
  const auto named = std::ranges::find(endpoints, name.value_or(""), &Endpoint::path);
  return named == endpoints.end() ? endpoints.front() : *named;
}

// Removes the folders of absolute paths. A word of the text that only looks like a path is
// shortened, too.
std::string ShortenPaths(std::string_view message) {
  std::string text;
  for (size_t i = 0; i < message.size();) {
    const bool begins =
        message[i] == '/' &&
        (i == 0 || std::string_view(" \"'(").find(message[i - 1]) != std::string_view::npos);
    if (begins) {
      const std::string_view path = message.substr(i, message.find_first_of(" \"'():,;", i) - i);
      i += path.rfind('/') + 1;
    } else {
      text += message[i++];
    }
  }
  return text;
}

}  // namespace

std::string UnknownPathMessage(std::string_view path, std::span<const Endpoint> endpoints) {
  for (const ForeignEndpoint& foreign : kForeignEndpoints) {
    if (path.starts_with(foreign.path)) return std::string(foreign.answer);
  }
  const Endpoint& nearest = NearestTo(path, endpoints);
  return fmt::format("unknown path; the nearest is {} {}", nearest.method, nearest.path);
}

std::string WithAdvice(const Error& error, const chat::CompletionDefaults& defaults) {
  const ErrorData& data = error.data();
  if (data.code != ErrorCode::kPromptTooLong) return error.what();
  std::vector<std::string> advice{"shorten it"};
  const auto choice = std::ranges::find_if(defaults.kv_choices, chat::KeepsFirstAndLast);
  if (choice != defaults.kv_choices.end()) {
    advice.push_back(fmt::format(
        "send it with \"kv\": \"{}\", which keeps only its first and last tokens", *choice));
  } else if (data.learned_positions == 0) {
    constexpr int64_t kSinks = 4;
    advice.push_back(
        fmt::format("start the server with --kv-choice sinks:{0}+{1} and send it with \"kv\": "
                    "\"sinks:{0}+{1}\", which keeps only its first and last tokens",
                    kSinks, std::max<int64_t>(1, data.limit - kSinks)));
  }
  if (data.found <= data.fits) {
    advice.push_back(fmt::format("start the server with -c {}", data.found));
  }
  return fmt::format("{}: {}", error.what(), NameList(advice, std::identity(), ", or "));
}

std::string WithoutFolders(const Error& error, std::string message, const std::string& model) {
  const size_t end = model.find_last_not_of('/') + 1;
  const size_t slash = end == 0 ? model.npos : model.rfind('/', end - 1);
  if (slash != model.npos) {
    const std::string_view place = std::string_view(model).substr(0, end);
    for (size_t at = 0; (at = message.find(place, at)) != message.npos;) {
      message.erase(at, slash + 1);
    }
  }
  // Errors of other kinds quote the request, so their paths stay.
  const bool is_of_machine = error.kind() == ErrorKind::kIo || error.kind() == ErrorKind::kFormat ||
                             error.kind() == ErrorKind::kMemory;
  return is_of_machine ? ShortenPaths(message) : message;
}

}  // namespace godwit::server
