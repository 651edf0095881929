// The results of a batch, one on each line in the order in which they are finished, as OpenAI's
// batches have them:
//
//   {"id": ..., "custom_id": "a", "response": {"status_code": 200, "request_id": ..., "body":
//   {...}},
//    "error": null}
//
// Of a request that failed, "status_code" is not 200, and "error" says why, as does the body.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/batch/request_file.h"
#include "console/terminal/appended_file.h"
#include "godwit/error.h"

namespace godwit::cli {

// What a result answers.
struct RequestName {
  std::string custom_id;
  RequestPlace place;

  std::string request_id() const;  // "req_0123456789abcdef", by the fingerprint
};

// Each a line with its newline.
std::string ResultLine(const RequestName& request, const nlohmann::ordered_json& body);
std::string FailureLine(const RequestName& request, const Error& error);

struct FinishedRequests {
  std::vector<bool> lines;  // [line number], from 1 on
  int64_t count = 0;
  struct Failure {
    int64_t request;  // its line
    int64_t result;   // and that of its result
  };
  std::vector<Failure> failures;  // of these, in the order of the results
};

// What an earlier run has left in `results`. A last line that was not finished is taken away, and
// standard error says so. Throws Error(kInput) where a line is no result, one of another model, or
// not one of `requests` as they are now, and Error(kIo).
FinishedRequests ReadResults(console::AppendedFile& results, const RequestIndex& requests,
                             const std::string& model);

// So that they are answered again: takes the results of the failed ones out of the file, all at
// once, whatever ends the process. Throws as OutputFile and AppendedFile do.
void ForgetFailures(console::AppendedFile& results, FinishedRequests& finished);

}  // namespace godwit::cli
