// Many requests at once. The actions and failures of one do not show in the others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <deque>
#include <future>
#include <memory>
#include <thread>

#include "base/rng.h"
#include "base/test_folder.h"
#include "base/test_support.h"
#include "engine/engine_impl.h"
#include "engine/engine_test_support.h"
#include "kv/kv_file_test_support.h"
#include "tests/fake_model.h"
#include "text/fake_tokenizer.h"

namespace godwit::scheduler_test {
namespace {

using testing::HasSubstr;

Tokens Alone(const Engine& engine, const Tokens& prompt, int64_t max_tokens,
             const SessionOptions& session = {}) {
  return engine.NewSession(session).Generate(prompt, Greedy(max_tokens)).tokens;
}

TEST(Scheduler, ManyAtOnceGiveTheTokensOfEachAlone) {
  const Engine engine(kTiny, {.threads = 2, .step_tokens = 48});
  for (const char* kv : {"dense", "sinks:2+30"}) {
    const SessionOptions session{.kv = kv, .kv_type = "int8", .chunk_tokens = 33};
    std::vector<Generation> generations;
    for (int i = 0; i < 8; ++i) {
      generations.push_back(engine.Submit(Prompt(i, 1 + 23 * i), Greedy(20 + i), session));
    }
    for (int i = 0; i < 8; ++i) {
      const GenerateResult result = generations[i].Wait();
      EXPECT_EQ(result.tokens, Alone(engine, Prompt(i, 1 + 23 * i), 20 + i, session)) << kv << i;
      EXPECT_EQ(result.finish_reason, FinishReason::kLength);
      EXPECT_EQ(result.pauses, 0);
    }
  }
}

TEST(Scheduler, EventsTellTheResultPieceByPiece) {
  const Engine engine(kTiny, {.threads = 1, .step_tokens = 10});
  GenerateOptions options = Greedy(30);
  options.top_logprobs = 2;
  const Tokens prompt = Prompt(3, 45);
  auto generation = engine.Submit(prompt, options);
  Event all;
  int64_t last_progress = 0;
  for (bool done = false; !done;) {
    const Event event = generation.Next();
    if (event.progress) {
      EXPECT_GT(event.progress->done_tokens, last_progress);
      last_progress = event.progress->done_tokens;
      EXPECT_EQ(event.progress->total_tokens, 45);
    }
    all.tokens.insert(all.tokens.end(), event.tokens.begin(), event.tokens.end());
    all.logprobs.insert(all.logprobs.end(), event.logprobs.begin(), event.logprobs.end());
    all.text += event.text;
    done = event.done;
  }
  EXPECT_EQ(last_progress, 45);
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { generation.Next(); }), HasSubstr("has ended"));
  const GenerateResult result = generation.Wait();
  EXPECT_EQ(all.tokens, result.tokens);
  EXPECT_EQ(all.text, result.text);
  ASSERT_EQ(result.logprobs.size(), 30u);
  ASSERT_EQ(all.logprobs.size(), 30u);
  for (size_t i = 0; i < 30; ++i) {
    const TokenLogprobs& at = result.logprobs[i];
    ASSERT_EQ(at.top.size(), 2u);
    EXPECT_EQ(at.top[0].token, result.tokens[i]) << "greedy";
    EXPECT_EQ(at.top[0].logprob, at.logprob);
    EXPECT_LE(at.top[1].logprob, at.logprob);
    EXPECT_LT(at.logprob, 0);
  }
}

// All rows of logits give the same numbers.
TEST(Scheduler, LogprobsAreTheModels) {
  const Engine engine(kTiny, {.threads = 1});
  GenerateOptions options = Greedy(5);
  options.top_logprobs = 0;
  options.sampler.temperature = 2;  // the sampler's temperature does not count
  const Tokens prompt = Prompt(1, 9);
  const GenerateResult result = engine.Submit(prompt, options).Wait();
  Tokens text = prompt;
  text.insert(text.end(), result.tokens.begin(), result.tokens.end());
  engine.NewSession({}).Logits(
      text,
      [&](int64_t position, std::span<const float> logits) {
        if (position + 1 == std::ssize(text)) return;
        double sum = 0;
        for (const float x : logits) sum += std::exp(double{x});
        const auto at = static_cast<size_t>(position + 1) - prompt.size();
        const auto token = static_cast<size_t>(result.tokens[at]);
        EXPECT_NEAR(result.logprobs[at].logprob, logits[token] - std::log(sum), 1e-5);
        EXPECT_TRUE(result.logprobs[at].top.empty());
      },
      std::ssize(prompt) - 1);
}

