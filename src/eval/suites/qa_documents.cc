#include "eval/suites/qa_documents.h"

#include <algorithm>
#include <initializer_list>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/quote.h"

namespace godwit::eval {
namespace {

using nlohmann::json;

struct JsonFile {
  std::string name;  // in messages
  json content;
};

// The first of the named files that exists.
JsonFile ReadJson(const std::filesystem::path& folder,
                  std::initializer_list<std::string_view> names) {
  constexpr size_t kMaxBytes = size_t{1} << 30;
  constexpr size_t kMaxValues = 20'000'000;
  for (const std::string_view name : names) {
    const auto path = folder / name;
    if (!IsListed(path)) continue;
    const std::string quoted = QuoteUnlessPlain(path.native());
    return {quoted, ParseJson(ReadTextFile(path, kMaxBytes), quoted, {.max_values = kMaxValues})};
  }
  Throw(ErrorKind::kIo, "{}: expected {}", QuoteUnlessPlain(folder.native()),
        fmt::join(names, " or "));
}

class Collector {
 public:
  // The number of this document; documents of equal text share one.
  size_t Document(const std::string& text) {
    const auto [place, is_new] = numbers_.emplace(text, all_.documents.size());
    if (is_new) all_.documents.push_back(text);
    return place->second;
  }

  void Add(QaQuestion question) { all_.questions.push_back(std::move(question)); }

  QaDocuments Take(const std::string& file) {
    if (all_.questions.empty()) {
      Throw(ErrorKind::kFormat, "{}: expected a question with an answer, found none", file);
    }
    return std::move(all_);
  }

 private:
  QaDocuments all_;
  std::unordered_map<std::string, size_t> numbers_;
};

void AddQuestions(const json& paragraph, const QaQuestion& about, Collector& collector) {
  for (const json& asked : paragraph.at("qas")) {
    if (asked.value("is_impossible", false)) continue;
    QaQuestion question = about;
    asked.at("question").get_to(question.question);
    for (const json& answer : asked.at("answers")) {
      auto text = answer.at("text").get<std::string>();
      if (std::ranges::find(question.answers, text) == question.answers.end()) {
        question.answers.push_back(std::move(text));
      }
    }
    if (!question.answers.empty()) collector.Add(std::move(question));
  }
}

}  // namespace

QaDocuments ReadSquad(const std::filesystem::path& folder) {
  const JsonFile file = ReadJson(folder, {"squad.json", "dev-v2.0.json"});
  Collector collector;
  size_t article = 0, paragraph = 0;
  try {
    const json& articles = file.content.at("data");
    for (article = 0; article < articles.size(); ++article) {
      const json& paragraphs = articles[article].at("paragraphs");
      std::vector<size_t> documents;
      for (paragraph = 0; paragraph < paragraphs.size(); ++paragraph) {
        documents.push_back(
            collector.Document(paragraphs[paragraph].at("context").get<std::string>()));
      }
      for (paragraph = 0; paragraph < paragraphs.size(); ++paragraph) {
        QaQuestion about{.documents = {documents[paragraph]}, .related = documents};
        std::erase(about.related, documents[paragraph]);
        AddQuestions(paragraphs[paragraph], about, collector);
      }
    }
  } catch (const json::exception&) {
    Throw(ErrorKind::kFormat,
          "{}: article {}, paragraph {}: expected \"context\" and \"qas\", each with \"question\" "
          "and \"answers\", in the format of SQuAD",
          file.name, article, paragraph);
  }
  return collector.Take(file.name);
}

QaDocuments ReadHotpotQa(const std::filesystem::path& folder) {
  const JsonFile file = ReadJson(folder, {"hotpotqa.json", "hotpot_dev_distractor_v1.json"});
  Collector collector;
  size_t number = 0;
  try {
    for (; number < file.content.size(); ++number) {
      const json& asked = file.content.at(number);
      QaQuestion question{.answers = {asked.at("answer").get<std::string>()}};
      asked.at("question").get_to(question.question);
      for (const json& paragraph : asked.at("context")) {
        std::string text = paragraph.at(0).get<std::string>() + "\n";
        for (const json& sentence : paragraph.at(1)) text += sentence.get<std::string>();
        const size_t document = collector.Document(text);
        if (std::ranges::find(question.documents, document) == question.documents.end()) {
          question.documents.push_back(document);
        }
      }
      collector.Add(std::move(question));
    }
  } catch (const json::exception&) {
    Throw(ErrorKind::kFormat,
          "{}: question {}: expected \"question\", \"answer\" and \"context\", a list of titles "
          "and sentences, in the format of HotpotQA",
          file.name, number);
  }
  return collector.Take(file.name);
}

}  // namespace godwit::eval
