// The file of -o: the answers, each on a line as soon as it is there. A later run asks only for
// missing ones.
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

// A question. sample: "task" and the other fields that name a sample, in the order of the line. kv:
// the policy. prompt: a fingerprint of all that the model reads.
struct Asked {
  nlohmann::ordered_json sample;  // an object
  std::string kv;
  std::string prompt;
};

class AnswerFile {
 public:
  // path: none: no answer is known and none is kept. how: what answers depend on besides the
  // prompt: the model, its storage. sample_fields: the fields that name samples. answer: an example
  // of the fields that Find gives: numbers and lists of integers.
  //
  // Reads the answers that are there. An unfinished last line is taken away, and standard error
  // says so. Throws Error(kFormat), with file and line, for a line that is no such answer, and
  // Error(kIo).
  AnswerFile(const std::optional<std::string>& path, std::string how,
             std::vector<std::string> sample_fields, nlohmann::json answer);

  // The answer's fields if it is there. Throws Error(kInput) if it was asked otherwise.
  const nlohmann::json* Find(const Asked& asked) const;

  // answer: an object with the answer's fields, and others worth knowing.
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
  std::map<std::string, Line> answers_;  // by their names in messages
};

// "passkey, length 4096, depth 50, index 3"
std::string DescribeSample(const nlohmann::ordered_json& sample);

}  // namespace godwit::lab
