// godwit eval passages: facts in passages that are read once for all prompts, beside passages that
// are read in each prompt.

#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/stopwatch.h"
#include "chat/passages.h"
#include "cli/options/kv_options.h"
#include "cli/options/model_options.h"
#include "cli/options/template_options.h"
#include "console/exit_code.h"
#include "console/options/parse_value.h"
#include "console/options/text_input.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "console/terminal/progress_line.h"
#include "console/terminal/table.h"
#include "eval/fact_passages.h"
#include "eval/suites/answers.h"
#include "lab/commands.h"

namespace godwit::lab {
namespace {

using Json = nlohmann::ordered_json;

struct PassageEvalOptions {
  cli::ModelOptions model;
  SessionOptions session;
  std::string template_variables = "{}";
  std::vector<std::string> files;
  bool lossy = false;
  eval::FactPassageOptions passages;
  int64_t questions = 20;
  std::vector<int64_t> read_anew = {0, 8, 32, 64};
  int64_t max_new_tokens = 24;
  bool json = false;
};

PassageEvalOptions ParsePassageEval(std::span<const std::string> arguments) {
  PassageEvalOptions options;
  console::CommandLine line(
      "eval passages", "[-m MODEL] -f FILE [flags]",
      "Hides one fact in each of several passages of a text and asks a chat model about them, with "
      "the passages in another order each time. Compares prompts that are read as a whole with "
      "passages that are read once for all prompts (run --passages): right answers, tokens read, "
      "and the time to the first token.");
  cli::AddModelFlag(line, options.model);
  cli::AddComputeFlags(line, options.model);
  line.Group("Questions");
  line.Add({.names = "-f,--file",
            .value = "FILE",
            .help = "the text that passages are taken from (-: standard input); several files, a "
                    "folder or a pattern are read one after the other",
            .takes_list = true},
           options.files);
  console::AddLossyFlag(line, options.lossy);
  line.AddInt({.names = "--passages", .value = "N", .help = "the passages of each prompt"},
              options.passages.count, 1, eval::kMostFactPassages);
  line.AddInt({.names = "--length", .value = "N", .help = "the tokens of a passage, about"},
              options.passages.tokens, 1, 1 << 20);
  line.Add({.names = "--alike",
            .value = "",
            .help = "make all facts of one form (\"The secret code of the lantern is 4711.\"), so "
                    "that they are easily taken for each other"},
           options.passages.alike);
  line.AddInt({.names = "-n,--samples",
               .value = "N",
               .help = "the questions; each passage is asked about once before any is again"},
              options.questions, 1, 1 << 20);
  line.Add({.names = "--read-anew",
            .value = "A,B,...",
            .help = "the numbers of first tokens of each passage to read again where they stand",
            .fallback = "0,8,32,64"},
           [&options](const std::string& value) {
             options.read_anew = console::ParseIntList(value, 0, 1 << 20);
           });
  line.Add({.names = "-s,--seed",
            .value = "N",
            .help = "another number makes other questions",
            .fallback = "0"},
           [&options](const std::string& value) {
             options.passages.seed = static_cast<uint64_t>(console::ParseInt(value, 0, INT64_MAX));
           });
  line.AddInt({.names = "--max-new", .value = "N", .help = "the most tokens of an answer"},
              options.max_new_tokens, 1, 1 << 20);
  cli::AddTemplateFlags(line, options.model, options.template_variables);
  line.Group("Context");
  cli::AddKvFlags(line, options.session, options.model.kv_memory);
  cli::AddPrefillFlag(line, options.session);
  line.Group("Output");
  line.Add({.names = "--json", .value = "", .help = "print one JSON object, with every answer"},
           options.json);
  line.Parse(arguments);
  if (options.files.empty()) Throw(ErrorKind::kInput, "a text is needed: give it with -f FILE");
  cli::ChooseModel(options.model);
  cli::RequireChatTemplate(options.model, "eval passages needs", "or take another model");
  return options;
}

// One way of reading, with its sums over all questions.
struct Way {
  std::optional<int64_t> read_anew;  // nothing: all of a prompt is read
  int64_t right = 0;
  int64_t others = 0;  // wrong answers that name the answer of another passage
  int64_t prompt_tokens = 0;
  int64_t read_tokens = 0;
  double first_token_ms = 0;
  double cpu_s = 0;  // of all threads, to the last token of the answer

  std::string name() const {
    return read_anew ? fmt::format("passages, {} read anew", *read_anew) : "whole prompt";
  }
};

double CpuSeconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

class PassageEval {
 public:
  PassageEval(const PassageEvalOptions& options, const Engine& engine)
      : options_(options),
        engine_(engine),
        passages_(eval::MakeFactPassages(console::ReadJoinedFiles(options.files, options.lossy),
                                         options.passages,
                                         [this](std::string_view text) { return Tokens(text); })),
        orders_(
            eval::DrawOrders(options.questions, options.passages.count, options.passages.seed)) {
    ways_.emplace_back();
    for (const int64_t tokens : options.read_anew) ways_.push_back({.read_anew = tokens});
  }

  void Ask() {
    ReadOnce();
    console::ProgressLine progress("asking", console::ProgressUnit::kRequests);
    const int64_t total = std::ssize(orders_) * std::ssize(ways_);
    int64_t done = 0;
    for (const eval::AskedOrder& asked : orders_) {
      const chat::PassagePrompt prompt = PromptOf(asked);
      for (Way& way : ways_) {
        AskOne(asked, prompt, way);
        progress.Update(++done, total);
      }
    }
  }

