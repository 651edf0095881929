// RunJournal: the file of godwit run --resume, from which the same command goes on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "chat/answers.h"
#include "journal/facts.h"
#include "journal/writer.h"

namespace godwit::cli {

class RunJournal {
 public:
  using Facts = journal::Facts;

  // Reads the file of an earlier run, if there is one. path: empty: there is no journal, and all
  // else does nothing. Throws Error(kIo). Throws Error(kFormat) for a file of something else.
  explicit RunJournal(std::string path);

  // The seed of the earlier run; `otherwise`: there was none.
  uint64_t SeedOr(uint64_t otherwise) const;
  // Begins the file, or goes on with it. facts: those on which the output depends. Throws
  // Error(kInput) if the earlier run had others.
  void Begin(uint64_t seed, Facts facts);
  // The tokens that an earlier run has written of an answer.
  chat::BegunAnswer BegunOf(int answer) const;
  // Takes tokens of an answer, those of the earlier run first.
  void Take(int answer, std::span<const int32_t> tokens);

 private:
  std::string path_;
  journal::Records records_;
  bool has_begun_ = false;
  uint64_t seed_ = 0;
  Facts facts_;
  std::vector<std::vector<int32_t>> tokens_;  // of each answer, by the earlier run
  std::vector<size_t> counts_;                // of each answer, in this run
  std::unique_ptr<journal::Writer> writer_;
  std::shared_ptr<journal::File> file_;
};

}  // namespace godwit::cli
