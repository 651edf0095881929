#include "eval/suites/babi_stories.h"

#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/line_reader.h"
#include "base/quote.h"
#include "base/split_text.h"

namespace godwit::eval {
namespace {

// Takes the number in front of `text`, which then continues behind it.
std::optional<int> TakeNumber(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

std::string_view TakeField(std::string_view& text) {
  const std::string_view field = text.substr(0, text.find('\t'));
  text.remove_prefix(std::min(field.size() + 1, text.size()));
  return Stripped(field);
}

class Story {
 public:
  // Adds a fact, or returns a question.
  std::optional<BabiQuestion> Take(std::string_view line, const std::string& where) {
    const auto refuse = [&](std::string_view expected) {
      Throw(ErrorKind::kFormat, "{}: expected {}, found {}", where, expected, Quote(line));
    };
    std::string_view rest = line;
    const auto number = TakeNumber(rest);
    if (!number || !rest.starts_with(' ')) refuse("a number and a sentence");
    if (*number == 1) {
      facts_.clear();
      places_.clear();
    }
    const std::string_view sentence = TakeField(rest);
    if (rest.empty()) {
      places_[*number] = facts_.size();
      facts_.emplace_back(sentence);
      return std::nullopt;
    }
    BabiQuestion question{
        .facts = facts_, .question = std::string(sentence), .answer = std::string(TakeField(rest))};
    for (rest = Stripped(rest); !rest.empty(); rest = Stripped(rest)) {
      const auto fact = TakeNumber(rest);
      const auto found = fact ? places_.find(*fact) : places_.end();
      if (found == places_.end()) refuse("the numbers of facts after the answer");
      question.supporting.push_back(found->second);
    }
    if (question.answer.empty() || question.supporting.empty()) {
      refuse("a question, its answer and the facts that tell it");
    }
    return question;
  }

 private:
  std::vector<std::string> facts_;
  std::map<int, size_t> places_;  // of facts, by their line numbers
};

}  // namespace

std::filesystem::path BabiFile(const std::filesystem::path& folder, std::string_view task) {
  std::filesystem::path found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(fmt::format("{}_", task))) continue;
    if (name.ends_with("_train.txt")) return entry.path();
    if (name.ends_with("_test.txt")) found = entry.path();
  }
  if (found.empty()) {
    Throw(ErrorKind::kIo, "{}: expected {}_..._train.txt or {}_..._test.txt",
          Quote(folder.native()), task, task);
  }
  return found;
}

std::vector<BabiQuestion> ReadBabi(const std::filesystem::path& file) {
  constexpr size_t kMaxLineBytes = 1 << 16;
  LineReader lines(file, kMaxLineBytes);
  std::vector<BabiQuestion> questions;
  Story story;
  while (const auto line = lines.Next()) {
    const std::string_view text = Stripped(*line);
    if (text.empty()) continue;
    if (auto question = story.Take(text, lines.where())) questions.push_back(std::move(*question));
  }
  if (questions.empty()) {
    Throw(ErrorKind::kFormat, "{}: expected a question, found none", Quote(file.native()));
  }
  return questions;
}

}  // namespace godwit::eval
