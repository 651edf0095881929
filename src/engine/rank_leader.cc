#include "engine/rank_leader.h"

#include <algorithm>
#include <utility>

#include "engine/storage_types.h"

namespace godwit {
namespace {

BegunText TextOf(const Request& request, std::optional<BegunText::Prefix> prefix) {
  const PolicyOptions& options = request.plan().options();
  return {.ticket = request.ticket,
          .kind = request.kind(),
          .session = {.kv = options.spec,
                      .prefill = options.prefill,
                      .kv_type = StorageName(options.kv_type),
                      .int8_attention = options.int8_products,
                      .context_tokens = options.context,
                      .chunk_tokens = request.plan().chunk_tokens()},
          .drafted = request.max_rows() > 1,
          .tokens = request.sequence().tokens,
          .prompt_tokens = request.prompt_tokens(),
          .question_begin = request.question_begin(),
          .prefix = prefix,
          .saved = request.disk_tokens()};
}

}  // namespace

RanksAnswer RankLeader::Begin(const Request& request, std::optional<BegunText::Prefix> prefix,
                              int64_t promised) {
  BegunText text = TextOf(request, prefix);
  const RankAnswer mine =
      AnswerToBegin(ranks_, request.plan(), text, *request.sequence().cache, promised);
  TellRanks(ranks_, {.forgotten = std::exchange(forgotten_, {}), .begin = std::move(text)});
  RanksAnswer answer = CompareAnswers(ranks_, mine);
  if (!answer.lack && answer.all_have_saved) {
    told_.insert(std::ranges::upper_bound(told_, request.ticket), request.ticket);
  }
  return answer;
}

RanksAnswer RankLeader::Step(std::vector<TextRows> parts, const RankAnswer& mine) {
  TellRanks(ranks_, {.forgotten = std::exchange(forgotten_, {}), .step = std::move(parts)});
  return CompareAnswers(ranks_, mine);
}

void RankLeader::Save(TextToSave text) { TellRanks(ranks_, {.save = std::move(text)}); }

void RankLeader::Keep(std::span<const int64_t> tickets) {
  std::erase_if(told_, [&](int64_t ticket) {
    if (std::ranges::find(tickets, ticket) != tickets.end()) return false;
    forgotten_.push_back(ticket);
    return true;
  });
}

std::exception_ptr RankLeader::WithName(const std::exception_ptr& lack) const {
  try {
    std::rethrow_exception(lack);
  } catch (const Error& error) {
    return std::make_exception_ptr(Error(error.kind(), LackOf(ranks_, error), error.data()));
  }
}

}  // namespace godwit
