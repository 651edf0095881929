// The file of -o: what was answered, a line for each answer as soon as it is there. A later run
// asks for what is missing.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "console/terminal/appended_file.h"

namespace godwit::lab {

// What is asked: "task" and what else names a sample, in the order of the line; under which policy;
// a fingerprint of all that the model reads.
struct Asked {
  nlohmann::ordered_json sample;  // an object
  std::string kv;
  std::string prompt;
};

class AnswerFile {
 public:
  // path: none: nothing is known and nothing is kept. how: what answers depend on besides the
  // prompt: the model, its storage. sample_fields: what samples are named by; answer: what Find
  // gives, numbers and lists of integers, like this one. Reads what is there; a last line that was
  // not finished is taken away, and standard error says so. Throws Error(kFormat), with file and
  // line, for a line that is no such answer, Error(kIo).
  AnswerFile(const std::optional<std::string>& path, std::string how,
             std::vector<std::string> sample_fields, nlohmann::json answer);

  // The answer's fields if it is there. Throws Error(kInput) if what is there was asked otherwise.
  const nlohmann::json* Find(const Asked& asked) const;

  // answer: an object that has the answer's fields, and what else is worth knowing.
  void Append(const Asked& asked, const nlohmann::ordered_json& answer);

 private:
  struct Line {
    int64_t number;
    std::string prompt, how;
    nlohmann::json answer;
  };
  void Read();
  void Take(std::string_view line, const std::string& where, int64_t number);

  std::optional<console::AppendedFile> file_;
  const std::string how_;
  const std::vector<std::string> sample_fields_;
  const nlohmann::json like_;
  std::map<std::string, Line> answers_;  // by what names them in messages
};

// "passkey, length 4096, depth 50, index 3"
std::string DescribeSample(const nlohmann::ordered_json& sample);

}  // namespace godwit::lab