TEST(Scheduler, APromptThatBeginsAlikeIsReadOnce) {
  const Engine engine(kTiny, {.threads = 1, .step_tokens = 20});
  const Tokens prompt = Prompt(5, 200);
  std::vector<Generation> samples;
  GenerateOptions options = Greedy(10);
  options.sampler.temperature = 1.5f;
  for (options.sequence = 0; options.sequence < 4; ++options.sequence) {
    samples.push_back(engine.Submit(prompt, options));
  }
  int64_t read = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const GenerateResult result = samples[i].Wait();
    read += result.read_tokens;
    options.sequence = i;
    EXPECT_EQ(result.tokens, engine.NewSession({}).Generate(prompt, options).tokens) << i;
  }
  EXPECT_EQ(read, 200 + 3) << "the others read the last token, whose logits they need";

  // A later request goes on from the parked text.
  Tokens longer(prompt.begin(), prompt.begin() + 150);
  longer.push_back(250);
  const GenerateResult later = engine.Submit(longer, Greedy(5)).Wait();
  EXPECT_EQ(later.cached_tokens, 150);
  EXPECT_EQ(later.tokens, Alone(engine, longer, 5));
}

TEST(Scheduler, AForkGoesOnFromTheSameText) {
  const Engine engine(kTiny, {.threads = 1});
  Session session = engine.NewSession({});
  for (const int64_t length : {1, 63, 64, 65, 130}) {
    const Tokens prompt = Prompt(7, length);
    session.Generate(prompt, Greedy(3));
    Session fork = session.Fork();
    EXPECT_EQ(fork.kv().seen, session.kv().seen);
    Tokens text(fork.tokens().begin(), fork.tokens().end());
    EXPECT_EQ(text, Tokens(session.tokens().begin(), session.tokens().end()));
    Tokens other = text;
    text.push_back(17);
    other.push_back(99);
    const auto a = session.Generate(text, Greedy(70));
    const auto b = fork.Generate(other, Greedy(70));
    EXPECT_EQ(a.cached_tokens, length + 2);
    EXPECT_EQ(b.cached_tokens, length + 2);
    EXPECT_EQ(a.tokens, Alone(engine, text, 70));
    EXPECT_EQ(b.tokens, Alone(engine, other, 70));
  }
  const Session moved = std::move(session);
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { (void)session.Fork(); }), HasSubstr("moved from"));
}

TEST(Scheduler, SessionsAndRequestsOutliveTheirEngine) {
  auto engine = std::make_unique<Engine>(kTiny, LoadOptions{.threads = 1});
  const Tokens prompt = Prompt(2, 20);
  const Tokens expected = Alone(*engine, prompt, 40);
  Session session = engine->NewSession({});
  Generation generation = engine->Submit(prompt, Greedy(40));
  engine.reset();
  EXPECT_EQ(generation.Wait().tokens, expected);
  EXPECT_EQ(session.Generate(prompt, Greedy(40)).tokens, expected);
}

