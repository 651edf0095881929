// godwit train-heads: trains heads that propose tokens behind the next one, for --draft heads.

#include "train/train_heads.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/cores.h"
#include "base/error.h"
#include "base/file.h"
#include "base/machine_memory.h"
#include "base/quote.h"
#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "checkpoint/model_folder.h"
#include "cli/options/model_options.h"
#include "console/exit_code.h"
#include "console/options/parse_value.h"
#include "console/options/text_input.h"
#include "console/terminal/format.h"
#include "console/terminal/interrupt.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "console/terminal/output_file.h"
#include "console/terminal/progress_line.h"
#include "console/terminal/result_files.h"
#include "console/terminal/table.h"
#include "engine/storage_types.h"
#include "kernels/dispatch.h"
#include "lab/commands.h"
#include "model/loader.h"
#include "quant/calibration_text.h"
#include "tensor/workspace.h"

namespace godwit::lab {
namespace {

struct TrainHeadsOptions {
  cli::ModelOptions model;
  std::vector<std::string> texts;
  bool lossy = false;
  int64_t tokens = 1 << 18;
  int64_t piece = 512;
  int64_t heads = 3;
  std::optional<int64_t> vocab;
  bool independent = false;
  train::HeadTraining training;
  std::optional<double> rate;
  std::string output;
  std::string log;
  bool json = false;
};

double ParseRate(const std::string& value) {
  const float rate = console::ParseFloat(value);
  if (!(rate > 0 && rate <= 1)) {
    Throw(ErrorKind::kInput, "expected a rate above 0, 1 at most, found {}", Quote(value));
  }
  return static_cast<double>(rate);
}

TrainHeadsOptions ParseTrainHeads(std::span<const std::string> arguments) {
  TrainHeadsOptions options;
  train::HeadTraining& training = options.training;
  console::CommandLine line(
      "train-heads", "[-m MODEL] -f FILE [flags]",
      "Trains draft heads, which propose the tokens after the next one, for --draft heads "
      "(TokenSwift). The model reads a text once and stays unchanged; the heads learn from its "
      "hidden states. An interrupted training continues with the same command.");
  cli::AddModelFlag(line, options.model);
  cli::AddThreadFlags(line, options.model);
  cli::AddWeightsFlag(line, options.model);
  line.Group("Text");
  line.Add({.names = "-f,--file",
            .value = "FILE",
            .help = "a text like those that the model will write (-: standard input); several "
                    "files, a folder or a pattern are read one after the other",
            .takes_list = true},
           options.texts);
  console::AddLossyFlag(line, options.lossy);
  line.AddInt({.names = "--tokens",
               .value = "N",
               .help = "learn from N tokens, spread over the whole text"},
              options.tokens, quant::kFewestTokens);
  line.AddInt({.names = "--seq-len",
               .value = "N",
               .help = "cut the text into pieces of N tokens, which the model reads separately",
               .is_verbs_own = true},
              options.piece, 16);
  line.Group("Heads");
  line.AddInt(
      {.names = "--heads",
       .value = "N",
       .help = "the number of heads; the first one proposes the second token after the text"},
      options.heads, 1, HeadParameters::kMaxHeads);
  line.Add({.names = "--independent",
            .value = "",
            .help = "train heads that do not know each other, as Medusa's; by default each one "
                    "builds on the one before it"},
           options.independent);
  line.Add(
      {.names = "--vocab",
       .value = "N",
       .help = "propose only the first N tokens of the vocabulary, a multiple of 64",
       .fallback = "those that make up 99% of the text"},
      [&](const std::string& value) { options.vocab = console::ParseInt(value, 64, INT32_MAX); });
  line.Group("Training");
  line.AddInt({.names = "--steps", .value = "N", .help = "the number of training steps"},
              training.steps, 1);
  line.AddInt({.names = "--batch", .value = "N", .help = "the tokens of a training step"},
              training.batch, 1);
  line.Add({.names = "--rate",
            .value = "R",
            .help = "the highest learning rate, reached after a tenth of the steps; then it falls "
                    "along a cosine",
            .fallback = "0.3 divided by the square root of the hidden size"},
           [&](const std::string& value) { options.rate = ParseRate(value); });
  line.AddInt({.names = "-s,--seed", .value = "N", .help = "the seed of the order of the text"},
              training.seed, 0);
  line.Group("Result");
  line.Add({.names = "-o,--output",
            .value = "FILE",
            .help = "the file of the heads",
            .fallback = fmt::format("{0} in the model's folder, NAME.{0} beside NAME.gguf",
                                    DraftHeads::kFileName)},
           options.output);
  line.Add({.names = "--log",
            .value = "FILE",
            .help = "write the loss of every step as a line of JSON, for tools/plot"},
           options.log);
  line.Add({.names = "--json", .value = "", .help = "print one JSON object"}, options.json);
  line.RefusePlot();
  line.Parse(arguments);
  training.warmup = training.steps / 10;
  return options;
}

// The pieces for training, and a twentieth of all pieces for validation.
struct Pieces {
  std::vector<std::vector<int32_t>> learned, kept_back;
};

// Samples a text much longer than the wanted tokens: stretches from all over it, each from the
// beginning of a line. Tokenizing a whole text takes longer than training on some of it.
std::string Spread(std::string text, int64_t tokens) {
  constexpr size_t kStretches = 64, kBytesOfToken = 8;
  const size_t bytes = static_cast<size_t>(tokens) * kBytesOfToken;
  if (text.size() / 2 < bytes) return text;
  std::string some;
  for (size_t i = 0; i < kStretches; ++i) {
    const size_t line = text.find('\n', i * (text.size() / kStretches));
    const size_t end =
        line == std::string::npos ? line : text.find('\n', line + bytes / kStretches);
    if (end != std::string::npos) some.append(text, line + 1, end - line);
  }
  return some.size() < bytes / 2 ? text : some;  // lines too long to find stretches
}

Pieces ReadPiecesOf(const ModelFolder& model, const TrainHeadsOptions& options) {
  constexpr size_t kKeptBack = 20;
  auto text = quant::CutCalibrationText(
      model.spec(), *model.tokenizer(),
      Spread(console::ReadJoinedFiles(options.texts, options.lossy), options.tokens),
      {.samples = std::max<int64_t>(2, options.tokens / options.piece), .seq_len = options.piece});
  Pieces pieces;
  for (size_t i = 0; i < text.pieces.size(); ++i) {
    RequireTokenIds(model.spec(), text.pieces[i]);
    (i % kKeptBack == 1 ? pieces.kept_back : pieces.learned).push_back(std::move(text.pieces[i]));
  }
  if (pieces.kept_back.empty()) {
    Throw(ErrorKind::kInput,
          "{} gives one piece of {} tokens, and testing the heads takes another: shorten pieces "
          "with --seq-len, or give a longer text",
          console::NamesOf(options.texts), options.piece);
  }
  return pieces;
}

int64_t VocabOf(const TrainHeadsOptions& options, const DecoderSpec& spec, const Pieces& pieces) {
  if (!options.vocab) return train::FrequentTokens(pieces.learned, spec.vocab_size);
  if (*options.vocab >= spec.vocab_size) return spec.vocab_size;
  if (*options.vocab % 64 != 0) {
    Throw(ErrorKind::kInput, "--vocab {}: expected a multiple of 64, or the model's {}",
          *options.vocab, spec.vocab_size);
  }
  return *options.vocab;
}

void RequireMemoryFor(const TrainHeadsOptions& options, const DecoderSpec& spec, int64_t vocab) {
  const int64_t heads = options.heads * spec.hidden_size * (spec.hidden_size + 2);
  RequireMemory(train::HiddenStates::BytesOf(options.tokens, spec.hidden_size, options.heads) +
                    4 * (5 * heads + 2 * vocab * spec.hidden_size),
                "the hidden states of {} tokens and {} heads in training take", options.tokens,
                options.heads);
}

void WriteLog(const std::string& path, const train::HeadTraining& training,
              const train::HeadProgress& progress, double kept_back) {
  std::string lines;
  for (size_t step = 0; step < progress.losses.size(); ++step) {
    const auto number = static_cast<int64_t>(step) + 1;
    nlohmann::ordered_json json{{"step", number},
                                {"tokens", number * training.batch},
                                {"loss", progress.losses[step]},
                                {"lr", train::RateOf(training, number - 1)}};
    if (number == std::ssize(progress.losses)) json["held_out"] = kept_back;
    lines += json.dump() + "\n";
  }
  console::WriteFile(path, lines);
}

// A training with its threads and memory. Progress goes to standard error.
class HeadRun {
 public:
  HeadRun(const TrainHeadsOptions& options, std::string output)
      : options_(options),
        output_(std::move(output)),
        unfinished_(output_ + ".training"),
        pool_(ThreadsFor(options.model.threads)),
        exec_{.pool = pool_,
              .kernels = *kernels::SelectIsa(options.model.isa).table,
              .workspace = workspace_,
              .cancel = &cancel_},
        on_interrupt_(cancel_, /*presses_to_exit=*/2) {}

