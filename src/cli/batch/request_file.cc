#include "cli/batch/request_file.h"

#include <cstddef>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/fnv.h"
#include "base/json.h"
#include "base/json_found.h"
#include "base/problem_list.h"
#include "base/quote.h"
#include "console/terminal/progress_line.h"

namespace godwit::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxIdBytes = 512;
constexpr std::string_view kChats = "/v1/chat/completions", kTexts = "/v1/completions";

std::string Found(const Json& value) { return godwit::Found(nlohmann::json(value)); }

void Require(bool valid, std::string_view key, std::string_view expected, const Json& found) {
  if (valid) return;
  Throw(ErrorKind::kInput, "{}: expected {}, found {}", Quote(key), expected, Found(found));
}

const Json* Find(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found == row.end() || found->is_null() ? nullptr : &*found;
}

const Json& Get(const Json& row, const char* key) {
  const Json* const value = Find(row, key);
  if (value == nullptr) Throw(ErrorKind::kInput, "a request needs {}", Quote(key));
  return *value;
}

std::string CustomId(const Json& value) {
  const auto* const id = value.get_ptr<const std::string*>();
  Require(id != nullptr && !id->empty() && id->size() <= kMaxIdBytes, "custom_id",
          fmt::format("a text of 1 to {} bytes", kMaxIdBytes), value);
  return *id;
}

BatchRequest ParseRow(const Json& row, const chat::CompletionDefaults& defaults) {
  if (!row.is_object()) Throw(ErrorKind::kInput, "expected an object, found {}", Found(row));
  for (const auto& [key, value] : row.items()) {
    if (key != "custom_id" && key != "method" && key != "url" && key != "body") {
      Throw(ErrorKind::kInput, "unknown field {} beside \"body\"", Quote(key));
    }
  }
  BatchRequest request{.custom_id = CustomId(Get(row, "custom_id")),
                       .completion = chat::ParseCompletionRequest(Get(row, "body"), defaults)};
  if (request.completion.first_token_within_s > 0 || request.completion.explain_cache) {
    Throw(ErrorKind::kInput, "{}: the server takes it, and a batch does not",
          request.completion.explain_cache ? "\"explain_cache\"" : "\"first_token_within_s\"");
  }
  if (request.completion.stream) {
    Throw(ErrorKind::kInput, "\"stream\": expected false, because results go to a file");
  }
  if (const Json* method = Find(row, "method")) {
    Require(*method == "POST", "method", "\"POST\"", *method);
  }
  if (const Json* url = Find(row, "url")) {
    const std::string_view expected = request.completion.is_chat() ? kChats : kTexts;
    Require(*url == expected, "url", Quote(expected), *url);
  }
  return request;
}

}  // namespace

BatchRequest ParseBatchRequest(std::string_view line, std::string_view where,
                               const chat::CompletionDefaults& defaults) {
  const Json row = ParseOrderedJson(line, where, {.reject_duplicate_keys = true});
  try {
    return ParseRow(row, defaults);
  } catch (const Error& error) {
    Throw(ErrorKind::kFormat, "{}: {}", where, error.what());
  }
}

bool IsBlank(std::string_view line) { return line.find_first_not_of(" \t\r") == line.npos; }

uint64_t Fingerprint(std::string_view line) { return Fnv1a(std::as_bytes(std::span(line))); }

RequestIndex CheckRequests(const std::string& path) {
  console::ProgressLine progress("checking the requests", console::ProgressUnit::kBytes);
  LineReader reader(path, kMaxRequestBytes);
  RequestIndex index{.path = path};
  ProblemList problems;
  while (const auto line = reader.Next()) {
    progress.Update(reader.offset_bytes(), reader.size_bytes());
    if (IsBlank(*line)) continue;
    const int64_t number = reader.number();
    try {
      BatchRequest request = ParseBatchRequest(*line, fmt::format("line {}", number));
      const auto [first, is_new] = index.by_custom_id.try_emplace(
          std::move(request.custom_id),
          RequestPlace{.line = number, .fingerprint = Fingerprint(*line)});
      if (!is_new) {
        problems.Add("line {}: \"custom_id\": expected a new one, found {} of line {}", number,
                     Quote(first->first), first->second.line);
      }
      index.has_chats = index.has_chats || request.completion.is_chat();
    } catch (const Error& error) {
      problems.Add("{}", error.what());
    }
  }
  index.lines = reader.number();
  problems.ThrowIfAny(ErrorKind::kFormat, QuoteUnlessPlain(path));
  if (index.by_custom_id.empty()) {
    Throw(ErrorKind::kFormat, "{}: expected at least one request, found none",
          QuoteUnlessPlain(path));
  }
  return index;
}

}  // namespace godwit::cli
