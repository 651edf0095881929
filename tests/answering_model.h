// AnsweringModel: a FakeModel that answers the question at the end of its text, from the part that
// its policy still lets it see. Tests of streams need no model that is good enough to remember.
//
// A question ends in a marker (" is", "Answer:") on the last line. Behind it comes, byte by byte,
// the answer of the test's function, and a newline. The function sees the whole text and the
// position from which on it is visible. That follows from the policy's own counts: the kept tokens,
// of which `sinks` are at the beginning. Tokens are bytes (FakeTokenizer); one sequence at a time.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "tests/fake_model.h"
#include "text/fake_tokenizer.h"

namespace godwit {

class AnsweringModel : public FakeModel {
 public:
  // text: up to the end of the question. visible: the last token sees the text from this position
  // on.
  using Answer = std::function<std::string(const std::string& text, int64_t visible)>;

  AnsweringModel(std::string marker, int64_t sinks, Answer answer)
      : FakeModel(FakeTokenizer::kEos + 1, [](int32_t, int64_t) { return 'x'; }),
        marker_(std::move(marker)),
        sinks_(sinks),
        answer_(std::move(answer)) {}

  void Forward(const Exec& exec, std::span<const Segment> segments,
               MatrixView<float> hidden) const override {
    const Segment& segment = segments.front();
    text_.resize(segment.text->length());
    for (const int32_t token : segment.tokens) {
      text_ += token < 256 ? static_cast<char>(token) : '\x01';  // positions are indices
    }
    FakeModel::Forward(exec, segments, hidden);
    hidden.Row(hidden.rows - 1)[0] = Next(segment.text->Stats());
  }

 private:
  uint8_t Next(const KvStats& stats) const {
    const size_t line = text_.rfind('\n') + 1;  // 0 if there is none
    const size_t marker = text_.find(marker_, line);
    if (marker == std::string::npos) return 'x';
    const size_t end = marker + marker_.size();
    // The next token sees `kept` tokens besides itself. The question's last token had the same
    // window, in its own place.
    const int64_t window = stats.kept - sinks_;
    const int64_t visible =
        stats.kept < stats.seen ? static_cast<int64_t>(end) - 1 - window : int64_t{0};
    const std::string answer = answer_(text_.substr(0, end), visible) + "\n";
    const size_t said = text_.size() - end;
    return said < answer.size() ? static_cast<uint8_t>(answer[said]) : uint8_t{'x'};
  }

  std::string marker_;
  int64_t sinks_;
  Answer answer_;
  mutable std::string text_;
};

}  // namespace godwit
