#include "text/load_tokenizer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/cores.h"
#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"
#include "text/text_worker.h"
#include "text/vocabulary.h"
#include "text/vocabulary_files.h"

namespace godwit {
namespace {

// Ten times the largest known.
constexpr size_t kMaxTokenizerBytes = size_t{256} << 20;

// The largest known tokenizer takes 350 MB, and a megabyte of text without a place to cut 130 MB.
constexpr int64_t kTokenizerMemoryBytes = int64_t{2} << 30;

void CheckId(int32_t id) {
  if (id < 0) Throw(ErrorKind::kInput, "token id {} is negative", id);
}

std::vector<int32_t> ToIds(std::string_view bytes) {
  std::vector<int32_t> ids(bytes.size() / sizeof(int32_t));
  if (!ids.empty()) std::memcpy(ids.data(), bytes.data(), ids.size() * sizeof(int32_t));
  return ids;
}

// A decoder in the worker process. A new worker gets all ids that the old one knew, so that no text
// is missing.
class HfStream : public StreamDecoder {
 public:
  HfStream(std::shared_ptr<TextWorker> worker, uint32_t number, bool skip_special_tokens,
           const CancelToken* cancel)
      : worker_(std::move(worker)),
        number_(number),
        skip_special_tokens_(skip_special_tokens),
        cancel_(cancel) {}

  ~HfStream() override {
    if (open_) worker_->Tell(WorkerFrame(WorkerRequest::kCloseStream).Add(number_));
  }

  std::string Push(int32_t id) override {
    CheckId(id);
    std::string text = Ask(WorkerFrame(WorkerRequest::kPush).Add(number_).Add(id));
    pushed_.push_back(id);
    return text;
  }

  std::string Flush() override {
    std::string text = Ask(WorkerFrame(WorkerRequest::kFlush).Add(number_));
    pushed_.clear();
    return text;
  }

 private:
  std::string Ask(const WorkerFrame& request) {
    while (true) {
      if (open_) {
        const std::string reply = worker_->Call("decoding", request, cancel_);
        if (reply.front() != 0) return reply.substr(sizeof(bool));
      }
      WorkerFrame opening(WorkerRequest::kOpenStream);
      opening.Add(number_).Add(skip_special_tokens_).AddIds(pushed_);
      worker_->Call("decoding", std::move(opening), cancel_);
      open_ = true;
    }
  }

  const std::shared_ptr<TextWorker> worker_;
  const uint32_t number_;
  const bool skip_special_tokens_;
  const CancelToken* const cancel_;
  bool open_ = false;
  std::vector<int32_t> pushed_;  // since the last Flush
};

// The workers that encode: the one that decodes as well, and for concurrent long texts one more for
// each other core. Each takes as much memory as the first, so there are few. One starts when a text
// finds the others busy.
class Encoders {
 public:
  explicit Encoders(std::shared_ptr<TextWorker> first) : first_(std::move(first)) {
    constexpr int kMost = 4;
    for (int i = 1; i < std::min(AvailableCores(), kMost); ++i) more_.push_back(first_->Another());
    pieces_.resize(1 + more_.size());
  }

  // TextWorker::Call. is_long: the text can wait until another worker has started.
  std::string Call(std::string_view doing, WorkerFrame request, int64_t cost, bool is_long) {
    if (!is_long) return first_->Call(doing, std::move(request), /*cancel=*/nullptr, cost);
    const LeastBusyEncoder chosen(*this);
    TextWorker& worker = chosen.number() == 0 ? *first_ : *more_[chosen.number() - 1];
    return worker.Call(doing, std::move(request), /*cancel=*/nullptr, cost);
  }

 private:
  class LeastBusyEncoder {
   public:
    explicit LeastBusyEncoder(Encoders& encoders) : encoders_(encoders) {
      const std::lock_guard lock(encoders_.mutex_);
      const auto least = std::ranges::min_element(encoders_.pieces_);
      number_ = static_cast<size_t>(least - encoders_.pieces_.begin());
      ++*least;
    }
    ~LeastBusyEncoder() {
      const std::lock_guard lock(encoders_.mutex_);
      --encoders_.pieces_[number_];
    }
    LeastBusyEncoder(const LeastBusyEncoder&) = delete;
    LeastBusyEncoder& operator=(const LeastBusyEncoder&) = delete;

    size_t number() const { return number_; }

   private:
    Encoders& encoders_;
    size_t number_;
  };

