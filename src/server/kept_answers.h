// KeptAnswers: the answers that a server writes or has written lately, by their names. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "server/kept_answer.h"

namespace godwit::server {

class KeptAnswers {
 public:
  struct Limits {
    double grace_ms = 0;                 // the time after which an answer without readers ends
    double age_ms = 24.0 * 3600 * 1000;  // the longest time that ended ones stay
    int64_t bytes = int64_t{64} << 20;   // the most bytes of those that have ended
  };
  explicit KeptAnswers(Limits limits);
  ~KeptAnswers();

  // The answer of that name, and whether it was made now.
  std::pair<std::shared_ptr<KeptAnswer>, bool> FindOrBegin(KeptAnswer::About about);
  // Null: there is none.
  std::shared_ptr<KeptAnswer> Find(const std::string& name) const;
  void Remove(const std::string& name);
  // Forgets what need not be kept any more, after the end of an answer.
  void Tidy();

 private:
  void Loop();

  Limits limits_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<KeptAnswer>> answers_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace godwit::server
