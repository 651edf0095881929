#include "engine/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/next_poll.h"
#include "base/numa.h"

namespace godwit {
namespace {

bool Older(const std::shared_ptr<Request>& a, const std::shared_ptr<Request>& b) {
  return a->ticket < b->ticket;
}

// An error for a request's own thread. It shares no memory with the one of this thread.
std::exception_ptr CopyOf(const Error& error) {
  return std::make_exception_ptr(Error(error.kind(), error.what(), error.data()));
}

}  // namespace

Scheduler::Scheduler(const LanguageModel& model, const kernels::Isa& isa, ThreadPool& pool,
                     int64_t step_tokens, double prompt_slowdown, SavedTexts* saved, NowMs now_ms,
                     StepTurns& turns, Communicator* ranks)
    : model_(model),
      isa_(isa),
      pool_(pool),
      step_tokens_(step_tokens),
      saved_(saved),
      now_ms_(now_ms),
      leader_(ranks == nullptr ? std::nullopt : std::optional<RankLeader>(*ranks)),
      step_turns_(turns),
      prompt_share_(prompt_slowdown),
      thread_([this] { Loop(); }) {
  step_turns_.Join(*this);
}

Scheduler::~Scheduler() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  step_cancel_.Cancel();
  changed_.notify_all();
  thread_.join();
  step_turns_.Leave(*this);
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
    request->ticket = step_turns_.NextTicket();
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

Scheduler::Found Scheduler::Look(const Request& request, Interrupt& interrupt) {
  Found found;
  RunAlone(interrupt, [&](const Exec&) {
    found.running = std::ssize(running_);
    found.waiting = std::ssize(waiting_);
    if (!ReusesOtherTexts(request)) return;
    const SharedPrefix prefix = FindSharedPrefix(request, running_, parked_.texts());
    found.tokens = prefix.from == nullptr ? 0 : prefix.tokens;
    found.ready = prefix.from == nullptr || prefix.ready;
    if (saved_ != nullptr) {
      const int64_t saved =
          saved_->Look(request.plan(), request.sequence().tokens, request.question_begin());
      if (saved > found.tokens) found.tokens = found.disk_tokens = saved;
    }
    const auto& mine = request.sequence().tokens;
    const auto look = [&](const TextPlan& plan, std::span<const int32_t> theirs, int64_t length) {
      if (plan.owner() != request.plan().owner()) return;
      const auto read = theirs.first(static_cast<size_t>(std::min(length, std::ssize(theirs))));
      const int64_t alike =
          std::ranges::mismatch(read, std::span<const int32_t>(mine)).in1 - read.begin();
      if (alike <= found.alike) return;
      found.alike = alike;
      found.length = std::ssize(read);
      const auto behind = read.subspan(static_cast<size_t>(alike));
      const auto shown = behind.first(std::min<size_t>(behind.size(), Found::kOther));
      found.other.assign(shown.begin(), shown.end());
    };
    for (const ReadText& text : parked_.texts()) {
      look(*text.plan, text.tokens, text.cache->length());
    }
    for (const auto& other : running_) {
      look(other->plan(), other->sequence().tokens, other->sequence().cache->length());
    }
  });
  return found;
}

void Scheduler::Loop() {
  Wait wait = Wait::kUntilTold;
  while (WaitForWork(wait)) {
    const StepTurns::Turn turn(step_turns_);
    TakeNews();
    RunTurn();
    EndExpired();
    Admit();
    GatherParts();
    Step();
    wait = NextWait();
  }
}

// A poll shows whether a request was cancelled or ran out of time, or another scheduler's request
// ended.
Scheduler::Wait Scheduler::NextWait() const {
  if (running_.empty()) {
    return waiting_.empty() ? Wait::kUntilTold : waits_for_others_ ? Wait::kPoll : Wait::kNone;
  }
  const auto can_step = [](const auto& request) { return !request->waits_for_reader(); };
  return std::ranges::any_of(running_, can_step) ? Wait::kNone : Wait::kPoll;
}

bool Scheduler::WaitForWork(Wait wait) {
  std::unique_lock lock(mutex_);
  const auto told = [&] {
    return stop_ || woken_ || !inbox_.empty() || !turns_.empty() || !left_.empty();
  };
  if (wait == Wait::kUntilTold) {
    changed_.wait(lock, told);
  } else if (wait == Wait::kPoll && !told()) {
    changed_.wait_until(lock, NextPoll());
  }
  woken_ = false;
  return !stop_;
}

void Scheduler::TakeNews() {
  const std::lock_guard lock(mutex_);
  for (auto& request : inbox_) waiting_.push_back(std::move(request));
  inbox_.clear();
  for (ReadText& text : left_) parked_.Park(std::move(text));
  left_.clear();
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
  waits_for_others_ = false;
  for (const auto& request : Requests(waiting_)) {
    if (std::ssize(running_) >= step_tokens_) return;
    if (IsOlderShortOfMemory(*request)) {
      waits_for_others_ = running_.empty();
      return;
    }
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
      waits_for_others_ = running_.empty();
      return;
    }
    FindBeginning(request, prefix);
    const Begun begun = leader_ ? BeginOnRanks(request, prefix) : BeginAlone(request);
    if (begun == Begun::kNotYet) {
      request->WaitOn();
      too_little_with_ = before;
      waits_for_others_ = running_.empty();
      return;
    }
    std::erase(waiting_, request);
    if (begun == Begun::kFailed) continue;
    running_.insert(std::ranges::upper_bound(running_, request, Older), request);
  }
}

