// RULER's variable tracking, vt: the variables that have a value through a chain of assignments,
// far apart among lines of noise. A worked example of at most 500 tokens comes first.
//
// The original draws the places of assignments and the example's lines once; here each sample draws
// its own. An assignment's depth is the same at every length, so two may be neighbours in a short
// text. The names of a chain always differ.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "eval/suites/all_suites.h"
#include "eval/suites/answers.h"
#include "eval/suites/draws.h"
#include "eval/suites/haystack.h"

namespace godwit::eval::ruler_tracking {
namespace {

constexpr int kNames = 5;  // four hops
constexpr int kLetters = 5, kExampleLetters = 3;
constexpr int64_t kExampleTokens = 500;

struct Chain {
  std::vector<std::string> names;
  int64_t value;
};

Chain DrawChain(Draws& draws, int letters) {
  int64_t words = 1;
  for (int i = 0; i < letters; ++i) words *= 26;
  Chain chain;
  for (int64_t which : draws.Different(kNames, words)) {
    std::string& name = chain.names.emplace_back();
    for (int i = 0; i < letters; ++i, which /= 26) name += static_cast<char>('A' + which % 26);
  }
  chain.value = 10'000 + draws.Below(89'999);
  return chain;
}

// Assignments end with a blank, as in the original.
std::vector<std::string> Assignments(const Chain& chain) {
  std::vector<std::string> lines = {fmt::format("VAR {} = {}", chain.names[0], chain.value)};
  for (size_t i = 1; i < chain.names.size(); ++i) {
    lines.push_back(fmt::format("VAR {} = VAR {} ", chain.names[i], chain.names[i - 1]));
  }
  return lines;
}

PromptWords Words(const Chain& chain) {
  return {.before =
              "Memorize and track the chain(s) of variable assignment hidden in the "
              "following text.\n\n",
          .question = fmt::format("Question: Find all variables that are assigned the value {} in "
                                  "the text above.",
                                  chain.value),
          .answer = fmt::format(" Answer: According to the chain(s) of variable assignment in the "
                                "text above, {} variables are assigned the value {}, they are: ",
                                kNames, chain.value)};
}

// A short text with its question and answer.
std::string Example(const PieceMaker& pieces, Draws& draws) {
  const Chain chain = DrawChain(draws, kExampleLetters);
  const PromptWords words = Words(chain);
  const auto assignments = Assignments(chain);
  const auto question = words.question + words.answer;
  const std::string noise = std::string(kNoise) + "\n";
  const std::string frame =
      fmt::format("{}{}\n{}", words.before, fmt::join(assignments, "\n"), question);
  const int64_t room = kExampleTokens - pieces.MakeFirst(frame).size();
  const int64_t lines = std::max<int64_t>(kNames, room / pieces.Make(noise).size());

  auto places = draws.Different(kNames, lines);
  std::ranges::sort(places);
  std::string text = words.before;
  size_t next = 0;
  for (int64_t i = 0; i < lines; ++i) {
    if (next < places.size() && places[next] == i) text += assignments[next++] + "\n";
    text += noise;
  }
  return fmt::format("{}{} {}\n", text, question, fmt::join(chain.names, " "));
}

SampleMaker Open(const SuiteInputs& inputs, const PieceMaker& pieces) {
  return [seed = inputs.seed, max_new_tokens = inputs.max_new_tokens, &pieces,
          hay = Haystack::Lines(pieces, std::string(kNoise))](const SamplePlace& place) mutable {
    Draws draws(seed, place.index, "ruler: vt");
    const Chain chain = DrawChain(draws, kLetters);
    HaystackSample parts{.words = Words(chain),
                         .needles = Assignments(chain),
                         .depths = {},
                         .max_new_tokens = max_new_tokens};
    for (int i = 0; i < kNames; ++i) parts.depths.push_back(draws.Percent());
    std::ranges::sort(parts.depths);
    parts.words.before = Example(pieces, draws) + "\n" + parts.words.before;
    Sample sample{.expected = chain.names, .max_new_tokens = max_new_tokens};
    HideIn(pieces, hay, parts, place.length_tokens, sample);
    return sample;
  };
}

double Score(std::string_view answer, const Sample& sample) {
  return ShareFound(answer, sample.expected);
}

constexpr Suite kSuites[] = {
    {"ruler", "vt", HayText::kNone, /*data=*/nullptr, /*has_depth=*/false, 30, Open, Score},
};

}  // namespace
}  // namespace godwit::eval::ruler_tracking

namespace godwit::eval {

std::span<const Suite> RulerTrackingSuites() { return ruler_tracking::kSuites; }

}  // namespace godwit::eval