// Many texts share the memory of a few. They take turns, and the older ones go first.
TEST(Scheduler, AllFinishThoughMemoryIsShort) {
  const Engine unlimited(kTiny, {.threads = 1});
  const Session probe = unlimited.NewSession({});
  Session measure = unlimited.NewSession({});
  measure.Generate(Prompt(0, 10), Greedy(1));
  const int64_t page_set = measure.kv().bytes;  // of 64 tokens in all layers
  const Engine engine(kTiny, {.threads = 1, .kv_memory_bytes = 7 * page_set, .step_tokens = 64});
  std::vector<Generation> generations;
  for (int i = 0; i < 6; ++i) {
    generations.push_back(engine.Submit(Prompt(i, 40 + i), Greedy(150)));  // 3 sets each
  }
  int64_t pauses = 0;
  for (int i = 0; i < 6; ++i) {
    const GenerateResult result = generations[i].Wait();
    EXPECT_EQ(result.tokens, Alone(unlimited, Prompt(i, 40 + i), 150)) << i;
    if (i == 0) {
      EXPECT_EQ(result.pauses, 0) << "the oldest always goes on";
    }
    pauses += result.pauses;
  }
  EXPECT_GT(pauses, 0);
  EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { engine.Submit(Prompt(0, 449), Greedy(1)); }),
              HasSubstr("enough for 448 tokens"));
  // A text that outgrows all memory ends alone, and its memory is free again.
  auto large = engine.Submit(Prompt(0, 400), Greedy(100));
  EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { large.Wait(); }), HasSubstr("needs another"));
  EXPECT_EQ(engine.Submit(Prompt(1, 440), Greedy(2)).Wait().tokens,
            Alone(unlimited, Prompt(1, 440), 2));
  EXPECT_THAT(
      ErrorOf(
          ErrorKind::kMemory,
          [&] { Engine(kTiny, {.threads = 1, .kv_memory_bytes = page_set - 1}).NewSession({}); }),
      HasSubstr("the smallest KV cache"));
}

// A text fits only beside the index of its question.
TEST(Scheduler, TheIndexOfBlocksTakesMemoryToo) {
  const SessionOptions session{.kv = "blocks:initial=0,local_windows_len=1,second_block_count=1"};
  const int64_t page_set = Engine(kTiny, {.threads = 1}).KvBytes(1, session);
  const Engine engine(kTiny, {.threads = 1, .kv_memory_bytes = 8 * page_set});
  EXPECT_EQ(engine.KvBytes(384, session), 8 * page_set);  // signs take a page, and so do offsets
  EXPECT_THAT(
      ErrorOf(ErrorKind::kMemory, [&] { engine.Submit(Prompt(0, 385), Greedy(1), session); }),
      HasSubstr("enough for 384 tokens"));
  EXPECT_EQ(engine.Submit(Prompt(0, 384), Greedy(1), session).Wait().tokens.size(), 1);
}

TEST(Scheduler, CachesInAFileAnswerAlike) {
  const TempFolder folder;
  const Engine unlimited(kTiny, {.threads = 1});
  Session measure = unlimited.NewSession({});
  measure.Generate(Prompt(0, 10), Greedy(1));
  EXPECT_FALSE(measure.kv().file);
  const int64_t page_set = measure.kv().bytes;
  const Engine engine(kTiny, {.threads = 2,
                              .kv_memory_bytes = 2 * page_set,  // for blocks: signs and offsets
                              .kv_file = folder.path(),
                              .kv_file_bytes = 40 * page_set,
                              .step_tokens = 64});
  EXPECT_EQ(engine.kv_memory_bytes(), 40 * page_set);
  for (const char* kv : {"dense", "blocks:second_block_count=1,local_windows_len=1"}) {
    const SessionOptions session{.kv = kv};
    std::vector<Generation> generations;
    for (int i = 0; i < 6; ++i) {
      generations.push_back(engine.Submit(Prompt(i, 250 + i), Greedy(40), session));
    }
    generations[2].Cancel();
    for (int i = 0; i < 6; ++i) {
      const GenerateResult result = generations[i].Wait();
      ASSERT_TRUE(result.kv.file);
      if (i == 2) continue;
      EXPECT_LT(result.kv.file->in_memory_bytes, result.kv.bytes);
      EXPECT_EQ(result.tokens, Alone(unlimited, Prompt(i, 250 + i), 40, session)) << kv << i;
      EXPECT_GT(result.kv.file->read_bytes, 0);
    }
  }
}

