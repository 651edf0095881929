// A list of entries of which one is asked for. The list is the same whichever that is, so it is
// read once for all depths.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval/suites/prompt_builder.h"
#include "eval/suites/sample.h"

namespace godwit::eval {

struct Listing {
  std::function<std::string(int64_t i)> entry;     // each begins a line or, with a blank, a word
  std::function<void(std::string& entry)> finish;  // of the last one; may be empty
  PromptWords words;             // their question has nothing for the entry's name yet
  int64_t most_name_tokens = 0;  // what the name adds to it at most
};

// As many entries as fit beside all that and an answer: at least one.
std::vector<Piece> Entries(const PieceMaker& pieces, const Listing& listing, int64_t length_tokens,
                           int64_t max_new_tokens);

// Which of `count` entries stands at a depth.
size_t EntryAt(double depth, size_t count);

// Sets the sample's prompt, needle and what it shares.
void AskFor(const PieceMaker& pieces, const std::vector<Piece>& entries, size_t asked,
            const PromptWords& words, Sample& sample);

}  // namespace godwit::eval
