#include "train/hidden_states.h"

#include "attention/make_policy.h"
#include "base/fnv.h"
#include "tensor/float_bytes.h"

namespace godwit::train {

int64_t HiddenStates::BytesOf(int64_t rows, int64_t hidden, int64_t heads) {
  return rows * (2 * hidden + 4 * (heads + 1));
}

void HiddenStates::Add(std::span<const int32_t> tokens, MatrixView<const float> states) {
  const auto token = [&](int64_t place) { return tokens[place]; };
  const auto row_bytes = static_cast<size_t>(hidden_) * SizeOf(DType::kBF16);
  for (int64_t row = 0; row + 2 < std::ssize(tokens); ++row) {
    states_.resize(states_.size() + row_bytes);
    WriteFloats(states.RowSpan(row), DType::kBF16, states_.data() + states_.size() - row_bytes);
    next_.push_back(token(row + 1));
    for (int64_t head = 0; head < heads_; ++head) {
      const int64_t place = row + 2 + head;
      const bool is_guessed = place < std::ssize(tokens) && token(place) < vocab_;
      targets_.push_back(is_guessed ? token(place) : -1);
    }
  }
}

void HiddenStates::Read(std::span<const int64_t> rows, MatrixView<float> out) const {
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto at = static_cast<size_t>(rows[i] * hidden_) * SizeOf(DType::kBF16);
    ReadFloats(DType::kBF16, states_.data() + at, out.RowSpan(static_cast<int64_t>(i)));
  }
}

uint64_t HiddenStates::Digest() const { return Fnv1a(std::as_bytes(std::span(targets_))); }

void ReadPieces(const Exec& exec, const Decoder& decoder,
                std::span<const std::vector<int32_t>> pieces,
                const std::function<void(int64_t done, int64_t total)>& progress,
                HiddenStates& states) {
  int64_t total = 0, done = 0;
  for (const auto& piece : pieces) total += std::ssize(piece);
  for (const auto& piece : pieces) {
    const auto n = std::ssize(piece);
    const auto text =
        MakeTextCache(Geometry(decoder.spec()), {.kv_type = DType::kF32, .context = n});
    const Segment segment{piece, text.get()};
    Workspace::Scope memory(exec.workspace);
    const auto hidden = exec.workspace.Matrix<float>(n, decoder.hidden_size());
    decoder.Forward(exec, {&segment, 1}, hidden);
    states.Add(piece, hidden);
    done += n;
    if (progress) progress(done, total);
  }
}

}  // namespace godwit::train
