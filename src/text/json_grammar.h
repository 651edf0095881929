// JsonGrammar: the tokens that may come next where a text has to be JSON of a schema.
//
// llguidance does it, by constrained decoding with a lexer and an Earley parser over a trie of the
// vocabulary. It runs in a process of its own within limits (text_worker.h), one for all texts of a
// model: a schema is a program, too. A schema is tried in another process first, where it costs no
// other text anything, and is refused if it takes long. A process that had to be replaced is told
// all that the old one knew. Between values there may be a space, or a line and its indentation,
// and no more, so that no model writes blanks for ever. "oneOf" counts as "anyOf".
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit {

class TextWorker;

// One text in the making. A thread at a time.
class JsonMatcher {
 public:
  JsonMatcher(std::shared_ptr<TextWorker> worker, uint32_t number, std::string schema);
  ~JsonMatcher();
  JsonMatcher(const JsonMatcher&) = delete;
  JsonMatcher& operator=(const JsonMatcher&) = delete;

  // Returns a bit for every token, the lowest of the first word for token 0: whether it may follow
  // `output`, all tokens generated so far. Each of those was allowed. Tokens that end a text are
  // allowed where the JSON is whole, and nothing else where it cannot go on. At least one bit is
  // set. Throws Error(kInput) where that takes too much, and Error(kIo) without a process.
  std::vector<uint32_t> Allowed(std::span<const int32_t> output);

 private:
  void Open();

  const std::shared_ptr<TextWorker> worker_;
  const uint32_t number_;
  const std::string schema_;
  size_t told_ = 0;  // of `output`
};

// Any number of threads may share one.
class JsonGrammar {
 public:
  static constexpr size_t kMaxSchemaBytes = size_t{64} << 10;
  static constexpr uint32_t kMaxReadingMs = 250;  // of processor time

  // tokenizer_json: gives the content of the model's tokenizer.json; called when somebody asks, as
  // nothing is read or started before. eos_ids: the tokens that end a text.
  JsonGrammar(std::function<std::string()> tokenizer_json, std::vector<int32_t> eos_ids);
  ~JsonGrammar();

  // Makes a matcher for a schema. Throws Error(kInput) for a text that is no JSON schema, or too
  // large a one, or asks for what cannot be enforced. Throws Error(kUnsupported) where no token
  // ends a text, and as LoadTokenizer does.
  std::unique_ptr<JsonMatcher> Match(std::string_view schema) const;

 private:
  std::shared_ptr<TextWorker> Worker() const;
  void Try(const std::string& schema) const;

  const std::function<std::string()> tokenizer_json_;
  const std::vector<int32_t> eos_ids_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<TextWorker> worker_;
  const std::unique_ptr<TextWorker> trial_;
  mutable std::atomic<uint32_t> matchers_ = 0;
};

}  // namespace godwit
