// Texts of the block policy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/attention_test_support.h"

namespace godwit {

constexpr int64_t kBlocksContext = 4096;

inline std::unique_ptr<TextCache> BlocksText(const AttentionGeometry& geometry,
                                             const std::string& spec, int64_t question_begin = 0,
                                             std::shared_ptr<KvPool> pool = nullptr,
                                             int64_t answer = INT64_MAX) {
  auto text = NewText(geometry, {.spec = spec, .kv_type = DType::kF32, .context = kBlocksContext},
                      std::move(pool));
  text->SetQuestion(question_begin, answer);
  return text;
}

inline std::vector<SeenKey> KeysIn(int64_t begin, int64_t end) {
  std::vector<SeenKey> keys;
  for (int64_t key = begin; key < end; ++key) keys.push_back({key, key});
  return keys;
}

}  // namespace godwit
