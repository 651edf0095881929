#include "lab/answer_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/line_reader.h"
#include "base/quote.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"

namespace godwit::lab {
namespace {

constexpr size_t kMaxLineBytes = size_t{1} << 24;

bool AreIntegers(const nlohmann::json& list) {
  return std::ranges::all_of(list, [](const auto& one) { return one.is_number_integer(); });
}

std::string KeyOf(const nlohmann::ordered_json& sample, std::string_view kv) {
  return fmt::format("{}, {}", DescribeSample(sample), kv);
}

}  // namespace

AnswerFile::AnswerFile(const std::optional<std::string>& path, std::string how,
                       std::vector<std::string> sample_fields, nlohmann::json answer)
    : how_(std::move(how)), sample_fields_(std::move(sample_fields)), like_(std::move(answer)) {
  if (!path) return;
  file_.emplace(*path);
  Read();
}

// Reads the answers of an earlier run. Only the last line can be unfinished, because each line is
// written in one piece with its newline.
void AnswerFile::Read() {
  LineReader reader(file_->path(), kMaxLineBytes);
  while (const auto line = reader.Next()) {
    if (!reader.has_newline()) {
      file_->Truncate(reader.offset_bytes());
      console::WriteNotice(
          fmt::format("godwit: {}: removing the last answer, which was not finished\n",
                      QuoteUnlessPlain(file_->path())));
      return;
    }
    Take(*line, reader.where(), reader.number());
  }
}

void AnswerFile::Take(std::string_view line, const std::string& where, int64_t number) {
  nlohmann::ordered_json sample;
  std::string kv;
  Line taken{.number = number};
  bool is_answer = true;
  const nlohmann::json json = ParseJson(line, where);
  try {
    for (const std::string& field : sample_fields_) sample[field] = json.at(field);
    for (const auto& [field, like] : like_.items()) {
      const nlohmann::json& value = taken.answer[field] = json.at(field);
      is_answer &= like.is_array() ? value.is_array() && AreIntegers(value) : value.is_number();
    }
    json.at("kv").get_to(kv);
    json.at("prompt").get_to(taken.prompt);
    json.at("how").get_to(taken.how);
  } catch (const nlohmann::json::exception&) {
    is_answer = false;
  }
  if (!is_answer) {
    Throw(ErrorKind::kFormat, "{}: expected an answer of this evaluation", where);
  }
  const std::string key = KeyOf(sample, kv);
  if (!answers_.emplace(key, std::move(taken)).second) {
    Throw(ErrorKind::kFormat, "{}: answers {} a second time", where, key);
  }
}

const nlohmann::json* AnswerFile::Find(const Asked& asked) const {
  const auto found = answers_.find(KeyOf(asked.sample, asked.kv));
  if (found == answers_.end()) return nullptr;
  const auto& line = found->second;
  const auto check = [&](std::string_view what, std::string_view expected, std::string_view there) {
    if (there == expected) return;
    Throw(ErrorKind::kInput, "{}:{}: {}: expected {} {}, found {}: name another file with -o",
          QuoteUnlessPlain(file_->path()), line.number, found->first, what, expected, there);
  };
  check("an answer of", how_, line.how);
  check("the prompt", asked.prompt, line.prompt);
  return &line.answer;
}

void AnswerFile::Append(const Asked& asked, const nlohmann::ordered_json& answer) {
  if (!file_) return;
  nlohmann::ordered_json line = asked.sample;
  line["kv"] = asked.kv;
  line["how"] = how_;
  line["prompt"] = asked.prompt;
  line.update(answer);
  file_->Append(console::JsonLine(line));
}

std::string DescribeSample(const nlohmann::ordered_json& sample) {
  std::string text;
  for (const auto& [name, value] : sample.items()) {
    if (value.is_null()) continue;
    if (!text.empty()) text += ", ";
    if (value.is_string()) {
      text += value.get<std::string>();
    } else {
      text += fmt::format("{} {:.15g}", name, value.get<double>());
    }
  }
  return text;
}

}  // namespace godwit::lab
