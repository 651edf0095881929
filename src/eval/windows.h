// The windows: pieces of texts that are scored, each with a cache of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace godwit::eval {

// A piece of one text. Positions are those of the text without its frame.
struct Window {
  size_t text;          // the index of the text
  int64_t begin, end;   // the tokens that the model reads
  int64_t score_begin;  // [score_begin, end) is scored
};

struct WindowOptions {
  int64_t size = 0;         // tokens read at once; 0: the whole text
  int64_t stride = 0;       // from one window to the next, 1 to size; 0: size
  int64_t last = 0;         // tokens scored at the end of each window; 0: all
  int64_t max_tokens = -1;  // the most tokens to score; -1: no limit
  // Whether other tokens (a BOS) stand in front of every window. Without them, nothing precedes the
  // first token of a window, so it cannot be scored.
  bool framed = false;
};

// Plans windows as Hugging Face's evaluation of models of fixed length does. Every token is scored
// at most once, in the first window that can, with as much text before it as the window has.
// Windows follow one another in the order of the texts; those without a token to score are left
// out.
//
// text_tokens: the length of every text. Throws Error(kInput) for options that make no sense.
std::vector<Window> PlanWindows(std::span<const int64_t> text_tokens, const WindowOptions& options);

}  // namespace godwit::eval