// A request that needs more of the disk than there is ends alone, and only it gets the error.
TEST(Scheduler, AFullDiskEndsTheRequestThatMeetsIt) {
  const TempFolder folder;
  const Engine unlimited(kTiny, {.threads = 1});
  const Engine engine(kTiny, {.threads = 1, .kv_file = folder.path()});
  {
    const FullDisk full(0);
    auto generation = engine.Submit(Prompt(1, 100), Greedy(5));
    EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { generation.Wait(); }),
                HasSubstr(folder.path().string() + ": File too large"));
    EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { Alone(engine, Prompt(2, 100), 5); }),
                HasSubstr("the KV cache needs another"));
  }
  EXPECT_EQ(Alone(engine, Prompt(1, 100), 5), Alone(unlimited, Prompt(1, 100), 5));
  ErrorOf(ErrorKind::kIo, [&] { Engine(kTiny, {.kv_file = folder.path() / "no" / "folder"}); });
  ErrorOf(ErrorKind::kInput, [&] { Engine(kTiny, {.kv_file_bytes = -1}); });
}

// Session::Logits is a request like others: it waits for memory, and gives way to an older one.
TEST(Scheduler, LogitsWaitForMemoryAsRequestsDo) {
  const Engine unlimited(kTiny, {.threads = 1});
  Session measure = unlimited.NewSession({});
  measure.Generate(Prompt(0, 10), Greedy(1));
  const int64_t page_set = measure.kv().bytes;
  using Rows = std::vector<std::vector<float>>;
  const auto logits = [](const Engine& engine, const Tokens& text) {
    Rows rows;
    engine.NewSession({.chunk_tokens = 2})
        .Logits(text, [&](int64_t position, std::span<const float> row) {
          EXPECT_EQ(position, std::ssize(rows)) << "each comes once, also after a pause";
          rows.emplace_back(row.begin(), row.end());
        });
    return rows;
  };
  const Tokens long_text = Prompt(9, 200);
  const Rows expected = logits(unlimited, long_text);
  for (const int64_t begins_with : {10, 200}) {  // memory for both at first, or for one
    const Engine engine(kTiny, {.threads = 1, .kv_memory_bytes = 5 * page_set});
    auto older = engine.Submit(Prompt(1, begins_with), Greedy(100));
    EXPECT_EQ(logits(engine, long_text), expected);
    const GenerateResult result = older.Wait();
    EXPECT_EQ(result.pauses, 0);
    EXPECT_EQ(result.tokens, Alone(unlimited, Prompt(1, begins_with), 100));
  }
}

TEST(Scheduler, RequestsRunDuringALogitsCall) {
  const Engine engine(kTiny, {.threads = 1, .step_tokens = 20});
  const Tokens text = Prompt(3, 200);
  const Tokens expected = Alone(engine, text, 5);
  Session session = engine.NewSession({});
  session.Logits(text, [&](int64_t position, std::span<const float>) {
    if (position % 90 != 0) return;
    EXPECT_EQ(engine.Submit(text, Greedy(5)).Wait().tokens, expected) << position;
  });
}

