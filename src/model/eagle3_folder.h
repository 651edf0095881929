// Eagle3Folder: the folder of an EAGLE-3 head as Hugging Face stores it: config.json and
// safetensors. Everything is checked when it is opened, before weights are read.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "model/eagle3_head.h"
#include "model/eagle3_spec.h"
#include "model/spec.h"
#include "weights/weight_source.h"

namespace godwit {

class Eagle3Folder {
 public:
  // Throws as ReadEagle3, HfConfig::Load and OpenWeights do. Throws Error(kFormat) that names a
  // tensor which is missing, unexpected or another than expected, and a token of d2t outside the
  // vocabulary.
  Eagle3Folder(const std::filesystem::path& folder, const DecoderSpec& model);

  const Eagle3Spec& spec() const { return spec_; }

  // storage: as LoadDecoder takes it. Throws Error(kMemory) for weights that this machine cannot
  // hold.
  int64_t LoadedBytes(std::optional<DType> storage) const;
  std::unique_ptr<const Eagle3Head> Load(ThreadPool& pool, std::optional<DType> storage) const;

 private:
  // A linear layer of tensors whose rows lie one behind the other.
  using Parts = std::vector<const TensorInfo*>;
  struct Tensors {
    Parts reduce, query, kv, out, gate_up, down, head;
    const TensorInfo *embedding_norm, *state_norm, *mlp_norm, *norm;
    const TensorInfo* embedding = nullptr;  // null: the head reads the model's
  };

  const TensorInfo* Want(const std::string& name, const std::vector<int64_t>& shape);
  Tensors FindTensors();
  std::vector<int32_t> ReadTokens();
  void CheckKnownTokens(const std::vector<int32_t>& tokens);
  void RefuseOthers() const;
  [[noreturn]] void Refuse(const std::string& name, const std::string& expected,
                           const TensorInfo* found) const;
  Weight Pack(ThreadPool& pool, const Parts& parts, std::optional<DType> storage) const;
  ops::NormWeights Norm(const TensorInfo& gains) const;
  Table Rows(const TensorInfo& table) const;

  std::filesystem::path folder_;
  Eagle3Spec spec_;
  std::unique_ptr<const WeightSource> source_;
  std::vector<std::string> known_;  // names of tensors that were asked for
  Tensors tensors_;
  std::vector<int32_t> tokens_;
};

}  // namespace godwit
