// What SessionOptions come to for a model: how a text is cached, and which texts are not refused.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attention/make_policy.h"
#include "godwit/engine.h"
#include "kv/kv_pool.h"
#include "kv/snapshot_header.h"

namespace godwit {

class TextPlan {
 public:
  // Throws Error(kInput) for options that make no sense, Error(kUnsupported) for a policy that
  // cannot serve the model. The engine is borrowed.
  TextPlan(const Engine::Impl& engine, const SessionOptions& options);

  // `plan`, or where it leaves open how ranks read a context (prefill "auto") one that does not,
  // for a prompt of so many tokens whose last ones are its question.
  static std::shared_ptr<const TextPlan> ForPrompt(std::shared_ptr<const TextPlan> plan,
                                                   int64_t tokens, int64_t query_tokens);

  int64_t chunk_tokens() const { return chunk_tokens_; }
  int64_t limit_tokens() const { return policy_->limit_tokens(); }
  std::unique_ptr<TextCache> NewText() const;

  // With the model's sink token in front, where it has one and the text has not.
  std::vector<int32_t> WithSink(std::span<const int32_t> tokens) const;

  // Throws Error(kInput) for an empty prompt, an unknown token, or more than the context holds, and
  // Error(kMemory) for more than the memory for KV caches holds (of ranks: LackOfMemory).
  void CheckPrompt(std::span<const int32_t> prompt) const;
  // tokens: "40 tokens"; count: how many exactly, if that is known.
  [[noreturn]] void RefuseLength(const std::string& tokens, std::optional<int64_t> count) const;

  // Whether a text of one plan may go on from the cache of the other, as far as they are ReadAlike.
  bool SharesWith(const TextPlan& other) const;

  // On what the keys and values of its texts depend besides the tokens, and what it is called by
  // people.
  SnapshotFacts facts() const;
  std::string label() const;

  const PolicyOptions& options() const { return options_; }
  const std::shared_ptr<Communicator>& ranks() const { return options_.ranks; }

  // Where the question begins (AttentionPolicy::AskFrom) in a text of `tokens`, the last
  // `query_tokens` of them; 0 where both are shown the same.
  int64_t AskFrom(int64_t tokens, int64_t query_tokens) const;
  // Of two texts that begin alike and are asked from there on: how many of their first tokens came
  // to the same, on the same ranks.
  int64_t ReadAlike(int64_t ask_from, int64_t other) const;

  // Of a text that is asked from there on: its first tokens that come to the same whatever is
  // asked.
  int64_t SettledTokens(int64_t ask_from) const;

  // Tokens that must lie in the cache at once before a text of `tokens` goes on.
  int64_t TokensAtOnce(int64_t tokens) const;
  // What a rank's cache takes of such a prompt with so long a question.
  int64_t ShardBytes(int64_t tokens, int64_t query_tokens) const;
  // What the cache of such a text takes at most, when it is asked about.
  int64_t KvBytes(int64_t tokens) const;
  const KvPool& pool() const { return *pool_; }

 private:
  // Throws Error(kMemory) if the cache of such a text does not fit.
  void CheckFits(int64_t tokens) const;

  const Engine::Impl& engine_;
  PolicyOptions options_;
  int64_t chunk_tokens_;
  std::string owner_;
  std::shared_ptr<const AttentionPolicy> policy_;  // of a text that nobody has begun
  std::shared_ptr<KvPool> pool_;
};

}  // namespace godwit
