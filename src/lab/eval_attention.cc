// godwit eval attention: where the heads of a model look, averaged over sentences.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attention/core/attention_map.h"
#include "attention/make_policy.h"
#include "base/error.h"
#include "cli/options/model_options.h"
#include "console/exit_code.h"
#include "console/options/text_input.h"
#include "console/terminal/format.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "console/terminal/progress_line.h"
#include "console/terminal/table.h"
#include "engine/policy_options.h"
#include "engine/storage_types.h"
#include "lab/commands.h"
#include "lab/model_run.h"
#include "model/loader.h"

namespace godwit::lab {
namespace {

// As many first tokens as StreamingLLM keeps; the queries behind them and one more are counted.
constexpr int64_t kSinks = 4;

struct AttentionOptions {
  cli::ModelOptions model;
  std::vector<std::string> files;
  bool lossy = false;
  int64_t sentences = 256;
  int64_t tokens = 16;
  bool json = false;
};

AttentionOptions ParseAttention(std::span<const std::string> arguments) {
  AttentionOptions options;
  console::CommandLine line(
      "eval attention", "[-m MODEL] -f FILE [flags]",
      "Measures where the heads of a model look: the mean weight that each token of a sentence "
      "gives to each token before it (StreamingLLM). With --json, tools/plot draws the maps.");
  cli::AddModelFlag(line, options.model);
  cli::AddComputeFlags(line, options.model);
  line.Group("Text");
  line.Add({.names = "-f,--file",
            .value = "FILE",
            .help = "a text whose sentences are read (-: standard input); several files, a folder "
                    "or a pattern are read one after the other",
            .takes_list = true},
           options.files);
  console::AddLossyFlag(line, options.lossy);
  line.AddInt({.names = "--sentences", .value = "N", .help = "read N sentences"}, options.sentences,
              1);
  line.AddInt({.names = "--seq-len",
               .value = "N",
               .help = "read the first N tokens of each sentence; shorter ones are left out",
               .is_verbs_own = true},
              options.tokens, kSinks + 2, 4096);
  line.Group("Output");
  line.Add({.names = "--json", .value = "", .help = "print one JSON object, with the maps"},
           options.json);
  line.Parse(arguments);
  if (options.files.empty()) Throw(ErrorKind::kInput, "a text is needed: give it with -f FILE");
  return options;
}

// The text cut behind a full stop, question or exclamation mark that white space follows.
std::vector<std::string_view> Sentences(std::string_view text) {
  constexpr std::string_view kWhite = " \t\r\n";
  std::vector<std::string_view> sentences;
  for (size_t begin = text.find_first_not_of(kWhite); begin < text.size();) {
    size_t end = text.find_first_of(".!?", begin);
    while (end < text.size() - 1 && kWhite.find(text[end + 1]) == std::string_view::npos) {
      end = text.find_first_of(".!?", end + 1);
    }
    end = std::min(end, text.size() - 1) + 1;
    sentences.push_back(text.substr(begin, end - begin));
    begin = std::min(text.find_first_not_of(kWhite, end), text.size());
  }
  return sentences;
}

std::vector<std::vector<int32_t>> ReadSentences(const ModelFolder& model,
                                                const AttentionOptions& options) {
  const std::string text = console::ReadJoinedFiles(options.files, options.lossy);
  const auto tokenizer = model.tokenizer();
  const auto sink = model.spec().sink_token;
  std::vector<std::vector<int32_t>> sentences;
  for (const std::string_view sentence : Sentences(text)) {
    auto tokens = tokenizer->Encode(sentence, /*add_special_tokens=*/true, options.tokens);
    if (sink && !tokens.empty() && tokens.front() != *sink) tokens.insert(tokens.begin(), *sink);
    if (std::ssize(tokens) < options.tokens) continue;
    tokens.resize(options.tokens);
    sentences.push_back(std::move(tokens));
    if (std::ssize(sentences) == options.sentences) return sentences;
  }
  if (sentences.empty()) {
    Throw(ErrorKind::kInput,
          "{} has no sentence of {} tokens: give a longer text, or a smaller "
          "--seq-len",
          console::NamesOf(options.files), options.tokens);
  }
  console::WriteNotice(
      fmt::format("godwit: warning: {} has only {} of {} tokens\n", console::NamesOf(options.files),
                  console::Plural(std::ssize(sentences), "sentence"), options.tokens));
  return sentences;
}

AttentionMap MeasureMap(const AttentionOptions& options, const ModelFolder& model,
                        std::span<const std::vector<int32_t>> sentences) {
  const CalibrationRun run(options.model);
  const auto storage = ParseWeightType(options.model.weights);
  const AttentionGeometry geometry = Geometry(model.spec());
  PolicyOptions policy =
      PolicyOptionsOf(SessionOptions(), model.spec(), LoadedTypes(model.tensors(), storage));
  policy.spec = "dense";
  policy.prefill.clear();
  policy.context = options.tokens;
  AttentionMap map(geometry.layers, geometry.shape.heads, options.tokens);
  const auto decoder = LoadAsAsked(model, options.model, run.exec().pool,
                                   {.warn = run.hooks().warn, .cancel = run.exec().cancel});
  const auto pool = std::make_shared<KvPool>(LayoutOf(geometry, policy.kv_type));
  console::ProgressLine progress("reading the sentences", console::ProgressUnit::kTokens);
  for (const std::vector<int32_t>& sentence : sentences) {
    TextCache cache(geometry, MakeAttentionMapPolicy(geometry, MakePolicy(geometry, policy), map),
                    pool, policy.context, policy.int8_products);
    Workspace::Scope scope(run.exec().workspace);
    const auto hidden = run.exec().workspace.Matrix<float>(options.tokens, decoder->hidden_size());
    const Segment segment{.tokens = sentence, .text = &cache};
    decoder->Forward(run.exec(), {&segment, 1}, hidden);
    map.EndText();
    progress.Update(map.texts() * options.tokens, std::ssize(sentences) * options.tokens);
  }
  return map;
}

// The share that a head's later queries give to the first `keys` tokens.
double ToFirst(const AttentionMap& map, int64_t layer, int64_t head, int64_t keys) {
  return map.MeanOfFirst(layer, head, kSinks + 1, keys);
}

nlohmann::ordered_json MapJson(const AttentionMap& map) {
  nlohmann::ordered_json first, maps;
  for (int64_t layer = 0; layer < map.layers(); ++layer) {
    nlohmann::ordered_json shares, heads;
    for (int64_t head = 0; head < map.heads(); ++head) {
      shares.push_back(ToFirst(map, layer, head, 1));
      nlohmann::ordered_json queries;
      for (int64_t query = 0; query < map.tokens(); ++query) {
        nlohmann::ordered_json keys;
        for (int64_t key = 0; key < map.tokens(); ++key) {
          keys.push_back(map.Mean(layer, head, query, key));
        }
        queries.push_back(std::move(keys));
      }
      heads.push_back(std::move(queries));
    }
    first.push_back(std::move(shares));
    maps.push_back(std::move(heads));
  }
  return {{"first", std::move(first)}, {"maps", std::move(maps)}};
}

std::string MapText(const AttentionMap& map) {
  console::Table table({{"layer"},
                        {"to the first token", "{:.3f}"},
                        {"by one head at most", "{:.3f}"},
                        {"to the first four", "{:.3f}"}});
  for (int64_t layer = 0; layer < map.layers(); ++layer) {
    double one = 0, most = 0, four = 0;
    for (int64_t head = 0; head < map.heads(); ++head) {
      const double share = ToFirst(map, layer, head, 1);
      one += share;
      most = std::max(most, share);
      four += ToFirst(map, layer, head, kSinks);
    }
    const auto heads = static_cast<double>(map.heads());
    table.Add(layer, one / heads, most, four / heads);
  }
  return fmt::format("{} of {} tokens; means over the queries from the {}th token on\n",
                     console::Plural(map.texts(), "sentence"), map.tokens(), kSinks + 2) +
         table.Take();
}

}  // namespace

int EvalAttention(std::span<const std::string> arguments) {
  AttentionOptions options = ParseAttention(arguments);
  cli::ChooseModel(options.model);
  const ModelFolder model(options.model.folder);
  cli::WarnAboutSpec(model.spec());
  const auto sentences = ReadSentences(model, options);
  const AttentionMap map = MeasureMap(options, model, sentences);
  if (options.json) {
    nlohmann::ordered_json object = {{"model", options.model.folder},
                                     {"text", console::NamesOf(options.files)},
                                     {"sentences", map.texts()},
                                     {"tokens", map.tokens()}};
    object.update(MapJson(map));
    console::WriteJson(object);
  } else {
    console::WriteOutput(MapText(map));
  }
  return console::kExitOk;
}

}  // namespace godwit::lab
