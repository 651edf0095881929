#include "cli/batch/batch_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/new_file.h"
#include "base/open_file.h"
#include "base/quote.h"
#include "console/terminal/output.h"

namespace godwit::cli {
namespace {

using Json = nlohmann::ordered_json;

// Other kinds than those of servers and runs.
enum BatchRecord : uint32_t { kBatch = 32, kBegunRequest = 33, kBatchTokens = 34 };

// A batch's file, without records if it ends before the first one.
journal::Records RecordsOf(const std::string& path) {
  journal::Records records = journal::ReadRecords(path);
  if (!records.records.empty() && records.records.front().kind != kBatch) {
    Throw(ErrorKind::kFormat, "{}: expected a file of godwit batch --resume",
          QuoteUnlessPlain(path));
  }
  return records;
}

void RemoveFile(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::remove(path, ignored)) SyncNames(path);
}

}  // namespace

BatchJournal::BatchJournal(std::string path, const Facts& facts, const std::vector<bool>& finished)
    : path_(std::move(path)) {
  facts_ = DumpJson(journal::JsonOf(facts));
  if (IsListed(path_)) Read();
  std::erase_if(begun_, [&](const auto& one) {
    return one.first < std::ssize(finished) && finished[static_cast<size_t>(one.first)];
  });
  // The file is written anew with the answers that go on, so that it does not grow from run to run.
  journal::Records records;
  NewFile file(path_);
  const auto write = [&](const std::string& bytes) { file.Write(std::as_bytes(std::span(bytes))); };
  const auto write_record = [&](BatchRecord kind, const std::string& bytes) {
    write(journal::RecordBytes(std::ssize(records.records), kind, bytes));
    records.records.push_back({.kind = kind, .bytes = {}});
  };
  write(journal::FileHeader());
  write_record(kBatch, facts_);
  for (const auto& [line, begun] : begun_) {
    write_record(kBegunRequest, BytesOfBegun(line, begun));
    for (const auto& [answer, tokens] : begun.tokens) {
      write_record(kBatchTokens, BytesOfTokens(line, answer, tokens));
    }
  }
  file.Commit();
  records.bytes = file.size();
  writer_ = std::make_unique<journal::Writer>([](const std::string& message) {
    console::WriteNotice("godwit: --resume: " + message + "\n");
  });
  file_ = writer_->GoOn(path_, records);
}

void BatchJournal::Read() {
  const journal::Records records = RecordsOf(path_);
  if (records.records.empty()) return;
  if (records.records.front().bytes != facts_) {
    return console::WriteNotice(
        "godwit: --resume: answers in progress were begun with other settings and begin anew\n");
  }
  for (const journal::Record& record : records.records) {
    if (record.kind == kBegunRequest) {
      const Json json = ParseOrderedJson(record.bytes, path_);
      Begun begun;
      begun.fingerprint = json.value("fingerprint", uint64_t{0});
      begun.seed = json.value("seed", uint64_t{0});
      begun_[json.value("line", int64_t{0})] = std::move(begun);
    } else if (record.kind == kBatchTokens) {
      constexpr size_t kPlaceNumbers = 2;
      const std::vector<int32_t> numbers = journal::TokensOf(record.bytes);
      if (numbers.size() <= kPlaceNumbers) continue;
      const auto begun = begun_.find(numbers[0]);
      if (begun == begun_.end()) continue;
      auto& tokens = begun->second.tokens[numbers[1]];
      tokens.insert(tokens.end(), numbers.begin() + kPlaceNumbers, numbers.end());
    }
  }
}

std::string BatchJournal::BytesOfBegun(int64_t line, const Begun& begun) {
  return DumpJson(Json{{"line", line}, {"fingerprint", begun.fingerprint}, {"seed", begun.seed}});
}

std::string BatchJournal::BytesOfTokens(int64_t line, int answer, std::span<const int32_t> tokens) {
  const int32_t place[] = {static_cast<int32_t>(line), answer};
  return journal::BytesOf(place) + journal::BytesOf(tokens);
}

uint64_t BatchJournal::Begin(const RequestPlace& place, uint64_t otherwise) {
  const std::lock_guard lock(mutex_);
  const auto found = begun_.find(place.line);
  if (found != begun_.end() && found->second.fingerprint == place.fingerprint) {
    return found->second.seed;
  }
  Begun begun;
  begun.fingerprint = place.fingerprint;
  begun.seed = otherwise;
  file_->Append(kBegunRequest, BytesOfBegun(place.line, begun));
  begun_[place.line] = std::move(begun);
  return otherwise;
}

chat::BegunAnswer BatchJournal::BegunOf(int64_t line, int answer) const {
  const std::lock_guard lock(mutex_);
  const auto& tokens = begun_.at(line).tokens;
  const auto found = tokens.find(answer);
  return {.tokens = found == tokens.end() ? std::vector<int32_t>() : found->second};
}

void BatchJournal::Take(int64_t line, int answer, std::span<const int32_t> tokens) {
  const std::lock_guard lock(mutex_);
  Begun& begun = begun_.at(line);
  const auto before = begun.tokens.find(answer);
  const size_t written = before == begun.tokens.end() ? 0 : before->second.size();
  const auto rest = journal::NotWritten(tokens, written, begun.counts[answer]);
  if (!rest.empty()) file_->Append(kBatchTokens, BytesOfTokens(line, answer, rest));
}

void BatchJournal::Remove() {
  const std::lock_guard lock(mutex_);
  RemoveFile(path_);
}

void BatchJournal::RemoveLeftOver(const std::string& path) {
  if (!IsListed(path)) return;
  (void)RecordsOf(path);  // refuses a file of something else
  RemoveFile(path);
}

}  // namespace godwit::cli
