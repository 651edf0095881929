// PolicyAround: a policy around another one, which does as that one in all that it does not
// override.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "attention/core/policy.h"

namespace godwit {

class PolicyAround : public AttentionPolicy {
 public:
  void Plan(const RowRun& run) override { inner_->Plan(run); }
  Looks Select(const RowRun& run, int64_t layer, const RunQueries& queries) override {
    return inner_->Select(run, layer, queries);
  }
  int64_t row_by_row_from(int64_t layer) const override { return inner_->row_by_row_from(layer); }
  int64_t on_gpu_until() const override { return inner_->on_gpu_until(); }
  NearOnGpu near_on_gpu() const override { return inner_->near_on_gpu(); }
  int64_t SeenKeys(int64_t layer, int64_t position) const override {
    return inner_->SeenKeys(layer, position);
  }
  int64_t ContextKeys(int64_t layer, int64_t position) const override {
    return inner_->ContextKeys(layer, position);
  }
  ops::KvRange Forgotten(int64_t length) const override { return inner_->Forgotten(length); }
  void SetQuestion(const Question& question) override { inner_->SetQuestion(question); }
  const DerivedIndex* index() const override { return inner_->index(); }

 protected:
  // inner: moved from after the facts, which may come from it.
  PolicyAround(PolicyFacts facts, std::unique_ptr<AttentionPolicy>&& inner)
      : AttentionPolicy(std::move(facts)), inner_(std::move(inner)) {}
  // A copy is around a fork of the other policy.
  PolicyAround(const PolicyAround& other) : AttentionPolicy(other), inner_(other.inner_->Fork()) {}

  AttentionPolicy& inner() { return *inner_; }
  const AttentionPolicy& inner() const { return *inner_; }

 private:
  std::unique_ptr<AttentionPolicy> inner_;
};

}  // namespace godwit
