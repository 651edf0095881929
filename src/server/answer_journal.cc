#include "server/answer_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"

namespace godwit::server {
namespace {

using Json = nlohmann::ordered_json;

enum RecordKind : uint32_t {
  kAbout = 1,
  kBody = 2,
  kBegun = 3,
  kPrompt = 4,
  kTokens = 5,
  kEnd = 6
};

constexpr double kDiskWaitMs = 2000;
constexpr size_t kNumberBytes = sizeof(int32_t);

// A small number, and tokens behind it.
std::string Numbered(int32_t number, std::span<const int32_t> tokens) {
  return journal::BytesOf({&number, 1}) + journal::BytesOf(tokens);
}

std::pair<int32_t, std::vector<int32_t>> NumberedOf(std::string_view bytes) {
  const auto number = journal::TokensOf(bytes.substr(0, kNumberBytes));
  if (number.empty()) return {0, {}};
  return {number.front(), journal::TokensOf(bytes.substr(kNumberBytes))};
}

void TakeAbout(std::string_view bytes, JournaledAnswer& answer) {
  const Json json = ParseOrderedJson(bytes, "the journal");
  answer.name = {.id = json.at("id"),
                 .model = json.at("model"),
                 .created = json.at("created"),
                 .calls = json.at("id")};
  answer.path = json.at("path");
  answer.owner = json.at("owner");
  answer.background = json.at("background");
  answer.texts = json.at("texts");
}

JournaledAnswer::Begun BegunOf(std::string_view bytes) {
  const Json json = ParseOrderedJson(bytes, "the journal");
  JournaledAnswer::Begun begun{
      .seed = json.at("seed"), .facts = journal::FactsOf(json.at("facts")), .prompts = {}};
  if (json.contains("kv")) begun.kv = json["kv"];
  if (json.contains("prefill")) begun.prefill = json["prefill"];
  if (json.contains("usage")) begun.more_usage = DumpJson(json["usage"]);
  return begun;
}

void TakeRecord(const journal::Record& record, JournaledAnswer& answer) {
  constexpr int32_t kMaxTexts = 1 << 16;
  switch (record.kind) {
    case kAbout:
      return TakeAbout(record.bytes, answer);
    case kBody:
      answer.body = record.bytes;
      return;
    case kBegun:
      answer.begun = BegunOf(record.bytes);
      return;
    case kPrompt:
      if (answer.begun) answer.begun->prompts.push_back(NumberedOf(record.bytes));
      return;
    case kTokens: {
      const auto [text, tokens] = NumberedOf(record.bytes);
      if (text < 0 || text >= kMaxTexts) return;
      const auto at = static_cast<size_t>(text);
      answer.tokens.resize(std::max(answer.tokens.size(), at + 1));
      auto& all = answer.tokens[at];
      all.insert(all.end(), tokens.begin(), tokens.end());
      return;
    }
    case kEnd:
      answer.end = record.bytes;
      return;
    default:
      return;
  }
}

std::string ValueOf(const Facts& facts, std::string_view name) {
  const auto found = std::ranges::find(facts, name, &Facts::value_type::first);
  return found == facts.end() ? "none" : found->second;
}

}  // namespace

std::span<const int32_t> JournaledAnswer::TokensOf(int text) const {
  if (std::cmp_greater_equal(text, tokens.size())) return {};
  return tokens[static_cast<size_t>(text)];
}

std::string DigestOf(std::string_view key) {
  Sha256 digest;
  digest.Add(std::as_bytes(std::span("godwit journal ")));
  digest.Add(std::as_bytes(std::span(key)));
  return digest.Hex();
}

std::optional<JournaledAnswer> ReadAnswer(const journal::Folder& folder, const std::string& name) {
  auto records = folder.Read(name);
  if (!records) return std::nullopt;
  JournaledAnswer answer;
  try {
    for (const journal::Record& record : records->records) TakeRecord(record, answer);
  } catch (const std::exception&) {  // written by nobody
    return std::nullopt;
  }
  if (answer.name.id != name || answer.body.empty()) return std::nullopt;
  // Going on needs to know where the file's records end, and no more of them.
  for (journal::Record& record : records->records) record.bytes.clear();
  answer.records = std::move(*records);
  return answer;
}

std::string DifferenceOf(const Facts& now, const Facts& before) {
  const auto differs = [](const std::string& name, const Facts& mine, const Facts& others) {
    return ValueOf(mine, name) != ValueOf(others, name);
  };
  const auto told = [&](const std::string& name) {
    return fmt::format("{}: {}, not {}", name, ValueOf(now, name), ValueOf(before, name));
  };
  for (const auto& [name, value] : before) {
    if (differs(name, now, before)) return told(name);
  }
  for (const auto& [name, value] : now) {
    if (differs(name, now, before)) return told(name);
  }
  return "";
}

AnswerJournal::AnswerJournal(journal::Folder* folder, const JournaledAnswer& answer)
    : folder_(folder), name_(answer.name.id) {
  if (folder == nullptr) return;
  file_ = folder->Begin(name_);
  if (file_ == nullptr) return;
  file_->Append(kAbout, DumpJson(Json{{"id", answer.name.id},
                                      {"model", answer.name.model},
                                      {"created", answer.name.created},
                                      {"path", answer.path},
                                      {"owner", answer.owner},
                                      {"texts", answer.texts},
                                      {"background", answer.background}}));
  file_->Append(kBody, answer.body);
}

AnswerJournal::AnswerJournal(journal::Folder& folder, const JournaledAnswer& answer,
                             const journal::Records& records)
    : folder_(&folder), name_(answer.name.id) {
  if (!answer.end) file_ = folder.GoOn(name_, records);
}

void AnswerJournal::Begin(const JournaledAnswer::Begun& begun) {
  if (file_ == nullptr) return;
  Json json{{"seed", begun.seed}, {"facts", journal::JsonOf(begun.facts)}};
  if (begun.kv) json["kv"] = *begun.kv;
  if (begun.prefill) json["prefill"] = *begun.prefill;
  json["usage"] = Json::parse(begun.more_usage);
  file_->Append(kBegun, DumpJson(json));
  for (const auto& [query_tokens, tokens] : begun.prompts) {
    file_->Append(kPrompt, Numbered(static_cast<int32_t>(query_tokens), tokens));
  }
}

void AnswerJournal::Take(int text, std::span<const int32_t> tokens) {
  if (file_ != nullptr && !tokens.empty()) file_->Append(kTokens, Numbered(text, tokens));
}

void AnswerJournal::End(std::string_view last_events) {
  if (file_ == nullptr) return;
  file_->Append(kEnd, last_events);
  folder_->Finish(name_, *file_);
  WaitForDisk();
  file_.reset();
}

void AnswerJournal::Remove() {
  if (folder_ == nullptr) return;
  file_.reset();
  folder_->Remove(name_);
}

void AnswerJournal::WaitForDisk() {
  if (file_ != nullptr) file_->WaitForDisk(kDiskWaitMs);
}

}  // namespace godwit::server