Scheduler::Begun Scheduler::BeginAlone(const std::shared_ptr<Request>& request) {
  const int64_t at_once = request->plan().TokensAtOnce(request->sequence().next());
  while (!Reserve(request, at_once)) {
    if (FreeUnneededMemory(*request, at_once)) continue;
    if (RunningOfAll() > 0) return Begun::kNotYet;
    Fail(request, request->TakeReserveError());
    return Begun::kFailed;
  }
  return Begun::kYes;
}

// Every rank must have the memory for its part of the prompt, beside those of others.
Scheduler::Begun Scheduler::BeginOnRanks(const std::shared_ptr<Request>& request,
                                         const SharedPrefix& prefix) {
  std::exception_ptr error;
  try {
    int64_t promised = 0;
    for (const auto& one : running_) {
      promised += PromisedBytes(one->plan(), *one->sequence().cache, one->prompt_tokens(),
                                one->question_begin());
    }
    std::optional<BegunText::Prefix> from;
    if (prefix.from != nullptr && request->disk_tokens() == 0) {
      from = {.ticket = prefix.ticket, .tokens = prefix.tokens};
    }
    while (!error) {
      if (!KeepOnRanks(from ? from->ticket : -1)) {
        from.reset();
        request->ContinueFrom(request->plan().NewText());
      }
      const RanksAnswer answer = leader_->Begin(*request, from, promised);
      if (!answer.all_have_saved) {
        request->ContinueFrom(request->plan().NewText());
        continue;
      }
      if (!answer.lack) {
        request->context_left = answer.left.front();
        return Begun::kYes;
      }
      if (answer.passing) {
        if (parked_.Drop(request->plan().KvBytes(request->prompt_tokens()))) continue;
        if (!running_.empty()) return Begun::kNotYet;
      }
      error = CopyOf(*answer.lack);
    }
  } catch (...) {
    error = std::current_exception();
  }
  Fail(request, std::move(error));
  return Begun::kFailed;
}

// Other ranks forget the texts that are neither running nor parked here. Returns whether they keep
// the text of a ticket; -1: none is meant.
bool Scheduler::KeepOnRanks(int64_t wanted) {
  std::vector<int64_t> tickets;
  for (const auto& request : running_) tickets.push_back(request->ticket);
  for (const ReadText& text : parked_.texts()) tickets.push_back(text.ticket);
  leader_->Keep(tickets);
  return wanted == -1 || std::ranges::find(tickets, wanted) != tickets.end();
}

Scheduler::MemoryInUse Scheduler::MemoryInUseFor(const Request& request) const {
  const KvPool& pool = request.plan().pool();
  return {.request = &request,
          .running = RunningOfAll(),
          .pages = pool.pages_in_use(),
          .bytes = pool.budget().used()};
}

// Whether an older request of another scheduler waits for memory: it goes first, or it might wait
// for ever.
bool Scheduler::IsOlderShortOfMemory(const Request& request) const {
  return std::ranges::any_of(step_turns_.schedulers(), [&](const Scheduler* other) {
    return other != this && !other->waiting_.empty() &&
           other->waiting_.front().get() == other->too_little_with_.request &&
           other->waiting_.front()->ticket < request.ticket;
  });
}

size_t Scheduler::RunningOfAll() const {
  size_t count = 0;
  for (const Scheduler* const one : step_turns_.schedulers()) {
    count += one->running_.size() + one->guests_;
  }
  return count;
}

// A session does not share texts, unless texts are saved or these are passages.
bool Scheduler::ReusesOtherTexts(const Request& request) const {
  return request.goes_on_from_others() || (saved_ != nullptr && request.may_be_saved());
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
  const auto frees = [bytes](Scheduler& one) {
    return one.free_unneeded_() || one.parked_.Drop(bytes) ||
           (one.saved_ != nullptr && one.saved_->Wait());
  };
  return frees(*this) || std::ranges::any_of(step_turns_.schedulers(),
                                             [&](Scheduler* other) { return frees(*other); });
}

