#include "server/answer_completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <new>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "base/json.h"
#include "base/stopwatch.h"
#include "chat/answers.h"
#include "chat/result_json.h"
#include "journal/record_file.h"
#include "server/error_body.h"

namespace godwit::server {
namespace {

// The event of each token, and what follows the last one. An event that does not tell the parts of
// its text stays whole.
std::vector<Event> PartsOf(const Event& event) {
  if (event.text_ends.size() != event.tokens.size() || event.tokens.empty()) return {event};
  std::vector<Event> parts;
  size_t begin = 0;
  for (size_t i = 0; i < event.tokens.size(); ++i) {
    const auto end = static_cast<size_t>(event.text_ends[i]);
    Event part{.tokens = {event.tokens[i]}, .text = event.text.substr(begin, end - begin)};
    if (!event.logprobs.empty()) part.logprobs = {event.logprobs[i]};
    parts.push_back(std::move(part));
    begin = end;
  }
  parts.front().progress = event.progress;
  if (begin < event.text.size()) parts.push_back({.text = event.text.substr(begin)});
  return parts;
}

// The tokens of an answer, on their way to the disk. Those that are there already are compared.
class WrittenTokens {
 public:
  explicit WrittenTokens(const CompletionPlan& plan, int texts)
      : plan_(plan), counts_(static_cast<size_t>(texts)) {}

  void Take(int text, std::span<const int32_t> tokens) {
    if (plan_.journal == nullptr) return;
    size_t& count = counts_[static_cast<size_t>(text)];
    const auto before =
        plan_.before == nullptr ? std::span<const int32_t>() : plan_.before->TokensOf(text);
    const auto expected = before.subspan(std::min(count, before.size()));
    const auto rest = journal::NotWritten(tokens, before.size(), count);
    const size_t known = tokens.size() - rest.size();
    if (!std::ranges::equal(tokens.first(known), expected.first(known))) {
      throw AnswerDiffers("its tokens came out otherwise");
    }
    plan_.journal->Take(text, rest);
  }

 private:
  const CompletionPlan& plan_;
  std::vector<size_t> counts_;  // tokens of each text so far
};

// An answer that is sent as server-sent events while the model writes it.
class Stream {
 public:
  Stream(AnswerShape& shape, bool tells_progress, const CompletionPlan& plan)
      : shape_(shape), tells_progress_(tells_progress), plan_(plan), kept_(*plan.kept) {}

  bool began() const { return began_; }

  void Take(int choice, const Event& event) {
    if (!std::exchange(began_, true)) {
      // A client that knows of the answer finds it again.
      if (plan_.journal != nullptr) plan_.journal->WaitForDisk();
      Put(/*lane=*/0, shape_.First());
    }
    if (event.progress) {
      // Some answers begin with the numbers of their prompt.
      Put(kept_.LaneOf(choice), shape_.Of(choice, {.progress = event.progress}));
      if (choice == 0) Tell(*event.progress);
    }
    for (const Event& part : PartsOf(event)) Put(kept_.LaneOf(choice), shape_.Of(choice, part));
  }

  void End(const std::string& last) {
    began_ = true;
    // An answer that lost its readers is not at its end: it goes on when one comes back.
    if (kept_.is_lost()) return kept_.Drop();
    if (plan_.journal != nullptr) plan_.journal->End(last);
    Put(/*lane=*/0, last);
    kept_.End();
  }

 private:
  void Put(int lane, const std::string& events) { PutEvents(kept_, lane, events); }

  // Sends the progress of reading the prompt. A client that did not ask for progress gets a comment
  // now and then, as a sign of life; a proxy between needs one, too.
  void Tell(const PromptProgress& progress) {
    if (tells_progress_) return kept_.Tell(shape_.Progress(progress));
    constexpr double kEveryMs = 5000;
    if (told_.ms() < kEveryMs) return;
    told_ = Stopwatch();
    kept_.Tell(
        fmt::format(": read {} of {} tokens\n\n", progress.done_tokens, progress.total_tokens));
  }

