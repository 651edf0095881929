// Checks of an answer's metadata, and of requests that a server must refuse.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/quote.h"
#include "lab/probe/checks.h"

namespace godwit::lab::probe {
namespace {

bool IsRefusal(int status) { return status >= 400 && status < 500; }

Usage UsageOf(const Answer& answer, const char* how) {
  if (!answer.usage) throw Fault(fmt::format("{}: no usage", how));
  const Usage& usage = *answer.usage;
  if (usage.prompt_tokens <= 0 ||
      usage.prompt_tokens + usage.completion_tokens != usage.total_tokens) {
    throw Fault(fmt::format("{}: {} tokens of the prompt and {} of the answer are {}", how,
                            usage.prompt_tokens, usage.completion_tokens, usage.total_tokens));
  }
  return usage;
}

std::string Words(int64_t count) {
  constexpr std::string_view kWords[] = {"one ",   "two ",  "three ", "four ",  "five ",
                                         "house ", "tree ", "river ", "stone ", "bird "};
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    text += kWords[static_cast<size_t>(i * i + i / 7) % std::size(kWords)];
  }
  return text;
}

}  // namespace

std::string CheckLogprobs(const Target& target) {
  // The text repeats itself, because servers with speculative decoding draft tokens there.
  const std::string prompt =
      "The cat sat on the mat. The cat sat on the mat. The cat sat on the mat. The cat";
  Json fields = Greedily(24);
  fields["logprobs"] = 2;
  Client client(target);
  const Answer whole = client.Ask(prompt, fields);
  if (IsRefusal(whole.status)) throw Skip("they are refused: " + RefusalOf(whole));
  if (whole.status != 200 || whole.choices.empty()) throw Fault(RefusalOf(whole));
  const auto& numbers = whole.choices[0].logprobs;
  if (numbers.empty()) throw Fault("they were asked for, and there are none");
  for (const double number : numbers) {
    constexpr double kRounding = 1e-3;
    if (!std::isfinite(number) || number > kRounding) {
      throw Fault(fmt::format("a log-probability of {}", number));
    }
  }
  if (std::all_of(numbers.begin(), numbers.end(), [](double number) { return number == 0; })) {
    throw Fault(fmt::format("all {} are 0.0", numbers.size()));
  }
  const auto streamed = client.MustAnswer(prompt, fields, /*stream=*/true).choices[0].logprobs;
  if (streamed.size() != numbers.size()) {
    throw Fault(fmt::format("{} whole and {} streamed", numbers.size(), streamed.size()));
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    constexpr double kAlike = 0.01;
    if (std::abs(numbers[i] - streamed[i]) > kAlike) {
      throw Fault(
          fmt::format("of token {}: {:.4f} whole and {:.4f} streamed", i, numbers[i], streamed[i]));
    }
  }
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  return fmt::format("{} tokens, {:.2f} to {:.2f}", numbers.size(), *least, *most);
}

std::string CheckUsage(const Target& target) {
  constexpr int kTokens = 12;
  Client client(target);
  const Usage whole = UsageOf(client.MustAnswer(kStory, Greedily(kTokens)), "whole");
  const Usage streamed =
      UsageOf(client.MustAnswer(kStory, Greedily(kTokens), /*stream=*/true), "streamed");
  if (whole != streamed) {
    throw Fault(fmt::format("{}+{} tokens whole and {}+{} streamed", whole.prompt_tokens,
                            whole.completion_tokens, streamed.prompt_tokens,
                            streamed.completion_tokens));
  }
  if (whole.completion_tokens < 1 || whole.completion_tokens > kTokens) {
    throw Fault(fmt::format("{} tokens of at most {}", whole.completion_tokens, kTokens));
  }
  return fmt::format("{}+{} tokens, whole and streamed", whole.prompt_tokens,
                     whole.completion_tokens);
}

std::string CheckFinish(const Target& target) {
  constexpr int kTokens = 3;
  Client client(target);
  std::string seen;
  for (const bool stream : {false, true}) {
    const Answer answer = client.MustAnswer(kStory, Greedily(kTokens), stream);
    const Choice& choice = answer.choices[0];
    const char* const how = stream ? "streamed" : "whole";
    if (choice.finish_reasons != 1) {
      throw Fault(fmt::format("{}: {} finish reasons", how, choice.finish_reasons));
    }
    const bool all = !answer.usage || answer.usage->completion_tokens >= kTokens;
    if (choice.finish_reason != "length" && (all || choice.finish_reason != "stop")) {
      throw Fault(fmt::format("{}: {} after {} tokens", how, Quote(choice.finish_reason), kTokens));
    }
    if (answer.usage && answer.usage->completion_tokens > kTokens) {
      throw Fault(fmt::format("{}: {} tokens where {} may be", how, answer.usage->completion_tokens,
                              kTokens));
    }
    seen = choice.finish_reason;
  }
  return fmt::format("{} after {} tokens, whole and streamed", Quote(seen), kTokens);
}

