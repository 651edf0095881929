#include "engine/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/next_poll.h"
#include "base/numa.h"
#include "engine/request_message.h"
#include "engine/shared_tokens.h"

namespace godwit {
namespace {

bool Older(const std::shared_ptr<Request>& a, const std::shared_ptr<Request>& b) {
  return a->ticket < b->ticket;
}

// The lack of memory, in words for other ranks.
std::string ReasonOf(const Communicator& ranks, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& reason) {
    return fmt::format("{}: {}", ranks.NameOf(ranks.rank()), reason.what());
  }
}

}  // namespace

Scheduler::Scheduler(const LanguageModel& model, const kernels::Isa& isa, ThreadPool& pool,
                     int64_t step_tokens, double prompt_slowdown, SavedTexts* saved, NowMs now_ms)
    : model_(model),
      isa_(isa),
      pool_(pool),
      step_tokens_(step_tokens),
      saved_(saved),
      now_ms_(now_ms),
      prompt_share_(prompt_slowdown),
      thread_([this] { Loop(); }) {}

Scheduler::~Scheduler() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  step_cancel_.Cancel();
  changed_.notify_all();
  thread_.join();
  for (Requests* list : {&inbox_, &waiting_, &running_}) {
    for (const auto& request : *list) request->Finish(FinishReason::kCancelled);
  }
}

void Scheduler::PinTo(int cpu) {
  Interrupt nobody;
  RunAlone(nobody, [cpu](const Exec&) { PinThisThread(cpu); });
}

void Scheduler::Submit(std::shared_ptr<Request> request) {
  if (request->FinishIfNothingIsAsked()) return;
  {
    const std::lock_guard lock(mutex_);
    request->ticket = next_ticket_++;
    inbox_.push_back(std::move(request));
  }
  changed_.notify_all();
}

void Scheduler::Wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

void Scheduler::Leave(ReadText text) {
  {
    const std::lock_guard lock(mutex_);
    left_.push_back(std::move(text));
  }
  changed_.notify_all();
}

void Scheduler::StopKeeping(const std::string& name) {
  Interrupt nobody;
  RunAlone(nobody, [&](const Exec&) { parked_.StopKeeping(name); });
}

void Scheduler::RunAlone(Interrupt& interrupt, FunctionRef<void(const Exec&)> work) {
  Turn turn{.interrupt = &interrupt, .work = work};
  std::unique_lock lock(mutex_);
  turns_.push_back(&turn);
  changed_.notify_all();
  while (!turn.done) {
    changed_.wait_until(lock, NextPoll());
    if (turn.begun || !interrupt.cancelled()) continue;
    std::erase(turns_, &turn);
    interrupt.token().ThrowIfCancelled();
  }
  if (turn.error) std::rethrow_exception(turn.error);
}

void Scheduler::Loop() {
  while (WaitForWork()) {
    RunTurn();
    EndExpired();
    Admit();
    GatherParts();
    Step();
  }
}

bool Scheduler::CanStep() const {
  return std::ranges::any_of(running_,
                             [](const auto& request) { return !request->waits_for_reader(); });
}

bool Scheduler::WaitForWork() {
  std::unique_lock lock(mutex_);
  const bool can_step = CanStep();
  const auto told = [&] {
    return stop_ || woken_ || !inbox_.empty() || !turns_.empty() || !left_.empty();
  };
  if (running_.empty()) {
    if (waiting_.empty()) changed_.wait(lock, told);
  } else if (!can_step && !told()) {
    changed_.wait_until(lock, NextPoll());  // a request may be cancelled, or run out of time
  }
  woken_ = false;
  for (auto& request : inbox_) waiting_.push_back(std::move(request));
  inbox_.clear();
  for (ReadText& text : left_) parked_.Park(std::move(text));
  left_.clear();
  return !stop_;
}

Exec Scheduler::MakeExec(const CancelToken* cancel) {
  return {.pool = pool_, .kernels = *isa_.table, .workspace = workspace_, .cancel = cancel};
}

