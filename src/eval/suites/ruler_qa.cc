// RULER's questions about documents, qa_1 (SQuAD) and qa_2 (HotpotQA): a question's documents among
// others, those of its own article first.
//
// Four things differ from the original. The seed draws the order of questions; in the file
// neighbours share a document. The text grows by the document, not by ten. Each sample has its own
// shuffle. Documents are not repeated if they are too few.

#include <fmt/format.h>

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "eval/suites/all_suites.h"
#include "eval/suites/answers.h"
#include "eval/suites/budget.h"
#include "eval/suites/draws.h"
#include "eval/suites/qa_documents.h"

namespace godwit::eval::ruler_qa {
namespace {

PromptWords Words(const std::string& question) {
  constexpr const char* kTask =
      "Answer the question based on the given documents. Only give me the answer and do not output "
      "any other words.";
  return {.before = fmt::format("{}\n\nThe following are given documents.\n\n", kTask),
          .question = fmt::format("{}\n\nQuestion: {}", kTask, question),
          .answer = " Answer:"};
}

std::string Title(size_t number) { return fmt::format("Document {}:\n", number); }

// The order in which a text takes documents: the question's, those of its article, any others.
class Candidates {
 public:
  Candidates(const QaDocuments& all, const QaQuestion& asked, Draws& draws)
      : draws_(draws), first_(asked.documents), taken_(all.documents.size()) {
    std::vector<size_t> related = asked.related;
    draws.Shuffle(related);
    first_.insert(first_.end(), related.begin(), related.end());
    left_ = taken_.size();
  }

  // The next document. A candidate must be left.
  size_t Next() {
    size_t next = 0;
    do {
      next = passed_ < first_.size() ? first_[passed_++]
                                     : static_cast<size_t>(draws_.Below(std::ssize(taken_)));
    } while (taken_[next]);
    taken_[next] = true;
    --left_;
    return next;
  }

  size_t left() const { return left_; }

 private:
  Draws& draws_;
  std::vector<size_t> first_;
  std::vector<bool> taken_;  // [documents]
  size_t passed_ = 0;        // of first_
  size_t left_;
};

struct Document {
  Piece text;
  bool is_needed;
};

class Asker {
 public:
  Asker(QaDocuments all, const SuiteInputs& inputs, const PieceMaker& pieces)
      : all_(std::move(all)),
        order_(all_.questions.size()),
        seed_(inputs.seed),
        max_new_tokens_(inputs.max_new_tokens),
        pieces_(pieces) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    Draws(seed_, 0, "ruler: qa, order").Shuffle(order_);
  }

  Sample Make(const SamplePlace& place) const {
    if (place.index >= std::ssize(order_)) {
      Throw(ErrorKind::kInput, "questions with an answer: expected {} or more, found {}",
            place.index + 1, order_.size());
    }
    const QaQuestion& asked = all_.questions[order_[place.index]];
    const PromptEnds ends = pieces_.Ends(Words(asked.question));
    Sample sample{
        .question = asked.question, .expected = asked.answers, .max_new_tokens = max_new_tokens_};
    const auto build = [&](int64_t free_tokens) {
      Draws draws(seed_, place.index, "ruler: qa");
      auto documents = DocumentsThatFit(asked, place.length_tokens, free_tokens, draws);
      draws.Shuffle(documents);
      PromptBuilder builder(pieces_);
      builder.Append(ends.first);
      sample.needles.clear();
      for (size_t i = 0; i < documents.size(); ++i) {
        builder.Append(pieces_.Make(Title(i + 1)));
        const int64_t begin = builder.Append(documents[i].text);
        if (documents[i].is_needed) sample.needles.push_back({begin, builder.size()});
      }
      sample.context_tokens = builder.AppendQuestion(ends.last);
      return builder.Take();
    };
    sample.prompt =
        BuildToFit(place.length_tokens, ends.tokens + max_new_tokens_, max_new_tokens_, build);
    return sample;
  }

 private:
  std::vector<Document> DocumentsThatFit(const QaQuestion& asked, int64_t length_tokens,
                                         int64_t free_tokens, Draws& draws) const {
    Candidates candidates(all_, asked, draws);
    std::vector<Document> documents;
    for (int64_t tokens = 0;;) {
      if (candidates.left() == 0) {
        Throw(ErrorKind::kInput,
              "a sample of {} tokens needs {} tokens of documents, and there are {}: give more "
              "documents",
              length_tokens, free_tokens, tokens);
      }
      const bool is_needed = documents.size() < asked.documents.size();
      Piece text = pieces_.Make(all_.documents[candidates.Next()] + "\n\n");
      tokens += pieces_.Make(Title(documents.size() + 1)).size() + text.size();
      if (is_needed) {
        (void)RemainingTokens(length_tokens, length_tokens - free_tokens + tokens);
      } else if (tokens > free_tokens) {
        return documents;
      }
      documents.push_back({std::move(text), is_needed});
    }
  }

  const QaDocuments all_;
  std::vector<size_t> order_;  // of questions
  const uint64_t seed_;
  const int64_t max_new_tokens_;
  const PieceMaker& pieces_;
};

template <QaDocuments (*kRead)(const std::filesystem::path& folder)>
SampleMaker Open(const SuiteInputs& inputs, const PieceMaker& pieces) {
  return [asker = std::make_shared<const Asker>(kRead(inputs.folder), inputs, pieces)](
             const SamplePlace& place) { return asker->Make(place); };
}

double Score(std::string_view answer, const Sample& sample) {
  return AnyFound(answer, sample.expected);
}

constexpr Suite kSuites[] = {
    {"ruler", "qa_1", HayText::kNone, kSquadFiles, /*has_depth=*/false, 32, Open<ReadSquad>, Score},
    {"ruler", "qa_2", HayText::kNone, kHotpotQaFiles, /*has_depth=*/false, 32, Open<ReadHotpotQa>,
     Score},
};

}  // namespace
}  // namespace godwit::eval::ruler_qa

namespace godwit::eval {

std::span<const Suite> RulerQaSuites() { return ruler_qa::kSuites; }

}  // namespace godwit::eval