  AnswerShape& shape_;
  bool tells_progress_;
  const CompletionPlan& plan_;
  KeptAnswer& kept_;
  bool began_ = false;
  Stopwatch told_;
};

// samples: the number of results for each prompt.
CompletionOutcome OutcomeOf(std::span<const GenerateResult> results, int samples) {
  const GenerateResult& first = results.front();
  CompletionOutcome outcome{.first_token_ms = first.prompt_ms};
  for (size_t i = 0; i < results.size(); i += static_cast<size_t>(samples)) {
    outcome.prompt_tokens += results[i].prompt_tokens;
    outcome.cached_tokens += results[i].cached_tokens;
    outcome.disk_tokens += results[i].disk_tokens;
  }
  if (first.tokens.size() > 1) {
    outcome.token_ms = first.predicted_ms / static_cast<double>(first.tokens.size() - 1);
  }
  for (const GenerateResult& result : results) outcome.output_tokens += std::ssize(result.tokens);
  return outcome;
}

// The facts on which the bits of an answer depend, besides its body and its seed.
Facts FactsOf(const CompletionPlan& plan, const chat::CompletionRequest& request) {
  SessionOptions options = plan.options;
  options.kv = request.kv.value_or(options.kv);
  options.prefill = request.prefill.value_or(options.prefill);
  Facts facts = plan.engine.Facts(options);
  const nlohmann::ordered_json sampler = chat::SamplerJson(request.generate.sampler);
  for (const auto& [name, value] : sampler.items()) {
    if (name != "seed") facts.emplace_back(name, value.dump());
  }
  facts.emplace_back("max_tokens", fmt::format("{}", request.generate.max_tokens));
  if (request.is_chat()) {
    const std::string_view text = plan.engine.chat_template();
    facts.emplace_back("chat template", ContentName({std::as_bytes(std::span(text))}));
  }
  return facts;
}

// Writes down what an answer begins with, or goes on with what was written down.
void BeginJournal(const CompletionPlan& plan, const chat::CompletionRequest& request,
                  std::vector<chat::Prompt>& prompts) {
  if (plan.journal == nullptr) return;
  if (plan.before != nullptr && plan.before->begun) {
    const auto& before = plan.before->begun->prompts;
    // Passages are cut out of the request's text.
    if (request.passages && (before.empty() || before.front().second != prompts.front().tokens)) {
      throw AnswerDiffers("its passages have other tokens");
    }
    for (size_t i = 0; i < std::min(prompts.size(), before.size()); ++i) {
      prompts[i].query_tokens = before[i].first;
      prompts[i].tokens = before[i].second;
    }
    return;
  }
  JournaledAnswer::Begun begun{.seed = request.generate.sampler.seed,
                               .facts = FactsOf(plan, request),
                               .prompts = {},
                               .kv = request.kv,
                               .prefill = request.prefill,
                               .more_usage = DumpJson(request.more_usage)};
  for (const chat::Prompt& prompt : prompts) {
    begun.prompts.emplace_back(prompt.query_tokens, prompt.tokens);
  }
  plan.journal->Begin(begun);
}

std::vector<GenerateResult> CancelledResults(const chat::CompletionRequest& request) {
  std::vector<GenerateResult> results(static_cast<size_t>(request.answers()));
  for (GenerateResult& result : results) result.finish_reason = FinishReason::kCancelled;
  return results;
}

// Answers into plan.kept.
CompletionOutcome AnswerInEvents(const CompletionPlan& plan, const chat::CompletionRequest& request,
                                 AnswerShape& shape) {
  const JournaledAnswer* const before = plan.before;
  if (before != nullptr && before->begun) {
    Facts now = FactsOf(plan, request), then = before->begun->facts;
    if (before->end) {  // its tokens are only spelled out
      const auto is_other = [](const auto& fact) { return fact.first != "model"; };
      std::erase_if(now, is_other);
      std::erase_if(then, is_other);
    }
    const std::string difference = DifferenceOf(now, then);
    if (!difference.empty()) throw AnswerDiffers(difference);
  }
  Stream stream(shape, request.return_progress, plan);
  WrittenTokens written(plan, request.answers());
  std::vector<bool> begun(static_cast<size_t>(request.answers()), !request.echo);
  bool has_form = false;
  const auto on_event = [&](int choice, const Event& event) {
    const bool is_echo = !begun[static_cast<size_t>(choice)];
    begun[static_cast<size_t>(choice)] = true;
    if (!is_echo) {
      plan.slot.Take(choice, event);
      written.Take(choice, event.tokens);
    }
    stream.Take(choice, event);
  };
  const auto begun_of = [&](int choice) {
    const auto tokens = before->TokensOf(choice);
    return chat::BegunAnswer{.tokens = {tokens.begin(), tokens.end()},
                             .ended = before->end.has_value()};
  };
  const CancelToken& cancel = plan.kept->cancel();
  try {
    const auto results = chat::AnswerRequest(
        plan.engine, plan.session, plan.options, request, &cancel, on_event,
        [&](const auto& form) {
          shape.Begin(form);
          has_form = true;
        },
        /*echoes=*/nullptr, [&](auto& prompts) { BeginJournal(plan, request, prompts); },
        before == nullptr ? chat::BegunAnswers() : begun_of);
    const CompletionOutcome outcome = OutcomeOf(results, request.samples);
    stream.End(before != nullptr && before->end ? *before->end : shape.Last(results));
    return outcome;
  } catch (const AnswerDiffers&) {
    throw;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kCancelled && cancel.cancelled()) {
      if (!has_form) shape.Begin({});
      stream.End(shape.Last(CancelledResults(request)));
      return {};
    }
    if (!stream.began() && !plan.kept->about().background) throw;
    stream.End(shape.Failed(StatusOf(error), plan.message_for(error)));
  } catch (const std::bad_alloc&) {
    if (!stream.began() && !plan.kept->about().background) throw;
    stream.End(shape.Failed(503, "out of memory"));
  }
  return {};
}

}  // namespace

