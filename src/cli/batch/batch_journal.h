// BatchJournal: the tokens of answers in progress of a batch (--resume). The next run goes on with
// these answers. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "chat/answers.h"
#include "cli/batch/request_file.h"
#include "journal/facts.h"
#include "journal/writer.h"

namespace godwit::cli {

class BatchJournal {
 public:
  using Facts = journal::Facts;

  // Takes over the answers that an earlier run has begun and not finished, if its facts are the
  // same. finished: [line] as FinishedRequests has them. Throws Error(kIo), and Error(kFormat) for
  // a file of something else.
  BatchJournal(std::string path, const Facts& facts, const std::vector<bool>& finished);

  // The seed with which an earlier run has begun the request; `otherwise`: none has.
  uint64_t Begin(const RequestPlace& place, uint64_t otherwise);
  chat::BegunAnswer BegunOf(int64_t line, int answer) const;
  // Takes tokens of an answer, those of the earlier run first.
  void Take(int64_t line, int answer, std::span<const int32_t> tokens);
  // Removes the file, once the batch has ended.
  void Remove();
  // Removes the file of a run that was killed between its last result and Remove. Throws as the
  // constructor does for a file of something else.
  static void RemoveLeftOver(const std::string& path);

 private:
  struct Begun {
    uint64_t fingerprint = 0, seed = 0;
    std::map<int, std::vector<int32_t>> tokens;  // of each answer
    std::map<int, size_t> counts;                // in this run
  };
  void Read();
  static std::string BytesOfBegun(int64_t line, const Begun& begun);
  static std::string BytesOfTokens(int64_t line, int answer, std::span<const int32_t> tokens);

  std::string path_;
  std::string facts_;
  mutable std::mutex mutex_;        // guards the members below
  std::map<int64_t, Begun> begun_;  // by the request's line
  std::unique_ptr<journal::Writer> writer_;
  std::shared_ptr<journal::File> file_;
};

}  // namespace godwit::cli
