// RankLeader: rank 0 as the leader of the ranks that share its texts (rank_command.h).
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "dist/communicator.h"
#include "engine/rank_command.h"
#include "engine/request.h"

namespace godwit {

class RankLeader {
 public:
  // ranks: borrowed.
  explicit RankLeader(Communicator& ranks) : ranks_(ranks) {}

  Communicator& ranks() const { return ranks_; }

  // The functions below throw as Communicator does.

  // Begins the text of a request, or begins it again. prefix: what its cache holds already, unless
  // that is from the disk. promised: bytes that this rank's other texts will still take. The text
  // has begun unless the answer has a lack, or a rank has less on its disk.
  RanksAnswer Begin(const Request& request, std::optional<BegunText::Prefix> prefix,
                    int64_t promised);
  // Proposes a step. mine: this rank's answer; it has reserved its own memory. The step happens
  // unless the answer has a lack. left: of each text, behind the step.
  RanksAnswer Step(std::vector<TextRows> parts, const RankAnswer& mine);
  // Makes the other ranks save a text.
  void Save(TextToSave text);

  // The texts that rank 0 still has. The others forget all that are not among them, with the next
  // command.
  void Keep(std::span<const int64_t> tickets);

  // An Error(kMemory) of this rank, with its name.
  std::exception_ptr WithName(const std::exception_ptr& lack) const;

  // Ends the work of all ranks, because this one cannot go on.
  void Leave(std::string_view why) noexcept { ranks_.Leave(why); }

 private:
  Communicator& ranks_;
  std::vector<int64_t> told_;       // texts that the others have, in the order of tickets
  std::vector<int64_t> forgotten_;  // for the next command
};

}  // namespace godwit
