// The states of a model over a text, and the tokens that followed. Computed once, since the model
// stays as it is while heads learn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/decoder.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit::train {

class HiddenStates {
 public:
  // States for `heads` heads that guess the first `vocab` tokens.
  HiddenStates(int64_t hidden, int64_t heads, int64_t vocab)
      : hidden_(hidden), heads_(heads), vocab_(vocab) {}

  int64_t rows() const { return std::ssize(next_); }
  int64_t heads() const { return heads_; }
  int64_t vocab() const { return vocab_; }
  static int64_t BytesOf(int64_t rows, int64_t hidden, int64_t heads);

  // states [tokens, hidden] of a piece of text, before the final norm. Kept in bf16, where a head
  // has something to learn.
  void Add(std::span<const int32_t> tokens, MatrixView<const float> states);

  // out [rows, hidden]
  void Read(std::span<const int64_t> rows, MatrixView<float> out) const;
  // The token that a head is to guess, head + 2 places behind the last that the state has read. -1:
  // none, or not one of `vocab`.
  int32_t Target(int64_t row, int64_t head) const { return targets_[row * heads_ + head]; }
  // The token behind the last that the state has read. The model guesses it.
  int32_t Next(int64_t row) const { return next_[row]; }
  // The digest of the targets, and so of the text.
  uint64_t Digest() const;

 private:
  int64_t hidden_, heads_, vocab_;
  std::vector<std::byte> states_;  // [rows, hidden] in bf16
  std::vector<int32_t> next_;      // [rows]
  std::vector<int32_t> targets_;   // [rows, heads]
};

// Reads each piece on its own, with full attention. progress: in tokens.
void ReadPieces(const Exec& exec, const Decoder& decoder,
                std::span<const std::vector<int32_t>> pieces,
                const std::function<void(int64_t done, int64_t total)>& progress,
                HiddenStates& states);

}  // namespace godwit::train
