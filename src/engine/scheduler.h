// Scheduler: the thread that computes. It gathers the rows of all requests in progress, runs the
// model once for all rows, and hands every request its own results.
//
// A step has at most step_tokens rows. First comes one row of every text that is being continued.
// Half of the remaining rows may be draft tokens (GenerateOptions::draft). Chunks of prompts
// follow. The oldest prompt gets half of the rows that are left, or more where other ranks wait for
// a whole chunk. A short prompt behind a long one therefore waits for steps, and not for the long
// one's end. When memory for caches runs out, the newest request is paused: its pages are given
// back, its text is kept and read again later. The oldest request therefore always goes on, and all
// finish.
//
// Where ranks share texts, rank 0 schedules for all: it tells the others which texts begin and go,
// and the rows of each step (rank_leader.h). A step happens if all ranks have the memory for it. It
// then runs to its end, because no rank can stop alone.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/function_ref.h"
#include "base/stopwatch.h"
#include "engine/interrupt.h"
#include "engine/measured_costs.h"
#include "engine/prompt_share.h"
#include "engine/rank_leader.h"
#include "engine/request.h"
#include "engine/saved_texts.h"
#include "engine/shared_prefix.h"
#include "engine/step_turns.h"
#include "kernels/dispatch.h"
#include "model/language_model.h"
#include "ops/exec.h"
#include "tensor/workspace.h"

namespace godwit {

class Scheduler {
 public:
  // Borrows all arguments. saved: null if no texts are saved. now_ms: the clock that measures
  // steps. prompt_slowdown: as LoadOptions has it. turns: of all engines that share the pool and
  // the memory of caches. ranks: the ranks that this one leads; null: none.
  Scheduler(const LanguageModel& model, const kernels::Isa& isa, ThreadPool& pool,
            int64_t step_tokens, double prompt_slowdown, SavedTexts* saved, NowMs now_ms,
            StepTurns& turns, Communicator* ranks = nullptr);
  // Cancels the requests that are still in progress.
  ~Scheduler();

  // Sets what frees memory, besides texts, that no request needs, and returns whether there was
  // any. To be called before the first request.
  void AlsoFrees(std::function<bool()> unneeded) { free_unneeded_ = std::move(unneeded); }

  // Pins the computing thread to that CPU, as the pool pins its own (base/numa.h).
  void PinTo(int cpu);

  void Submit(std::shared_ptr<Request> request);
  // Wakes the thread, because a request that waited for its reader can go on.
  void Wake();
  // Takes a text that a session has read, so that other requests can go on from it.
  void Leave(ReadText text);
  // Stops keeping a text in memory under that name: it may go when its memory is needed.
  void StopKeeping(const std::string& name);

  // The part of a request's text that it would find, if it began now.
  struct Found {
    int64_t tokens = 0;       // in memory, or on the disk where that is more
    int64_t disk_tokens = 0;  // of these, from saved texts
    bool ready = true;        // else another request is reading them
    // The tokens of the text in memory that begins alike for longest, from a few before `alike` on.
    int64_t alike = 0;   // tokens of its beginning that are the request's, also if of no use
    int64_t length = 0;  // tokens of it that were read
    std::vector<int32_t> other = {};  // [alike, alike + kOther), as far as there are some
    static constexpr int64_t kOther = 32;
    int64_t running = 0, waiting = 0;  // other requests
  };
  // Looks for that between two steps, and changes nothing.
  Found Look(const Request& request, Interrupt& interrupt);

  // The costs of steps so far.
  MeasuredCosts& costs() { return costs_; }
  int64_t step_tokens() const { return step_tokens_; }

  // Drops all texts that no request needs. The caller holds the turn.
  void ForgetTexts();

  // Runs `work` on the computing thread, between two steps, and waits for it. Throws what it
  // throws, and Error(kCancelled) if the interrupt ends it, also while it waits.
  void RunAlone(Interrupt& interrupt, FunctionRef<void(const Exec&)> work);

  // A guest computes by RunAlone, more than once, and holds memory in between. Requests that lack
  // memory meanwhile wait for the guest to leave.
  class Guest {
   public:
    explicit Guest(Scheduler& host) : host_(host) { ++host_.guests_; }
    ~Guest() { --host_.guests_; }
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;

   private:
    Scheduler& host_;
  };

