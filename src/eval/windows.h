// How texts are cut into the pieces that are scored, each with a cache of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace godwit::eval {

// Positions are those of one text, without what frames it.
struct Window {
  size_t text;          // which text
  int64_t begin, end;   // what the model reads
  int64_t score_begin;  // of that, [score_begin, end) is scored
};

struct WindowOptions {
  int64_t size = 0;         // tokens read at once; 0: the whole text
  int64_t stride = 0;       // each window begins so many tokens after the last, 1 to size; 0: size
  int64_t last = 0;         // only so many at the end of each window are scored; 0: all
  int64_t max_tokens = -1;  // scored in all; -1: no limit
  // Whether other tokens (a BOS) stand in front of every window. Without them its first token comes
  // out of nothing and cannot be scored.
  bool framed = false;
};

// Every token is scored at most once, in the first window that can: with as much of the text before
// it as that window has. This is Hugging Face's evaluation of models of fixed length. Windows
// follow one another in the order of the texts; those without a token to score are left out.
//
// text_tokens: the length of every text. Throws Error(kInput) for options that make no sense.
std::vector<Window> PlanWindows(std::span<const int64_t> text_tokens, const WindowOptions& options);

}  // namespace godwit::eval
