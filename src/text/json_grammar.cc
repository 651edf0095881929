#include "text/json_grammar.h"

#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "text/load_tokenizer.h"
#include "text/text_worker.h"

namespace godwit {
namespace {

// A tokenizer, twice its vocabulary, and the states of some schemas.
constexpr int64_t kMemoryBytes = int64_t{2} << 30;

}  // namespace

JsonMatcher::JsonMatcher(std::shared_ptr<TextWorker> worker, uint32_t number, std::string schema)
    : worker_(std::move(worker)), number_(number), schema_(std::move(schema)) {
  Open();
}

JsonMatcher::~JsonMatcher() {
  worker_->Tell(WorkerFrame(WorkerRequest::kCloseMatcher).Add(number_));
}

void JsonMatcher::Open() {
  worker_->Call("reading a JSON schema",
                WorkerFrame(WorkerRequest::kOpenMatcher).Add(number_).AddText(schema_));
  told_ = 0;
}

std::vector<uint32_t> JsonMatcher::Allowed(std::span<const int32_t> output) {
  while (true) {
    WorkerFrame request(WorkerRequest::kAllowed);
    request.Add(number_).AddIds(output.subspan(told_));
    const std::string reply = worker_->Call("holding a text to a JSON schema", std::move(request));
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

JsonGrammar::JsonGrammar(std::filesystem::path folder, std::vector<int32_t> eos_ids)
    : folder_(std::move(folder)), eos_ids_(std::move(eos_ids)) {}

std::shared_ptr<TextWorker> JsonGrammar::Worker() const {
  const std::lock_guard lock(mutex_);
  if (worker_ != nullptr) return worker_;
  const std::string json = ReadTokenizerFile(folder_);
  WorkerFrame opening(WorkerRequest::kOpenGrammar);
  opening.Add(static_cast<uint32_t>(eos_ids_.size())).AddIds(eos_ids_).AddText(json);
  auto worker = std::make_shared<TextWorker>("the JSON schema", kMemoryBytes, std::move(opening));
  worker->Open();
  return worker_ = std::move(worker);
}

std::unique_ptr<JsonMatcher> JsonGrammar::Match(std::string_view schema) const {
  if (schema.size() > kMostSchemaBytes) {
    Throw(ErrorKind::kInput, "a JSON schema of {} bytes, expected {} at most", schema.size(),
          kMostSchemaBytes);
  }
  if (eos_ids_.empty()) {
    Throw(ErrorKind::kUnsupported,
          "this model names no token that ends a text, and so cannot be held to a JSON schema");
  }
  return std::make_unique<JsonMatcher>(Worker(), matchers_++, ReplaceInvalidUtf8(schema));
}

}  // namespace godwit
