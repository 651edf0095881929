#include "model/draft_heads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/quote.h"
#include "ops/activation.h"
#include "ops/copy_rows.h"
#include "ops/linear.h"
#include "ops/pack_weight.h"
#include "tensor/float_bytes.h"
#include "weights/safetensors_source.h"
#include "weights/safetensors_writer.h"

namespace godwit {
namespace {

constexpr float kEpsilon = 1e-5f;

// Keys of the file's metadata.
constexpr std::string_view kVocabKey = "vocab", kDigestKey = "states_digest",
                           kIndependentKey = "independent";

std::string NameOf(int64_t head, std::string_view part) {
  return fmt::format("heads.{}.{}.weight", head, part);
}

std::string DigestText(uint64_t digest) { return fmt::format("{:016x}", digest); }

std::string MetadataOf(const WeightSource& source, std::string_view key) {
  const auto found = source.Metadata().find(key);
  return found == source.Metadata().end() ? "" : found->second;
}

}  // namespace

ops::NormWeights HeadNorm(std::span<const float> weight) {
  return {.kind = ops::NormKind::kRms,
          .epsilon = kEpsilon,
          .weight = {weight.begin(), weight.end()},
          .bias = {}};
}

HeadParameters::HeadParameters(int64_t heads, int64_t hidden, int64_t vocab, bool independent)
    : heads_(heads),
      hidden_(hidden),
      vocab_(vocab),
      independent_(independent),
      values_(heads * hidden * (hidden + 2)) {}

std::span<float> HeadParameters::Part(int64_t head, int64_t begin, int64_t size) {
  return std::span(values_).subspan(head * hidden_ * (hidden_ + 2) + begin, size);
}

std::string DraftHeadsFile(HeadParameters values, uint64_t digest) {
  const int64_t hidden = values.hidden();
  std::vector<FileTensor> tensors;
  const auto add = [&](const std::string& name, DType dtype, std::vector<int64_t> shape,
                       std::span<const float> from) {
    std::vector<std::byte> bytes(from.size() * SizeOf(dtype));
    WriteFloats(from, dtype, bytes.data());
    tensors.push_back(
        {.tensor = {.name = name, .dtype = dtype, .shape = std::move(shape)}, .bytes = bytes});
  };
  for (int64_t i = 0; i < values.heads(); ++i) {
    add(NameOf(i, "input_norm"), DType::kF32, {hidden}, values.InputNorm(i));
    add(NameOf(i, "linear"), DType::kBF16, {hidden, hidden}, values.Matrix(i));
    add(NameOf(i, "output_norm"), DType::kF32, {hidden}, values.OutputNorm(i));
  }
  std::map<std::string, std::string> metadata = {
      {std::string(kVocabKey), std::to_string(values.vocab())},
      {std::string(kDigestKey), DigestText(digest)}};
  if (values.independent()) metadata[std::string(kIndependentKey)] = "true";
  return SafetensorsBytes(tensors, metadata);
}

HeadParameters ReadDraftHeads(const std::filesystem::path& file, int64_t hidden, int64_t vocab,
                              uint64_t digest) {
  const auto source = OpenSafetensors(file);
  const std::string path = QuoteUnlessPlain(file.native());
  int64_t heads = 0;
  while (heads <= HeadParameters::kMaxHeads && source->Find(NameOf(heads, "linear")) != nullptr) {
    ++heads;
  }
  const std::string digits = MetadataOf(*source, kVocabKey);
  int64_t guessed = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), guessed);
  if (heads == 0 || heads > HeadParameters::kMaxHeads || std::ssize(source->Names()) != 3 * heads ||
      guessed < 1) {
    Throw(ErrorKind::kFormat, "{}: expected draft heads of godwit train-heads, found other content",
          path);
  }
  if (MetadataOf(*source, kDigestKey) != DigestText(digest) || guessed > vocab ||
      (guessed != vocab && guessed % 64 != 0)) {
    Throw(ErrorKind::kInput,
          "{} holds draft heads of another model: train heads for this one with godwit train-heads",
          path);
  }
  const std::string independent = MetadataOf(*source, kIndependentKey);
  if (!independent.empty() && independent != "true") {
    Throw(ErrorKind::kFormat, "{}: {}: expected true or no such entry, found {}", path,
          kIndependentKey, Quote(independent));
  }
  HeadParameters parameters(heads, hidden, guessed, !independent.empty());
  const auto read = [&](const std::string& name, std::vector<int64_t> shape, std::span<float> to) {
    const TensorInfo* tensor = source->Find(name);
    const bool floats = tensor != nullptr && tensor->dtype &&
                        (*tensor->dtype == DType::kF32 || *tensor->dtype == DType::kF16 ||
                         *tensor->dtype == DType::kBF16);
    if (!floats || tensor->shape != shape) {
      Throw(ErrorKind::kFormat, "{}: {}: expected floats [{}], found {}", path, name,
            fmt::join(shape, ", "), tensor == nullptr ? "nothing" : tensor->Describe());
    }
    ReadFloats(*tensor->dtype, tensor->bytes.data(), to);
    for (const float value : to) {
      if (!std::isfinite(value)) {
        Throw(ErrorKind::kFormat, "{}: {} holds NaN or infinity", path, name);
      }
    }
  };
  for (int64_t i = 0; i < heads; ++i) {
    read(NameOf(i, "input_norm"), {hidden}, parameters.InputNorm(i));
    read(NameOf(i, "linear"), {hidden, hidden}, parameters.Matrix(i));
    read(NameOf(i, "output_norm"), {hidden}, parameters.OutputNorm(i));
  }
  return parameters;
}

DraftHeads::DraftHeads(ThreadPool& pool, HeadParameters parameters, DType storage)
    : vocab_(parameters.vocab()), independent_(parameters.independent()) {
  const int64_t hidden = parameters.hidden();
  for (int64_t i = 0; i < parameters.heads(); ++i) {
    const float* matrix = parameters.Matrix(i).data();
    heads_.push_back({.input_norm = HeadNorm(parameters.InputNorm(i)),
                      .matrix = ops::PackWeight(
                          pool, DType::kF32, hidden, hidden,
                          [&](int64_t output) { return matrix + output * hidden; }, storage),
                      .output_norm = HeadNorm(parameters.OutputNorm(i))});
  }
}

int64_t DraftHeads::bytes() const {
  int64_t bytes = 0;
  for (const Head& head : heads_) bytes += head.matrix.panels.bytes();
  return bytes;
}

void DraftHeads::ComputeLogits(const Exec& exec, const LanguageModel& model,
                               MatrixView<const float> states, MatrixView<float> logits) const {
  const int64_t n = states.rows;
  assert(logits.rows == count() * n && logits.cols == vocab_);
  Workspace::Scope scope(exec.workspace);
  const auto x = exec.workspace.Matrix<float>(n, states.cols);
  const auto normed = exec.workspace.Matrix<float>(n, states.cols);
  const auto step = exec.workspace.Matrix<float>(n, states.cols);
  const auto outputs = exec.workspace.Matrix<float>(count() * n, states.cols);
  for (int64_t i = 0; i < count(); ++i) {
    const Head& head = heads_[i];
    if (i == 0 || independent_) ops::CopyRows(exec, states, x);
    ops::Norm(exec, x, head.input_norm, normed);
    ops::Linear(exec, normed, head.matrix, step);
    ops::Add(exec, step, x);
    ops::Norm(exec, x, head.output_norm, outputs.Rows(i * n, (i + 1) * n));
  }
  model.NormedLogits(exec, outputs, logits);
}

}  // namespace godwit