void Scheduler::ForgetTexts() {
  while (free_unneeded_() || parked_.Drop(INT64_MAX)) continue;
}

void Scheduler::Save(Request& request, bool done) {
  const std::string keep_as = done ? request.options().keep_as : "";
  saved_->Save(request.shared_plan(), request.sequence().tokens, *request.sequence().cache,
               request.question_begin(), keep_as);
  SaveOnRanks(request, keep_as);
}

// Other ranks save their parts of a text.
void Scheduler::SaveOnRanks(const Request& request, const std::string& keep_as) {
  if (!leader_) return;
  try {
    leader_->Save({.ticket = request.ticket, .keep_as = keep_as});
  } catch (const std::exception&) {  // a rank is gone, as the next step will find and tell
  }
}

void Scheduler::Forget(const DamagedSnapshot& damage) {
  saved_->Remove(damage);
  parked_.DropAll();  // some may go on from the damaged snapshot
}

void Scheduler::Pause(const std::shared_ptr<Request>& request) {
  if (request->keeps_to_itself()) {
    std::erase_if(parts_, [&](const Part& part) { return part.request == request; });
    return Fail(request,
                std::make_exception_ptr(Error(
                    ErrorKind::kMemory,
                    "other requests took the memory that this text needs, and its reused tokens "
                    "cannot be read again: ask again, or give more --kv-memory")));
  }
  std::erase(running_, request);
  std::erase_if(parts_, [&](const Part& part) { return part.request == request; });
  request->Pause();
  waiting_.insert(std::ranges::upper_bound(waiting_, request, Older), request);
}

// Ends a request and leaves its text to others. (A session takes its own text back.)
void Scheduler::Retire(const std::shared_ptr<Request>& request) {
  std::erase(running_, request);
  if (!request->shares()) {
    if (saved_ != nullptr && ReusesOtherTexts(*request)) {
      SaveOnRanks(*request, request->options().keep_as);
    }
    return;
  }
  if (saved_ != nullptr) Save(*request, /*done=*/true);
  parked_.Park({.ticket = request->ticket,
                .plan = request->shared_plan(),
                .tokens = request->TakeTokens(),
                .cache = request->TakeCache(),
                .question_begin = request->question_begin(),
                .keep_as = request->options().keep_as});
}

void Scheduler::Fail(const std::shared_ptr<Request>& request, std::exception_ptr error) {
  std::erase(running_, request);
  if (request->shares()) request->TakeCache();  // its memory must be free when the failure is known
  request->Fail(std::move(error));
}

void Scheduler::FailAll(const Error& error) {
  for (const auto& request : Requests(running_)) {
    Fail(request, CopyOf(error));
  }
}

// False: the request is paused, or failed.
bool Scheduler::ReserveOrPause(const std::shared_ptr<Request>& request, int64_t tokens) {
  while (!Reserve(request, tokens)) {
    if (FreeUnneededMemory(*request, tokens)) continue;
    if (AnyReleases([](Request& one) { return one.ReleaseDrafts(); })) continue;
    if (AnyReleases([](Request& one) { return one.ReleaseKeptStates(); })) continue;
    PauseOrFailNewest();
    if (!std::ranges::binary_search(running_, request, Older)) return false;
  }
  return true;
}

// Whether a running request of any scheduler gives memory back.
template <typename Release>
bool Scheduler::AnyReleases(Release release) {
  for (Scheduler* const one : step_turns_.schedulers()) {
    if (std::ranges::any_of(one->running_, [&](const auto& request) { return release(*request); }))
      return true;
  }
  return false;
}

// Makes the newest running request of all schedulers give way. The last one alone fails.
void Scheduler::PauseOrFailNewest() {
  Scheduler* owner = this;
  for (Scheduler* const one : step_turns_.schedulers()) {
    if (!one->running_.empty() && Older(owner->running_.back(), one->running_.back())) owner = one;
  }
  const auto newest = owner->running_.back();
  if (RunningOfAll() > 1) return owner->Pause(newest);
  std::exception_ptr lack = newest->TakeReserveError();
  if (leader_) lack = leader_->WithName(lack);
  Fail(newest, std::move(lack));
}