// Requests come, go and give up. Answers are those of each alone, and no page is lost.
TEST(Scheduler, RandomRequestsAndCancelsLeaveNothingBehind) {
  const Engine unlimited(kTiny, {.threads = 1});
  Session measure = unlimited.NewSession({});
  measure.Generate(Prompt(0, 10), Greedy(1));
  auto engine = std::make_shared<const Engine::Impl>(
      kTiny,
      LoadOptions{.threads = 2, .kv_memory_bytes = 9 * measure.kv().bytes, .step_tokens = 40});
  const auto plan = std::make_shared<const TextPlan>(engine->served, SessionOptions{});
  struct Started {
    std::shared_ptr<Request> request;
    Tokens prompt;
    int64_t output_tokens;
  };
  std::deque<Started> started;
  int finished = 0, cancelled = 0;
  const auto finish = [&](Started& one) {
    while (!one.request->Next(std::nullopt)->done) continue;
    const GenerateResult result = one.request->TakeResult();
    if (result.finish_reason == FinishReason::kCancelled) {
      ++cancelled;
    } else {
      ++finished;
      EXPECT_EQ(std::ssize(result.tokens), one.output_tokens);
    }
    const auto expected = Alone(unlimited, one.prompt, std::ssize(result.tokens));
    EXPECT_EQ(result.tokens, expected);
  };
  for (int i = 0; i < 200; ++i) {
    const auto random = [&](int64_t below, uint64_t draw) {
      return static_cast<int64_t>(RandomBits(/*seed=*/7, 0, i, draw) %
                                  static_cast<uint64_t>(below));
    };
    Started one{.request = nullptr,
                .prompt = Prompt(static_cast<int>(random(12, 0)), 1 + random(120, 1)),
                .output_tokens = random(4, 2) == 0 ? 300 : 1 + random(60, 3)};
    one.request = engine->NewRequest(plan, one.prompt, Greedy(one.output_tokens),
                                     std::make_shared<Interrupt>(), RequestKind::kSubmitted);
    engine->scheduler->Submit(one.request);
    started.push_back(std::move(one));
    if (random(2, 4) == 0) started[random(std::ssize(started), 5)].request->Cancel();
    if (started.size() == 8) {
      finish(started.front());
      started.pop_front();
    }
  }
  for (Started& one : started) finish(one);
  EXPECT_GT(finished, 50);
  EXPECT_GT(cancelled, 10);
  engine.reset();  // and with it the parked texts
  EXPECT_EQ(plan->pool().pages_in_use(), 0);
  EXPECT_EQ(plan->pool().budget().used(), 0);
}

TEST(Scheduler, ACancelledSessionCanBeForked) {
  const Engine engine(kTiny, {.threads = 1});
  Session session = engine.NewSession({.kv = "sinks:4+60"});
  GenerateOptions options = Greedy(-1);
  options.on_text = [&](std::string_view) { session.Cancel(); };
  EXPECT_EQ(session.Generate(Prompt(4, 70), options).finish_reason, FinishReason::kCancelled);
  Session fork = session.Fork();
  const Tokens text(session.tokens().begin(), session.tokens().end());
  EXPECT_EQ(fork.Generate(text, Greedy(9)).tokens, session.Generate(text, Greedy(9)).tokens);
}

