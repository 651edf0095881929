// Checks of concurrent requests, and of requests one after another.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/json.h"
#include "base/rng.h"
#include "lab/probe/checks.h"

namespace godwit::lab::probe {
namespace {

// Calls work(client, i) for each i below count, on as many threads as the target is to have
// clients. After all calls, throws the error of one that failed.
void ByManyClients(const Target& target, int count, const std::function<void(Client&, int)>& work) {
  std::atomic<int> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  for (int i = 0; i < std::min(target.clients, count); ++i) {
    threads.emplace_back([&] {
      try {
        Client client(target);
        for (int at; (at = next++) < count;) work(client, at);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (failure == nullptr) failure = std::current_exception();
        next = count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure != nullptr) std::rethrow_exception(failure);
}

constexpr std::string_view kWords[] = {"lemon",  "silver", "garden", "window", "button", "candle",
                                       "pepper", "rocket", "violin", "marble", "ticket", "basket"};

std::vector<std::string> Answers(const Target& target, const std::vector<std::string>& prompts,
                                 const Json& fields) {
  Client client(target);
  std::vector<std::string> answers;
  for (const std::string& prompt : prompts) {
    answers.push_back(client.MustAnswer(prompt, fields).text());
  }
  return answers;
}

// The number of requests that a server says it is answering. Nothing: it does not say.
std::optional<int64_t> RequestsInWork(Client& client) {
  const HttpResponse slots = client.Get("/slots");
  if (slots.status == 200) {
    int64_t busy = 0;
    try {
      for (const Json& slot : ParseJson(slots.body, "/slots")) {
        busy += slot.at("is_processing").get<bool>();
      }
      return busy;
    } catch (const Error&) {
    } catch (const Json::exception&) {  // another server's form
    }
  }
  const HttpResponse metrics = client.Get("/metrics");
  if (metrics.status != 200) return std::nullopt;
  std::optional<int64_t> busy;
  for (std::string_view rest = metrics.body; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::string_view name = line.substr(0, line.find_first_of("{ "));
    for (const char* const known : {"requests_processing", "num_requests_running"}) {
      if (line.starts_with('#') || !name.ends_with(known)) continue;
      const std::string value(line.substr(line.rfind(' ') + 1));
      busy = busy.value_or(0) + static_cast<int64_t>(std::strtod(value.c_str(), nullptr) > 0);
    }
  }
  return busy;
}

}  // namespace

std::string CheckBatch(const Target& target) {
  constexpr int kRounds = 3;
  const Json fields = Greedily(24);
  std::vector<std::string> prompts;
  for (int i = 0; i < target.clients; ++i) {
    const std::string_view word = kWords[static_cast<size_t>(i) % std::size(kWords)];
    prompts.push_back(fmt::format("Story {}. {} she found a {}", i + 1, kStory, word));
  }
  const auto alone = Answers(target, prompts, fields);
  MustBeSame("alone", alone[0], "alone once more", Answers(target, {prompts[0]}, fields)[0]);
  const int count = kRounds * target.clients;
  ByManyClients(target, count, [&](Client& client, int i) {
    const auto at = static_cast<size_t>(i % target.clients);
    MustBeSame("alone", alone[at], "beside others", client.MustAnswer(prompts[at], fields).text());
  });
  return fmt::format("{} prompts alone and {} requests by {} at once", alone.size(), count,
                     target.clients);
}

std::string CheckCache(const Target& target) {
  constexpr int kRounds = 4;
  const Json fields = Greedily(16);
  std::string shared = "The children play a game with a secret word. ";
  for (const std::string_view word : kWords) {
    shared += fmt::format("First they look for a {0}, and then they hide the {0} again. ", word);
  }
  std::vector<std::string> prompts;
  for (const std::string_view word : kWords) {
    prompts.push_back(
        fmt::format("{0}The secret word is {1}. Everybody says {1}, because the "
                    "secret word is",
                    shared, word));
  }
  const auto first = Answers(target, prompts, fields);
  Client alone(target);
  for (size_t i = prompts.size(); i-- > 0;) {
    MustBeSame("first", first[i], "repeated", alone.MustAnswer(prompts[i], fields).text());
  }
  const auto count = static_cast<int>(prompts.size());
  ByManyClients(target, kRounds * count, [&](Client& client, int i) {
    const auto at = static_cast<size_t>(i * 5 % count);
    MustBeSame("first", first[at], "beside others that begin alike",
               client.MustAnswer(prompts[at], fields).text());
  });
  // A text that requests continue, leave for another branch, and return to.
  const std::string branches[] = {prompts[0] + " a word that nobody knows. Then", shared,
                                  prompts[0] + " easy to guess, and so"};
  const auto branched = Answers(target, {std::begin(branches), std::end(branches)}, fields);
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < std::size(branches); ++i) {
      MustBeSame("first", branched[i], "after other branches",
                 alone.MustAnswer(branches[i], fields).text());
    }
  }
  const size_t different = std::set<std::string>(first.begin(), first.end()).size();
  if (different == 1) {
    throw Skip("the model answers all prompts alike: a wrong one would not show");
  }
  return fmt::format("{} prompts that begin alike, each {} times, {} different answers", count,
                     kRounds + 2, different);
}

std::string CheckCancel(const Target& target) {
  const int count = std::max(24, 4 * target.clients);
  const Json fields = Greedily(24);
  Client client(target);
  const std::string before = client.MustAnswer(kStory, fields).text();
  ByManyClients(target, count, [&](Client& leaving, int i) {
    const auto max_events = static_cast<size_t>(RandomBits(/*seed=*/1, 0, i, 0) % 6);
    leaving.Stream(fmt::format("Story {}. {}", i, kStory), Greedily(200), max_events);
  });
  MustBeSame("before", before, "after cut streams", client.MustAnswer(kStory, fields).text());
  const std::string seen = fmt::format("{} streams were cut", count);
  constexpr std::chrono::milliseconds kLook{50};
  constexpr std::chrono::milliseconds kMost{10'000};
  for (auto waited = kLook; waited < std::min(kMost, target.timeout); waited += kLook) {
    const auto busy = RequestsInWork(client);
    if (!busy) return seen + "; the server does not report its running requests";
    if (*busy == 0) return seen + ", and none is running any more";
    if (target.cancel != nullptr) target.cancel->ThrowIfCancelled();
    std::this_thread::sleep_for(kLook);
  }
  throw Fault(seen + ", and the server still runs some");
}

}  // namespace godwit::lab::probe
