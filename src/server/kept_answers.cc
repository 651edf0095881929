#include "server/kept_answers.h"

#include <algorithm>
#include <vector>

#include "base/next_poll.h"

namespace godwit::server {

KeptAnswers::KeptAnswers(Limits limits) : limits_(limits), thread_([this] { Loop(); }) {}

KeptAnswers::~KeptAnswers() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::pair<std::shared_ptr<KeptAnswer>, bool> KeptAnswers::FindOrBegin(KeptAnswer::About about) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<KeptAnswer>& answer = answers_[about.name];
  if (answer != nullptr) return {answer, false};
  answer = std::make_shared<KeptAnswer>(std::move(about));
  changed_.notify_all();
  return {answer, true};
}

std::shared_ptr<KeptAnswer> KeptAnswers::Find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = answers_.find(name);
  return found == answers_.end() ? nullptr : found->second;
}

void KeptAnswers::Remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  answers_.erase(name);
}

void KeptAnswers::Tidy() {
  const std::lock_guard lock(mutex_);
  std::erase_if(answers_, [&](const auto& one) {
    const KeptAnswer& answer = *one.second;
    return answer.ended() && (!answer.keeps() || answer.age_ms() > limits_.age_ms);
  });
  std::vector<std::shared_ptr<KeptAnswer>> ended;
  int64_t bytes = 0;
  for (const auto& [name, answer] : answers_) {
    if (!answer->ended()) continue;
    bytes += answer->bytes();
    ended.push_back(answer);
  }
  std::ranges::sort(ended, std::ranges::greater(), &KeptAnswer::age_ms);
  for (const auto& answer : ended) {
    if (bytes <= limits_.bytes) return;
    bytes -= answer->bytes();
    answers_.erase(answer->about().name);
  }
}

// Ends answers that nobody reads.
void KeptAnswers::Loop() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const auto goes_on = [](const auto& one) { return !one.second->ended(); };
    if (std::ranges::any_of(answers_, goes_on)) {
      changed_.wait_until(lock, NextPoll());
    } else {
      changed_.wait(lock);
    }
    for (const auto& [name, answer] : answers_) answer->CancelIfLost(limits_.grace_ms);
  }
}

}  // namespace godwit::server
