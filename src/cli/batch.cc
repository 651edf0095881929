// godwit batch: answers a file of requests.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "base/stopwatch.h"
#include "chat/result_json.h"
#include "checkpoint/model_folder.h"
#include "cli/batch/answer_batch.h"
#include "cli/commands.h"
#include "cli/options/completion_defaults.h"
#include "cli/options/find_model.h"
#include "cli/options/kv_options.h"
#include "cli/options/model_options.h"
#include "cli/options/template_options.h"
#include "cli/summary.h"
#include "console/exit_code.h"
#include "console/terminal/format.h"
#include "console/terminal/output.h"
#include "console/terminal/result_files.h"
#include "dist/mpi.h"

namespace godwit::cli {
namespace {

struct BatchOptions {
  ModelOptions model;
  std::string requests, results;
  bool retry_failed = false;
  bool resume = false;
  int64_t parallel = 0;  // 0: as memory allows
  CompletionFlags completion;
};

void ParseBatch(std::span<const std::string> arguments, BatchOptions& options) {
  console::CommandLine line(
      "batch", "[-m MODEL] -f FILE -o FILE [flags]",
      "Answers a file of requests in the format of OpenAI's batch files: one request on each line, "
      "a chat or a text to continue. The same command, run again, continues where it stopped. "
      "Flags set the defaults of requests.");
  AddModelFlag(line, options.model);
  AddComputeFlags(line, options.model);
  AddRankFlags(line, options.model);
  line.Group("Requests");
  line.Add({.names = "-f,--file",
            .value = "FILE",
            .help = "the file of requests, on each line {\"custom_id\", \"body\": {\"messages\" or "
                    "\"prompt\", ...}}"},
           options.requests);
  line.Add({.names = "-o,--output",
            .value = "FILE",
            .help = "the file of results, to which each result is added when it is finished; "
                    "requests with a result in it are skipped"},
           options.results);
  line.Add({.names = "--retry-failed",
            .value = "",
            .help = "run requests again whose result is a failure, and replace their results"},
           options.retry_failed);
  line.Add({.names = "--resume",
            .value = "",
            .help = "also continue answers that were in progress: their tokens are written beside "
                    "the results, into FILE.unfinished, until the batch has ended"},
           options.resume);
  line.AddInt(
      {.names = "-np,--parallel",
       .value = "N",
       .help = "the most requests that run at a time; a request waits while memory is short",
       .fallback = "the number of texts of 4096 tokens that memory holds, up to 32",
       .is_verbs_own = true},
      options.parallel, 1, 1024);
  AddCompletionFlags(line, options.model, options.completion);
  line.Parse(arguments);
  if (options.requests.empty()) {
    Throw(ErrorKind::kInput, "a file of requests is needed: name it with -f FILE");
  }
  if (options.requests == "-") {
    Throw(ErrorKind::kInput,
          "-f: expected a file, because requests are read twice, found standard input");
  }
  if (options.results.empty()) {
    Throw(ErrorKind::kInput, "a file for the results is needed: name it with -o FILE");
  }
}

void SayHowBatchEnded(const BatchPlan& plan, const BatchSummary& summary, double seconds) {
  if (summary.cancelled) {
    console::WriteNotice(fmt::format(
        "godwit: cancelled: {} of {} are answered; the same command continues\n",
        plan.finished.count + summary.answered, console::Plural(plan.total, "request")));
  } else if (console::NoticesGoToTerminal()) {
    console::WriteNotice(fmt::format(
        "{} in {}: {} in, {} out, {} tokens/s\n", console::Plural(summary.answered, "request"),
        console::FormatDuration(seconds), console::Plural(summary.prompt_tokens, "token"),
        console::Plural(summary.output_tokens, "token"),
        console::FormatRate(static_cast<double>(summary.output_tokens) / seconds)));
  }
  SayDropped(summary.longest, " in the longest text");
}

// Tells the user how many requests failed.
void SayFailed(int64_t failed, const std::string& results, const std::string& first) {
  console::WriteStatus(
      fmt::format("godwit: {} failed, see {}{}{}; --retry-failed runs them again\n",
                  console::Plural(failed, "request"), QuoteUnlessPlain(results),
                  first.empty() ? "" : "; the first: ", first));
}

}  // namespace

int Batch(std::span<const std::string> arguments) {
  BatchOptions options;
  ParseBatch(arguments, options);
  ChooseModel(options.model);
  if (MpiRank() > 0) {  // only rank 0 has the requests and results
    LoadEngine(options.model, options.completion.session).FollowRankZero();
    return console::kExitOk;
  }
  GenerateOptions generate = MakeGenerateOptions(options.completion);
  console::CheckResultFiles({{.flag = "-o", .path = options.results, .appended = true}},
                            {{"-m", options.model.folder}, {"-f", options.requests}});
  const RequestIndex requests = CheckRequests(options.requests);
  if (requests.has_chats) {
    RequireChatTemplate(options.model, "\"messages\" need", "or ask with \"prompt\"");
  }
  console::AppendedFile results(options.results);
  BatchPlan plan{.requests = options.requests,
                 .model = ModelName(options.model.folder),
                 .total = std::ssize(requests.by_custom_id),
                 .session = options.completion.session,
                 .parallel = options.parallel};
  plan.finished = ReadResults(results, requests, plan.model);
  const auto& failures = plan.finished.failures;
  const bool retries = options.retry_failed && !failures.empty();
  if (plan.finished.count > 0) {
    console::WriteNotice(fmt::format(
        "godwit: {}: {} of {} are answered already{}\n", QuoteUnlessPlain(options.results),
        plan.finished.count, console::Plural(plan.total, "request"),
        retries ? fmt::format("; {} of them failed and will run again", failures.size()) : ""));
  }
  const bool asks = plan.finished.count < plan.total || retries;
  const std::string unfinished = options.results + ".unfinished";
  if (!asks && options.resume) BatchJournal::RemoveLeftOver(unfinished);
  BatchSummary summary;
  if (!asks && MpiSize() > 1)
    LoadEngine(options.model, options.completion.session);  // its end releases the other ranks
  if (asks) {
    const Engine engine =
        LoadEngine(ModelFolder(options.model.folder), options.model, options.completion);
    if (plan.parallel == 0) plan.parallel = TextsAtOnce(engine, options.completion.session);
    plan.defaults =
        MakeCompletionDefaults(options.completion, std::move(generate), engine.sampler_defaults());
    if (retries) ForgetFailures(results, plan.finished);
    std::optional<BatchJournal> journal;
    if (options.resume) {
      results.Sync();  // the journal leaves out requests with a result
      BatchJournal::Facts facts = engine.Facts(options.completion.session);
      const nlohmann::ordered_json sampler = chat::SamplerJson(plan.defaults.generate.sampler);
      for (const auto& [name, value] : sampler.items()) facts.emplace_back(name, value.dump());
      facts.emplace_back("limit", fmt::format("{}", plan.defaults.generate.max_tokens));
      journal.emplace(unfinished, facts, plan.finished.lines);
      plan.journal = &*journal;
    }
    const Stopwatch watch;
    summary = AnswerBatch(engine, plan, results);
    if (journal && !summary.cancelled) journal->Remove();
    SayHowBatchEnded(plan, summary, watch.ms() / 1000);
  }
  const int64_t failed = std::ssize(failures) + summary.failed;
  if (failed > 0) SayFailed(failed, options.results, summary.failure);
  if (summary.cancelled) return console::kExitCancelled;
  return failed > 0 ? console::kExitSomeFailed : console::kExitOk;
}

}  // namespace godwit::cli