// Whether all ranks have the memory for the step. If not, some was made free for the next try.
bool Scheduler::AgreeOnStep() {
  const KvPool& pool = parts_.front().request->plan().pool();
  RankAnswer mine{.free_bytes = pool.budget().free_bytes()};
  std::vector<TextRows> told;
  for (const auto& [request, rows, steps] : parts_) {
    told.push_back({.ticket = request->ticket, .rows = rows, .steps = steps});
    mine.left.push_back(request->sequence().cache->ContextLeft() - (steps > 0 ? rows : 0));
  }
  KeepOnRanks(/*wanted=*/-1);
  const RanksAnswer answer = leader_->Step(std::move(told), mine);
  // A draft token may be a branch, which takes a copy of the last page and another page.
  draft_tokens_that_fit_ = answer.free_bytes / pool.layout().BytesFor(2 * kTileTokens) - 1;
  if (!answer.lack) {
    for (size_t i = 0; i < parts_.size(); ++i) parts_[i].request->context_left = answer.left[i];
    return true;
  }
  if (parked_.Drop(pool.layout().BytesFor(step_tokens_))) return false;
  const auto newest = running_.back();
  if (running_.size() > 1) {
    Pause(newest);
  } else {
    Fail(newest, CopyOf(*answer.lack));
  }
  return false;
}

void Scheduler::GatherParts() {
  parts_.clear();
  int64_t left = step_tokens_;
  const auto add = [&](const std::shared_ptr<Request>& request, int64_t most) {
    most = std::min(most, request->plan().chunk_tokens());
    const int64_t steps = (request->context_left + most - 1) / most;
    const int64_t rows = RowsOf(request->sequence(), {.rows = most, .steps = steps});
    if (rows > 0 && !ReserveOrPause(request, rows)) return int64_t{0};
    parts_.push_back({.request = request, .rows = rows, .steps = steps});
    const int64_t most_of_ranks = std::max(rows, std::min(most, request->context_left));
    left -= most_of_ranks;
    return most_of_ranks;
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
  if (leader_) return StepOnRanks();
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
    if (error) ComputeOneByOne(no_memory);
  }
  for (const Part& part : parts_) part.request->interrupt().SetStep(nullptr);
}

// A failed step ends the work of all ranks: none can repeat it alone.
void Scheduler::StepOnRanks() {
  const auto expired = [](const Part& part) { return part.request->Expired().has_value(); };
  if (std::ranges::any_of(parts_, expired)) return;  // the next step is without it
  std::optional<Error> error;
  try {
    if (!AgreeOnStep()) return;
    const double begin_ms = now_ms_();
    Compute(parts_);
    prompt_share_.RecordStep(now_ms_() - begin_ms, prompt_rows_);
  } catch (const Error& caught) {
    error = caught;
  } catch (const std::exception& caught) {
    error.emplace(ErrorKind::kIo, caught.what());
  }
  if (!error) return;
  leader_->Leave(error->what());
  FailAll(*error);
}

// Throws errors of the model, with all texts unchanged.
void Scheduler::Compute(std::span<const Part> parts) {
  participants_.clear();
  for (const Part& part : parts) {
    if (part.rows > 0) participants_.push_back(part.request->PartOf(part.rows));
  }
  if (participants_.empty()) return;  // only other ranks have rows
  const double begin_ms = now_ms_();
  const int64_t begin = parts.front().request->sequence().cache->length();
  StepTogether(model_, MakeExec(leader_ ? nullptr : &step_cancel_), participants_, now_ms_);
  // Later the request may have ended, and its reader has its cache.
  if (parts.size() == 1 && !leader_) Measure(*parts.front().request, begin, now_ms_() - begin_ms);
  auto next = participants_.begin();
  for (const Part& part : parts) {
    if (part.rows == 0) continue;
    Request& request = *part.request;
    if (request.Take(*next++)) {
      Retire(part.request);
    } else if (saved_ != nullptr && ReusesOtherTexts(request) &&
               request.IsToBeSaved(saved_->save_tokens(), SavedTexts::kSaveMs)) {
      Save(request, /*done=*/false);
    }
  }
}

void Scheduler::Measure(const Request& request, int64_t begin, double ms) {
  const Sequence& text = request.sequence();
  const Participant& part = participants_.front();
  if (part.error) return;
  const PolicyOptions& options = request.plan().options();
  const MeasuredCosts::Kind kind = MeasuredCosts::KindOf(options);
  const auto work = [&](int64_t rows) {
    return WorkOf(text.cache->policy(), text.cache->geometry(), text.cache->cache().layout(), begin,
                  rows, request.question_begin());
  };
  const bool drafted = !request.options().draft.empty();
  if (begin >= request.prompt_tokens() && drafted) {
    costs_.RecordDrafted(kind, request.options().draft, work(1), ms, std::ssize(part.accepted));
    // Other sources take time also where they draft nothing.
    if (part.rows > 1 || request.options().draft != "ngram") return;
  }
  costs_.Record(kind, work(part.rows), ms);
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
