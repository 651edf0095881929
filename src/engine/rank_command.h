// RankCommand: rank 0 leads the ranks that share its texts. It tells them which texts begin, which
// to forget, and the rows of every step. They need nothing else to go along.
//
// Behind each command that begins a text or a step, the ranks compare answers. All then know at
// once whether it happens, and no rank goes on alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dist/communicator.h"
#include "engine/request.h"
#include "engine/text_plan.h"
#include "generate/sequence.h"
#include "godwit/error.h"

namespace godwit {

// A text begins, or begins again after a pause.
struct BegunText {
  int64_t ticket = 0;  // its name among ranks: Request::ticket
  RequestKind kind = RequestKind::kSubmitted;
  SessionOptions session;
  bool drafted = false;  // there may be draft tokens
  std::vector<int32_t> tokens;
  int64_t prompt_tokens = 0;
  int64_t question_begin = 0;  // Request::question_begin
  // The text from which it goes on, and the common tokens. Nothing: it is read from its beginning.
  struct Prefix {
    int64_t ticket;
    int64_t tokens;
  };
  std::optional<Prefix> prefix;
  // The first tokens that rank 0 has from its disk. The text begins if every rank has as many.
  int64_t saved = 0;
};

// A text that every rank saves on its disk, as far as it has read its part.
struct TextToSave {
  int64_t ticket = 0;
  std::string keep_as;  // GenerateOptions::keep_as, or empty
};

// The part of a text in a step.
struct TextRows {
  int64_t ticket = 0;
  int64_t rows = 0;  // at most, draft tokens included
  // The number of steps in which the slowest rank can read the rest of its part of the context; 0:
  // the ranks read together. Faster ranks take fewer rows a step, and all end together.
  int64_t steps = 0;
};

struct RankCommand {
  std::optional<TextToSave> save;  // before all else
  std::vector<int64_t> forgotten;  // tickets of texts; they go before what follows
  std::optional<BegunText> begin;
  std::vector<TextRows> step;
  // Rows of states of which the ranks that share weights with rank 0 compute the logits together.
  // Rank 0 tells them these rows next.
  int64_t logit_rows = 0;
  bool end = false;  // there will be no more commands
};

// Rank 0 tells, and the others hear. All throw as Communicator does.
void TellRanks(Communicator& ranks, const RankCommand& command);
RankCommand HearRankZero(Communicator& ranks);

// The answer of one rank to a command.
struct RankAnswer {
  // The memory that it lacks, as a message with its name; empty: none.
  std::string lack;
  bool passing = false;    // there will be enough once other texts have gone
  bool has_saved = true;   // BegunText::saved
  int64_t free_bytes = 0;  // for KV caches
  // Tokens of the context that it has yet to read, for each text of the command.
  std::vector<int64_t> left;
};

// The answer of all ranks.
struct RanksAnswer {
  // The Error(kMemory) that all ranks have if one lacks memory, from the first of those. It ends a
  // text, and not the ranks' work.
  std::optional<Error> lack;
  bool passing = false;
  bool all_have_saved = true;
  int64_t free_bytes = 0;     // the least
  std::vector<int64_t> left;  // the most, for each text
};
// RankAnswer::lack for an Error(kMemory) of this rank.
std::string LackOf(const Communicator& ranks, const Error& error);
RanksAnswer CompareAnswers(Communicator& ranks, const RankAnswer& mine);

// This rank's rows of a part; 0: others have rows of the text.
int64_t RowsOf(const Sequence& text, const TextRows& part);

// The memory that this rank lacks to begin a text. promised: bytes that texts that have begun will
// still take.
RankAnswer AnswerToBegin(const Communicator& ranks, const TextPlan& plan, const BegunText& text,
                         const TextCache& cache, int64_t promised);
// The bytes that the cache of a text will still take until its prompt is read.
int64_t PromisedBytes(const TextPlan& plan, const TextCache& cache, int64_t prompt_tokens,
                      int64_t question_begin);

}  // namespace godwit