AnswerDiffers::AnswerDiffers(const std::string& difference)
    : Error(ErrorKind::kInput,
            fmt::format("this answer was begun with other settings and cannot go on ({})",
                        difference)) {}

std::string ResponseIn(std::string_view events) {
  constexpr std::string_view kData = "data: ";
  const size_t at = events.rfind(kData);
  if (at == events.npos) return "";
  const auto json = nlohmann::ordered_json::parse(events.substr(at + kData.size()),
                                                  /*cb=*/nullptr, /*allow_exceptions=*/false);
  const auto response = json.is_object() ? json.value("response", nlohmann::ordered_json())
                                         : nlohmann::ordered_json();
  return response.is_object() ? DumpJson(response) : "";
}

void PutEvents(KeptAnswer& kept, int lane, const std::string& events) {
  if (events.empty()) return;
  if (lane == 0 && kept.about().has_body) {
    if (std::string body = ResponseIn(events); !body.empty()) kept.SetBody(std::move(body));
  }
  for (const std::string_view event : SplitEvents(events)) kept.Add(lane, event);
}

CompletionOutcome AnswerCompletion(const CompletionPlan& plan,
                                   const chat::CompletionRequest& request, AnswerShape& shape,
                                   HttpReply& reply) {
  if (plan.kept != nullptr) return AnswerInEvents(plan, request, shape);
  std::vector<bool> begun(static_cast<size_t>(request.answers()), !request.echo);
  const auto on_event = [&](int choice, const Event& event) {
    const bool is_echo = !begun[static_cast<size_t>(choice)];
    begun[static_cast<size_t>(choice)] = true;
    if (!is_echo) plan.slot.Take(choice, event);
  };
  try {
    std::vector<Event> echoes;
    const auto results = chat::AnswerRequest(
        plan.engine, plan.session, plan.options, request, &reply.gone(), on_event,
        [&](const auto& form) { shape.Begin(form); }, &echoes);
    const CompletionOutcome outcome = OutcomeOf(results, request.samples);
    if (!reply.gone().cancelled()) {
      reply.Send(200, "application/json", shape.Whole(results, echoes));
    }
    return outcome;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kCancelled && reply.gone().cancelled()) return {};
    throw;
  }
}

}  // namespace godwit::server
