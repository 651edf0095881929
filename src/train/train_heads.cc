#include "train/train_heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/fnv.h"
#include "base/quote.h"
#include "base/rng.h"
#include "weights/safetensors_source.h"
#include "weights/safetensors_writer.h"

namespace godwit::train {
namespace {

constexpr const char *kRunKey = "training", *kStepsKey = "steps";

// The rows in the order of an epoch.
std::vector<int64_t> Shuffled(int64_t rows, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(rows);
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i-- > 1;) {
    const uint64_t bits =
        RandomBits(seed, static_cast<uint64_t>(epoch), static_cast<int64_t>(i), /*draw=*/0);
    std::swap(order[i], order[bits % (i + 1)]);
  }
  return order;
}

}  // namespace

double DefaultRate(int64_t hidden) { return 0.3 / std::sqrt(static_cast<double>(hidden)); }

HeadProgress NewHeads(int64_t heads, int64_t hidden, int64_t vocab,
                      std::span<const float> final_norm, bool independent) {
  HeadParameters parameters(heads, hidden, vocab, independent);
  for (int64_t i = 0; i < heads; ++i) {
    std::ranges::fill(parameters.InputNorm(i), 1.0f);
    std::ranges::fill(parameters.OutputNorm(i), 1.0f);
    std::ranges::copy(final_norm, parameters.OutputNorm(i).begin());
  }
  const auto size = std::ssize(parameters.values());
  return {.parameters = std::move(parameters), .optimizer = AdamW(size)};
}

std::string HeadProgressFile(const HeadProgress& progress, uint64_t run) {
  std::vector<FileTensor> tensors;
  const auto add = [&](const char* name, std::span<const float> values) {
    const auto bytes = std::as_bytes(values);
    FileTensor& file = tensors.emplace_back();
    file.tensor = {name, DType::kF32, {std::ssize(values)}};
    file.bytes.assign(bytes.begin(), bytes.end());
  };
  add("values", progress.parameters.values());
  add("mean", progress.optimizer.mean);
  add("square", progress.optimizer.square);
  add("losses", progress.losses);
  return SafetensorsBytes(tensors, {{kRunKey, fmt::format("{:016x}", run)},
                                    {kStepsKey, std::to_string(progress.optimizer.steps)}});
}

HeadProgress ReadHeadProgress(const std::filesystem::path& file, HeadProgress progress,
                              uint64_t run, int64_t max_steps) {
  const auto source = OpenSafetensors(file);
  const auto said = [&](const char* key) {
    const auto found = source->Metadata().find(key);
    return found == source->Metadata().end() ? "" : found->second;
  };
  const std::string path = QuoteUnlessPlain(file.native());
  if (said(kRunKey) != fmt::format("{:016x}", run)) {
    Throw(ErrorKind::kInput,
          "{} belongs to a training with another model, text or settings: continue with those, or "
          "remove it and start over",
          path);
  }
  const std::string digits = said(kStepsKey);
  int64_t& steps = progress.optimizer.steps;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), steps);
  if (parsed.ec != std::errc() || steps < 0 || steps > max_steps) {
    Throw(ErrorKind::kFormat, "{} is damaged: remove it and start over", path);
  }
  const auto read = [&](const char* name, std::span<float> to) {
    const TensorInfo* tensor = source->Find(name);
    if (tensor == nullptr || tensor->dtype != DType::kF32 ||
        tensor->bytes.size() != to.size_bytes()) {
      Throw(ErrorKind::kFormat, "{} is damaged: remove it and start over", path);
    }
    std::ranges::copy(tensor->bytes, std::as_writable_bytes(to).begin());
  };
  read("values", progress.parameters.values());
  read("mean", progress.optimizer.mean);
  read("square", progress.optimizer.square);
  progress.losses.resize(steps);
  read("losses", progress.losses);
  return progress;
}

