#include "eval/stream.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/error.h"
#include "base/fnv.h"
#include "eval/scored_leading_tokens.h"

namespace godwit::eval {

StreamCoder CoderOf(const Engine& engine) {
  return {
      .frame = ScoredLeadingTokens(engine),
      .encode =
          [&engine](std::string_view text) { return engine.Tokenize(text, /*add_special=*/false); },
      .decode =
          [&engine](std::span<const int32_t> tokens) {
            return engine.Detokenize(tokens, /*skip_special=*/true);
          }};
}

std::vector<int32_t> EncodeInside(const Encoder& encode, const std::string& text) {
  const bool blank = !text.empty() && IsSpace(text.front());
  const std::string before = blank ? "a" : "\n";
  const auto head = encode(before);
  const auto both = encode(before + text);
  // If a tokenizer joins the two, the text is encoded as a beginning.
  if (!std::equal(head.begin(), head.end(), both.begin(),
                  both.begin() + std::min(std::ssize(head), std::ssize(both)))) {
    return encode(text);
  }
  return {both.begin() + std::ssize(head), both.end()};
}

Stream::Stream(Reader reader, const StreamCoder& coder, const Options& options)
    : reader_(std::move(reader)), coder_(coder), options_(options), text_(coder.frame) {}

void Stream::Append(std::span<const int32_t> tokens) {
  fingerprint_ = fingerprint_ * 31 + Fnv1a(std::as_bytes(tokens));
  question_from_ = text_.size();
  Feed(tokens);
}

void Stream::Feed(std::span<const int32_t> tokens) {
  text_.insert(text_.end(), tokens.begin(), tokens.end());
}

std::string Stream::Ask(const std::string& gold, const OnRead& on_read) {
  GenerateOptions options;
  options.max_tokens = options_.max_new_tokens;
  options.stop = {"\n"};
  options.sampler.temperature = 0;
  options.query_tokens = options_.query_tokens > 0
                             ? options_.query_tokens
                             : static_cast<int64_t>(text_.size() - question_from_);
  options.on_progress = [&](const PromptProgress& progress) {
    on_read(progress.total_tokens - progress.done_tokens);
  };
  const GenerateResult result = reader_.generate(text_, options);
  if (result.finish_reason == FinishReason::kCancelled) {
    Throw(ErrorKind::kCancelled, "cancelled");
  }
  fed_from_ = text_.size();
  switch (options_.feed) {
    case Feed::kAnswer:
      AppendAnswer(result);
      break;
    case Feed::kGold:
      Feed(EncodeInside(coder_.encode, gold + "\n"));
      break;
    case Feed::kNothing:
      Feed(EncodeInside(coder_.encode, "\n"));
      break;
  }
  return result.text;
}

// The answer's tokens stay, because the session has read them. The last one ended the answer and
// was not read. It is replaced if it holds more than a newline, or is the end of the text.
void Stream::AppendAnswer(const GenerateResult& result) {
  std::span<const int32_t> said = result.tokens;
  const int32_t last = text_.back();
  const std::string wanted = result.text + "\n";
  std::string missing = "\n";
  if (result.finish_reason == FinishReason::kStop) {
    if (Behind(last, said) == wanted) {
      missing.clear();
    } else {
      said = said.first(said.size() - 1);
      const std::string kept = Behind(last, said);
      if (wanted.starts_with(kept)) missing = wanted.substr(kept.size());
    }
  }
  Feed(said);
  if (!missing.empty()) Feed(EncodeInside(coder_.encode, missing));
}

std::string TextBehind(const std::function<std::string(std::span<const int32_t>)>& decode,
                       int32_t last, std::span<const int32_t> tokens) {
  std::vector<int32_t> all = {last};
  all.insert(all.end(), tokens.begin(), tokens.end());
  const std::string text = decode(all);
  const std::string head = decode(std::span(all).first(1));
  return text.starts_with(head) ? text.substr(head.size()) : text;
}

void CheckStreamFits(const Reader& reader, int64_t tokens) {
  const int64_t limit = reader.limit_tokens();
  if (tokens <= limit) return;
  ThrowWith({.code = ErrorCode::kStreamTooLong,
             .found = tokens,
             .limit = limit,
             .learned_positions = reader.learned_positions},
            ErrorKind::kInput, "the stream may grow to {} tokens and the context holds {}", tokens,
            limit);
}

}  // namespace godwit::eval
