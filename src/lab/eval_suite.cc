// godwit eval passkey, needle, kv-retrieval, lines, babilong, ruler: questions about synthetic long
// texts, under several cache policies. eval/suites makes the questions.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attention/policies/prefill_spec.h"
#include "base/error.h"
#include "console/exit_code.h"
#include "console/options/text_input.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "console/terminal/progress_line.h"
#include "eval/suites/foreign_anchor.h"
#include "eval/suites/ruler_file.h"
#include "eval/suites/suite_reader.h"
#include "lab/answer_file.h"
#include "lab/commands.h"
#include "lab/reports/comparison_report.h"
#include "lab/suite_options.h"

namespace godwit::lab {
namespace {

using eval::Suite;

// All samples; those of one text follow each other.
std::vector<eval::SamplePlace> Places(const SuiteOptions& options) {
  std::vector<eval::SamplePlace> places;
  for (const int64_t length : options.lengths) {
    for (int64_t index = 0; index < options.samples; ++index) {
      if (options.depths.empty()) places.push_back({.length_tokens = length, .index = index});
      for (const int64_t depth : options.depths) {
        places.push_back(
            {.length_tokens = length, .depth = static_cast<double>(depth), .index = index});
      }
    }
  }
  return places;
}

nlohmann::ordered_json About(std::string_view task, int64_t length_tokens,
                             std::optional<double> depth) {
  nlohmann::ordered_json about{{"task", task}, {"length", length_tokens}, {"depth", nullptr}};
  if (depth) about["depth"] = *depth;
  return about;
}

nlohmann::ordered_json SampleName(std::string_view task, const eval::SamplePlace& place) {
  auto name = About(task, place.length_tokens, place.depth);
  name["index"] = place.index;
  return name;
}

nlohmann::ordered_json AnswerJson(const eval::Sample& sample, const std::string& answer,
                                  double score) {
  using Json = nlohmann::ordered_json;
  Json needles = Json::array();
  for (const auto& [begin, end] : sample.needles) needles.push_back({begin, end});
  return {{"prompt_tokens", std::ssize(sample.prompt)},
          {"needles", std::move(needles)},
          {"expected", sample.expected},
          {"answer", answer},
          {"score", score}};
}

// The coder of a suite. A chat template has already added the leading tokens.
eval::StreamCoder CoderOf(const Engine& engine, const SuiteOptions& options) {
  eval::StreamCoder coder = eval::CoderOf(engine);
  if (options.chat) coder.frame.clear();
  return coder;
}

eval::ChatRender RenderOf(const Engine& engine, const SuiteOptions& options) {
  if (!options.chat) return {};
  return [&engine, &options](const std::string& message) {
    const Message messages[] = {{.role = "user", .content = message}};
    return engine.ApplyChatTemplate(messages, /*open=*/true, options.template_variables);
  };
}

class SuiteRun {
 public:
  SuiteRun(const SuiteOptions& options, const Engine& engine)
      : options_(options),
        engine_(engine),
        coder_(CoderOf(engine, options)),
        pieces_(coder_, RenderOf(engine, options)),
        places_(Places(options)),
        anchor_tokens_(
            options.anchor_tokens.empty() ? 0 : ParsePrefill(options.session.prefill).anchor) {
    eval::SuiteInputs inputs{.seed = options.seed, .folder = options.folder};
    for (const std::string& file : options.files) {
      inputs.texts.push_back(console::ReadInputFile(file, options.lossy));
    }
    for (const Suite* suite : options.suites) {
      inputs.max_new_tokens =
          options.max_new_tokens > 0 ? options.max_new_tokens : suite->max_new_tokens;
      inputs.task = suite->name;
      makers_.push_back(
          options.generated.empty()
              ? suite->open(inputs, pieces_)
              : eval::OpenRulerFile(options.generated, options.samples, inputs, pieces_));
    }
    // A sample that does not fit, or is too short, is refused before hours of measuring.
    for (size_t i = 0; i < makers_.size(); ++i) {
      for (const eval::SamplePlace& place : places_) {
        const bool at_an_end = &place == &places_.front() || &place == &places_.back();
        if (at_an_end || !options.generated.empty()) (void)Make(i, place);
      }
    }
  }

