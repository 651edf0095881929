// A haystack: text of any length that means nothing for the question, with needles at some depths.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/suites/prompt_builder.h"
#include "eval/suites/sample.h"

namespace godwit::eval {

// The five sentences of passkey retrieval, RULER and many others, repeated without end.
inline constexpr std::string_view kNoise =
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";

class Haystack {
 public:
  // A haystack of lines: always the same one, or the next that `line` makes.
  static Haystack Lines(const PieceMaker& pieces, const std::string& line);
  static Haystack Lines(const PieceMaker& pieces, std::function<std::string()> line);
  // A haystack of the sentences of texts, one behind the other.
  static Haystack Sentences(const PieceMaker& pieces, const std::vector<std::string>& texts);

  // The number of sentences, and the one with which the text begins. The first follows the last.
  int64_t count() const { return std::ssize(sentences_); }
  void BeginAt(int64_t sentence) { begin_ = sentence; }

  // The i-th piece, or nullptr behind the last one.
  const Piece* At(int64_t i);
  // A needle, or the first piece, as it stands in the haystack: on its own line, or between
  // sentences.
  Piece Inside(const std::string& text) const;
  Piece First(const Piece& piece) const;

 private:
  explicit Haystack(const PieceMaker& pieces) : pieces_(&pieces) {}

  const PieceMaker* pieces_;
  bool is_lines_ = false;
  std::function<std::string()> line_;  // makes the next line; none: all are alike
  std::vector<std::string> sentences_;
  std::vector<Piece> made_;  // sentences so far needed, lines so far, or the only line
  int64_t begin_ = 0;
};

struct HaystackSample {
  PromptWords words;
  std::vector<std::string> needles;  // in the order of their depths
  std::vector<double> depths;        // [needles], ascending, in % of the haystack's tokens
  int64_t max_new_tokens = 0;
};

// Makes the sample's prompt and needles, with as much hay as fits into `length_tokens` beside the
// parts. A needle stands behind the last piece that ends at its depth or before.
void HideIn(const PieceMaker& pieces, Haystack& hay, const HaystackSample& parts,
            int64_t length_tokens, Sample& sample);

// The sentences of a text, with one blank for any blanks and line ends. A sentence that goes on for
// long is cut between words.
std::vector<std::string> SentencesOf(std::string_view text);

}  // namespace godwit::eval