void Scheduler::RunTurn() {
  std::unique_lock lock(mutex_);
  if (turns_.empty()) return;
  Turn& turn = *turns_.front();
  turns_.pop_front();
  turn.begun = true;
  lock.unlock();
  std::exception_ptr error;
  try {
    const Exec exec = MakeExec(&turn.interrupt->token());
    exec.cancel->ThrowIfCancelled();
    turn.work(exec);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  turn.error = std::move(error);
  turn.done = true;
  changed_.notify_all();  // under the lock: the turn is gone once its caller sees that it is done
}

void Scheduler::EndExpired() {
  std::erase_if(waiting_, [](const std::shared_ptr<Request>& request) {
    const auto reason = request->Expired();
    if (!reason) return false;
    if (request->Begin()) request->Finish(*reason);
    return true;
  });
  for (const auto& request : Requests(running_)) {
    if (const auto reason = request->Expired()) {
      request->Finish(*reason);
      Retire(request);
    }
  }
}

// Admits the oldest first. A request without memory lets none pass, or it might wait for ever.
void Scheduler::Admit() {
  for (const auto& request : Requests(waiting_)) {
    if (std::ssize(running_) >= step_tokens_) return;
    if (request->plan().ranks() != nullptr) return AdmitWithRanks(request);
    SharedPrefix prefix;
    if (ReusesOtherTexts(*request)) {
      prefix = FindSharedPrefix(*request, running_, parked_.texts());
      if (prefix.from != nullptr && !prefix.ready) continue;
    }
    if (!request->Begin()) {  // its reader gave up
      std::erase(waiting_, request);
      continue;
    }
    const MemoryInUse before = MemoryInUseFor(*request);
    if (before.IsNoFreerThan(too_little_with_)) {
      request->WaitOn();
      return;
    }
    FindBeginning(request, prefix);
    const int64_t at_once = request->plan().TokensAtOnce(request->sequence().next());
    if (!Reserve(request, at_once)) {
      bool reserved = false;
      while (!reserved && FreeUnneededMemory(*request, at_once))
        reserved = Reserve(request, at_once);
      if (!reserved && running_.empty()) {
        std::erase(waiting_, request);
        Fail(request, request->TakeReserveError());
        continue;
      }
      if (!reserved) {
        request->WaitOn();
        too_little_with_ = before;
        return;
      }
    }
    std::erase(waiting_, request);
    running_.insert(std::ranges::upper_bound(running_, request, Older), request);
  }
}

Scheduler::MemoryInUse Scheduler::MemoryInUseFor(const Request& request) const {
  const KvPool& pool = request.plan().pool();
  return {.request = &request,
          .running = running_.size(),
          .pages = pool.pages_in_use(),
          .bytes = pool.budget().used()};
}

// A session does not share texts, unless texts are saved.
bool Scheduler::ReusesOtherTexts(const Request& request) const {
  return request.shares() || (saved_ != nullptr && request.kind() == RequestKind::kOfSession);
}

// Goes on from another text in memory, or from a saved text if that is longer.
void Scheduler::FindBeginning(const std::shared_ptr<Request>& request, const SharedPrefix& prefix) {
  if (prefix.from != nullptr) {
    request->ContinueFrom(prefix.Take());
    parked_.Use(prefix.from);
  }
  if (saved_ == nullptr || !ReusesOtherTexts(*request)) return;
  while (true) {
    try {
      const Sequence& text = request->sequence();
      const int64_t known = text.cache->length();
      auto cache = saved_->Restore(request->plan(), text.tokens, known, request->question_begin(),
                                   request->prompt_tokens());
      if (cache == nullptr) return;
      const int64_t tokens = cache->length();
      return request->ContinueFrom(std::move(cache), tokens);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kMemory) throw;
    }
    if (!parked_.Drop(INT64_MAX)) return;
  }
}

// Like Request::Reserve. A damaged beginning is read again.
bool Scheduler::Reserve(const std::shared_ptr<Request>& request, int64_t tokens) {
  try {
    return request->Reserve(tokens);
  } catch (const DamagedSnapshot& damage) {
    Forget(damage);
    request->ReadAgain();
    return request->Reserve(tokens);
  }
}

// Frees memory that no request needs. False: there was none.
bool Scheduler::FreeUnneededMemory(const Request& request, int64_t tokens) {
  const int64_t bytes = request.plan().pool().layout().BytesFor(tokens);
  return parked_.Drop(bytes) || (saved_ != nullptr && saved_->Wait());
}

void Scheduler::Save(Request& request, bool done) {
  saved_->Save(request.shared_plan(), request.sequence().tokens, *request.sequence().cache,
               request.question_begin(), done ? request.options().keep_as : "");
}

void Scheduler::Forget(const DamagedSnapshot& damage) {
  saved_->Remove(damage);
  parked_.DropAll();  // some may go on from the damaged snapshot
}

