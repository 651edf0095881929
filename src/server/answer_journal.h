// AnswerJournal: the file from which a later process makes the same answer again. It has the
// request, the tokens of its prompts, its seed and name, and its tokens so far.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/answers.h"
#include "chat/completion_json.h"
#include "journal/facts.h"
#include "journal/folder.h"

namespace godwit::server {

using Facts = journal::Facts;

struct JournaledAnswer {
  chat::CompletionName name;
  std::string path;   // of the request
  std::string body;   // of the request
  std::string owner;  // a digest of the key
  int texts = 1;      // in the answer
  bool background = false;
  // Known once the answer has begun.
  struct Begun {
    uint64_t seed = 0;
    Facts facts;
    std::vector<std::pair<int64_t, std::vector<int32_t>>> prompts;  // query tokens, tokens
    // Fields of the request that chat::PrepareRequest found, with more_usage as text. At another
    // time they might be others.
    std::optional<std::string> kv = {}, prefill = {};
    std::string more_usage = "{}";
  };
  std::optional<Begun> begun;
  std::vector<std::vector<int32_t>> tokens;  // of each text of the answer; may be fewer than texts
  std::optional<std::string> end;            // the last events
  journal::Records records;

  // The tokens of a text so far.
  std::span<const int32_t> TokensOf(int text) const;
};

// A digest that tells keys apart and does not tell them.
std::string DigestOf(std::string_view key);

// Reads an answer. Nothing: there is none of this name, or nothing can be done with it.
std::optional<JournaledAnswer> ReadAnswer(const journal::Folder& folder, const std::string& name);

// Names, values and the difference of facts: "weights: int8, not bf16"; empty: there is none.
std::string DifferenceOf(const Facts& now, const Facts& before);

class AnswerJournal {
 public:
  // Begins with the request. folder: null: nothing is written down, and all else does nothing.
  AnswerJournal(journal::Folder* folder, const JournaledAnswer& answer);
  // Goes on with an answer that was read.
  AnswerJournal(journal::Folder& folder, const JournaledAnswer& answer,
                const journal::Records& records);

  void Begin(const JournaledAnswer::Begun& begun);
  void Take(int text, std::span<const int32_t> tokens);
  // Returns once the end is on the disk, or after a few seconds. A client that has seen an answer
  // cancelled must not see it go on.
  void End(std::string_view last_events);
  // Forgets an answer that was refused.
  void Remove();
  // Waits until all so far is on the disk, for a few seconds at most.
  void WaitForDisk();

 private:
  journal::Folder* folder_;
  std::string name_;
  std::shared_ptr<journal::File> file_;
};

}  // namespace godwit::server
