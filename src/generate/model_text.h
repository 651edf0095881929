// ModelText: a text as a draft model reads it, and tokens that the model draws behind it.
//
// The draft model reads the text into a cache of its own, a chunk in each step while the prompt is
// read. When the text goes on otherwise than it was drawn, the cache goes back to where both are
// the same. Tokens are drawn as the text draws: at the same place in the text both draw the same
// random number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "generate/draft_texts.h"
#include "generate/sequence.h"
#include "model/language_model.h"

namespace godwit {

class ModelText {
 public:
  struct Parts {
    std::shared_ptr<const LanguageModel> model;
    std::function<std::unique_ptr<TextCache>()> new_text;
    std::shared_ptr<DraftTexts> kept;  // goes on from these, and leaves its own
    std::string key;                   // as DraftTexts has it
    int64_t chunk_tokens;              // the most tokens that are read in a step, 1 or more
  };
  explicit ModelText(Parts parts) : parts_(std::move(parts)) {}

  // Follows the text, which begins with the tokens that it had in the last call.
  void Follow(std::span<const int32_t> text);
  // Takes back tokens of the text, down to so many: the text may go on otherwise behind them.
  void TakeBack(int64_t tokens) { text_tokens_ = std::min(text_tokens_, tokens); }
  // Whether more than a few tokens of the text are unread.
  bool IsBehind() const { return text_tokens_ - cached_of_text() > kFewTokens; }
  // Reads one chunk. A text that the model has from a cache, and the draft model has not, thus
  // delays the next token by no more than that.
  void ReadChunk(const Exec& exec);

  // Whether tokens can be drawn behind a text of so many tokens.
  bool CanDraw(int64_t text_tokens) const;
  // Takes a token and the logits [vocab] out of which it was drawn. Returns whether to go on.
  using Add = FunctionRef<bool(int32_t token, std::span<const float> logits)>;
  // Draws at most `most` tokens behind the sequence's. vocab: of the model that writes the text. A
  // token that only one of the models knows is never drawn.
  void Draw(const Sequence& sequence, const Exec& exec, int64_t vocab, int64_t most, Add add);

  // Gives its memory back, and reads no more. False: it had none.
  bool Release();

 private:
  // So few unread tokens are read together with the next draft token's.
  static constexpr int64_t kFewTokens = 64;

  int64_t cached() const { return cache_ == nullptr ? 0 : cache_->length(); }
  // The cached tokens that are the text's.
  int64_t cached_of_text() const { return std::min(cached(), text_tokens_); }
  void Begin();
  void GoBackTo(int64_t length);
  // Reads tokens_[cached(), end). hidden [end - cached(), hidden size].
  void Read(const Exec& exec, int64_t end, MatrixView<float> hidden);

  Parts parts_;
  bool released_ = false;
  bool kept_prompt_ = false;          // whether the prompt was left to others
  std::vector<int32_t> tokens_;       // the text, then draft tokens
  int64_t text_tokens_ = 0;           // tokens of the text
  std::unique_ptr<TextCache> cache_;  // of the first tokens; null: nothing was read
  std::optional<Sampler> sampler_;    // as the text has it
};

}  // namespace godwit
