// TextPlan: the meaning of SessionOptions for a model: how a text is cached, and which texts are
// not refused.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attention/core/step_work.h"
#include "attention/make_policy.h"
#include "engine/served_model.h"
#include "godwit/engine.h"
#include "kv/kv_pool.h"
#include "kv/snapshot_header.h"

namespace godwit {

class TextPlan {
 public:
  // Throws Error(kInput) for options that make no sense, Error(kUnsupported) for a policy that
  // cannot serve the model, which is borrowed.
  TextPlan(const ServedModel& model, const SessionOptions& options);

  // Returns `plan`, or one that does not leave open how a context is read: by ranks (prefill
  // "auto"), or in blocks of a quarter. The prompt has so many tokens, whose last ones are its
  // question.
  static std::shared_ptr<const TextPlan> ForPrompt(std::shared_ptr<const TextPlan> plan,
                                                   int64_t tokens, int64_t query_tokens);

  // Returns `plan`, or one that reads by another PolicyOptions::prefill.
  static std::shared_ptr<const TextPlan> ReadBy(std::shared_ptr<const TextPlan> plan,
                                                const std::string& prefill);

  int64_t chunk_tokens() const { return chunk_tokens_; }
  int64_t limit_tokens() const { return policy_->facts().limit_tokens; }
  std::unique_ptr<TextCache> NewText() const;
  // The work of steps that read tokens [from, tokens) of a text in chunks, before there is the
  // text. It is asked about from question_begin on (QuestionBegin).
  std::vector<StepWork> ReadingWork(int64_t from, int64_t tokens, int64_t question_begin,
                                    int64_t chunk_tokens) const;
  // The work of the step of an answer's first token.
  StepWork AnswerWork(int64_t tokens, int64_t question_begin) const;

  // The text with the model's sink token in front, if the model has one and the text does not.
  std::vector<int32_t> WithSink(std::span<const int32_t> tokens) const;

  // Throws Error(kInput) for an empty prompt, an unknown token, or more tokens than the context
  // holds. Throws Error(kMemory) for more than the memory for KV caches holds (of ranks:
  // MissingMemory).
  void CheckPrompt(std::span<const int32_t> prompt) const;
  // tokens: "40 tokens"; count: how many exactly, if that is known.
  [[noreturn]] void RefuseLength(const std::string& tokens, std::optional<int64_t> count) const;

  // Whether a text of one plan may go on from the cache of the other, as far as they are
  // ReusableTokens.
  bool SharesWith(const TextPlan& other) const;

  // Whether this plan and the other read the tokens of a context alike, and may show a question
  // other keys. A text of this plan may then go on from a context that the other has read.
  bool ReadsAs(const TextPlan& other) const;

  // The facts on which the keys and values of a text depend besides the tokens, and the name of its
  // model for people. Where ranks share contexts, this rank's part depends on where the question
  // begins.
  SnapshotFacts facts(int64_t question_begin) const;
  const std::string& label() const { return model_.name; }

  const PolicyOptions& options() const { return options_; }
  const std::string& owner() const { return owner_; }
  // The ranks that share its texts; null: none.
  const std::shared_ptr<Communicator>& ranks() const { return options_.ranks; }
  // All ranks, which go through every text together; null: none.
  const std::shared_ptr<Communicator>& all_ranks() const { return model_.placement.all; }

  // The position at which the question begins (AttentionPolicy::SetQuestion) in a text of `tokens`,
  // the last `query_tokens` of them. 0 if question and context are shown the same.
  int64_t QuestionBegin(int64_t tokens, int64_t query_tokens) const;
  // The number of first tokens for which two texts that begin alike got equal keys and values, on
  // the same ranks. They are asked about from question_begin and from `other` on.
  int64_t ReusableTokens(int64_t question_begin, int64_t other) const;

  // The number of first tokens whose keys and values do not depend on the question, in a text that
  // is asked about from question_begin on.
  int64_t QuestionIndependentTokens(int64_t question_begin) const;

  // The number of tokens that must lie in the cache at once before a text of `tokens` goes on.
  int64_t TokensAtOnce(int64_t tokens) const;
  // The bytes that a rank's cache takes of such a prompt with so long a question.
  int64_t ShardBytes(int64_t tokens, int64_t query_tokens) const;
  // The most bytes that the cache of such a text takes, when it is asked about.
  int64_t KvBytes(int64_t tokens) const;
  const KvPool& pool() const { return *pool_; }

 private:
  void RequireGpuWindow() const;
  void MakePolicy();
  // The policy of a text of so many tokens, with its question.
  std::unique_ptr<AttentionPolicy> AskedPolicy(int64_t tokens, int64_t question_begin) const;
  // Throws Error(kUnsupported) if a rank would need queries that only other ranks have.
  void RefuseChoicesOfOthers() const;
  // Throws Error(kMemory) if the cache of such a text does not fit.
  void CheckFits(int64_t tokens) const;
  // The widest narrower storage of keys in which a text of `tokens` would fit; empty: none.
  const char* NarrowerTypeFor(int64_t tokens) const;

  const ServedModel& model_;
  PolicyOptions options_;
  int64_t chunk_tokens_;
  std::string owner_;
  std::shared_ptr<const AttentionPolicy> policy_;  // of a text that has not begun
  TextPlacement placement_;                        // of such a text
  std::shared_ptr<KvPool> pool_;
};

}  // namespace godwit
