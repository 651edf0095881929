#include "cli/suite_results.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/line_reader.h"
#include "base/quote.h"
#include "cli/terminal/json_output.h"
#include "cli/terminal/output.h"

namespace godwit::cli {
namespace {

constexpr size_t kMostLineBytes = size_t{1} << 24;
constexpr double kNoDepth = -1;  // among keys

}  // namespace

SuiteResultFile::SuiteResultFile(const std::string& path, std::string how)
    : file_(path), how_(std::move(how)) {
  Read();
}

SuiteResultFile::Key SuiteResultFile::KeyOf(const SuiteResult& result) {
  return {result.task, result.place.length_tokens, result.place.depth.value_or(kNoDepth),
          result.place.index, result.kv};
}

// Each line is written in one piece with its newline: one without it is all that can be unfinished.
void SuiteResultFile::Read() {
  LineReader reader(file_.path(), kMostLineBytes);
  while (const auto line = reader.Next()) {
    if (!reader.has_newline()) {
      file_.Truncate(reader.offset_bytes());
      WriteNotice(fmt::format("godwit: {}: a result that was not finished is taken away\n",
                              QuoteUnlessPlain(file_.path())));
      return;
    }
    Take(*line, reader.where(), reader.number());
  }
}

void SuiteResultFile::Take(std::string_view line, const std::string& where, int64_t number) {
  SuiteResult result;
  std::string how;
  const nlohmann::json json = ParseJson(line, where);
  try {
    json.at("task").get_to(result.task);
    json.at("length").get_to(result.place.length_tokens);
    if (!json.at("depth").is_null()) result.place.depth = json.at("depth").get<double>();
    json.at("index").get_to(result.place.index);
    json.at("kv").get_to(result.kv);
    json.at("prompt").get_to(result.prompt);
    json.at("how").get_to(how);
    json.at("score").get_to(result.score);
  } catch (const nlohmann::json::exception&) {
    Throw(ErrorKind::kFormat, "{}: expected a result of godwit eval", where);
  }
  const Line taken{
      .number = number, .prompt = result.prompt, .how = std::move(how), .score = result.score};
  if (!results_.emplace(KeyOf(result), taken).second) {
    Throw(ErrorKind::kFormat, "{}: answers {} a second time", where,
          Describe(result.task, result.place));
  }
}

std::optional<double> SuiteResultFile::Find(const SuiteResult& asked) const {
  const auto found = results_.find(KeyOf(asked));
  if (found == results_.end()) return std::nullopt;
  const Line& line = found->second;
  const auto refuse = [&](std::string_view what, std::string_view expected,
                          std::string_view there) {
    Throw(ErrorKind::kInput, "{}:{}: {}: expected {} {}, found {}: name another file with -o",
          QuoteUnlessPlain(file_.path()), line.number, Describe(asked.task, asked.place), what,
          expected, there);
  };
  if (line.how != how_) refuse("an answer of", how_, line.how);
  if (line.prompt != asked.prompt) refuse("the prompt", asked.prompt, line.prompt);
  return line.score;
}

void SuiteResultFile::Append(const SuiteResult& result, const eval::Sample& sample,
                             const std::string& answer) {
  using Json = nlohmann::ordered_json;
  Json needles = Json::array();
  for (const eval::TokenSpan& needle : sample.needles)
    needles.push_back({needle.begin, needle.end});
  const auto& depth = result.place.depth;
  file_.Append(JsonLine({{"task", result.task},
                         {"length", result.place.length_tokens},
                         {"depth", depth ? Json(*depth) : Json()},
                         {"index", result.place.index},
                         {"kv", result.kv},
                         {"how", how_},
                         {"prompt", result.prompt},
                         {"prompt_tokens", std::ssize(sample.prompt)},
                         {"needles", std::move(needles)},
                         {"expected", sample.expected},
                         {"answer", answer},
                         {"score", result.score}}));
}

std::string Describe(std::string_view task, const eval::SamplePlace& place) {
  return fmt::format("{}, {} tokens{}, sample {}", task, place.length_tokens,
                     place.depth ? fmt::format(", depth {}", *place.depth) : "", place.index);
}

}  // namespace godwit::cli