  const std::shared_ptr<TextWorker> first_;
  std::vector<std::unique_ptr<TextWorker>> more_;
  std::mutex mutex_;         // of the fields below
  std::vector<int> pieces_;  // the number of long texts' pieces that each worker has
};

class HfTokenizer : public Tokenizer {
 public:
  // `special`: in ascending order.
  HfTokenizer(std::shared_ptr<TextWorker> worker, int32_t vocab_size, std::vector<int32_t> special,
              size_t piece_bytes)
      : worker_(std::move(worker)),
        encoders_(worker_),
        vocab_size_(vocab_size),
        special_(std::move(special)),
        piece_bytes_(piece_bytes) {}

  std::string Decode(std::span<const int32_t> ids, bool skip_special_tokens) const override {
    for (const int32_t id : ids) CheckId(id);
    WorkerFrame request(WorkerRequest::kDecode);
    request.Add(skip_special_tokens).AddIds(ids);
    return worker_->Call("decoding", std::move(request));
  }

  std::unique_ptr<StreamDecoder> NewStream(bool skip_special_tokens,
                                           const CancelToken* cancel) const override {
    return std::make_unique<HfStream>(worker_, streams_++, skip_special_tokens, cancel);
  }

  int32_t VocabSize() const override { return vocab_size_; }

  bool IsSpecial(int32_t id) const override {
    return std::binary_search(special_.begin(), special_.end(), id);
  }

  std::optional<std::string> IdToToken(int32_t id) const override {
    if (id < 0 || id >= vocab_size_) return std::nullopt;
    const std::lock_guard lock(tokens_mutex_);
    Tokens& tokens = tokens_[id / kTokensAtOnce];
    if (tokens.empty()) tokens = AskForTokens(id / kTokensAtOnce * kTokensAtOnce);
    return tokens[id % kTokensAtOnce];
  }

  std::optional<int32_t> TokenToId(std::string_view token) const override {
    WorkerFrame request(WorkerRequest::kTokenToId);
    const auto ids = ToIds(worker_->Call("looking up a token", request.AddText(token)));
    return ids.empty() ? std::nullopt : std::optional(ids.front());
  }

 private:
  using Tokens = std::vector<std::optional<std::string>>;
  static constexpr int32_t kTokensAtOnce = 1024;

  // The texts of `first` and of the ids behind it.
  Tokens AskForTokens(int32_t first) const {
    WorkerFrame request(WorkerRequest::kIdToToken);
    request.Add(first).Add(kTokensAtOnce);
    const std::string reply = worker_->Call("looking up tokens", std::move(request));
    Tokens tokens;
    for (std::string_view rest = reply; !rest.empty();) {
      const bool known = rest.front() != 0;
      uint32_t size = 0;
      std::memcpy(&size, rest.data() + sizeof(known), sizeof(size));
      rest.remove_prefix(sizeof(known) + sizeof(size));
      tokens.push_back(known ? std::optional<std::string>(rest.substr(0, size)) : std::nullopt);
      rest.remove_prefix(size);
    }
    return tokens;
  }

  // Sends one request for each piece, so that other requests are answered in between, short texts
  // first. A text that takes too much memory is an error of the request.
  std::string AskToEncode(WorkerFrame request, size_t text_bytes, size_t left_bytes) const {
    // The text's remaining bytes determine how many other requests may go first.
    constexpr size_t kBytesOfATurn = 4 << 10;
    try {
      return encoders_.Call("encoding", std::move(request),
                            static_cast<int64_t>(left_bytes / kBytesOfATurn),
                            /*is_long=*/left_bytes > piece_bytes_);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kMemory) throw;
      Throw(ErrorKind::kInput, "{}: {} bytes of text without a place to cut it, expected fewer",
            error.what(), text_bytes);
    }
  }

  std::vector<int32_t> EncodeUpTo(std::string_view text, bool add_special_tokens,
                                  int64_t max_ids) const override {
    std::string repaired;
    if (FirstInvalidUtf8(text)) text = repaired = ReplaceInvalidUtf8(text);
    std::vector<int32_t> ids;
    bool first = true;
    for (size_t stretch = piece_bytes_; std::ssize(ids) <= max_ids;) {
      const std::string_view rest = FirstCharacters(text, stretch);
      const bool last = rest.size() == text.size();
      WorkerFrame request(WorkerRequest::kEncodePiece);
      request.Add(first).Add(last).Add(add_special_tokens).AddText(rest);
      if (CancelScope::current() != nullptr) CancelScope::current()->ThrowIfCancelled();
      const std::string piece = AskToEncode(std::move(request), rest.size(), text.size());
      uint64_t bytes = 0;
      std::memcpy(&bytes, piece.data(), sizeof(bytes));
      const auto more = ToIds(std::string_view(piece).substr(sizeof(bytes)));
      ids.insert(ids.end(), more.begin(), more.end());
      if (last) break;
      first = first && bytes == 0;
      stretch = bytes == 0 ? 2 * stretch : piece_bytes_;
      text.remove_prefix(bytes);
    }
    return ids;
  }

