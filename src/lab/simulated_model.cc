#include "lab/simulated_model.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "attention/make_policy.h"
#include "base/error.h"
#include "base/quote.h"
#include "console/options/parse_value.h"
#include "quant/quantization_block.h"
#include "quant/residual_factors.h"

namespace godwit::lab {
namespace {

cli::ModelOptions InFloat(cli::ModelOptions options) {
  if (!options.device.empty()) {
    Throw(ErrorKind::kInput,
          "--simulate changes the inputs of layers that the CPU computes: leave --device out");
  }
  options.weights = "f32";
  return options;
}

constexpr std::string_view kResidual = ":residual";

float ParseAlpha(std::string_view text, std::string_view whole) {
  const float alpha = console::ParseFloat(text);
  if (alpha >= 0 && alpha <= 1) return alpha;
  Throw(ErrorKind::kInput, "expected an alpha from 0 to 1, found {}", Quote(whole));
}

}  // namespace

InputSimulation ParseInputSimulation(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  const std::string_view factors = text.substr(name.size());
  InputSimulation simulation{.grid = quant::FindInputGrid(name), .residual_alpha = {}};
  if (factors.empty()) return simulation;
  if (factors == kResidual) {
    simulation.residual_alpha = 0.5f;
  } else if (factors.starts_with(fmt::format("{}=", kResidual))) {
    simulation.residual_alpha = ParseAlpha(factors.substr(kResidual.size() + 1), text);
  } else {
    Throw(ErrorKind::kInput, "expected {0}{1} or {0}{1}=ALPHA, found {2}", name, kResidual,
          Quote(text));
  }
  if (simulation.grid == quant::InputGrid::kChannel) {
    Throw(ErrorKind::kInput,
          "factors on the residual branch change nothing where each channel has a scale of its "
          "own: expected per-tensor or per-token, found {}",
          Quote(text));
  }
  return simulation;
}

void CheckSimulation(const InputSimulation& simulation, const ModelFolder& folder) {
  if (!simulation.residual_alpha) return;
  quant::RefuseQuantized(folder.config(), folder.path());
  if (quant::ReadsResidualSums(folder.spec(), folder.tensors())) return;
  Throw(ErrorKind::kUnsupported,
        "factors on the residual branch are for linear layers that read the residual sum itself, "
        "and {} has none: its norms take the factors (godwit quantize --smooth norm)",
        QuoteUnlessPlain(folder.path()));
}

SimulatedModel::SimulatedModel(cli::ModelOptions options, const cli::CalibrationFlags& calibration)
    : folder_(options.folder), run_(options) {
  const quant::CalibrationText text = ReadCalibrationText(folder_, calibration);
  const cli::ModelOptions in_float = InFloat(std::move(options));
  const quant::StageHooks& hooks = run_.hooks();
  const auto progress_of = [&](quant::Stage stage) {
    return [&hooks, stage](int64_t done, int64_t total) { hooks.progress(stage, done, total); };
  };
  decoder_ = LoadAsAsked(folder_, in_float, run_.exec().pool,
                         {.progress = progress_of(quant::Stage::kLoading),
                          .warn = hooks.warn,
                          .cancel = run_.exec().cancel});
  calibration_ = quant::Calibrate(run_.exec(), *decoder_, text.pieces,
                                  progress_of(quant::Stage::kCalibrating), {.samples = false});
  largest_ = quant::LargestOfQuantized(folder_.tensors(), calibration_);
}

eval::Reader SimulatedModel::ReaderOf(const InputSimulation& simulation) const {
  quant::ChannelValues factors;
  if (simulation.residual_alpha) {
    factors = quant::ResidualFactors(run_.exec(), folder_.spec(), folder_.tensors(), calibration_,
                                     *simulation.residual_alpha);
  }
  eval::Reader reader;
  reader.logits = [this,
                   filter = quant::SimulateInputs(simulation.grid, largest_, std::move(factors))](
                      std::span<const int32_t> tokens, const eval::Reader::OnRow& row,
                      int64_t first, const eval::Reader::OnProgress& /*on_progress*/) {
    Exec exec = run_.exec();
    exec.filter = &filter;
    ReadLogits(exec, *decoder_, tokens, row, first);
  };
  reader.kv = [] { return KvReport(); };
  reader.limit_tokens = [this] { return DefaultContext(decoder_->spec()); };
  return reader;
}

void ReadLogits(const Exec& exec, const Decoder& decoder, std::span<const int32_t> tokens,
                const eval::Reader::OnRow& row, int64_t first) {
  constexpr int64_t kChunk = 512;
  constexpr int64_t kBlock = 32;  // rows of logits at a time, which are as wide as the vocabulary
  const auto text = MakeTextCache(Geometry(decoder.spec()),
                                  {.kv_type = DType::kF32, .context = std::ssize(tokens)});
  for (int64_t begin = 0; begin < std::ssize(tokens); begin += kChunk) {
    const int64_t count = std::min(kChunk, std::ssize(tokens) - begin);
    const Segment segment{tokens.subspan(begin, count), text.get()};
    Workspace::Scope memory(exec.workspace);
    const auto hidden = exec.workspace.Matrix<float>(count, decoder.hidden_size());
    decoder.Forward(exec, {&segment, 1}, hidden);
    for (int64_t at = std::max<int64_t>(0, first - begin); at < count; at += kBlock) {
      Workspace::Scope of_block(exec.workspace);
      const int64_t rows = std::min(kBlock, count - at);
      const auto logits = exec.workspace.Matrix<float>(rows, decoder.vocab_size());
      decoder.Logits(exec, hidden.Rows(at, at + rows), logits);
      for (int64_t i = 0; i < rows; ++i) row(begin + at + i, logits.RowSpan(i));
    }
  }
}

}  // namespace godwit::lab
