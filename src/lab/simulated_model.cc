#include "lab/simulated_model.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "attention/make_policy.h"
#include "base/error.h"
#include "quant/calibrate.h"

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

}  // namespace

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
  largest_ = quant::LargestOfQuantized(
      folder_.tensors(),
      quant::Calibrate(run_.exec(), *decoder_, text.pieces, progress_of(quant::Stage::kCalibrating),
                       {.samples = false}));
}

eval::Reader SimulatedModel::ReaderOf(quant::InputGrid grid) const {
  eval::Reader reader;
  reader.logits = [this, filter = quant::SimulateInputs(grid, largest_)](
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
