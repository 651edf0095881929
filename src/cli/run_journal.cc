#include "cli/run_journal.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/quote.h"
#include "console/terminal/output.h"

namespace godwit::cli {
namespace {

using Json = nlohmann::ordered_json;

enum RunRecord : uint32_t { kRun = 16, kRunTokens = 17 };  // other kinds than those of a server

}  // namespace

RunJournal::RunJournal(std::string path) : path_(std::move(path)) {
  if (path_.empty() || !IsListed(path_)) return;
  records_ = journal::ReadRecords(path_);
  for (const journal::Record& record : records_.records) {
    if (record.kind == kRun) {
      const Json json = ParseOrderedJson(record.bytes, path_);
      seed_ = json.value("seed", uint64_t{0});
      const Facts facts = journal::FactsOf(json.value("facts", Json::object()));
      facts_.insert(facts_.end(), facts.begin(), facts.end());
      has_begun_ = true;
    } else if (record.kind == kRunTokens && has_begun_) {
      const std::vector<int32_t> tokens = journal::TokensOf(record.bytes);
      constexpr int32_t kMaxAnswers = 1 << 10;
      if (tokens.empty() || tokens[0] < 0 || tokens[0] >= kMaxAnswers) continue;
      const auto answer = static_cast<size_t>(tokens[0]);
      tokens_.resize(std::max(tokens_.size(), answer + 1));
      tokens_[answer].insert(tokens_[answer].end(), tokens.begin() + 1, tokens.end());
    }
  }
  if (!has_begun_ && !records_.records.empty()) {
    Throw(ErrorKind::kInput, "{}: expected a file of godwit run --resume", QuoteUnlessPlain(path_));
  }
}

uint64_t RunJournal::SeedOr(uint64_t otherwise) const { return has_begun_ ? seed_ : otherwise; }

void RunJournal::Begin(uint64_t seed, Facts facts) {
  if (path_.empty()) return;
  if (has_begun_) {
    facts.emplace_back("seed", fmt::format("{}", seed));
    Facts before = facts_;
    before.emplace_back("seed", fmt::format("{}", seed_));
    const auto differ = std::mismatch(facts.begin(), facts.end(), before.begin(), before.end());
    if (differ.first != facts.end() && differ.second != before.end()) {
      Throw(ErrorKind::kInput,
            "{}: an earlier run had another {} ({}, not {}): choose another file",
            QuoteUnlessPlain(path_), differ.second->first, differ.second->second,
            differ.first->second);
    }
    if (differ.first != facts.end() || differ.second != before.end()) {
      Throw(ErrorKind::kInput, "{}: an earlier run had other settings: choose another file",
            QuoteUnlessPlain(path_));
    }
  }
  writer_ = std::make_unique<journal::Writer>([](const std::string& message) {
    console::WriteNotice("godwit: --resume: " + message + "\n");
  });
  const bool exists = IsListed(path_);
  file_ = exists ? writer_->GoOn(path_, records_) : writer_->Begin(path_);
  if (!has_begun_) {
    file_->Append(kRun, DumpJson(Json{{"seed", seed}, {"facts", journal::JsonOf(facts)}}));
  }
  // The seed of what the user sees is known to later runs.
  constexpr double kDiskWaitMs = 2000;
  file_->WaitForDisk(kDiskWaitMs);
}

chat::BegunAnswer RunJournal::BegunOf(int answer) const {
  const auto at = static_cast<size_t>(answer);
  return {.tokens = at < tokens_.size() ? tokens_[at] : std::vector<int32_t>()};
}

void RunJournal::Take(int answer, std::span<const int32_t> tokens) {
  if (file_ == nullptr || tokens.empty()) return;
  const auto at = static_cast<size_t>(answer);
  counts_.resize(std::max(counts_.size(), at + 1));
  const size_t before = at < tokens_.size() ? tokens_[at].size() : 0;
  tokens = journal::NotWritten(tokens, before, counts_[at]);
  if (tokens.empty()) return;
  const int32_t number = answer;
  file_->Append(kRunTokens, journal::BytesOf({&number, 1}) + journal::BytesOf(tokens));
}

}  // namespace godwit::cli
