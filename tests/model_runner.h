// ModelRunner: runs a checkpoint for the tests that span rooms: any threads, chunks, instruction
// set and policy.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attention/make_policy.h"
#include "kernels/dispatch.h"
#include "model/archs/all.h"
#include "model/decoder.h"
#include "model/loader.h"
#include "tensor/workspace.h"
#include "weights/hf_config.h"
#include "weights/open_weights.h"

namespace godwit {

struct RunOptions {
  int threads = 1;
  int64_t chunk = 1 << 20;
  std::string isa;
  std::string kv = "dense";
  DType kv_type = DType::kF32;
  bool int8_products = false;
  int64_t context = 0;       // 0: DefaultContext()
  std::string prefill = {};  // of all tokens
};

class ModelRunner {
 public:
  // weights: as in LoadDecoder.
  explicit ModelRunner(const std::filesystem::path& folder,
                       std::optional<DType> weights = std::nullopt)
      : ModelRunner(HfConfig::Load(folder / "config.json"), *OpenWeights(folder), weights) {}

  ModelRunner(const HfConfig& config, const WeightSource& source, std::optional<DType> weights) {
    ThreadPool pool(1);
    decoder_ = LoadDecoder(DescribeModel(config), source, pool, {}, weights);
  }
  ModelRunner(const DecoderSpec& spec, const WeightSource& source, std::optional<DType> weights) {
    ThreadPool pool(1);
    decoder_ = LoadDecoder(spec, source, pool, {}, weights);
  }

  explicit ModelRunner(std::unique_ptr<Decoder> decoder) : decoder_(std::move(decoder)) {}

  const Decoder& decoder() const { return *decoder_; }
  const DecoderSpec& spec() const { return decoder_->spec(); }

  // Whether the results for a token depend on the tokens that are computed with it, as in some int8
  // checkpoints.
  bool InputsShareAScale() const {
    return std::ranges::any_of(spec().quantization.Distinct(),
                               [](const LayerQuantization& quantization) {
                                 return quantization.input.kind == InputScale::kPerTensor;
                               });
  }

  std::unique_ptr<TextCache> NewText(const RunOptions& options) const {
    const int64_t context = options.context != 0 ? options.context : DefaultContext(spec());
    auto text = MakeTextCache(Geometry(spec()), {.spec = options.kv,
                                                 .kv_type = options.kv_type,
                                                 .int8_products = options.int8_products,
                                                 .context = context,
                                                 .prefill = options.prefill});
    if (!options.prefill.empty()) text->SetQuestion(context);
    return text;
  }

  // Runs one step. Returns the logits of every row, [rows * vocab].
  std::vector<float> Step(std::span<const Segment> segments, const RunOptions& options) const {
    ThreadPool pool(options.threads);
    Workspace workspace;
    const Exec exec{
        .pool = pool, .kernels = *kernels::SelectIsa(options.isa).table, .workspace = workspace};
    int64_t rows = 0;
    for (const Segment& segment : segments) rows += std::ssize(segment.tokens);
    const int64_t vocab = decoder_->vocab_size();
    const auto hidden = workspace.Matrix<float>(rows, decoder_->hidden_size());
    std::vector<float> logits(rows * vocab);
    decoder_->Forward(exec, segments, hidden);
    decoder_->Logits(exec, hidden, {logits.data(), rows, vocab, vocab});
    return logits;
  }
  std::vector<float> Step(std::initializer_list<Segment> segments,
                          const RunOptions& options) const {
    return Step(std::span(segments.begin(), segments.size()), options);
  }

  // The logits of every text, [tokens * vocab] each. The texts go through the model as one batch,
  // the same chunk of each in every step.
  std::vector<std::vector<float>> Batch(const std::vector<std::vector<int32_t>>& texts,
                                        const RunOptions& options) const {
    std::vector<std::unique_ptr<TextCache>> caches;
    std::vector<std::vector<float>> logits(texts.size());
    size_t longest = 0;
    for (const auto& text : texts) {
      caches.push_back(NewText(options));
      longest = std::max(longest, text.size());
    }
    const auto chunk = static_cast<size_t>(options.chunk);
    for (size_t begin = 0; begin < longest; begin += chunk) {
      std::vector<Segment> segments;
      std::vector<size_t> owners;
      int64_t rows = 0;
      for (size_t i = 0; i < texts.size(); ++i) {
        if (begin >= texts[i].size()) continue;
        const size_t n = std::min(chunk, texts[i].size() - begin);
        segments.push_back({std::span(texts[i]).subspan(begin, n), caches[i].get()});
        owners.insert(owners.end(), n, i);
        rows += static_cast<int64_t>(n);
      }
      const auto out = Step(segments, options);
      for (int64_t row = 0; row < rows; ++row) {
        const auto values =
            std::span(out).subspan(row * decoder_->vocab_size(), decoder_->vocab_size());
        auto& text_logits = logits[owners[row]];
        text_logits.insert(text_logits.end(), values.begin(), values.end());
      }
    }
    return logits;
  }

  std::vector<float> Logits(const std::vector<int32_t>& text, const RunOptions& options) const {
    return Batch({text}, options)[0];
  }

 private:
  std::unique_ptr<Decoder> decoder_;
};

}  // namespace godwit
