#include "eval/fact_passages.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "base/ascii.h"
#include "base/error.h"
#include "eval/suites/draws.h"
#include "eval/suites/words.h"

namespace godwit::eval {
namespace {

struct FactForm {
  const char* fact;
  const char* question;
  bool is_number;
};
constexpr FactForm kForms[] = {
    {"The captain's dog is called {}.", "What is the captain's dog called?", false},
    {"The last train to Dover has the number {}.", "Which number has the last train to Dover?",
     true},
    {"The old mill was sold for {} pounds.", "For how many pounds was the old mill sold?", true},
    {"The painter of the ceiling signed his works as {}.",
     "How did the painter of the ceiling sign his works?", false},
    {"The widow's favourite flower stood beside the {}.",
     "Beside what did the widow's favourite flower stand?", false},
    {"The choir meets in room {}.", "In which room does the choir meet?", true},
    {"The bridge over the marsh has {} stones.", "How many stones has the bridge over the marsh?",
     true},
    {"The ship that brought the tea was the {}.", "Which ship brought the tea?", false},
    {"The museum's owl is named {}.", "What is the name of the museum's owl?", false},
    {"The well behind the church holds {} buckets.",
     "How many buckets does the well behind the church hold?", true},
    {"The letter was hidden under the {}.", "Under what was the letter hidden?", false},
    {"The lighthouse was built by {} workers.", "How many workers built the lighthouse?", true},
    {"The prize of the race was a {}.", "What was the prize of the race?", false},
    {"The lawyer's office is in {} Street.", "In which street is the lawyer's office?", false},
    {"The great bell weighs {} pounds.", "How many pounds does the great bell weigh?", true},
    {"The doctor collects every kind of {}.", "What does the doctor collect?", false},
    {"The harbour's gate opens with the code {}.", "Which code opens the harbour's gate?", true},
    {"The gardener's cart is painted like a {}.", "What is the gardener's cart painted like?",
     false},
    {"The library lost {} books in the flood.", "How many books did the library lose in the flood?",
     true},
    {"The inn at the crossroads is called the {}.", "What is the inn at the crossroads called?",
     false},
    {"The baker sold {} loaves on Friday.", "How many loaves did the baker sell on Friday?", true},
    {"The smith's brother traded his horse for a {}.",
     "For what did the smith's brother trade his horse?", false},
    {"The map of the island is {} years old.", "How many years old is the map of the island?",
     true},
    {"The queen's portrait shows her with a {}.", "With what does the queen's portrait show her?",
     false},
};
static_assert(std::size(kForms) == kMostFactPassages);

bool EndsSentence(std::string_view text, size_t at) {
  return text[at] == '\n' || (text[at] == ' ' && at > 0 && text[at - 1] == '.');
}

// The first place from `at` on behind the end of a sentence or a line; the text's end: there is
// none.
size_t NextBegin(std::string_view text, size_t at) {
  while (at < text.size() && !EndsSentence(text, at)) ++at;
  return std::min(text.size(), at + 1);
}

// Cuts a text off behind its last sentence or line.
std::string_view WholeSentences(std::string_view text) {
  size_t end = text.size();
  while (end > 0 && !EndsSentence(text, end - 1)) --end;
  return text.substr(0, end);
}

// Draws a passage out of its stretch of the text.
std::string_view CutPassage(std::string_view stretch, const FactPassageOptions& options,
                            Draws& draws,
                            const std::function<std::vector<int32_t>(std::string_view)>& tokenize) {
  // The bytes of a token are those of the stretch's beginning.
  constexpr int64_t kMostTokenBytes = 16;
  const int64_t most = std::min<int64_t>(std::ssize(stretch), options.tokens * kMostTokenBytes);
  const std::string_view probe = WholeSentences(stretch.substr(0, static_cast<size_t>(most)));
  const auto known = std::max<int64_t>(1, std::ssize(tokenize(probe)));
  const int64_t bytes = options.tokens * std::ssize(probe) / known;
  if (bytes == 0 || bytes >= std::ssize(stretch)) {
    Throw(ErrorKind::kInput,
          "the text is too short for {} passages of {} tokens: give a longer one, or ask for less",
          options.count, options.tokens);
  }
  const size_t begin =
      NextBegin(stretch, static_cast<size_t>(draws.Below(std::ssize(stretch) - bytes)));
  return WholeSentences(stretch.substr(begin, static_cast<size_t>(bytes)));
}

// Puts a fact between two sentences of a passage.
std::string WithFact(std::string_view passage, const std::string& fact, Draws& draws) {
  std::vector<size_t> places{0};
  for (size_t at = NextBegin(passage, 0); at < passage.size(); at = NextBegin(passage, at)) {
    places.push_back(at);
  }
  const size_t place = draws.OneOf(places);
  std::string text(passage.substr(0, place));
  text += fact;
  text += place == passage.size() || passage[place] == '\n' ? "" : " ";
  text += passage.substr(place);
  return text;
}

// The first `count` of these that stand nowhere in the texts, nor in each other. Adds them there.
std::vector<std::string> NewOnes(const std::vector<std::string>& all, int64_t count,
                                 std::string& texts) {
  std::vector<std::string> kept;
  for (const std::string& one : all) {
    const auto is_part = [&](const std::string& other) { return one.find(other) != one.npos; };
    if (std::ssize(kept) == count) break;
    if (texts.find(one) != texts.npos || std::ranges::any_of(kept, is_part)) continue;
    kept.push_back(one);
    texts += ' ' + one;
  }
  if (std::ssize(kept) < count) {
    Throw(ErrorKind::kInput,
          "the passages have nearly all words that answers could be: ask for shorter ones");
  }
  return kept;
}

}  // namespace

std::vector<FactPassage> MakeFactPassages(
    std::string_view text, const FactPassageOptions& options,
    const std::function<std::vector<int32_t>(std::string_view text)>& tokenize) {
  if (options.count < 1 || options.count > kMostFactPassages || options.tokens < 1) {
    Throw(ErrorKind::kInput, "expected 1 to {} passages of at least 1 token, found {} of {}",
          kMostFactPassages, options.count, options.tokens);
  }
  Draws draws(options.seed, 0, "fact passages");
  const auto count = static_cast<size_t>(options.count);
  std::vector<std::string_view> plain;
  std::string all;
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = text.size() * i / count, end = text.size() * (i + 1) / count;
    plain.push_back(CutPassage(text.substr(begin, end - begin), options, draws, tokenize));
    all += plain.back();
  }
  for (const FactForm& form : kForms) all += form.fact;
  all = Lower(all);
  const auto words = NewOnes(DrawWords(draws, kWords), 2 * options.count, all);
  std::vector<std::string> numbers;
  for (const int64_t number : draws.Different(9000, 9000)) {
    numbers.push_back(fmt::format("{}", 1000 + number));
  }
  numbers = NewOnes(numbers, options.count, all);
  std::vector<FactPassage> passages;
  for (size_t i = 0; i < count; ++i) {
    FactPassage passage;
    std::string fact;
    if (options.alike) {
      passage.answer = numbers[i];
      fact = fmt::format("The secret code of the {} is {}.", words[count + i], passage.answer);
      passage.question = fmt::format("What is the secret code of the {}?", words[count + i]);
    } else {
      passage.answer = kForms[i].is_number ? numbers[i] : words[i];
      fact = fmt::format(fmt::runtime(kForms[i].fact), passage.answer);
      passage.question = kForms[i].question;
    }
    passage.text = WithFact(plain[i], fact, draws);
    passages.push_back(std::move(passage));
  }
  return passages;
}

std::vector<AskedOrder> DrawOrders(int64_t questions, int64_t passages, uint64_t seed) {
  Draws draws(seed, 1, "orders of passages");
  std::vector<AskedOrder> orders;
  std::vector<size_t> all(static_cast<size_t>(passages)), to_ask;
  std::iota(all.begin(), all.end(), size_t{0});
  for (int64_t i = 0; i < questions; ++i) {
    if (to_ask.empty()) {
      to_ask = all;
      draws.Shuffle(to_ask);
    }
    AskedOrder one{.order = all, .asked = to_ask.back()};
    to_ask.pop_back();
    draws.Shuffle(one.order);
    orders.push_back(std::move(one));
  }
  return orders;
}

}  // namespace godwit::eval
