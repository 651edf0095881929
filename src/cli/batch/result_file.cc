#include "cli/batch/result_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/line_reader.h"
#include "base/quote.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "console/terminal/output_file.h"
#include "console/terminal/progress_line.h"

namespace godwit::cli {
namespace {

using Json = nlohmann::ordered_json;

// The bytes of many answers to one request, each token with its probabilities.
constexpr size_t kMaxResultBytes = size_t{1} << 30;
constexpr JsonOptions kResultJson = {.max_values = 100'000'000};
constexpr std::string_view kBegin = R"({"id":"batch_req_)";

struct HttpError {
  int status_code;
  std::string_view type;
};

HttpError HttpErrorOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInput:
    case ErrorKind::kUnsupported:
      return {400, "invalid_request_error"};
    case ErrorKind::kMemory:
      return {503, "out_of_memory"};
    default:
      return {500, "server_error"};
  }
}

std::string LineOf(const RequestName& request, int status_code, const Json& body,
                   const Json& error) {
  Json line;
  line["id"] = fmt::format("batch_req_{}", request.place.line);
  line["custom_id"] = request.custom_id;
  line["response"] = {
      {"status_code", status_code}, {"request_id", request.request_id()}, {"body", body}};
  line["error"] = error;
  return console::JsonLine(line);
}

// Reads the results of an earlier run.
class ResultReader {
 public:
  ResultReader(const console::AppendedFile& results, const RequestIndex& requests,
               std::string model)
      : requests_(requests), model_(std::move(model)), reader_(results.path(), kMaxResultBytes) {
    finished_.lines.resize(static_cast<size_t>(requests.lines) + 1);
  }

  // The rest of a file that ends without a newline, or what a power cut has left of it.
  struct Rest {
    int64_t offset_bytes;
    bool is_whole;
    bool is_torn = false;
  };

  std::optional<Rest> Read() {
    console::ProgressLine progress("reading the results so far", console::ProgressUnit::kBytes);
    while (const auto line = reader_.Next()) {
      progress.Update(reader_.offset_bytes(), reader_.size_bytes());
      // No result has a zero. Where one stands, bytes were lost, and what follows may lack others.
      if (line->find('\0') != line->npos) return Rest{reader_.offset_bytes(), false, true};
      if (!reader_.has_newline() && IsUnfinished(*line)) return Rest{reader_.offset_bytes(), false};
      TakeLine(*line);
      if (!reader_.has_newline()) return Rest{reader_.offset_bytes(), true};
    }
    return std::nullopt;
  }

  const FinishedRequests& finished() const { return finished_; }

 private:
  // Whether a line is an incomplete beginning of a line that Line makes.
  static bool IsUnfinished(std::string_view line) {
    const bool is_ours = line.substr(0, kBegin.size()) == kBegin.substr(0, line.size());
    return is_ours && !Json::accept(line);
  }

  void TakeLine(std::string_view line) {
    std::string custom_id, request_id, model;
    int status_code = 0;
    try {
      const nlohmann::json result = ParseJson(line, reader_.where(), kResultJson);
      custom_id = result.at("custom_id").get<std::string>();
      request_id = result.at("response").at("request_id").get<std::string>();
      status_code = result.at("response").at("status_code").get<int>();
      model = result.at("response").at("body").value("model", model_);
    } catch (const nlohmann::json::exception&) {
      Throw(ErrorKind::kInput, "{}: expected a result of godwit batch", reader_.where());
    }
    const auto request = requests_.by_custom_id.find(custom_id);
    if (request == requests_.by_custom_id.end()) {
      Throw(ErrorKind::kInput, "{}: {} is no request of {}: choose another file of results",
            reader_.where(), Quote(custom_id), QuoteUnlessPlain(requests_.path));
    }
    const RequestName name{.custom_id = custom_id, .place = request->second};
    if (request_id != name.request_id()) {
      Throw(ErrorKind::kInput,
            "{}: expected a result of {}:{}, found one of an earlier request {}: choose another "
            "file of results",
            reader_.where(), QuoteUnlessPlain(requests_.path), name.place.line, Quote(custom_id));
    }
    if (model != model_) {
      Throw(ErrorKind::kInput, "{}: found a result of the model {}, expected one of {}",
            reader_.where(), Quote(model), Quote(model_));
    }
    auto is_finished = finished_.lines[name.place.line];
    if (is_finished) {
      Throw(ErrorKind::kInput, "{}: {} has a result on an earlier line already", reader_.where(),
            Quote(custom_id));
    }
    is_finished = true;
    ++finished_.count;
    if (status_code == 200) return;
    finished_.failures.push_back({.request = name.place.line, .result = reader_.number()});
  }

  const RequestIndex& requests_;
  const std::string model_;
  LineReader reader_;
  FinishedRequests finished_;
};

}  // namespace

std::string RequestName::request_id() const {
  return fmt::format("req_{:016x}", place.fingerprint);
}

std::string ResultLine(const RequestName& request, const Json& body) {
  return LineOf(request, 200, body, nullptr);
}

std::string FailureLine(const RequestName& request, const Error& error) {
  const auto [status_code, type] = HttpErrorOf(error.kind());
  const Json body = {
      {"error",
       {{"message", error.what()}, {"type", type}, {"param", nullptr}, {"code", nullptr}}}};
  return LineOf(request, status_code, body, {{"code", type}, {"message", error.what()}});
}

FinishedRequests ReadResults(console::AppendedFile& results, const RequestIndex& requests,
                             const std::string& model) {
  ResultReader reader(results, requests, model);
  if (const auto rest = reader.Read()) {
    if (rest->is_whole) {
      results.Append("\n");
    } else {
      results.Truncate(rest->offset_bytes);
      console::WriteNotice(fmt::format("godwit: {}: removing {}\n",
                                       QuoteUnlessPlain(results.path()),
                                       rest->is_torn ? "the last results, of which bytes were lost"
                                                     : "the last result, which was not finished"));
    }
  }
  return reader.finished();
}

void ForgetFailures(console::AppendedFile& results, FinishedRequests& finished) {
  console::OutputFile kept(results.path());
  LineReader reader(results.path(), kMaxResultBytes);
  auto next = finished.failures.begin();
  while (const auto line = reader.Next()) {
    if (next != finished.failures.end() && reader.number() == next->result) {
      finished.lines[next->request] = false;
      --finished.count;
      ++next;
    } else {
      kept.Write(std::as_bytes(std::span(*line)));
      kept.Write(std::as_bytes(std::span("\n", 1)));
    }
  }
  finished.failures.clear();
  kept.Commit();
  results.Reopen();
}

}  // namespace godwit::cli