// A model of one dimension whose steps a test can stop.
class Scripted {
 public:
  explicit Scripted(const LoadOptions& options = {.threads = 1}, NowMs now_ms = SteadyMs) {
    auto model = std::make_unique<FakeModel>(
        kVocab, [](int32_t token, int64_t position) { return (token + position) % 26 + 'a'; });
    model_ = model.get();
    engine_ = std::make_shared<const Engine::Impl>(
        std::move(model), FakeModel::Spec(kVocab, 100'000), std::make_unique<FakeTokenizer>(),
        SpecialTokens{}, options, now_ms);
  }
  ~Scripted() { model_->on_step = nullptr; }

  FakeModel& model() { return *model_; }
  Scheduler& scheduler() { return *engine_->scheduler; }

  std::shared_ptr<Request> Submit(const Tokens& prompt, const GenerateOptions& options,
                                  std::shared_ptr<Interrupt> interrupt = nullptr) {
    if (interrupt == nullptr) interrupt = std::make_shared<Interrupt>();
    const auto plan = std::make_shared<const TextPlan>(engine_->served, SessionOptions{});
    auto request =
        engine_->NewRequest(plan, prompt, options, std::move(interrupt), RequestKind::kSubmitted);
    engine_->scheduler->Submit(request);
    return request;
  }
  static GenerateResult Wait(Request& request) {
    while (!request.Next(std::nullopt)->done) continue;
    return request.TakeResult();
  }
  Tokens Expected(const Tokens& prompt, int64_t n) const {
    Tokens text = prompt, output;
    while (n-- > 0) {
      output.push_back((text.back() + static_cast<int32_t>(text.size()) - 1) % 26 + 'a');
      text.push_back(output.back());
    }
    return output;
  }

  static constexpr int64_t kVocab = FakeTokenizer::kEos + 1;

 private:
  FakeModel* model_;
  std::shared_ptr<const Engine::Impl> engine_;
};

TEST(Scheduler, AShortPromptDoesNotWaitForALongOnesEnd) {
  Scripted scripted({.threads = 1, .step_tokens = 100});
  std::atomic<bool> both = false;
  scripted.model().on_step = [&] {
    while (!both) std::this_thread::yield();
  };
  auto longer = scripted.Submit(Tokens(5000, 'x'), Greedy(1));
  auto shorter = scripted.Submit(Tokens(30, 'y'), Greedy(3));
  both = true;
  Scripted::Wait(*shorter);
  Scripted::Wait(*longer);
  int64_t steps_before = 0;
  for (const FakeModel::Read& read : scripted.model().reads()) {
    if (read.tokens.front() == 'y' && read.position + std::ssize(read.tokens) == 30) break;
    ++steps_before;
  }
  EXPECT_LT(steps_before, 6) << "of some 50 chunks";
}

// A clock on which a step takes 1 ms, and each of its rows 0.5 ms.
TEST(Scheduler, DecodeIsSlowedByPromptsNoMoreThanAllowed) {
  constexpr int64_t kPrompt = 2000;
  static std::atomic<double> now = 0;
  Scripted scripted({.threads = 1, .step_tokens = 100, .prompt_slowdown = 3},
                    [] { return now.load(); });
  std::atomic<bool> both = false;
  std::atomic<int64_t> read = 0;  // of the writer; a request without a reader is held up
  double ms = 0;                  // of the steps that write while the prompt is read
  int64_t steps = 0, prompt_rows = 0;
  scripted.model().on_step = [&] {
    while (!both) std::this_thread::yield();
    double step_ms = 1;
    bool writes = false;
    for (const Segment& segment : scripted.model().segments()) {
      const bool is_prompt = segment.tokens.front() == '#';
      if (is_prompt) prompt_rows += std::ssize(segment.tokens);
      if (!is_prompt) writes = true;
      step_ms += 0.5 * static_cast<double>(segment.tokens.size());
    }
    now = now + step_ms;
    if (prompt_rows == kPrompt) return;
    EXPECT_TRUE(writes);
    ms += step_ms;
    ++steps;
    while (steps - read > 100) std::this_thread::yield();
  };
  auto writer = scripted.Submit({'x'}, Greedy(-1));
  const Tokens text(kPrompt, '#');
  auto prompt = scripted.Submit(text, Greedy(1));
  both = true;
  while (!prompt->done()) read += std::ssize(writer->Next(std::nullopt)->tokens);
  EXPECT_EQ(Scripted::Wait(*prompt).tokens, scripted.Expected(text, 1));
  writer->Cancel();
  EXPECT_EQ(Scripted::Wait(*writer).finish_reason, FinishReason::kCancelled);
  const double mean_ms = ms / static_cast<double>(steps);
  EXPECT_LE(mean_ms, 3 * 1.5 * 1.01);
  EXPECT_GT(mean_ms, 2 * 1.5);
}

TEST(Scheduler, CancelEndsARequestAtEveryStepAndLeavesTheOthers) {
  for (int at = 0; at < 12; ++at) {
    Scripted scripted({.threads = 1, .step_tokens = 16});
    const auto interrupt = std::make_shared<Interrupt>();
    if (at == 0) interrupt->Cancel();  // before it began
    std::atomic<bool> both = false;
    int steps = 0;
    scripted.model().on_step = [&] {
      while (!both) std::this_thread::yield();
      if (++steps == at) interrupt->Cancel();
    };
    const Tokens prompt(50, 'x');
    auto victim = scripted.Submit(prompt, Greedy(-1), interrupt);
    auto bystander = scripted.Submit(Tokens(40, 'q'), Greedy(10));
    both = true;
    EXPECT_EQ(Scripted::Wait(*bystander).tokens, scripted.Expected(Tokens(40, 'q'), 10)) << at;
    const GenerateResult cancelled = Scripted::Wait(*victim);
    EXPECT_EQ(cancelled.finish_reason, FinishReason::kCancelled);
    const auto n = std::ssize(cancelled.tokens);
    EXPECT_EQ(cancelled.tokens, scripted.Expected(prompt, n));
    EXPECT_LE(n, at);
  }
}

TEST(Scheduler, ATimeLimitEndsWithWhatThereIs) {
  Scripted scripted;
  scripted.model().on_step = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  GenerateOptions options = Greedy(-1);
  options.timeout_ms = 60;
  const GenerateResult result = Scripted::Wait(*scripted.Submit({'x'}, options));
  EXPECT_EQ(result.finish_reason, FinishReason::kTimeout);
  EXPECT_EQ(result.tokens, scripted.Expected({'x'}, std::ssize(result.tokens)));
}

// NaN, or a token that makes the model throw, does not affect other requests.
TEST(Scheduler, AnErrorIsTheRequestsOwn) {
  Scripted scripted;
  std::atomic<bool> all = false;
  int steps = 0;
  scripted.model().on_step = [&] {
    while (!all) std::this_thread::yield();
    ++steps;
    for (const Segment& segment : scripted.model().segments()) {
      if (segment.tokens.front() == '!') Throw(ErrorKind::kUnsupported, "beyond the range of f16");
    }
  };
  auto fine = scripted.Submit({'x'}, Greedy(20));
  auto broken = scripted.Submit({'!'}, Greedy(20));
  GenerateOptions impossible = Greedy(20);
  for (int32_t token = 0; token < Scripted::kVocab; ++token) {
    impossible.sampler.logit_bias[token] = -INFINITY;
  }
  auto banned = scripted.Submit({'z'}, impossible);
  all = true;
  EXPECT_EQ(Scripted::Wait(*fine).tokens, scripted.Expected({'x'}, 20));
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { Scripted::Wait(*broken); }),
              HasSubstr("range of f16"));
  ErrorOf(ErrorKind::kInput, [&] { Scripted::Wait(*banned); });
}