void Scheduler::AdmitWithRanks(const std::shared_ptr<Request>& request) {
  if (!running_.empty()) return;
  std::erase(waiting_, request);
  if (!request->Begin()) return;  // its reader gave up
  Communicator& ranks = *request->plan().ranks();
  request->JoinRanks();
  std::exception_ptr error;  // once it is told, only the waiting caller owns it
  bool all_know = false;
  try {
    if (ranks.rank() == 0) BroadcastRequest(ranks, *request);
    const std::string mine = MissingMemory(ranks, request->plan(), request->prompt_tokens(),
                                           request->options().query_tokens);
    if (const auto lack = CompareMemory(ranks, request->plan().pool().budget(), mine).lack) {
      error = std::make_exception_ptr(*lack);
      all_know = true;
    } else {
      SharedPrefix prefix;
      if (request->shares()) prefix = FindSharedPrefix(*request, running_, parked_.texts());
      if (AllGive(ranks, prefix.tokens) && prefix.from != nullptr) {
        request->ContinueFrom(prefix.Take());
      }
    }
  } catch (...) {
    error = std::current_exception();
  }
  if (error) return Fail(request, std::move(error), all_know);
  parked_.DropAll();  // their memory was counted as free
  running_.push_back(request);
}

void Scheduler::Pause(const std::shared_ptr<Request>& request) {
  std::erase(running_, request);
  std::erase_if(parts_, [&](const Part& part) { return part.request == request; });
  request->Pause();
  waiting_.insert(std::ranges::upper_bound(waiting_, request, Older), request);
}

// Ends a request and leaves its text to others. (A session takes its own text back.)
void Scheduler::Retire(const std::shared_ptr<Request>& request) {
  std::erase(running_, request);
  if (!request->shares()) return;
  if (saved_ != nullptr) Save(*request, /*done=*/true);
  parked_.Park({.plan = request->shared_plan(),
                .tokens = request->TakeTokens(),
                .cache = request->TakeCache(),
                .question_begin = request->question_begin(),
                .keep_as = request->options().keep_as});
}

void Scheduler::Fail(const std::shared_ptr<Request>& request, std::exception_ptr error,
                     bool all_know) {
  std::erase(running_, request);
  if (request->shares()) request->TakeCache();  // its memory must be free when the failure is known
  request->Fail(std::move(error), all_know);
}

// False: the request is paused, or failed.
bool Scheduler::ReserveOrPause(const std::shared_ptr<Request>& request, int64_t tokens) {
  if (request->plan().ranks() != nullptr) return ReserveWithRanks(request, tokens);
  while (!Reserve(request, tokens)) {
    if (FreeUnneededMemory(*request, tokens)) continue;
    const auto gives_back = [](const auto& one) { return one->ReleaseDrafts(); };
    if (std::ranges::any_of(running_, gives_back)) continue;
    const auto forgets = [](const auto& one) { return one->ReleaseKeptStates(); };
    if (std::ranges::any_of(running_, forgets)) continue;
    const auto newest = running_.back();
    if (running_.size() > 1) {
      Pause(newest);
    } else {
      Fail(newest, newest->TakeReserveError());
    }
    if (newest == request) return false;
  }
  return true;
}

// A rank without memory says so at once. The others hear it when they meet next.
bool Scheduler::ReserveWithRanks(const std::shared_ptr<Request>& request, int64_t tokens) {
  Communicator& ranks = *request->plan().ranks();
  const bool meets = request->ComparesRanksMemory(tokens);
  std::string mine;
  std::exception_ptr error;
  bool all_know = false;
  try {
    if (!request->Reserve(tokens)) mine = ReasonOf(ranks, request->TakeReserveError());
    if (!meets && mine.empty()) return true;
    const KvPool& pool = request->plan().pool();
    const RanksMemory memory = CompareMemory(ranks, pool.budget(), mine);
    // A draft token may be a branch, which takes a copy of the last page and another page.
    draft_tokens_that_fit_ = memory.free_bytes / pool.layout().BytesFor(2 * kTileTokens) - 1;
    if (!memory.lack) return true;
    error = std::make_exception_ptr(*memory.lack);
    all_know = true;
  } catch (...) {
    error = std::current_exception();
  }
  Fail(request, std::move(error), all_know);
  return false;
}

