// The results of samples: what was answered, and the file in which they stand, a line for each as
// it is there. A later run asks for what is missing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "cli/terminal/appended_file.h"
#include "eval/suites/sample.h"

namespace godwit::cli {

struct SuiteResult {
  std::string task;
  eval::SamplePlace place;
  std::string kv;
  std::string prompt;  // fingerprint of what was asked, and how
  double score = 0;
};

class SuiteResultFile {
 public:
  // how: what answers depend on besides the prompt: the model, its storage. Reads what is there; a
  // last line that was not finished is taken away, and standard error says so. Throws
  // Error(kFormat), with file and line, for a line that is no result, Error(kIo).
  SuiteResultFile(const std::string& path, std::string how);

  // How many were there.
  int64_t found() const { return std::ssize(results_); }

  // The score of this one if it is there. Throws Error(kInput) if what is there was asked
  // otherwise.
  std::optional<double> Find(const SuiteResult& asked) const;

  void Append(const SuiteResult& result, const eval::Sample& sample, const std::string& answer);

 private:
  using Key = std::tuple<std::string, int64_t, double, int64_t, std::string>;
  struct Line {
    int64_t number;
    std::string prompt, how;
    double score;
  };
  static Key KeyOf(const SuiteResult& result);
  void Read();
  void Take(std::string_view line, const std::string& where, int64_t number);

  AppendedFile file_;
  const std::string how_;
  std::map<Key, Line> results_;
};

// "passkey, 4096 tokens, depth 50, sample 3"
std::string Describe(std::string_view task, const eval::SamplePlace& place);

}  // namespace godwit::cli
