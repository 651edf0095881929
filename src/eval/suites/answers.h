// Scorers, as the originals define them. An answer is the model's text, blanks included.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::eval {

// The first, or last, run of digits; empty if there are none.
std::string_view FirstDigits(std::string_view text);
std::string_view LastDigits(std::string_view text);

// Whether `word` stands in the answer between blanks, once \n : " ' . , ? ! { } are made blanks
// (InfiniteBench's kv_retrieval).
bool HasWord(std::string_view answer, std::string_view word);

// BABILong: whether `target` is the only one of `labels` in the first sentence of the answer.
// Labels in the question do not count. Upper and lower case are one, and a label counts within a
// word, as in "post office".
bool IsOnlyLabel(std::string_view answer, std::string_view target, std::string_view question,
                 std::span<const std::string_view> labels);

// RULER's string_match_all and string_match_part: the share of expected answers that stand in the
// answer, and 1 if any does, else 0. Upper and lower case are one, and parts of words count.
// Control characters count as newlines.
double ShareFound(std::string_view answer, const std::vector<std::string>& expected);
double AnyFound(std::string_view answer, const std::vector<std::string>& expected);

}  // namespace godwit::eval
