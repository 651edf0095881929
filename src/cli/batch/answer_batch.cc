#include "cli/batch/answer_batch.h"

#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/error.h"
#include "base/line_reader.h"
#include "chat/answers.h"
#include "chat/completion_json.h"
#include "cli/hints.h"
#include "console/terminal/interrupt.h"
#include "console/terminal/progress_line.h"

namespace godwit::cli {
namespace {

class RunningBatch {
 public:
  RunningBatch(const Engine& engine, const BatchPlan& plan, console::AppendedFile& results)
      : engine_(engine),
        plan_(plan),
        session_(engine.NewSession(plan.session)),
        results_(results),
        requests_(plan.requests, kMaxRequestBytes),
        progress_("answering", console::ProgressUnit::kRequests) {
    Report();
  }

  BatchSummary Run() {
    {
      const console::CancelOnInterrupt interrupt(cancel_, /*presses_to_exit=*/2);
      std::vector<std::jthread> threads;
      for (int64_t i = 0; i < plan_.parallel; ++i) threads.emplace_back([this] { Work(); });
    }
    if (fatal_) std::rethrow_exception(fatal_);
    summary_.cancelled = cancel_.cancelled();
    return summary_;
  }

 private:
  struct Request {
    std::string line, where;
    int64_t number;
  };

  void Work() {
    try {
      chat::TokenTexts texts(engine_);
      while (const auto request = Next()) Answer(*request, texts);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!fatal_) fatal_ = std::current_exception();
      cancel_.Cancel();
    }
  }

  // The next request without a result.
  std::optional<Request> Next() {
    const std::lock_guard lock(mutex_);
    while (!cancel_.cancelled()) {
      const auto line = requests_.Next();
      if (!line) break;
      const int64_t number = requests_.number();
      const auto& finished = plan_.finished.lines;
      if (IsBlank(*line) || (number < std::ssize(finished) && finished[number])) continue;
      return Request{std::string(*line), requests_.where(), number};
    }
    return std::nullopt;
  }

  void Answer(const Request& request, chat::TokenTexts& texts) {
    BatchRequest parsed = ParseBatchRequest(request.line, request.where, plan_.defaults);
    const RequestName name{
        .custom_id = parsed.custom_id,
        .place = {.line = request.number, .fingerprint = Fingerprint(request.line)}};
    chat::CompletionRequest& asked = parsed.completion;
    BatchJournal* const journal = plan_.journal;
    std::function<void(int, const Event&)> on_event;
    chat::BegunAnswers begun;
    if (journal != nullptr) {
      uint64_t& seed = asked.generate.sampler.seed;
      seed = journal->Begin(name.place, seed);
      // With echo the first event of an answer is its prompt.
      if (!asked.echo) {
        on_event = [journal, line = request.number](int answer, const Event& event) {
          journal->Take(line, answer, event.tokens);
        };
        begun = [journal, line = request.number](int answer) {
          return journal->BegunOf(line, answer);
        };
      }
    }
    std::vector<GenerateResult> answers;
    std::vector<Event> echoes;
    std::string line;
    try {
      chat::AnswerForm form;
      answers = chat::AnswerRequest(
          engine_, session_, plan_.session, asked, &cancel_, on_event,
          [&](const auto& of_prompt) { form = of_prompt; }, &echoes, /*on_prompts=*/{}, begun);
      for (const GenerateResult& answer : answers) {
        if (answer.finish_reason == FinishReason::kCancelled) return;
      }
      const auto body = chat::CompletionJson(
          asked, answers, form, {.id = name.request_id(), .model = plan_.model}, texts, echoes);
      line = ResultLine(name, body);
    } catch (const Error& error) {
      if (engine_.ranks_ended()) return End(request, error);
      return Fail(name, request, error);
    } catch (const std::bad_alloc&) {
      return Fail(name, request, Error(ErrorKind::kMemory, "out of memory"));
    }
    Finish(line, answers, asked.samples);
  }

  // With a journal, a result is on the disk before its tokens leave the journal.
  void Append(const std::string& line) {
    results_.Append(line);
    if (plan_.journal != nullptr) results_.Sync();
  }

  // samples: number of answers to one prompt.
  void Finish(const std::string& line, std::span<const GenerateResult> answers, int samples) {
    const std::lock_guard lock(mutex_);
    Append(line);
    for (size_t i = 0; i < answers.size(); i += static_cast<size_t>(samples)) {
      summary_.prompt_tokens += answers[i].prompt_tokens;
    }
    for (const GenerateResult& answer : answers) {
      summary_.output_tokens += std::ssize(answer.tokens);
      if (answer.kv.seen > summary_.longest.seen) summary_.longest = answer.kv;
    }
    ++summary_.answered;
    Report();
  }

  void Fail(const RequestName& name, const Request& request, const Error& error) {
    const std::lock_guard lock(mutex_);
    Append(FailureLine(name, error));
    if (summary_.failed++ == 0) summary_.failure = request.where + ": " + WithHint(error);
    ++summary_.answered;
    Report();
  }

  // Ends the batch: no engine is left to answer. The next run of the batch asks this request again.
  void End(const Request& request, const Error& error) {
    if (cancel_.cancelled()) return;
    if (error.kind() == ErrorKind::kIo) throw Error(error);
    ThrowWith(error.data(), error.kind(), "{}: {}", request.where, error.what());
  }

  void Report() {
    const int64_t before = plan_.finished.count;
    progress_.Update(before + summary_.answered, plan_.total, before);
  }

  const Engine& engine_;
  const BatchPlan& plan_;
  const Session session_;  // makes tokens
  CancelToken cancel_;
  std::mutex mutex_;  // guards all fields below
  console::AppendedFile& results_;
  LineReader requests_;
  console::ProgressLine progress_;
  BatchSummary summary_;
  std::exception_ptr fatal_;
};

}  // namespace

BatchSummary AnswerBatch(const Engine& engine, const BatchPlan& plan,
                         console::AppendedFile& results) {
  return RunningBatch(engine, plan, results).Run();
}

}  // namespace godwit::cli