uint64_t RunDigest(const HeadTraining& training, const HiddenStates& states, const Decoder& model,
                   const HeadParameters& heads) {
  const auto [layers, mixed, head, layer_blocks, head_blocks] = model.weight_types();
  std::string all =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", training.steps, training.warmup,
                  training.batch, training.rate, training.seed, states.rows(), states.heads(),
                  states.vocab(), states.Digest(), model.StatesDigest(), Name(layers), mixed,
                  Name(head), layer_blocks, head_blocks);
  if (heads.independent()) all += " independent";
  return Fnv1a(std::as_bytes(std::span(all)));
}

double RateOf(const HeadTraining& training, int64_t step) {
  const auto at = static_cast<double>(step + 1), warmup = static_cast<double>(training.warmup);
  if (at < warmup) return training.rate * at / warmup;
  const double rest = static_cast<double>(training.steps) - warmup;
  const double done = rest > 0 ? (at - warmup) / rest : 1;
  return training.rate * 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, done)));
}

void TrainHeads(const Exec& exec, HeadGradient& gradient, const HiddenStates& states,
                const HeadTraining& training, HeadProgress& progress,
                const std::function<void()>& after) {
  HeadParameters& parameters = progress.parameters;
  const int64_t hidden = parameters.hidden(), rows = states.rows();
  const auto of_matrix = [&](size_t i) {
    const auto in_head = static_cast<int64_t>(i) % (hidden * (hidden + 2));
    return in_head >= hidden && in_head < hidden + hidden * hidden;
  };
  std::vector<int64_t> order, batch;
  int64_t epoch = -1;
  while (progress.optimizer.steps < training.steps) {
    const int64_t first = progress.optimizer.steps * training.batch;
    batch.clear();
    for (int64_t i = first; i < first + std::min(training.batch, rows); ++i) {
      if (i / rows != epoch) {
        epoch = i / rows;
        order = Shuffled(rows, training.seed, epoch);
      }
      batch.push_back(order[i % rows]);
    }
    HeadParameters sum(parameters.heads(), hidden, parameters.vocab());
    std::vector<HeadScore> scores(parameters.heads());
    gradient.Prepare(exec, parameters);
    gradient.Add(exec, states, batch, 1 / static_cast<float>(batch.size()), sum, scores);
    // A step is never cancelled halfway.
    Exec to_the_end = exec;
    to_the_end.cancel = nullptr;
    const double rate = RateOf(training, progress.optimizer.steps);
    progress.optimizer.Step(to_the_end, parameters.values(), sum.values(), rate, of_matrix);
    double loss = 0;
    for (const HeadScore& score : scores) {
      loss += score.loss / static_cast<double>(std::max<int64_t>(1, score.rows));
    }
    progress.losses.push_back(static_cast<float>(loss / static_cast<double>(scores.size())));
    after();
  }
}

std::vector<HeadScore> ScoreHeads(const Exec& exec, HeadGradient& gradient,
                                  const HiddenStates& states, HeadParameters& parameters) {
  std::vector<int64_t> rows(states.rows());
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<HeadScore> scores(parameters.heads());
  gradient.Prepare(exec, parameters);
  gradient.Score(exec, states, rows, scores);
  return scores;
}

int64_t FrequentTokens(std::span<const std::vector<int32_t>> pieces, int64_t vocab) {
  constexpr int64_t kStep = 1024;
  constexpr double kShare = 0.99;
  std::vector<int64_t> counts((vocab + kStep - 1) / kStep);
  int64_t all = 0;
  for (const auto& piece : pieces) {
    for (const int32_t token : piece) {
      ++counts[token / kStep];
      ++all;
    }
  }
  int64_t seen = 0, tokens = 0;
  for (const int64_t count : counts) {
    if (static_cast<double>(seen) >= kShare * static_cast<double>(all)) break;
    seen += count;
    tokens += kStep;
  }
  return std::min(tokens, vocab);
}

}  // namespace godwit::train