TEST(Scheduler, ASlowReaderHoldsUpNobodyElse) {
  Scripted scripted;
  auto unread = scripted.Submit({'x'}, Greedy(5000));
  auto read = scripted.Submit({'y'}, Greedy(5000));
  EXPECT_EQ(Scripted::Wait(*read).tokens.size(), 5000u);
  EXPECT_FALSE(unread->done()) << "it waits for its reader";
  EXPECT_EQ(Scripted::Wait(*unread).tokens, scripted.Expected({'x'}, 5000));
}

TEST(Scheduler, ARequestThatNobodyWantsEnds) {
  const Engine engine(kTiny, {.threads = 1});
  for (int i = 0; i < 20; ++i) {
    (void)engine.Submit(Prompt(i, 30), Greedy(-1), {.kv = "sinks:4+60"});
  }
  const Tokens prompt = Prompt(1, 12);
  EXPECT_EQ(engine.Submit(prompt, Greedy(4)).Wait().tokens, Alone(engine, prompt, 4));
}

TEST(Scheduler, OptionsThatMakeNoSenseAreRefused) {
  const Engine engine(kTiny, {.threads = 1});
  const Tokens prompt = {3, 4};
  const auto refused = [&](const GenerateOptions& options) {
    return ErrorOf(ErrorKind::kInput, [&] { engine.Submit(prompt, options); });
  };
  EXPECT_THAT(refused({.top_logprobs = -2}), HasSubstr("top_logprobs"));
  EXPECT_THAT(refused({.timeout_ms = -1}), HasSubstr("timeout_ms"));
  EXPECT_THAT(refused({.timeout_ms = NAN}), HasSubstr("timeout_ms"));
  EXPECT_THAT(refused({.on_text = [](std::string_view) {}}), HasSubstr("callbacks"));
  for (const int64_t bad : {-1, 0, (1 << 20) + 1}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { Engine(kTiny, {.step_tokens = bad}); }),
                HasSubstr("steps of"));
  }
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { Engine(kTiny, {.prompt_slowdown = 1}); }),
              HasSubstr("expected 1.1 to 100"));
  ErrorOf(ErrorKind::kInput, [&] { Engine(kTiny, {.kv_memory_bytes = -1}); });
}

}  // namespace
}  // namespace godwit::scheduler_test
