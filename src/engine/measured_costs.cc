#include "engine/measured_costs.h"

#include <algorithm>

namespace godwit {
namespace {

// Steps with draft tokens before their gain is told, and after which a step counts a third.
constexpr int64_t kFewestDrafted = 8;
constexpr double kFade = 1 - 1.0 / 256;
// Sources of draft tokens, named by requests, whose gain is remembered.
constexpr size_t kMostDrafts = 64;

}  // namespace

const WorkCosts* MeasuredCosts::Find(Kind kind) const {
  const auto found = costs_.find(kind);
  return found == costs_.end() ? nullptr : found->second.get();
}

void MeasuredCosts::Record(Kind kind, const StepWork& work, double ms) {
  const std::lock_guard lock(mutex_);
  auto& costs = costs_[kind];
  if (costs == nullptr) costs = std::make_unique<WorkCosts>();
  costs->Record(work, ms);
}

void MeasuredCosts::RecordDrafted(Kind kind, std::string_view draft, const StepWork& plain,
                                  double ms, int64_t accepted) {
  const std::lock_guard lock(mutex_);
  const WorkCosts* const costs = Find(kind);
  const auto plain_ms = costs == nullptr ? std::nullopt : costs->Ms(plain);
  if (!plain_ms) return;
  auto found = drafted_.find(draft);
  if (found == drafted_.end()) {
    if (drafted_.size() >= kMostDrafts) return;
    found = drafted_.emplace(std::string(draft), Drafted()).first;
  }
  Drafted& drafted = found->second;
  drafted.plain_ms = kFade * drafted.plain_ms + *plain_ms * static_cast<double>(accepted);
  drafted.ms = kFade * drafted.ms + ms;
  ++drafted.steps;
}

std::optional<double> MeasuredCosts::Ms(Kind kind, std::span<const StepWork> steps) const {
  const std::lock_guard lock(mutex_);
  const WorkCosts* const costs = Find(kind);
  return costs == nullptr ? std::nullopt : costs->Ms(steps);
}

bool MeasuredCosts::Tells(Kind kind, std::span<const StepWork> steps) const {
  const std::lock_guard lock(mutex_);
  const WorkCosts* const costs = Find(kind);
  return costs != nullptr && costs->Tells(steps);
}

std::optional<double> MeasuredCosts::DraftedShare(std::string_view draft) const {
  const std::lock_guard lock(mutex_);
  const auto found = drafted_.find(draft);
  if (found == drafted_.end() || found->second.steps < kFewestDrafted) return std::nullopt;
  return found->second.ms / found->second.plain_ms;
}

void MeasuredCosts::RecordReuse(Kind kind, int64_t tokens, double ms) {
  constexpr double kKept = 0.9;
  const std::lock_guard lock(mutex_);
  Reused& reused = reused_[kind];
  reused.tokens = kKept * reused.tokens + static_cast<double>(tokens);
  reused.ms = kKept * reused.ms + ms;
}

std::optional<double> MeasuredCosts::ReuseMs(Kind kind, int64_t tokens) const {
  const std::lock_guard lock(mutex_);
  const auto found = reused_.find(kind);
  if (found == reused_.end() || found->second.tokens == 0) return std::nullopt;
  return found->second.ms / found->second.tokens * static_cast<double>(tokens);
}

int64_t MeasuredCosts::probed(Kind kind) const {
  const std::lock_guard lock(mutex_);
  const auto found = probed_.find(kind);
  return found == probed_.end() ? -1 : found->second;
}

void MeasuredCosts::SetProbed(Kind kind, int64_t tokens) {
  const std::lock_guard lock(mutex_);
  probed_[kind] = tokens;
}

}  // namespace godwit
