#include "engine/rank_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "base/machine_memory.h"
#include "dist/agreement.h"
#include "engine/shared_tokens.h"
#include "engine/storage_types.h"

namespace godwit {
namespace {

using Json = nlohmann::json;

Json ToJson(const BegunText& text) {
  Json json{{"ticket", text.ticket},
            {"kind", static_cast<int>(text.kind)},
            {"kv", text.session.kv},
            {"prefill", text.session.prefill},
            {"kv_type", text.session.kv_type},
            {"int8_attention", *text.session.int8_attention},
            {"context_tokens", text.session.context_tokens},
            {"chunk_tokens", text.session.chunk_tokens},
            {"drafted", text.drafted},
            {"prompt_tokens", text.prompt_tokens},
            {"question_begin", text.question_begin},
            {"saved", text.saved}};
  if (text.prefix) json["prefix"] = {text.prefix->ticket, text.prefix->tokens};
  return json;
}

BegunText BegunTextFrom(const Json& json) {
  BegunText text{.ticket = json["ticket"],
                 .kind = static_cast<RequestKind>(json["kind"].get<int>())};
  text.session.kv = json["kv"];
  text.session.prefill = json["prefill"];
  text.session.kv_type = json["kv_type"];
  text.session.int8_attention = json["int8_attention"].get<bool>();
  text.session.context_tokens = json["context_tokens"];
  text.session.chunk_tokens = json["chunk_tokens"];
  text.drafted = json["drafted"];
  text.prompt_tokens = json["prompt_tokens"];
  text.question_begin = json["question_begin"];
  text.saved = json["saved"];
  if (json.contains("prefix")) text.prefix = {json["prefix"][0], json["prefix"][1]};
  return text;
}

}  // namespace

void TellRanks(Communicator& ranks, const RankCommand& command) {
  Json json{
      {"forgotten", command.forgotten}, {"logit_rows", command.logit_rows}, {"end", command.end}};
  for (const auto& [ticket, rows, steps] : command.step)
    json["step"].push_back({ticket, rows, steps});
  if (command.save) json["save"] = {command.save->ticket, command.save->keep_as};
  if (command.begin) json["begin"] = ToJson(*command.begin);
  std::string told;  // of char: LLVM's library has no char_traits of others, which from_cbor needs
  Json::to_cbor(json, told);
  NumberOfRankZero(ranks, std::ssize(told));
  ranks.Broadcast(std::as_writable_bytes(std::span(told)), 0, nullptr);
  if (command.begin) TokensOfRankZero(ranks, command.begin->tokens);
}

RankCommand HearRankZero(Communicator& ranks) {
  std::string told(NumberOfRankZero(ranks, 0), '\0');
  ranks.Broadcast(std::as_writable_bytes(std::span(told)), 0, nullptr);
  const Json json = Json::from_cbor(told);
  RankCommand command{
      .forgotten = json["forgotten"], .logit_rows = json["logit_rows"], .end = json["end"]};
  if (json.contains("save")) {
    command.save = {.ticket = json["save"][0], .keep_as = json["save"][1].get<std::string>()};
  }
  if (json.contains("step")) {
    for (const Json& part : json["step"]) command.step.push_back({part[0], part[1], part[2]});
  }
  if (json.contains("begin")) {
    command.begin = BegunTextFrom(json["begin"]);
    command.begin->tokens = TokensOfRankZero(ranks, {});
  }
  return command;
}

std::string LackOf(const Communicator& ranks, const Error& error) {
  return fmt::format("{}: {}", ranks.NameOf(ranks.rank()), error.what());
}

RanksAnswer CompareAnswers(Communicator& ranks, const RankAnswer& mine) {
  struct Told {
    int64_t free_bytes;
    int64_t passing;
    int64_t has_saved;
    std::array<char, 512> lack;
  };
  // All ranks have as many texts in mind, so all send as much.
  const size_t left_bytes = mine.left.size() * sizeof(int64_t), bytes = sizeof(Told) + left_bytes;
  Told told{.free_bytes = mine.free_bytes,
            .passing = mine.passing,
            .has_saved = mine.has_saved,
            .lack = {}};
  std::copy_n(mine.lack.begin(), std::min(mine.lack.size(), told.lack.size() - 1),
              told.lack.begin());
  std::vector<std::byte> sent(bytes), all(bytes * static_cast<size_t>(ranks.size()));
  std::ranges::copy(std::as_bytes(std::span(&told, 1)), sent.begin());
  std::ranges::copy(std::as_bytes(std::span(mine.left)), sent.begin() + sizeof(Told));
  ranks.AllGather(sent, all, nullptr);
  RanksAnswer answer{.free_bytes = INT64_MAX, .left = mine.left};
  for (auto next = all.begin(); next != all.end(); next += static_cast<int64_t>(bytes)) {
    std::copy_n(next, sizeof(Told), std::as_writable_bytes(std::span(&told, 1)).begin());
    answer.free_bytes = std::min(answer.free_bytes, told.free_bytes);
    answer.all_have_saved = answer.all_have_saved && told.has_saved != 0;
    for (size_t i = 0; i < mine.left.size(); ++i) {
      int64_t left = 0;
      std::copy_n(next + sizeof(Told) + static_cast<int64_t>(i * sizeof left), sizeof left,
                  std::as_writable_bytes(std::span(&left, 1)).begin());
      answer.left[i] = std::max(answer.left[i], left);
    }
    const std::string_view lack(told.lack.data());
    // A lack that does not pass counts before one that does.
    if (lack.empty() || (answer.lack && (!answer.passing || told.passing != 0))) continue;
    answer.lack.emplace(ErrorKind::kMemory, std::string(lack), ReportedByRankZero(ranks));
    answer.passing = told.passing != 0;
  }
  return answer;
}

int64_t RowsOf(const Sequence& text, const TextRows& part) {
  if (part.steps == 0 || text.cache->AllRanksReadNext()) return text.NextOf(part.rows);
  const int64_t left = text.cache->ContextLeft();
  return std::min(text.next(), (left + part.steps - 1) / part.steps);
}

int64_t PromisedBytes(const TextPlan& plan, const TextCache& cache, int64_t prompt_tokens,
                      int64_t question_begin) {
  return std::max<int64_t>(
      0, plan.ShardBytes(prompt_tokens, prompt_tokens - question_begin) - cache.cache().bytes());
}

RankAnswer AnswerToBegin(const Communicator& ranks, const TextPlan& plan, const BegunText& text,
                         const TextCache& cache, int64_t promised) {
  const KvBudget& budget = plan.pool().budget();
  RankAnswer answer{.free_bytes = budget.free_bytes(), .left = {cache.ContextLeft()}};
  const int64_t wanted =
      plan.ShardBytes(text.prompt_tokens, text.prompt_tokens - text.question_begin);
  const std::string part =
      fmt::format("the part of {} tokens that {} keeps takes {}", text.prompt_tokens,
                  ranks.NameOf(ranks.rank()), FormatBytes(wanted));
  if (wanted > budget.bytes()) {
    answer.lack = fmt::format("{}, and it has {} for KV caches: use more ranks", part,
                              FormatBytes(budget.bytes()));
  } else if (std::max<int64_t>(0, wanted - cache.cache().bytes()) > answer.free_bytes - promised) {
    answer.lack = fmt::format("{}, and other texts leave it {} of {} for KV caches", part,
                              FormatBytes(std::max<int64_t>(0, answer.free_bytes - promised)),
                              FormatBytes(budget.bytes()));
    answer.passing = true;
  }
  return answer;
}

}  // namespace godwit