void Scheduler::GatherParts() {
  parts_.clear();
  int64_t left = step_tokens_;
  const auto add = [&](const std::shared_ptr<Request>& request, int64_t most) {
    const int64_t rows = request->sequence().NextOf(std::min(most, request->plan().chunk_tokens()));
    if (!ReserveOrPause(request, rows)) return int64_t{0};
    parts_.push_back({.request = request, .rows = rows});
    left -= rows;
    return rows;
  };
  // Draft tokens leave prompts half of the step. They use only free memory: no text makes way for
  // them. Ranks cannot drop them in a begun step, but know the free memory before it.
  const auto add_draft_tokens = [&] {
    int64_t for_draft_tokens = std::clamp<int64_t>(draft_tokens_that_fit_, 0, left / 2);
    for (Part& part : parts_) {
      const int64_t more = std::min(for_draft_tokens, part.request->max_rows() - 1);
      part.rows += more;
      for_draft_tokens -= more;
      left -= more;
    }
  };
  Requests prompts;
  for (const auto& request : Requests(running_)) {
    if (request->waits_for_reader() || !std::ranges::binary_search(running_, request, Older))
      continue;
    if (request->reads_prompt()) {
      prompts.push_back(request);
    } else if (left > 0) {
      add(request, 1);
    }
  }
  const auto writers = std::ssize(parts_);
  add_draft_tokens();
  left = prompt_share_.Rows(writers, left);
  prompt_rows_ = 0;
  for (size_t i = 0; i < prompts.size() && left > 0; ++i) {
    if (!std::ranges::binary_search(running_, prompts[i], Older)) continue;  // paused just now
    const bool last = i + 1 == prompts.size();
    prompt_rows_ += add(prompts[i], last ? left : std::max<int64_t>(1, left / 2));
  }
}

void Scheduler::Step() {
  if (parts_.empty()) return;
  step_cancel_.Reset();
  // The step is registered before it looks for cancellations, so that it misses none.
  for (const Part& part : parts_) part.request->interrupt().SetStep(&step_cancel_);
  const bool stop = [&] {
    const std::lock_guard lock(mutex_);
    return stop_;
  }();
  const bool expired = stop || std::ranges::any_of(parts_, [](const Part& part) {
                         return part.request->Expired().has_value();
                       });
  if (!expired) {
    std::exception_ptr error;
    bool no_memory = false;
    try {
      const double begin_ms = now_ms_();
      Compute(parts_);
      prompt_share_.RecordStep(now_ms_() - begin_ms, prompt_rows_);
    } catch (const Error& caught) {
      if (caught.kind() != ErrorKind::kCancelled) error = std::current_exception();
      no_memory = caught.kind() == ErrorKind::kMemory;
    } catch (...) {
      error = std::current_exception();
    }
    if (error && parts_.front().request->plan().ranks() != nullptr) {
      // Ranks take one text through a step, and no rank can repeat it alone.
      Fail(parts_.front().request, std::move(error));
    } else if (error) {
      ComputeOneByOne(no_memory);
    }
  }
  for (const Part& part : parts_) part.request->interrupt().SetStep(nullptr);
}

// Throws errors of the model, with all texts unchanged.
void Scheduler::Compute(std::span<const Part> parts) {
  participants_.clear();
  for (const Part& part : parts) participants_.push_back(part.request->PartOf(part.rows));
  StepTogether(model_, MakeExec(&step_cancel_), participants_, now_ms_);
  for (size_t i = 0; i < parts.size(); ++i) {
    Request& request = *parts[i].request;
    if (request.Take(participants_[i])) {
      Retire(parts[i].request);
    } else if (saved_ != nullptr && ReusesOtherTexts(request) &&
               request.IsToBeSaved(saved_->save_tokens(), SavedTexts::kSaveMs)) {
      Save(request, /*done=*/false);
    }
  }
}

// Repeats a failed step request by request to find the faulty one. Draft tokens are left out.
void Scheduler::ComputeOneByOne(bool no_memory) {
  for (Part& part : parts_) {
    if (!part.request->reads_prompt() && part.rows > 1) {
      part.rows = 1;
      if (no_memory) part.request->CountStepShortOfMemory();
    }
    std::exception_ptr error;
    try {
      Compute({&part, 1});
    } catch (const DamagedSnapshot& damage) {
      Forget(damage);
      part.request->ReadAgain();
    } catch (...) {
      error = std::current_exception();
    }
    if (error && step_cancel_.cancelled()) return;
    if (error) Fail(part.request, std::move(error));
  }
}

}  // namespace godwit