std::string CheckSeed(const Target& target) {
  Client client(target);
  const auto draw = [&](int seed) {
    Json fields = Greedily(24);
    fields["temperature"] = 1;
    fields["seed"] = seed;
    const Answer answer = client.Ask(kStory, fields);
    if (IsRefusal(answer.status)) throw Skip("it is refused: " + RefusalOf(answer));
    if (answer.status != 200 || answer.choices.empty()) throw Fault(RefusalOf(answer));
    return answer.text();
  };
  const std::string first = draw(7), other = draw(8), third = draw(9);
  MustBeSame("first", first, "with the same seed", draw(7));
  if (first == other && other == third) throw Fault("three seeds draw one text");
  return "the same text twice, and others with other seeds";
}

std::string CheckChoices(const Target& target) {
  Json fields = Greedily(16);
  fields["temperature"] = 1;
  fields["n"] = 2;
  Client client(target);
  const Answer asked = client.Ask(kStory, fields);
  if (IsRefusal(asked.status)) throw Skip("it is refused: " + RefusalOf(asked));
  for (const bool stream : {false, true}) {
    const Answer answer = client.MustAnswer(kStory, fields, stream);
    for (size_t i = 0; i < answer.choices.size(); ++i) {
      const Choice& choice = answer.choices[i];
      if (choice.finish_reasons != 1) {
        throw Fault(fmt::format("choice {}{} has {} finish reasons", i, stream ? ", streamed," : "",
                                choice.finish_reasons));
      }
    }
  }
  return "two choices, whole and streamed";
}

std::string CheckLength(const Target& target) {
  constexpr int64_t kUnknown = 2'000'000, kMost = 4'000'000;
  if (target.context_tokens == 0) throw Skip("the server says that its context has no end");
  // Each word is one token or more.
  const int64_t words =
      std::min(kMost, target.context_tokens ? 2 * *target.context_tokens : kUnknown);
  Client client(target);
  const Answer answer = client.Ask(Words(words), Greedily(4));
  if (IsRefusal(answer.status)) {
    return fmt::format("{} words: {}", words, RefusalOf(answer));
  }
  if (answer.status != 200) throw Fault(fmt::format("{} words: {}", words, RefusalOf(answer)));
  if (!answer.usage) throw Fault(fmt::format("{} words are answered without usage", words));
  if (answer.usage->prompt_tokens < words) {
    throw Fault(fmt::format("{} words are answered with 200, but only {} tokens were read", words,
                            answer.usage->prompt_tokens));
  }
  return fmt::format("{} words are read as {} tokens", words, answer.usage->prompt_tokens);
}

std::string CheckHostile(const Target& target) {
  constexpr size_t kNested = 100'000;
  const std::string model = DumpJson(Json(target.model));
  const std::string prompt =
      target.chat ? R"("messages":[{"role":"user","content":"a"}])" : R"("prompt":"a")";
  const std::string good = fmt::format(R"({{"model":{},{},"max_tokens":1)", model, prompt);
  const std::pair<const char*, std::string> kRequests[] = {
      {"half a request", good},
      {"an empty request", ""},
      {"a list", "[]"},
      {"no prompt", fmt::format(R"({{"model":{},"max_tokens":1}})", model)},
      {"a prompt that is an object", fmt::format(R"({{"model":{},"{}":{{"a":1}},"max_tokens":1}})",
                                                 model, target.chat ? "messages" : "prompt")},
      {"max_tokens in words",
       fmt::format(R"({{"model":{},{},"max_tokens":"many"}})", model, prompt)},
      {"a temperature in words", good + R"(,"temperature":"hot"})"},
      {"a stop string that is an object", good + R"(,"stop":{"a":1}})"},
      {"100,000 brackets", good + R"(,"stop":)" + std::string(kNested, '[')},
      {"bytes that are no UTF-8", good + ",\"user\":\"\xff\xfe\"}"},
  };
  Client client(target);
  for (const auto& [what, body] : kRequests) {
    const HttpResponse response = client.PostRaw(body);
    if (!IsRefusal(response.status)) {
      throw Fault(fmt::format("{}: expected a 4xx, found {}", what, response.status));
    }
  }
  client.MustAnswer(kStory, Greedily(4));
  return fmt::format("{} requests are refused", std::size(kRequests));
}

}  // namespace godwit::lab::probe
