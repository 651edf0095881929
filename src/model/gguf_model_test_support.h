// For tests only: models in GGUF, and what they are translated to.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/gguf_model.h"
#include "weights/gguf_test_support.h"
#include "weights/tensor_rows.h"
#include "weights/test_files.h"

namespace godwit {

inline constexpr uint32_t kF32 = 0;

// Row i holds the number i, `columns` times.
inline std::string Rows(int64_t rows, int64_t columns) {
  std::string bytes;
  for (int64_t i = 0; i < rows * columns; ++i) bytes += Raw(static_cast<float>(i / columns));
  return bytes;
}

inline void AddMatrix(GgufBuilder& file, std::string_view name, int64_t rows, int64_t columns) {
  file.Tensor(name, {static_cast<uint64_t>(rows), static_cast<uint64_t>(columns)}, kF32,
              Rows(rows, columns));
}

// Two heads of 4 with one KV head, hidden size 8.
inline GgufBuilder Model(const std::string& architecture = "llama") {
  GgufBuilder file;
  file.Text("general.architecture", architecture);
  const auto own = [&](const char* key) { return architecture + "." + key; };
  file.U32(own("block_count"), 1).U32(own("context_length"), 64).U32(own("embedding_length"), 8);
  file.U32(own("feed_forward_length"), 16).U32(own("attention.head_count"), 2);
  file.U32(own("attention.head_count_kv"), 1);
  file.F32(own("attention.layer_norm_rms_epsilon"), 1e-5f);
  AddMatrix(file, "token_embd.weight", 5, 8);
  return file;
}

// The model and the bytes that it is a view of.
struct Translated {
  explicit Translated(const GgufBuilder& builder)
      : file(builder.Bytes()), model(Translate()), config(ParseJson(model.config, "config")) {}

  GgufModel Translate() const {
    GgufContents contents = ParseGguf(AsBytes(file), "x.gguf");
    return TranslateGguf({.files = {},
                          .metadata = GgufMetadata(std::move(contents.values), "x.gguf"),
                          .tensors = std::move(contents.tensors)});
  }
  // The first column.
  std::vector<float> Column(const std::string& name) const {
    const TensorInfo* tensor = model.weights->Find(name);
    if (tensor == nullptr) return {};
    const std::vector<float> values = ReadAllRows(*tensor);
    std::vector<float> column;
    const int64_t columns = tensor->shape.size() > 1 ? tensor->shape[1] : 1;
    for (int64_t i = 0; i < std::ssize(values); i += columns) {
      column.push_back(values[i]);
    }
    return column;
  }

  const std::string file;
  const GgufModel model;
  const nlohmann::json config;
};

inline std::string Refusal(ErrorKind kind, const GgufBuilder& builder) {
  return ErrorOf(kind, [&] { Translated{builder}; });
}

}  // namespace godwit