  std::string Text() const {
    console::Table table({{"<read"},
                          {"right", "{:.3f}"},
                          {"another's", "{:.3f}"},
                          {"tokens read", "{:.0f}"},
                          {"first token, s", "{:.2f}"},
                          {"processor, s", "{:.2f}"}});
    const auto n = static_cast<double>(orders_.size());
    for (const Way& way : ways_) {
      table.Add(way.name(), static_cast<double>(way.right) / n, static_cast<double>(way.others) / n,
                static_cast<double>(way.read_tokens) / n, way.first_token_ms / 1000 / n,
                way.cpu_s / n);
    }
    return fmt::format(
               "{} questions, {} passages, {:.0f} tokens in a prompt; {} tokens read once\n",
               orders_.size(), passages_.size(),
               static_cast<double>(ways_.front().prompt_tokens) / n, read_once_) +
           table.Take();
  }

  Json Report() const {
    Json ways = Json::array();
    const auto n = static_cast<double>(orders_.size());
    for (const Way& way : ways_) {
      ways.push_back({{"read_anew", way.read_anew ? Json(*way.read_anew) : Json()},
                      {"right", static_cast<double>(way.right) / n},
                      {"of_another", static_cast<double>(way.others) / n},
                      {"prompt_tokens", static_cast<double>(way.prompt_tokens) / n},
                      {"read_tokens", static_cast<double>(way.read_tokens) / n},
                      {"first_token_s", way.first_token_ms / 1000 / n},
                      {"cpu_s", way.cpu_s / n}});
    }
    return {{"model", options_.model.folder},
            {"seed", options_.passages.seed},
            {"questions", orders_.size()},
            {"passages", passages_.size()},
            {"read_once_tokens", read_once_},
            {"ways", std::move(ways)},
            {"answers", answers_}};
  }

 private:
  std::vector<int32_t> Tokens(std::string_view text) const {
    return engine_.Tokenize(text, /*add_special=*/false);
  }

  // The parts of a prompt, which are the same however they are read.
  chat::PassagePrompt PromptOf(const eval::AskedOrder& asked) const {
    std::vector<std::string> texts;
    std::string message;
    for (const size_t i : asked.order) {
      texts.push_back(passages_[i].text + "\n\n");
      message += texts.back();
    }
    message += passages_[asked.asked].question + " Answer briefly.";
    const Message messages[] = {{.role = "user", .content = message}};
    const std::string text =
        engine_.ApplyChatTemplate(messages, /*open=*/true, options_.template_variables);
    return chat::CutAtPassages(text, texts, [this](std::string_view part) { return Tokens(part); });
  }

  // Reads all passages, so that each question finds them.
  void ReadOnce() {
    const chat::PassagePrompt prompt = PromptOf(orders_.front());
    Session session = engine_.NewSession(options_.session);
    const PassagesRead read = session.ReadPassages(prompt.head, prompt.passages, /*read_anew=*/0);
    read_once_ = std::ssize(read.tokens) - read.cached_tokens;
  }

  void AskOne(const eval::AskedOrder& asked, const chat::PassagePrompt& prompt, Way& way) {
    const std::vector<int32_t> tokens = chat::Join(prompt).tokens;
    GenerateOptions generate;
    generate.max_tokens = options_.max_new_tokens;
    generate.sampler.temperature = 0;
    generate.query_tokens = std::ssize(prompt.rest);

    const Stopwatch watch;
    const double cpu_s = CpuSeconds();
    Session session = engine_.NewSession(options_.session);
    int64_t read_tokens = 0;
    if (way.read_anew) {
      const PassagesRead read = session.ReadPassages(prompt.head, prompt.passages, *way.read_anew);
      read_tokens = std::ssize(read.tokens) - read.cached_tokens + read.anew_tokens;
    }
    const double read_ms = watch.ms();
    const GenerateResult result = session.Generate(tokens, generate);
    way.cpu_s += CpuSeconds() - cpu_s;
    way.first_token_ms += (way.read_anew ? read_ms : 0) + result.prompt_ms;
    way.read_tokens += read_tokens + result.read_tokens;
    way.prompt_tokens += result.prompt_tokens;
    const auto names = [&](size_t i) {
      return eval::AnyFound(result.text, {passages_[i].answer}) > 0;
    };
    const bool is_right = names(asked.asked);
    bool is_others = false;
    for (size_t i = 0; i < passages_.size() && !is_right; ++i) is_others = is_others || names(i);
    way.right += is_right ? 1 : 0;
    way.others += is_others ? 1 : 0;
    answers_.push_back({{"question", passages_[asked.asked].question},
                        {"read_anew", way.read_anew ? Json(*way.read_anew) : Json()},
                        {"expected", passages_[asked.asked].answer},
                        {"answer", result.text},
                        {"right", is_right},
                        {"read_tokens", read_tokens + result.read_tokens}});
  }

  const PassageEvalOptions& options_;
  const Engine& engine_;
  const std::vector<eval::FactPassage> passages_;
  const std::vector<eval::AskedOrder> orders_;
  std::vector<Way> ways_;
  int64_t read_once_ = 0;  // tokens that the passages took before the first question
  Json answers_ = Json::array();
};

}  // namespace

int EvalPassages(std::span<const std::string> arguments) {
  const PassageEvalOptions options = ParsePassageEval(arguments);
  const Engine engine = cli::LoadEngine(options.model, options.session);
  PassageEval run(options, engine);
  run.Ask();
  if (options.json) {
    console::WriteJson(run.Report());
  } else {
    console::WriteOutput(run.Text());
  }
  return console::kExitOk;
}

}  // namespace godwit::lab
