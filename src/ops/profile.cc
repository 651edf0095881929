#include "ops/profile.h"

#include <cassert>
#include <chrono>

namespace godwit {
namespace {

constexpr std::array<std::string_view, kStepParts> kNames = {
    "products",   "expert_products", "attention",  "choosing_keys", "rope_and_kv",
    "quantizing", "norms",           "activation", "routing",       "adds",
    "ranks",      "others",          "one_thread"};
static_assert(kNames[static_cast<size_t>(StepPart::kOneThread)] == "one_thread");

}  // namespace

thread_local Profile::Lap* Profile::task_lap_ = nullptr;

// One task of a worker, whose time begins in the part of the fork-join.
class Profile::Task {
 public:
  // took: set to the time that the task took; null: not wanted.
  Task(const Profile& profile, Lap& lap, StepPart part, int64_t* took)
      : profile_(profile), lap_(lap), took_(took) {
    begin_ns_ = lap.mark_ns = profile.clock_();
    lap.part = part;
    task_lap_ = &lap;
  }
  ~Task() {
    profile_.Switch(lap_, lap_.part);
    if (took_ != nullptr) *took_ = lap_.mark_ns - begin_ns_;
    task_lap_ = nullptr;
  }

 private:
  const Profile& profile_;
  Lap& lap_;
  int64_t* took_;
  int64_t begin_ns_ = 0;
};

std::string_view Name(StepPart part) { return kNames[static_cast<size_t>(part)]; }

Profile::Profile(int threads, Clock clock) : clock_(std::move(clock)), tasks_(threads) {}

int64_t Profile::SteadyNanoseconds() {
  using std::chrono::nanoseconds;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<nanoseconds>(now).count();
}

StepPart Profile::Switch(Lap& lap, StepPart part) const {
  const int64_t now = clock_();
  lap.busy_ns[static_cast<size_t>(lap.part)] += now - lap.mark_ns;
  lap.mark_ns = now;
  return std::exchange(lap.part, part);
}

void Profile::Start() {
  caller_.mark_ns = start_ns_ = clock_();
  caller_.part = StepPart::kOneThread;
}

void Profile::Stop() {
  Switch(caller_, StepPart::kOneThread);
  wall_ns_ += caller_.mark_ns - start_ns_;
}

void Profile::Run(ThreadPool& pool, int64_t tasks, FunctionRef<void(int64_t, int)> body) {
  if (task_lap_ != nullptr || tasks == 0) return pool.Run(tasks, body);
  assert(pool.threads() == static_cast<int>(tasks_.size()));
  // The fork-join ends here even if a body throws, so that the times still add up.
  struct Job {
    explicit Job(Profile& of) : profile(of) {
      profile.Switch(profile.caller_, profile.caller_.part);
      ++profile.fork_joins_;
    }
    ~Job() {
      const int64_t now = profile.clock_();
      profile.job_ns_ += now - std::exchange(profile.caller_.mark_ns, now);
    }
    Profile& profile;
  } const job(*this);
  const StepPart part = caller_.part == StepPart::kOneThread ? StepPart::kOthers : caller_.part;
  int64_t* took = nullptr;
  if (kept_ != nullptr) {
    took = kept_->emplace_back(ForkJoin{part, std::vector<int64_t>(tasks)}).task_ns.data();
  }
  pool.Run(tasks, [&](int64_t task, int worker) {
    const Task measured(*this, tasks_[worker], part, took == nullptr ? nullptr : took + task);
    body(task, worker);
  });
}

ProfileTimes Profile::Times() const {
  const auto sum = [](const Lap& lap) {
    return std::accumulate(lap.busy_ns.begin(), lap.busy_ns.end(), int64_t{0});
  };
  ProfileTimes times{.threads = static_cast<int>(tasks_.size()),
                     .wall_ns = wall_ns_,
                     .busy_ns = caller_.busy_ns,
                     .fork_joins = fork_joins_};
  times.one_thread_wait_ns = (times.threads - 1) * sum(caller_);
  times.join_wait_ns = times.threads * job_ns_;
  for (const Lap& lap : tasks_) {
    times.join_wait_ns -= sum(lap);
    for (size_t part = 0; part < kStepParts; ++part) times.busy_ns[part] += lap.busy_ns[part];
  }
  return times;
}

}  // namespace godwit