  const std::shared_ptr<TextWorker> worker_;  // a stream may be the last to need it
  mutable Encoders encoders_;
  const int32_t vocab_size_;
  const std::vector<int32_t> special_;
  const size_t piece_bytes_;
  mutable std::atomic<uint32_t> streams_ = 0;
  // Tokens looked up already: a listing asks for one after the other, and a call takes 10 us.
  mutable std::mutex tokens_mutex_;
  mutable std::map<int32_t, Tokens> tokens_;
};

bool IsLlamaKind(std::string_view tokenizer_class) {
  constexpr std::array<std::string_view, 4> kKinds = {"Llama", "CodeLlama", "Gemma", "Cohere"};
  return std::any_of(kKinds.begin(), kKinds.end(), [&](std::string_view kind) {
    std::string_view rest = tokenizer_class;
    if (!rest.starts_with(kind)) return false;
    rest.remove_prefix(kind.size());
    return rest == "Tokenizer" || rest == "TokenizerFast";
  });
}

// The token in front of or behind a prompt. Empty if the config declines it.
std::string Framing(const TokenizerConfig& config, std::string_view what, const char* flag_name,
                    bool flag, const char* token_name) {
  if (!flag) return "";
  const auto token = config.named_tokens.find(token_name);
  if (token == config.named_tokens.end() || token->second.empty()) {
    Throw(ErrorKind::kFormat, "{}: tokenizer_config.json sets {} but names no {}", what, flag_name,
          token_name);
  }
  return token->second;
}

}  // namespace

std::unique_ptr<Tokenizer> ParseTokenizer(std::string_view json, std::string_view what,
                                          const TokenizerConfig& config, size_t piece_bytes) {
  std::string bos, eos;
  const bool framed =
      IsLlamaKind(config.tokenizer_class) && (config.add_bos_token || config.add_eos_token);
  if (framed) {
    // The defaults are those of LlamaTokenizerFast.
    bos = Framing(config, what, "add_bos_token", config.add_bos_token.value_or(true), "bos_token");
    eos = Framing(config, what, "add_eos_token", config.add_eos_token.value_or(false), "eos_token");
  }
  WorkerFrame opening(WorkerRequest::kOpenTokenizer);
  opening.Add(framed);
  for (const std::string& token : {bos, eos}) {
    opening.Add(static_cast<uint32_t>(token.size())).AddText(token);
  }
  opening.AddText(json);
  auto worker =
      std::make_shared<TextWorker>(std::string(what), kTokenizerMemoryBytes, std::move(opening));
  const std::string opened = worker->Open();
  uint64_t vocab_size = 0;
  std::memcpy(&vocab_size, opened.data(), sizeof(vocab_size));
  if (vocab_size == 0) Throw(ErrorKind::kFormat, "{}: the vocabulary is empty", what);
  if (vocab_size > uint64_t{std::numeric_limits<int32_t>::max()}) {
    Throw(ErrorKind::kFormat, "{}: token id {} exceeds the largest possible", what, vocab_size - 1);
  }
  return std::make_unique<HfTokenizer>(std::move(worker), static_cast<int32_t>(vocab_size),
                                       ToIds(std::string_view(opened).substr(sizeof(vocab_size))),
                                       piece_bytes);
}

std::string ReadTokenizerFile(const std::filesystem::path& folder) {
  const std::optional<std::string> file = FindTokenizerFile(folder);
  if (!file) {
    Throw(ErrorKind::kIo, "{}: there is no tokenizer, expected {}", folder.native(),
          kTokenizerFiles);
  }
  if (*file == "tokenizer.json") return ReadTextFile(folder / *file, kMaxTokenizerBytes);
  return TokenizerJson(ReadVocabulary(folder), (folder / *file).native());
}

std::unique_ptr<Tokenizer> LoadTokenizer(const std::filesystem::path& folder) {
  const std::string json = ReadTokenizerFile(folder);
  const std::string file = *FindTokenizerFile(folder);
  // A vocabulary, unlike a tokenizer.json, already holds the tokens around a text.
  return ParseTokenizer(json, (folder / file).string(),
                        file == "tokenizer.json" ? ReadTokenizerConfig(folder) : TokenizerConfig{});
}

}  // namespace godwit