 private:
  using Requests = std::vector<std::shared_ptr<Request>>;
  struct Turn {
    Interrupt* interrupt;
    FunctionRef<void(const Exec&)> work;
    bool begun = false;
    bool done = false;
    std::exception_ptr error = nullptr;
  };
  // The memory in use when a waiting request last found too little. That request need not try again
  // before less memory is in use.
  struct MemoryInUse {
    const Request* request = nullptr;
    size_t running = 0;  // requests and guests of all schedulers
    int64_t pages = 0;   // in use, of the request's kind
    int64_t bytes = 0;   // taken of the budget of all

    bool IsNoFreerThan(const MemoryInUse& other) const {
      return request == other.request && running == other.running && pages >= other.pages &&
             bytes >= other.bytes;
    }
  };
  struct Part {
    std::shared_ptr<Request> request;
    int64_t rows;       // of this rank
    int64_t steps = 0;  // TextRows::steps
  };
  enum class Begun { kYes, kNotYet, kFailed };

  // The wait before the next turn.
  enum class Wait { kNone, kPoll, kUntilTold };

  void Loop();
  // Returns false when the thread is to stop.
  bool WaitForWork(Wait wait);
  void TakeNews();
  Wait NextWait() const;
  Exec MakeExec(const CancelToken* cancel);
  void RunTurn();
  void EndExpired();
  void Admit();
  Begun BeginAlone(const std::shared_ptr<Request>& request);
  Begun BeginOnRanks(const std::shared_ptr<Request>& request, const SharedPrefix& prefix);
  bool KeepOnRanks(int64_t wanted);
  bool AgreeOnStep();
  bool ReserveOrPause(const std::shared_ptr<Request>& request, int64_t tokens);
  MemoryInUse MemoryInUseFor(const Request& request) const;
  bool IsOlderShortOfMemory(const Request& request) const;
  size_t RunningOfAll() const;
  template <typename Release>
  bool AnyReleases(Release release);
  void PauseOrFailNewest();
  bool ReusesOtherTexts(const Request& request) const;
  void FindBeginning(const std::shared_ptr<Request>& request, const SharedPrefix& prefix);
  bool Reserve(const std::shared_ptr<Request>& request, int64_t tokens);
  bool FreeUnneededMemory(const Request& request, int64_t tokens);
  void Save(Request& request, bool done);
  void SaveOnRanks(const Request& request, const std::string& keep_as);
  void Forget(const DamagedSnapshot& damage);
  void Pause(const std::shared_ptr<Request>& request);
  void Retire(const std::shared_ptr<Request>& request);
  void Fail(const std::shared_ptr<Request>& request, std::exception_ptr error);
  void FailAll(const Error& error);
  void GatherParts();
  void Step();
  void StepOnRanks();
  void Compute(std::span<const Part> parts);
  // Records the cost of a step that only one request was in. begin: the length of its cache before.
  void Measure(const Request& request, int64_t begin, double ms);
  void ComputeOneByOne(bool no_memory);  // no_memory: why the step of all failed

  const LanguageModel& model_;
  const kernels::Isa& isa_;
  ThreadPool& pool_;
  int64_t step_tokens_;
  SavedTexts* saved_;
  NowMs now_ms_;
  std::optional<RankLeader> leader_;
  StepTurns& step_turns_;
  std::function<bool()> free_unneeded_ = [] { return false; };

  std::mutex mutex_;  // guards the members up to stop_
  std::condition_variable changed_;
  Requests inbox_;
  std::vector<ReadText> left_;
  std::deque<Turn*> turns_;
  bool woken_ = false;
  bool stop_ = false;
  std::atomic<size_t> guests_ = 0;

  // Members of the computing thread, and of the holder of the turn. Both lists of requests are in
  // the order of tickets.
  Requests waiting_;
  Requests running_;
  ParkedTexts parked_;
  MemoryInUse too_little_with_;
  bool waits_for_others_ = false;  // the oldest request waits for memory of other schedulers
  std::vector<Part> parts_;
  PromptShare prompt_share_;
  MeasuredCosts costs_;
  int64_t prompt_rows_ = 0;                    // of the current step
  int64_t draft_tokens_that_fit_ = INT64_MAX;  // draft tokens for which all ranks have memory
  std::vector<Participant> participants_;
  Workspace workspace_;
  CancelToken step_cancel_;
  std::thread thread_;
};

}  // namespace godwit