  struct Result {
    train::HeadProgress progress;
    std::vector<train::HeadScore> scores;  // on the validation pieces
  };
  Result Train(const ModelFolder& model, const Pieces& pieces, int64_t vocab);

 private:
  std::unique_ptr<Decoder> Load(const ModelFolder& model);
  train::HiddenStates Read(const Decoder& decoder, const std::vector<std::vector<int32_t>>& pieces,
                           int64_t vocab);
  void Learn(train::HeadGradient& gradient, const train::HiddenStates& states, uint64_t run,
             train::HeadProgress& progress);

  const TrainHeadsOptions& options_;
  const std::string output_, unfinished_;
  ThreadPool pool_;
  Workspace workspace_;
  CancelToken cancel_;
  Exec exec_;
  console::CancelOnInterrupt on_interrupt_;
};

std::unique_ptr<Decoder> HeadRun::Load(const ModelFolder& model) {
  console::ProgressLine line("loading the model", console::ProgressUnit::kBytes);
  return LoadDecoder(
      model.spec(), model.weights(), pool_,
      {.progress = [&](int64_t done, int64_t total) { line.Update(done, total); },
       .warn = [&](const std::string& message) { line.Say("godwit: warning: " + message); },
       .cancel = &cancel_},
      ParseWeightType(options_.model.weights));
}

train::HiddenStates HeadRun::Read(const Decoder& decoder,
                                  const std::vector<std::vector<int32_t>>& pieces, int64_t vocab) {
  console::ProgressLine line("reading the text", console::ProgressUnit::kTokens);
  train::HiddenStates states(decoder.hidden_size(), options_.heads, vocab);
  train::ReadPieces(
      exec_, decoder, pieces, [&](int64_t done, int64_t total) { line.Update(done, total); },
      states);
  return states;
}

void HeadRun::Learn(train::HeadGradient& gradient, const train::HiddenStates& states, uint64_t run,
                    train::HeadProgress& progress) {
  constexpr double kSaveEveryMs = 60'000;
  const auto save = [&] {
    console::WriteFile(unfinished_, train::HeadProgressFile(progress, run));
  };
  const int64_t steps = options_.training.steps, begun = progress.optimizer.steps;
  console::ProgressLine line("training", console::ProgressUnit::kSteps);
  Stopwatch since_saved;
  try {
    train::TrainHeads(exec_, gradient, states, options_.training, progress, [&] {
      line.Update(progress.optimizer.steps, steps, begun);
      if (since_saved.ms() < kSaveEveryMs) return;
      save();
      since_saved = Stopwatch();
    });
  } catch (const Error& error) {
    line.Finish();
    if (error.kind() == ErrorKind::kCancelled && progress.optimizer.steps > 0) {
      save();
      console::WriteNotice(
          fmt::format("godwit: stopped after {} of {} steps; the same command continues\n",
                      progress.optimizer.steps, steps));
    }
    throw;
  }
}

HeadRun::Result HeadRun::Train(const ModelFolder& model, const Pieces& pieces, int64_t vocab) {
  const auto decoder = Load(model);
  const int64_t hidden = decoder->hidden_size();
  const auto learned = Read(*decoder, pieces.learned, vocab);
  const auto kept_back = Read(*decoder, pieces.kept_back, vocab);
  const DType storage = decoder->weight_types().head == DType::kF32 ? DType::kF32 : DType::kBF16;
  train::HeadGradient gradient(exec_, *decoder, vocab, storage);
  Result result{.progress = train::NewHeads(options_.heads, hidden, vocab,
                                            decoder->final_norm_weight(), options_.independent),
                .scores = {}};
  const uint64_t run =
      train::RunDigest(options_.training, learned, *decoder, result.progress.parameters);
  if (IsListed(unfinished_)) {
    result.progress = train::ReadHeadProgress(unfinished_, std::move(result.progress), run,
                                              options_.training.steps);
    console::WriteNotice(fmt::format("godwit: continuing after {} of {} steps\n",
                                     result.progress.optimizer.steps, options_.training.steps));
  }
  Learn(gradient, learned, run, result.progress);
  result.scores = train::ScoreHeads(exec_, gradient, kept_back, result.progress.parameters);
  console::WriteFile(output_, DraftHeadsFile(result.progress.parameters, decoder->StatesDigest()));
  std::error_code ignored;
  std::filesystem::remove(unfinished_, ignored);
  return result;
}

double Share(int64_t part, const train::HeadScore& score) {
  return static_cast<double>(part) / static_cast<double>(std::max<int64_t>(1, score.rows));
}

double LossOf(const train::HeadScore& score) {
  return score.loss / static_cast<double>(std::max<int64_t>(1, score.rows));
}

double MeanLoss(const std::vector<train::HeadScore>& scores) {
  double sum = 0;
  for (const auto& score : scores) sum += LossOf(score);
  return sum / static_cast<double>(scores.size());
}

nlohmann::ordered_json TrainHeadsJson(const TrainHeadsOptions& options, const std::string& output,
                                      int64_t vocab, const train::HeadProgress& progress,
                                      const std::vector<train::HeadScore>& scores, double ms) {
  nlohmann::ordered_json json{{"model", options.model.folder},
                              {"output", output},
                              {"vocab", vocab},
                              {"independent", options.independent},
                              {"steps", options.training.steps},
                              {"loss", progress.losses.back()}};
  for (const auto& score : scores) {
    nlohmann::ordered_json head{{"tokens", score.rows}, {"loss", LossOf(score)}};
    head["top_1"] = Share(score.first, score);
    head["top_10"] = Share(score.among_ten, score);
    json["heads"].push_back(std::move(head));
  }
  json["elapsed_ms"] = ms;
  return json;
}

std::string TrainHeadsText(const DecoderSpec& spec, const std::string& output, int64_t vocab,
                           const std::vector<train::HeadScore>& scores, double ms) {
  console::Table table(
      {{"head"}, {"top 1", "{:.1f} %"}, {"top 10", "{:.1f} %"}, {"loss", "{:.3f}"}});
  for (size_t i = 0; i < scores.size(); ++i) {
    table.Add(i + 1, 100 * Share(scores[i].first, scores[i]),
              100 * Share(scores[i].among_ten, scores[i]), LossOf(scores[i]));
  }
  console::Table facts = console::Facts();
  facts.Add("guessed", fmt::format("{} of {} tokens of the vocabulary", vocab, spec.vocab_size));
  facts.Add("heads", output);
  facts.Add("time", fmt::format("{:.1f} s", ms / 1000));
  return "On text that was not trained on:\n" + table.Take() + "\n" + facts.Take();
}

}  // namespace

int TrainHeads(std::span<const std::string> arguments) {
  const Stopwatch watch;
  TrainHeadsOptions options = ParseTrainHeads(arguments);
  cli::ChooseModel(options.model);
  const ModelFolder model(options.model.folder);
  if (options.texts.empty()) {
    Throw(ErrorKind::kInput, "a text to learn from is needed: name it with -f FILE");
  }
  const std::string output =
      options.output.empty() ? model.draft_heads_file().native() : options.output;
  if (IsListed(output)) {
    Throw(ErrorKind::kInput, "{} exists already: remove it, or name another file with -o",
          QuoteUnlessPlain(output));
  }
  console::OutputFile::CheckWritable(output);
  if (!options.log.empty()) {
    std::vector<console::NamedFile> others{{"-o", output}};
    for (const std::string& text : options.texts) others.push_back({"-f", text});
    console::CheckResultFiles({{"--log", options.log}}, others);
  }
  options.training.rate = options.rate.value_or(train::DefaultRate(model.spec().hidden_size));
  cli::WarnAboutSpec(model.spec());
  if (model.spec().logit_cap) {
    Throw(ErrorKind::kUnsupported,
          "draft heads cannot be trained for a {} model, because it caps its logits",
          model.spec().family);
  }
  model.RequireTokenizer();
  cli::WarnAboutThreads(options.model.threads);
  const Pieces pieces = ReadPiecesOf(model, options);
  const int64_t vocab = VocabOf(options, model.spec(), pieces);
  RequireMemoryFor(options, model.spec(), vocab);
  const auto [progress, scores] = HeadRun(options, output).Train(model, pieces, vocab);
  if (!options.log.empty()) {
    WriteLog(options.log, options.training, progress, MeanLoss(scores));
  }
  options.json
      ? console::WriteJson(TrainHeadsJson(options, output, vocab, progress, scores, watch.ms()))
      : console::WriteOutput(TrainHeadsText(model.spec(), output, vocab, scores, watch.ms()));
  return console::kExitOk;
}

}  // namespace godwit::lab
