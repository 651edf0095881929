// RULER (Hsieh et al., 2024): its eight needle tasks, with its parameters and in its words.
//
// Three things differ from the original. The text is filled by the line or sentence, not by 25
// lines or 500 words. Needles have an order of their own in every sample, which the original
// shuffles once. "number" loses its plural in the templates, not by a replacement in the whole
// text.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "eval/suites/all_suites.h"
#include "eval/suites/answers.h"
#include "eval/suites/draws.h"
#include "eval/suites/haystack.h"
#include "eval/suites/words.h"

namespace godwit::eval::ruler_needles {
namespace {

enum class Hay { kNoise, kEssay, kNeedles };

struct Niah {
  Hay hay;
  bool uuid_keys, uuid_values;
  int keys, values, queries;  // values: of each key; queries: number of keys asked for

  const char* kind() const { return uuid_values ? "uuids" : "numbers"; }
  bool asks_for_one() const { return values * queries == 1; }
};

std::string DrawKey(const Niah& niah, Draws& draws) {
  return niah.uuid_keys ? DrawUuid(draws) : DrawWordPair(draws);
}
std::string DrawValue(const Niah& niah, Draws& draws) {
  return niah.uuid_values ? DrawUuid(draws) : DrawNumber(draws);
}
std::string Needle(const Niah& niah, const std::string& key, const std::string& value) {
  return fmt::format("One of the special magic {} for {} is: {}.", niah.kind(), key, value);
}

// "a", "a, and b", "a, b, and c"
std::string Joined(const std::vector<std::string>& keys) {
  if (keys.size() == 1) return keys.front();
  return fmt::format("{}, and {}", fmt::join(keys.begin(), keys.end() - 1, ", "), keys.back());
}

PromptWords Words(const Niah& niah, const std::string& query) {
  std::string kind = niah.kind();
  if (niah.asks_for_one()) kind.pop_back();
  const char* const are = niah.asks_for_one() ? "is" : "are";
  return {
      .before = fmt::format("{} special magic {} {} hidden within the following text. Make sure to "
                            "memorize it. I will quiz you about the {} afterwards.\n",
                            niah.asks_for_one() ? "A" : "Some", kind, are, kind),
      // Lines and needles end with a newline already.
      .question = fmt::format("{}What {} the special magic {} for {} mentioned in the provided "
                              "text?",
                              niah.hay == Hay::kEssay ? "\n" : "",
                              niah.asks_for_one() ? "is" : "are all", kind, query),
      .answer = fmt::format(" The special magic {} for {} mentioned in the provided text {}", kind,
                            query, are)};
}

// RULER's depths: 40 steps from 0 to 100 %.
std::vector<double> DrawDepths(Draws& draws, int64_t count) {
  constexpr int64_t kSteps = 40;
  std::vector<double> depths;
  for (const int64_t step : draws.Different(count, kSteps)) {
    depths.push_back(static_cast<double>((step * 200 + kSteps - 1) / (2 * (kSteps - 1))));
  }
  std::ranges::sort(depths);
  return depths;
}

Haystack HayOf(const Niah& niah, const SuiteInputs& inputs, const PieceMaker& pieces) {
  if (niah.hay == Hay::kEssay) return Haystack::Sentences(pieces, inputs.texts);
  return Haystack::Lines(pieces, std::string(kNoise));
}

template <const Niah& kNiah>
SampleMaker Open(const SuiteInputs& inputs, const PieceMaker& pieces) {
  return [seed = inputs.seed, max_new_tokens = inputs.max_new_tokens, &pieces,
          hay = HayOf(kNiah, inputs, pieces)](const SamplePlace& place) mutable {
    if (kNiah.hay == Hay::kNeedles) {
      // Needles of other keys, which are not asked for.
      hay = Haystack::Lines(pieces, [draws = Draws(seed, place.index, "ruler: others")]() mutable {
        const std::string key = DrawKey(kNiah, draws);
        return Needle(kNiah, key, DrawValue(kNiah, draws));
      });
    }
    Draws draws(seed, place.index, "ruler");
    std::vector<std::string> asked;
    std::vector<std::pair<std::string, std::string>> needles;  // with the value if it is asked for
    Sample sample{.max_new_tokens = max_new_tokens};
    for (int i = 0; i < kNiah.keys; ++i) {
      const std::string key = DrawKey(kNiah, draws);
      const bool is_asked = i < kNiah.queries;
      if (is_asked) asked.push_back(key);
      for (int j = 0; j < kNiah.values; ++j) {
        const std::string value = DrawValue(kNiah, draws);
        if (is_asked) sample.expected.push_back(value);
        needles.emplace_back(Needle(kNiah, key, value), is_asked ? value : "");
      }
    }
    draws.Shuffle(needles);
    HaystackSample parts{.words = Words(kNiah, Joined(asked)),
                         .needles = {},
                         .depths = DrawDepths(draws, std::ssize(needles)),
                         .max_new_tokens = max_new_tokens};
    for (const auto& needle : needles) parts.needles.push_back(needle.first);
    HideIn(pieces, hay, parts, place.length_tokens, sample);
    auto span = sample.needles.begin();
    std::vector<TokenSpan> spans;
    for (const auto& needle : needles) {
      if (!needle.second.empty()) spans.push_back(*span);
      ++span;
    }
    sample.needles = std::move(spans);
    return sample;
  };
}

double Score(std::string_view answer, const Sample& sample) {
  return ShareFound(answer, sample.expected);
}

template <const Niah& kNiah>
constexpr Suite NiahSuite(std::string_view name) {
  return {"ruler",
          name,
          kNiah.hay == Hay::kEssay ? HayText::kNeeded : HayText::kNone,
          /*data=*/nullptr,
          /*has_depth=*/false,
          128,
          Open<kNiah>,
          Score};
}

constexpr Niah kSingle1 = {Hay::kNoise, false, false, 1, 1, 1};
constexpr Niah kSingle2 = {Hay::kEssay, false, false, 1, 1, 1};
constexpr Niah kSingle3 = {Hay::kEssay, false, true, 1, 1, 1};
constexpr Niah kMultikey1 = {Hay::kEssay, false, false, 4, 1, 1};
constexpr Niah kMultikey2 = {Hay::kNeedles, false, false, 1, 1, 1};
constexpr Niah kMultikey3 = {Hay::kNeedles, true, true, 1, 1, 1};
constexpr Niah kMultivalue = {Hay::kEssay, false, false, 1, 4, 1};
constexpr Niah kMultiquery = {Hay::kEssay, false, false, 4, 1, 4};

constexpr Suite kSuites[] = {
    NiahSuite<kSingle1>("niah_single_1"),      NiahSuite<kSingle2>("niah_single_2"),
    NiahSuite<kSingle3>("niah_single_3"),      NiahSuite<kMultikey1>("niah_multikey_1"),
    NiahSuite<kMultikey2>("niah_multikey_2"),  NiahSuite<kMultikey3>("niah_multikey_3"),
    NiahSuite<kMultivalue>("niah_multivalue"), NiahSuite<kMultiquery>("niah_multiquery")};

}  // namespace
}  // namespace godwit::eval::ruler_needles

namespace godwit::eval {

std::span<const Suite> RulerNeedleSuites() { return ruler_needles::kSuites; }

}  // namespace godwit::eval
