#include "eval/suites/ruler_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/line_reader.h"
#include "base/quote.h"

namespace godwit::eval {
namespace {

struct Row {
  std::string where;
  std::string input, answer_prefix;
  std::vector<std::string> outputs;
};

Row ParseRow(std::string_view line, std::string where) {
  const nlohmann::json json = ParseJson(line, where);
  Row row{.where = std::move(where)};
  try {
    json.at("input").get_to(row.input);
    json.at("outputs").get_to(row.outputs);
    row.answer_prefix = json.value("answer_prefix", "");
  } catch (const nlohmann::json::exception&) {
    Throw(ErrorKind::kFormat,
          "{}: expected a sample of RULER: \"input\", a text, and \"outputs\", a "
          "list of texts",
          row.where);
  }
  if (row.outputs.empty()) {
    Throw(ErrorKind::kFormat, "{}: expected one or more \"outputs\", found none", row.where);
  }
  return row;
}

std::vector<Row> ReadRows(const std::filesystem::path& file, int64_t samples) {
  constexpr size_t kMaxLineBytes = size_t{1} << 30;
  LineReader lines(file, kMaxLineBytes);
  std::vector<Row> rows;
  while (std::ssize(rows) < samples) {
    const auto line = lines.Next();
    if (!line) {
      Throw(ErrorKind::kInput, "{}: expected {} samples or more, found {}",
            QuoteUnlessPlain(file.native()), samples, rows.size());
    }
    rows.push_back(ParseRow(*line, lines.where()));
  }
  return rows;
}

// The token at which the last line of `input` begins, with which the prompt begins: RULER's
// templates end with the line of the question.
int64_t QuestionBegin(const PieceMaker& pieces, std::string_view input,
                      std::span<const int32_t> prompt) {
  const size_t last = std::min(input.find_last_not_of(" \n"), input.size());
  const size_t line = input.rfind('\n', last) + 1;  // 0 if there is none
  PromptBuilder context(pieces);
  context.Append(pieces.MakeFirst(std::string(input.substr(0, line))));
  const std::vector<int32_t> tokens = context.Take();
  return std::ranges::mismatch(tokens, prompt).in1 - tokens.begin();
}

}  // namespace

std::optional<std::filesystem::path> RulerFile(const std::filesystem::path& folder,
                                               std::string_view task) {
  for (auto path : {folder / task / "validation.jsonl", folder / fmt::format("{}.jsonl", task)}) {
    if (IsListed(path)) return path;
  }
  return std::nullopt;
}

SampleMaker OpenRulerFile(const std::filesystem::path& folder, int64_t samples,
                          const SuiteInputs& inputs, const PieceMaker& pieces) {
  const auto file = RulerFile(folder, inputs.task);
  if (!file) {
    Throw(ErrorKind::kIo, "{}: expected {}/validation.jsonl or {}.jsonl",
          QuoteUnlessPlain(folder.native()), inputs.task, inputs.task);
  }
  return [rows = ReadRows(*file, samples), max_new_tokens = inputs.max_new_tokens,
          &pieces](const SamplePlace& place) {
    const Row& row = rows[place.index];
    const PromptEnds ends =
        pieces.Ends({.before = row.input, .question = "", .answer = row.answer_prefix});
    PromptBuilder builder(pieces);
    builder.Append(ends.first);
    const int64_t answer = builder.AppendQuestion(ends.last);
    const int64_t taken = builder.size() + max_new_tokens;
    if (taken > place.length_tokens) {
      Throw(ErrorKind::kInput,
            "{}: prompt and answer take {} tokens, expected at most the {} of --lengths", row.where,
            taken, place.length_tokens);
    }
    Sample sample{
        .prompt = builder.Take(), .expected = row.outputs, .max_new_tokens = max_new_tokens};
    sample.context_tokens = std::min(answer, QuestionBegin(pieces, ends.first.text, sample.prompt));
    return sample;
  };
}

}  // namespace godwit::eval