  void Show() const {
    int64_t left = options_.show;
    for (size_t i = 0; i < makers_.size(); ++i) {
      for (const eval::SamplePlace& place : places_) {
        if (left-- == 0) return;
        const eval::Sample sample = Make(i, place);
        console::WriteOutput(fmt::format(
            "=== {}: {} tokens, expected {}\n{}\n",
            DescribeSample(SampleName(options_.suites[i]->name, place)), sample.prompt.size(),
            fmt::join(sample.expected, ", "), engine_.Detokenize(sample.prompt)));
      }
    }
  }

  PolicyComparison Ask() {
    AnswerFile answers(options_.output, SettingsText(options_),
                       {"task", "length", "depth", "index"}, {{"score", 0}});
    for (const std::string& kv : options_.kvs) CheckFits(kv);
    for (const eval::SamplePlace& place : places_) total_tokens_ += place.length_tokens;
    total_tokens_ *= std::ssize(options_.kvs) * std::ssize(makers_);

    PolicyComparison comparison(options_.kvs, options_.seed);
    for (size_t i = 0; i < makers_.size(); ++i) AskSuite(i, answers, comparison);
    return comparison;
  }

 private:
  // Makes a sample. Errors name the task.
  eval::Sample Make(size_t which, const eval::SamplePlace& place) const {
    try {
      eval::Sample sample = makers_[which](place);
      if (anchor_tokens_ > 0) {
        eval::ForeignAnchor(options_.anchor_tokens)
            .PutBefore(sample, anchor_tokens_, coder_, engine_.vocab_size(), options_.seed,
                       place.index);
      }
      return sample;
    } catch (const Error& error) {
      Throw(error.kind(), "{}: {}", options_.suites[which]->name, error.what());
    }
  }

  void CheckFits(const std::string& kv) const {
    const Session session = NewSession(engine_, options_, kv);
    const int64_t longest = options_.lengths.back() + anchor_tokens_,
                  limit = session.limit_tokens();
    if (longest <= limit) return;
    ThrowWith({.code = ErrorCode::kStreamTooLong,
               .found = longest,
               .limit = limit,
               .learned_positions = session.learned_positions()},
              ErrorKind::kInput, "a sample has {} tokens and the context holds {}", longest, limit);
  }

  void AskSuite(size_t which, AnswerFile& answers, PolicyComparison& comparison) {
    const Suite& suite = *options_.suites[which];
    console::ProgressLine progress(fmt::format("asking {}", suite.name),
                                   console::ProgressUnit::kTokens);
    eval::SuiteReader reader(
        [this](const std::string& kv) { return NewSession(engine_, options_, kv); },
        options_.query_tokens);
    AddRows(suite.name, comparison);
    for (const eval::SamplePlace& place : places_) {
      const eval::Sample sample = Make(which, place);
      const auto row = [&](std::optional<double> depth) -> ComparedRow& {
        return comparison.Row({.about = About(suite.name, place.length_tokens, depth)});
      };
      for (size_t i = 0; i < options_.kvs.size(); ++i) {
        const Asked asked{.sample = SampleName(suite.name, place),
                          .kv = options_.kvs[i],
                          .prompt = Fingerprint(sample.prompt, sample.max_new_tokens)};
        double score = 0;
        if (const auto* known = answers.Find(asked)) {
          score = known->at("score").get<double>();
          known_tokens_ += place.length_tokens;
        } else {
          const auto answer =
              reader.Ask(sample, options_.kvs[i], [&](const PromptProgress& prompt) {
                progress.Update(done_tokens_ + prompt.done_tokens, total_tokens_, known_tokens_);
              });
          score = suite.score(answer.text, sample);
          answers.Append(asked, AnswerJson(sample, answer.text, score));
        }
        row(place.depth).scores[i].push_back(score);
        if (options_.depths.size() > 1) row({}).scores[i].push_back(score);
        done_tokens_ += place.length_tokens;
        progress.Update(done_tokens_, total_tokens_, known_tokens_);
        progress.Note(comparison.SoFar(row(place.depth)));
      }
      const bool ends_length =
          &place == &places_.back() || (&place)[1].length_tokens != place.length_tokens;
      if (!ends_length) continue;
      for (const int64_t depth : options_.depths) {
        progress.SayResult(comparison.SoFar(row(static_cast<double>(depth))));
      }
      if (options_.depths.size() != 1) progress.SayResult(comparison.SoFar(row({})));
    }
    progress.Finish();
  }

