// A file of requests, one on each line, as OpenAI's batches have them:
//
//   {"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once"}}
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/line_reader.h"
#include "chat/completion_request.h"

namespace godwit::cli {

// More than a text of a million tokens, or their ids, takes.
constexpr size_t kMostRequestBytes = size_t{64} << 20;

struct BatchRequest {
  std::string custom_id;
  chat::CompletionRequest completion;
};

// where: "line 12". Throws Error(kFormat) that begins with it.
BatchRequest ParseBatchRequest(std::string_view line, std::string_view where,
                               const chat::CompletionDefaults& defaults = {});

// Whether there is a request on it.
bool IsBlank(std::string_view line);

// Tells the bytes of one request from those of another: a result carries it.
uint64_t Fingerprint(std::string_view line);

struct RequestPlace {
  int64_t line;  // from 1 on
  uint64_t fingerprint;
};

struct RequestIndex {
  std::string path;
  std::unordered_map<std::string, RequestPlace> by_custom_id;
  int64_t lines = 0;
  bool has_chats = false;
};

// Looks at all of them, and keeps their names. Throws Error(kFormat) with everything that is wrong,
// Error(kIo). Shows progress.
RequestIndex CheckRequests(const std::string& path);

}  // namespace godwit::cli
