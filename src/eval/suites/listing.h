// A list of entries, one of which is asked for. The list does not depend on which, so it is read
// once for all depths.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval/suites/prompt_builder.h"
#include "eval/suites/sample.h"

namespace godwit::eval {

struct Listing {
  std::function<std::string(int64_t i)> entry;     // begins a line or, with a blank, a word
  std::function<void(std::string& entry)> finish;  // for the last entry; may be empty
  PromptWords words;                               // the question lacks the entry's name
  int64_t max_name_tokens = 0;                     // the most tokens that the name adds
};

// Makes as many entries as fit beside the words and an answer: at least one.
std::vector<Piece> Entries(const PieceMaker& pieces, const Listing& listing, int64_t length_tokens,
                           int64_t max_new_tokens);

// The index of the entry at a depth, out of `count`.
size_t EntryAt(double depth, size_t count);

// Sets the sample's prompt, needle and shared tokens.
void AskFor(const PieceMaker& pieces, const std::vector<Piece>& entries, size_t asked,
            const PromptWords& words, Sample& sample);

}  // namespace godwit::eval
