// Draft heads: predictions from a hidden state of the tokens behind the next one (TokenSwift, arXiv
// 2502.18890, section 3.1). They are trained for a model (train/train_heads.h) and share its output
// head.
//
// From h_0, a state before the model's final norm, head i makes h_i = h_(i-1) + W_i *
// RMSNorm(h_(i-1)). RMSNorm(h_i) through the model's output head gives logits of the token that is
// i behind the next one. Independent heads, as Medusa's (arXiv 2401.10774), do not know each other:
// h_i = h_0 + W_i * RMSNorm(h_0).
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "model/language_model.h"
#include "ops/norm.h"
#include "tensor/weight.h"

namespace godwit {

// The parameters of draft heads, as they are trained and stored.
class HeadParameters {
 public:
  static constexpr int64_t kMaxHeads = 8;

  // Makes parameters that are all zero. vocab: the number of first tokens of the model's that the
  // heads predict, all or a multiple of 64. Tokenizers that merge by frequency have the frequent
  // ones there.
  HeadParameters(int64_t heads, int64_t hidden, int64_t vocab, bool independent = false);

  int64_t heads() const { return heads_; }
  int64_t hidden() const { return hidden_; }
  int64_t vocab() const { return vocab_; }
  bool independent() const { return independent_; }

  std::span<float> InputNorm(int64_t head) { return Part(head, 0, hidden_); }
  std::span<float> Matrix(int64_t head) { return Part(head, hidden_, hidden_ * hidden_); }
  std::span<float> OutputNorm(int64_t head) {
    return Part(head, hidden_ + hidden_ * hidden_, hidden_);
  }
  std::span<float> values() { return values_; }
  std::span<const float> values() const { return values_; }

 private:
  std::span<float> Part(int64_t head, int64_t begin, int64_t size);

  int64_t heads_, hidden_, vocab_;
  bool independent_;
  std::vector<float> values_;  // for each head its input norm, its matrix [hidden, hidden], ...
};

// The bytes of a safetensors file of the heads, matrices rounded to bf16. digest: of the model
// (Decoder::StatesDigest).
std::string DraftHeadsFile(HeadParameters parameters, uint64_t digest);
// Reads a file of heads. Throws Error(kIo) for a file that cannot be read, and Error(kFormat) for
// one without draft heads. Throws Error(kInput) for those of another model than one of these sizes
// and that digest.
HeadParameters ReadDraftHeads(const std::filesystem::path& file, int64_t hidden, int64_t vocab,
                              uint64_t digest);

class DraftHeads {
 public:
  // The name of the file in the model's folder.
  static constexpr const char* kFileName = "draft_heads.safetensors";

  // storage: of the matrices. Training whose inputs are to stay as they are needs F32.
  DraftHeads(ThreadPool& pool, HeadParameters parameters, DType storage);

  int64_t count() const { return std::ssize(heads_); }
  int64_t vocab() const { return vocab_; }
  int64_t bytes() const;

  // Computes logits [count * n, vocab] from states [n, hidden], before the final norm: those of the
  // first head for all states, then those of the next one.
  void ComputeLogits(const Exec& exec, const LanguageModel& model, MatrixView<const float> states,
                     MatrixView<float> logits) const;

 private:
  struct Head {
    ops::NormWeights input_norm;
    Weight matrix;
    ops::NormWeights output_norm;
  };

  std::vector<Head> heads_;
  int64_t vocab_;
  bool independent_;
};

// The norm of a head, for both of its norms.
ops::NormWeights HeadNorm(std::span<const float> weight);

}  // namespace godwit
