#include "text/json_grammar.h"

#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "text/load_tokenizer.h"
#include "text/text_worker.h"

namespace godwit {
namespace {

// Memory for a tokenizer, twice its vocabulary, and the states of some schemas.
constexpr int64_t kGrammarMemoryBytes = int64_t{2} << 30;
constexpr int64_t kTrialMemoryBytes = int64_t{512} << 20;

constexpr const char* kWhat = "the JSON schema";

// Asks the worker. A schema that takes too much is an error of the request.
std::string Ask(TextWorker& worker, std::string_view doing, WorkerFrame request) {
  try {
    return worker.Call(doing, std::move(request));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kIo) throw;
    throw Error(ErrorKind::kInput, error.what());
  }
}

std::string AskToRead(TextWorker& worker, uint32_t number, std::string_view schema) {
  return Ask(worker, "reading it",
             WorkerFrame(WorkerRequest::kOpenMatcher).Add(number).AddText(schema));
}

}  // namespace

JsonMatcher::JsonMatcher(std::shared_ptr<TextWorker> worker, uint32_t number, std::string schema)
    : worker_(std::move(worker)), number_(number), schema_(std::move(schema)) {
  Open();
}

JsonMatcher::~JsonMatcher() {
  worker_->Tell(WorkerFrame(WorkerRequest::kCloseMatcher).Add(number_));
}

void JsonMatcher::Open() {
  AskToRead(*worker_, number_, schema_);
  told_ = 0;
}

std::vector<uint32_t> JsonMatcher::Allowed(std::span<const int32_t> output) {
  while (true) {
    WorkerFrame request(WorkerRequest::kAllowed);
    request.Add(number_).AddIds(output.subspan(told_));
    const std::string reply = Ask(*worker_, "holding a text to it", std::move(request));
    if (reply.front() == 0) {
      Open();
      continue;
    }
    told_ = output.size();
    std::vector<uint32_t> words((reply.size() - sizeof(bool)) / sizeof(uint32_t));
    std::memcpy(words.data(), reply.data() + sizeof(bool), words.size() * sizeof(uint32_t));
    return words;
  }
}

JsonGrammar::JsonGrammar(std::function<std::string()> tokenizer_json, std::vector<int32_t> eos_ids)
    : tokenizer_json_(std::move(tokenizer_json)),
      eos_ids_(std::move(eos_ids)),
      trial_(std::make_unique<TextWorker>(
          kWhat, kTrialMemoryBytes, WorkerFrame(WorkerRequest::kOpenGrammar).Add(uint32_t{0}))) {}

JsonGrammar::~JsonGrammar() = default;

std::shared_ptr<TextWorker> JsonGrammar::Worker() const {
  const std::lock_guard lock(mutex_);
  if (worker_ != nullptr) return worker_;
  const std::string json = tokenizer_json_();
  WorkerFrame opening(WorkerRequest::kOpenGrammar);
  opening.Add(static_cast<uint32_t>(eos_ids_.size())).AddIds(eos_ids_).AddText(json);
  auto worker = std::make_shared<TextWorker>(kWhat, kGrammarMemoryBytes, std::move(opening));
  worker->Open();
  return worker_ = std::move(worker);
}

void JsonGrammar::Try(const std::string& schema) const {
  const std::string reply = AskToRead(*trial_, 0, schema);
  uint32_t ms = 0;
  std::memcpy(&ms, reply.data(), sizeof(ms));
  if (ms > kMaxReadingMs) {
    Throw(ErrorKind::kInput, "{}: reading it takes {} ms, expected {} at most", kWhat, ms,
          kMaxReadingMs);
  }
}

std::unique_ptr<JsonMatcher> JsonGrammar::Match(std::string_view schema) const {
  if (schema.size() > kMaxSchemaBytes) {
    Throw(ErrorKind::kInput, "a JSON schema of {} bytes, expected {} at most", schema.size(),
          kMaxSchemaBytes);
  }
  if (eos_ids_.empty()) {
    Throw(ErrorKind::kUnsupported,
          "this model names no token that ends a text, and so cannot be held to a JSON schema");
  }
  std::string text = ReplaceInvalidUtf8(schema);
  Try(text);
  return std::make_unique<JsonMatcher>(Worker(), matchers_++, std::move(text));
}

}  // namespace godwit
