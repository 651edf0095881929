// For tests only: the golden checkpoints, their logits, and the errors of other logits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "godwit/error.h"
#include "weights/safetensors.h"

namespace godwit {

struct Golden {
  std::string path;
  std::string family;
  std::string dtype;   // of the weights that computed the golden
  std::string stored;  // of the weights in the file
  int64_t context;

  // The weight type for LoadDecoder, so that bf16 numbers are multiplied as floats. Nullopt: as
  // stored.
  std::optional<DType> Weights() const {
    if (dtype == stored) return std::nullopt;
    return DType::kF32;
  }
};

inline std::filesystem::path GoldenRoot() { return GODWIT_SOURCE_DIR "/tests/golden"; }

inline std::vector<Golden> Goldens(const std::string& index) {
  std::vector<Golden> goldens;
  for (const auto& entry : ParseJson(ReadTextFile(GoldenRoot() / index, 1 << 20), index)) {
    const std::string dtype = entry["dtype"];
    goldens.push_back({.path = entry["path"],
                       .family = entry["family"],
                       .dtype = dtype,
                       .stored = entry.value("stored", dtype),
                       .context = entry.value("context", 0)});
  }
  return goldens;
}

inline std::vector<Golden> FloatGoldens() { return Goldens("index.json"); }
inline std::vector<Golden> Int8Goldens() { return Goldens("int8/index.json"); }

inline std::vector<Golden> AllGoldens() {
  std::vector<Golden> goldens = FloatGoldens();
  std::ranges::copy(Int8Goldens(), std::back_inserter(goldens));
  return goldens;
}

// Without those whose question is the spelling of config.json. Each has neighbours in its family,
// so tests that compare ways to compute one model leave it out.
inline std::vector<Golden> GoldensOfModels() {
  std::vector<Golden> goldens = AllGoldens();
  std::erase_if(goldens, [](const Golden& golden) { return golden.path.ends_with("/new_config"); });
  return goldens;
}

inline Golden GoldenOf(const std::string& path) {
  for (const Golden& golden : AllGoldens()) {
    if (golden.path == path) return golden;
  }
  throw Error(ErrorKind::kInput, path + " is in no index of goldens");
}

// The goldens in GGUF, by name.
inline std::vector<std::string> GgufGoldens() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(GoldenRoot() / "gguf")) {
    const std::string name = entry.path().stem();
    if (entry.path().extension() == ".safetensors" && name != "blocks") names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// Whether recurrent layers of a golden in GGUF lie there otherwise than in a folder, so that
// neither form is written from the other.
inline bool LiesOtherwiseInGguf(const std::string& name) {
  constexpr std::string_view kBeginnings[] = {"qwen3_next", "qwen3_5",   "granite_hybrid",
                                              "bamba",      "falcon_h1", "nemotron_h"};
  return std::ranges::any_of(
      kBeginnings, [&](std::string_view beginning) { return name.starts_with(beginning); });
}

// Whether a golden model in GGUF is of a family whose files are not written.
inline bool IsReadOnlyInGguf(const std::string& name) {
  return LiesOtherwiseInGguf(name) || name.starts_with("gemma3n") || name.starts_with("gemma4") ||
         name == "mistral4";
}

// The folders with packed layers, by name.
inline std::vector<std::string> PackedGoldens() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(GoldenRoot() / "packed")) {
    if (entry.is_directory()) names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

// The GGUF file of a golden, or its second part.
inline std::filesystem::path GgufGoldenFile(const std::string& name) {
  const auto alone = GoldenRoot() / "gguf" / (name + ".gguf");
  return std::filesystem::exists(alone) ? alone
                                        : GoldenRoot() / "gguf" / (name + "-00002-of-00003.gguf");
}

template <typename To, typename From>
std::vector<To> Elements(const TensorInfo& tensor) {
  std::vector<To> values;
  for (size_t i = 0; i < tensor.bytes.size(); i += sizeof(From)) {
    From value;
    std::memcpy(&value, tensor.bytes.data() + i, sizeof(From));
    values.push_back(static_cast<To>(value));
  }
  return values;
}

struct Reference {
  std::vector<int32_t> ids;
  std::vector<float> logits;  // [ids, vocab]
  int64_t context = 0;        // of the logits, where it matters
};

inline Reference ReadReference(const std::filesystem::path& path) {
  const MappedFile file(path);
  Reference reference;
  const auto contents = ParseSafetensors(file.Span(), path.string());
  for (const TensorInfo& tensor : contents.tensors) {
    if (tensor.name == "input_ids") reference.ids = Elements<int32_t, int64_t>(tensor);
    if (tensor.name == "logits") reference.logits = Elements<float, float>(tensor);
    if (tensor.name == "context") reference.context = Elements<int64_t, int64_t>(tensor).at(0);
  }
  return reference;
}

struct Errors {
  double max = 0;  // max |difference| / max |logit|
  double rms = 0;  // |difference| / |logits|, as vectors
};

inline Errors Compare(const std::vector<float>& logits, const std::vector<float>& expected_logits) {
  // A NaN would not become the maximum below.
  if (logits.size() != expected_logits.size() ||
      !std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); })) {
    ADD_FAILURE() << logits.size() << " logits, expected " << expected_logits.size()
                  << " finite ones";
    return {};
  }
  double difference = 0, largest = 0, square = 0, expected_square = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double expected = expected_logits[i];
    const double d = logits[i] - expected;
    difference = std::max(difference, std::fabs(d));
    largest = std::max(largest, std::fabs(expected));
    square += d * d;
    expected_square += expected * expected;
  }
  return {difference / largest, std::sqrt(square / expected_square)};
}

// The largest error allowed. float32: the goldens' own rounding, well under the smallest change
// that a mistake makes (4e-4, see README.md). int8: the same, because no input of a golden is near
// the middle between two integers.
inline constexpr double kTolerance = 5e-5;

}  // namespace godwit
