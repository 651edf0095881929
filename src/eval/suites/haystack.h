// A haystack: text of any length without meaning for the question, and needles at depths of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/suites/prompt_builder.h"
#include "eval/suites/sample.h"

namespace godwit::eval {

// The five sentences of passkey retrieval, RULER and many others, which never end.
inline constexpr std::string_view kNoise =
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";

class Haystack {
 public:
  // Lines, each the same, or the next that `line` makes.
  static Haystack Lines(const PieceMaker& pieces, const std::string& line);
  static Haystack Lines(const PieceMaker& pieces, std::function<std::string()> line);
  // The sentences of texts, one behind the other.
  static Haystack Sentences(const PieceMaker& pieces, const std::vector<std::string>& texts);

  // Of sentences: how many there are, and with which of them the text begins; behind the last one
  // comes the first.
  int64_t count() const { return std::ssize(sentences_); }
  void BeginAt(int64_t sentence) { begin_ = sentence; }

  // The i-th piece, or nullptr behind the last one.
  const Piece* At(int64_t i);
  // A needle, or the first piece, as it stands in such a text: on a line of its own, or between
  // sentences.
  Piece Inside(const std::string& text) const;
  Piece First(const Piece& piece) const;

 private:
  explicit Haystack(const PieceMaker& pieces) : pieces_(&pieces) {}

  const PieceMaker* pieces_;
  bool is_lines_ = false;
  std::function<std::string()> line_;  // the next one; none: all are alike
  std::vector<std::string> sentences_;
  std::vector<Piece> made_;  // of these, as far as they were needed, or the line
  int64_t begin_ = 0;
};

struct HaystackSample {
  PromptWords words;
  std::vector<std::string> needles;  // in the order of their depths
  std::vector<double> depths;        // [needles], ascending, in % of the haystack's tokens
  int64_t max_new_tokens = 0;
};

// As much hay as fits into `length_tokens` beside all that. A needle stands behind the last piece
// that ends at its depth or before. Sets the sample's prompt and needles.
void Bury(const PieceMaker& pieces, Haystack& hay, const HaystackSample& parts,
          int64_t length_tokens, Sample& sample);

// Sentences, their blanks and line ends made one blank each. What goes on for long without an end
// is cut between words.
std::vector<std::string> SentencesOf(std::string_view text);

}  // namespace godwit::eval