  // Adds the rows in the order of the report, because samples come in another.
  void AddRows(std::string_view task, PolicyComparison& comparison) const {
    for (const int64_t length : options_.lengths) {
      for (const int64_t depth : options_.depths) {
        comparison.Row({.about = About(task, length, static_cast<double>(depth))});
      }
      if (options_.depths.size() != 1) {
        comparison.Row({.about = About(task, length, {}), .sums_up = !options_.depths.empty()});
      }
    }
  }

  const SuiteOptions& options_;
  const Engine& engine_;
  const eval::StreamCoder coder_;
  const eval::PieceMaker pieces_;
  const std::vector<eval::SamplePlace> places_;
  std::vector<eval::SampleMaker> makers_;  // [suites]
  const int64_t anchor_tokens_;            // in front of every prompt
  int64_t total_tokens_ = 0, done_tokens_ = 0, known_tokens_ = 0;
};

int EvalSuite(std::string_view verb, const std::string& summary,
              std::span<const std::string> arguments) {
  const SuiteOptions options = ParseSuiteOptions(verb, summary, arguments);
  const Engine engine = cli::LoadEngine(options.model, options.session, options.kvs);
  SuiteRun run(options, engine);
  if (options.show > 0) {
    run.Show();
    return console::kExitOk;
  }
  const PolicyComparison comparison = run.Ask();
  if (!options.json) {
    console::WriteOutput(comparison.Text(console::TableColumns()));
    return console::kExitOk;
  }
  console::WriteJson({{"model", options.model.folder},
                      {"suite", verb},
                      {"how", SettingsText(options)},
                      {"seed", options.seed},
                      {"samples", options.samples},
                      {"cells", comparison.Json()}});
  return console::kExitOk;
}

}  // namespace

int EvalPasskey(std::span<const std::string> arguments) {
  return EvalSuite("passkey",
                   "Hides a pass key, or a string of digits, on one line of a long text of filler "
                   "sentences and asks for it, as in InfiniteBench.",
                   arguments);
}

int EvalNeedle(std::span<const std::string> arguments) {
  return EvalSuite("needle",
                   "Hides one fact in a long text of repeated sentences, or in a given text, and "
                   "asks for it at every length and depth.",
                   arguments);
}

int EvalKvRetrieval(std::span<const std::string> arguments) {
  return EvalSuite(
      "kv-retrieval",
      "Asks for the value of one key in a JSON object of random pairs, as in InfiniteBench.",
      arguments);
}

int EvalLines(std::span<const std::string> arguments) {
  return EvalSuite("lines", "Asks for the number on one of many named lines, as in LongEval.",
                   arguments);
}

int EvalBabilong(std::span<const std::string> arguments) {
  return EvalSuite("babilong",
                   "Hides the sentences of a bAbI story in a long text and asks a question about "
                   "it, as in BABILong: where a person or a thing is or was.",
                   arguments);
}

int EvalRuler(std::span<const std::string> arguments) {
  return EvalSuite("ruler",
                   "Runs the tasks of RULER: find facts in a long text among similar ones, follow "
                   "variables that take values from each other, name the most frequent words, and "
                   "answer questions about documents.",
                   arguments);
}

}  // namespace godwit::lab
