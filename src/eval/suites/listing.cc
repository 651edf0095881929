#include "eval/suites/listing.h"

#include <cmath>
#include <utility>

#include "eval/suites/budget.h"

namespace godwit::eval {

std::vector<Piece> Entries(const PieceMaker& pieces, const Listing& listing, int64_t length_tokens,
                           int64_t max_new_tokens) {
  constexpr int64_t kJoined = 4;  // the most tokens for joining the last entry with the question
  const int64_t taken =
      pieces.Ends(listing.words).tokens + listing.max_name_tokens + kJoined + max_new_tokens;
  std::vector<Piece> entries;
  for (int64_t room = RemainingTokens(length_tokens, taken);;) {
    Piece next = pieces.Make(listing.entry(std::ssize(entries)));
    if (entries.empty()) (void)RemainingTokens(length_tokens, taken + next.size());
    if (next.size() > room) break;
    room -= next.size();
    entries.push_back(std::move(next));
  }
  if (listing.finish) {
    std::string last = entries.back().text;
    listing.finish(last);
    entries.back() = pieces.Make(std::move(last));
  }
  return entries;
}

size_t EntryAt(double depth, size_t count) {
  return static_cast<size_t>(std::lround(depth / 100 * static_cast<double>(count - 1)));
}

void AskFor(const PieceMaker& pieces, const std::vector<Piece>& entries, size_t asked,
            const PromptWords& words, Sample& sample) {
  const PromptEnds ends = pieces.Ends(words);
  PromptBuilder builder(pieces);
  builder.Append(ends.first);
  for (size_t i = 0; i < entries.size(); ++i) {
    const int64_t begin = builder.Append(entries[i]);
    if (i == asked) sample.needles = {{begin, builder.size()}};
  }
  sample.context_tokens = builder.AppendQuestion(ends.last);
  sample.prompt = builder.Take();
}

}  // namespace godwit::eval
