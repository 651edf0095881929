#include "cli/batch/answer_batch.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/error.h"
#include "base/line_reader.h"
#include "chat/completion_json.h"
#include "cli/batch/completions.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress_line.h"

namespace godwit::cli {
namespace {

// How soon Ctrl-C is noticed: a signal handler can wake nobody.
constexpr auto kGlance = std::chrono::milliseconds(50);

class Batch {
 public:
  Batch(const Engine& engine, const BatchPlan& plan, AppendedFile& results)
      : engine_(engine),
        plan_(plan),
        results_(results),
        requests_(plan.requests, kMostRequestBytes),
        progress_("answering", ProgressUnit::kRequests) {
    Report();
  }

  BatchSummary Run() {
    CancelToken cancel;
    const CancelOnInterrupt interrupt(cancel, /*presses_to_exit=*/2);
    std::deque<Completions> completions;
    for (int64_t i = 0; i < plan_.parallel; ++i) completions.emplace_back(engine_, plan_.session);
    std::vector<std::jthread> threads;
    working_ = plan_.parallel;
    for (Completions& one : completions) threads.emplace_back([this, &one] { Work(one); });

    std::unique_lock lock(mutex_);
    while (working_ > 0) {
      ended_.wait_for(lock, kGlance);
      stopped_ = stopped_ || cancel.cancelled();
      if (!stopped_) continue;
      for (Completions& one : completions) one.Cancel();
    }
    if (fatal_) std::rethrow_exception(fatal_);
    summary_.cancelled = stopped_;
    return summary_;
  }

 private:
  struct Request {
    std::string line, where;
    int64_t number;
  };

  void Work(Completions& completions) {
    std::exception_ptr error;
    try {
      while (const auto request = Next()) Answer(completions, *request);
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    // Of several errors the first: the others are those of requests that it has ended.
    if (error && !std::exchange(stopped_, true)) fatal_ = error;
    --working_;
    ended_.notify_one();
  }

  // The next that is not finished.
  std::optional<Request> Next() {
    const std::lock_guard lock(mutex_);
    while (!stopped_) {
      const auto line = requests_.Next();
      if (!line) break;
      const int64_t number = requests_.number();
      const auto& finished = plan_.finished.lines;
      if (IsBlank(*line) || (number < std::ssize(finished) && finished[number])) continue;
      return Request{std::string(*line), requests_.where(), number};
    }
    return std::nullopt;
  }

  void Answer(Completions& completions, const Request& request) {
    chat::CompletionDefaults defaults = plan_.defaults;
    // 32 bits: they survive every JSON reader.
    if (plan_.random_seeds) defaults.generate.sampler.seed = std::random_device()();
    const BatchRequest parsed = ParseBatchRequest(request.line, request.where, defaults);
    const RequestName name{
        .custom_id = parsed.custom_id,
        .place = {.line = request.number, .fingerprint = Fingerprint(request.line)}};
    try {
      const auto answers = completions.Generate(parsed.completion);
      const auto body = chat::CompletionJson(parsed.completion, answers,
                                             {.id = name.request_id(), .model = plan_.model});
      Finish(ResultLine(name, body), answers);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kCancelled) throw;
      Fail(name, request, error);
    } catch (const std::bad_alloc&) {
      Fail(name, request, Error(ErrorKind::kMemory, "out of memory"));
    }
  }

  void Finish(const std::string& line, std::span<const GenerateResult> answers) {
    const std::lock_guard lock(mutex_);
    results_.Append(line);
    summary_.prompt_tokens += answers.front().prompt_tokens;
    for (const GenerateResult& answer : answers) {
      summary_.output_tokens += std::ssize(answer.tokens);
      if (answer.kv.seen > summary_.longest.seen) summary_.longest = answer.kv;
    }
    ++summary_.answered;
    Report();
  }

  void Fail(const RequestName& name, const Request& request, const Error& error) {
    const std::lock_guard lock(mutex_);
    results_.Append(FailureLine(name, error));
    if (summary_.failed++ == 0) summary_.failure = request.where + ": " + error.what();
    ++summary_.answered;
    Report();
  }

  void Report() {
    const int64_t before = plan_.finished.count;
    progress_.Update(before + summary_.answered, plan_.total, before);
  }

  const Engine& engine_;
  const BatchPlan& plan_;
  std::mutex mutex_;  // over all that follows
  AppendedFile& results_;
  LineReader requests_;
  ProgressLine progress_;
  BatchSummary summary_;
  std::condition_variable ended_;
  int64_t working_ = 0;  // threads
  bool stopped_ = false;
  std::exception_ptr fatal_;
};

}  // namespace

BatchSummary AnswerBatch(const Engine& engine, const BatchPlan& plan, AppendedFile& results) {
  return Batch(engine, plan, results).Run();
}

}  // namespace godwit::cli
