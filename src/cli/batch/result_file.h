// Results of a batch, one on each line in the order in which they finish, in the form of OpenAI's
// batches:
//
//   {"id": ..., "custom_id": "a",
//    "response": {"status_code": 200, "request_id": ..., "body": {...}}, "error": null}
//
// For a failed request, "status_code" is not 200, and "error" and the body have the reason.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/batch/request_file.h"
#include "console/terminal/appended_file.h"
#include "godwit/error.h"

namespace godwit::cli {

// The request that a result answers.
struct RequestName {
  std::string custom_id;
  RequestPlace place;

  std::string request_id() const;  // "req_0123456789abcdef", by the fingerprint
};

// Lines of results, with their newlines.
std::string ResultLine(const RequestName& request, const nlohmann::ordered_json& body);
std::string FailureLine(const RequestName& request, const Error& error);

struct FinishedRequests {
  std::vector<bool> lines;  // [line number], from 1 on
  int64_t count = 0;
  struct Failure {
    int64_t request;  // the request's line
    int64_t result;   // the result's line
  };
  std::vector<Failure> failures;  // those that failed, in the order of their results
};

// Reads the results of an earlier run. An unfinished last line is removed, and standard error says
// so. The same holds for lines from the first one on that a power cut has torn. Throws
// Error(kIo). Throws Error(kInput) if a line is no result, belongs to another model, or does not
// match `requests` as they are now.
FinishedRequests ReadResults(console::AppendedFile& results, const RequestIndex& requests,
                             const std::string& model);

// Removes the results of failed requests, so that these are answered again. All are removed at
// once, however the process ends. Throws as OutputFile and AppendedFile do.
void ForgetFailures(console::AppendedFile& results, FinishedRequests& finished);

}  // namespace godwit::cli
