#include "server/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/test_support.h"
#include "engine/engine_test_support.h"

namespace godwit::server::models_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using State = Models::State;

// Models whose loading a test holds up and sees.
class ModelsTest : public testing::Test {
 protected:
  ModelsTest() : engine_(std::make_shared<const Engine>(kTiny, LoadOptions{.threads = 1})) {}
  ~ModelsTest() override { models_.reset(); }  // may be loading one, by the members below

  Models& Open(const std::vector<std::string>& names, ModelsOptions options = {}) {
    std::vector<ModelSource> sources;
    for (const std::string& name : names) {
      sources.push_back({.facts = {.name = name, .weight_bytes = 100},
                         .load = [this, name](const NoteProgress& note) {
                           note(42, 100);
                           Say("loading " + name);
                           WaitUntilOpen(name);
                           if (name == "broken") Throw(ErrorKind::kFormat, "its file is torn");
                           if (name == "large") Throw(ErrorKind::kMemory, "it takes 1 TiB");
                           return std::make_shared<const LoadedModel>(
                               engine_, chat::CompletionDefaults(), SessionOptions());
                         }});
    }
    options.on_unload = [this](const ModelFacts& facts, bool idle) {
      Say((idle ? "unloading idle " : "unloading ") + facts.name);
    };
    return models_.emplace(std::move(sources), std::move(options));
  }
  void Say(const std::string& what) {
    const std::lock_guard lock(mutex_);
    said_.push_back(what);
    changed_.notify_all();
  }
  std::vector<std::string> said() {
    const std::lock_guard lock(mutex_);
    return said_;
  }
  void WaitForSaid(const std::string& what) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return std::ranges::find(said_, what) != said_.end(); });
  }
  void Close(const std::string& name) {
    const std::lock_guard lock(mutex_);
    closed_ = name;
  }
  void LetLoad() {
    const std::lock_guard lock(mutex_);
    closed_.clear();
    changed_.notify_all();
  }
  // A request in a thread of its own, which ends once it has the model.
  std::future<void> Ask(size_t model, const CancelToken& gone) {
    return std::async(std::launch::async, [this, model, &gone] {
      const Models::Use use = models_->Take(model, gone);
      Say("used " + models_->facts(model).name);
    });
  }
  Models::Use Take(size_t model) { return models_->Take(model, stays_); }
  State StateOf(size_t model) { return models_->status(model).state; }

  CancelToken stays_;
  std::optional<Models> models_;

 private:
  void WaitUntilOpen(const std::string& name) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ != name; });
  }

  std::shared_ptr<const Engine> engine_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> said_;
  std::string closed_;
};

TEST_F(ModelsTest, AreFoundByTheirNames) {
  Models& several = Open({"a", "b"});
  EXPECT_EQ(several.Find("a"), 0u);
  EXPECT_EQ(several.Find("b"), 1u);
  EXPECT_EQ(several.Find(""), 0u);
  EXPECT_EQ(several.Find("c"), std::nullopt);
  EXPECT_EQ(several.Find("B"), std::nullopt);
  EXPECT_THAT(several.Names(), ElementsAre("a", "b"));
  EXPECT_EQ(Open({"a"}).Find("anything"), 0u);
}

TEST_F(ModelsTest, AreLoadedByUse) {
  Models& models = Open({"a", "b"});
  EXPECT_EQ(StateOf(1), State::kUnloaded);
  EXPECT_EQ(models.status(1).limits, nullptr);
  for (int i = 0; i < 2; ++i) {
    const Models::Use use = Take(1);
    EXPECT_GT((*use).limits.context, 0);
  }
  EXPECT_THAT(said(), ElementsAre("loading b"));
  EXPECT_EQ(StateOf(0), State::kUnloaded);
  EXPECT_EQ(StateOf(1), State::kLoaded);
  EXPECT_EQ(models.status(1).loads, 1);
  EXPECT_FALSE(models.is_loading());
}

TEST_F(ModelsTest, ThoseThatFitAreLoadedAtTheStart) {
  int64_t free = 250;
  Models& models =
      Open({"a", "b", "c"},
           {.fits = [&](const ModelFacts& facts) { return (free -= facts.weight_bytes) >= 100; }});
  std::vector<double> parts;
  models.LoadThoseThatFit([&](int64_t done, int64_t total) {
    parts.push_back(static_cast<double>(done) / static_cast<double>(total));
  });
  EXPECT_THAT(said(), ElementsAre("loading a", "loading b"));
  EXPECT_THAT(parts, ElementsAre(42 / 300.0, 142 / 300.0));
  // One without room still tells why.
  EXPECT_THAT(ErrorOf(ErrorKind::kMemory,
                      [&] { Open({"large"}).LoadThoseThatFit([](int64_t, int64_t) {}); }),
              HasSubstr("1 TiB"));
}

TEST_F(ModelsTest, TheLeastRecentlyUsedMakesRoom) {
  Models& models = Open({"a", "b", "c"}, {.most_loaded = 2});
  models.LoadThoseThatFit([](int64_t, int64_t) {});
  (void)Take(1);
  (void)Take(0);
  (void)Take(2);
  EXPECT_THAT(said(), ElementsAre("loading a", "loading b", "unloading b", "loading c"));
  EXPECT_EQ(StateOf(1), State::kUnloaded);
  ASSERT_NE(models.status(1).limits, nullptr) << "known since it was loaded";
  (void)Take(1);
  EXPECT_EQ(StateOf(0), State::kUnloaded);
  EXPECT_EQ(models.status(1).loads, 2);
}

TEST_F(ModelsTest, OneInUseStaysUntilItsRequestsHaveEnded) {
  Open({"a", "b"}, {.most_loaded = 1});
  std::optional<Models::Use> use = Take(0);
  auto other = Ask(1, stays_);
  while (!models_->is_loading()) std::this_thread::yield();
  EXPECT_EQ(StateOf(0), State::kLoaded);
  EXPECT_THAT(said(), ElementsAre("loading a"));
  use.reset();
  other.get();
  EXPECT_THAT(said(), ElementsAre("loading a", "unloading a", "loading b", "used b"));
}

// Requests for the model in use would otherwise keep the other one out for ever.
TEST_F(ModelsTest, ALeavingModelTakesNoNewRequests) {
  Open({"a", "b"}, {.most_loaded = 1});
  std::optional<Models::Use> use = Take(0);
  Close("b");
  auto other = Ask(1, stays_);
  while (!models_->is_loading()) std::this_thread::yield();
  while (models_->status(0).is_leaving == false) std::this_thread::yield();
  auto same = Ask(0, stays_);
  use.reset();
  WaitForSaid("loading b");
  LetLoad();
  other.get();
  same.get();
  EXPECT_THAT(said(), ElementsAre("loading a", "unloading a", "loading b", "used b", "unloading b",
                                  "loading a", "used a"));
}

TEST_F(ModelsTest, LoadingHoldsUpNoOtherModel) {
  Open({"a", "b"});
  (void)Take(0);
  Close("b");
  auto other = Ask(1, stays_);
  WaitForSaid("loading b");
  EXPECT_EQ(StateOf(1), State::kLoading);
  EXPECT_DOUBLE_EQ(models_->status(1).progress, 0.42);
  (void)Take(0);
  LetLoad();
  other.get();
}

TEST_F(ModelsTest, AClientThatGoesEndsItsWait) {
  Open({"a", "b"}, {.most_loaded = 1});
  std::optional<Models::Use> use = Take(0);
  CancelToken gone;
  auto other = Ask(1, gone);
  while (!models_->status(0).is_leaving) std::this_thread::yield();
  gone.Cancel();
  EXPECT_THROW(other.get(), Error);
  while (models_->status(0).is_leaving) std::this_thread::yield();
  (void)Take(0);
  use.reset();
  EXPECT_THAT(said(), ElementsAre("loading a")) << "nobody wants b any more";
  // One that goes while its model is being loaded does not end the loading.
  Close("b");
  CancelToken gone_later;
  auto later = Ask(1, gone_later);
  WaitForSaid("loading b");
  gone_later.Cancel();
  EXPECT_THROW(later.get(), Error);
  LetLoad();
  (void)Take(1);
  EXPECT_EQ(models_->status(1).loads, 1);
}

TEST_F(ModelsTest, AFailureIsTheRequestsAndEndsWithThem) {
  Open({"a", "broken", "large"});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ErrorOf(ErrorKind::kIo, [&] { (void)Take(1); }),
              "the model \"broken\" cannot be loaded: its file is torn");
  }
  EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { (void)Take(2); }), HasSubstr("1 TiB"));
  EXPECT_EQ(StateOf(1), State::kUnloaded);
  (void)Take(0);
  EXPECT_THAT(said(),
              ElementsAre("loading broken", "loading broken", "loading large", "loading a"));
}

TEST_F(ModelsTest, WhatDoesNotFitIsTriedOnceAllOthersHaveLeft) {
  Open({"a", "b"}, {.fits = [](const ModelFacts&) { return false; }});
  (void)Take(0);
  (void)Take(1);
  EXPECT_THAT(said(), ElementsAre("loading a", "unloading a", "loading b"));
}

// Every fifth client goes at some moment, and the others are answered.
TEST_F(ModelsTest, ManyRequestsForAFewPlaces) {
  Open({"a", "b", "c"}, {.most_loaded = 1});
  std::vector<std::thread> threads;
  CancelToken goes;
  std::atomic<int> used = 0, gone = 0;
  for (int i = 0; i < 24; ++i) {
    threads.emplace_back([&, i] {
      const bool stays = i % 5 != 4;
      try {
        for (int k = 0; k < 5 || !stays; ++k) {
          const Models::Use use = models_->Take((i + k) % 3, stays ? stays_ : goes);
          EXPECT_GT((*use).limits.context, 0);
          if (stays) ++used;
        }
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kCancelled);
        ++gone;
      }
    });
  }
  while (used < 20) std::this_thread::yield();
  goes.Cancel();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(used, 100);
  EXPECT_EQ(gone, 4);
}

// A client that has gone waits for no model, but takes one that is there.
TEST_F(ModelsTest, AClientThatHasGoneDoesNotWait) {
  Open({"a"});
  CancelToken gone;
  gone.Cancel();
  EXPECT_EQ(ErrorOf(ErrorKind::kCancelled, [&] { (void)models_->Take(0, gone); }), "cancelled");
  (void)Take(0);
  (void)models_->Take(0, gone);
}

// A model that a request uses stays, however long that takes.
TEST_F(ModelsTest, ThatAreIdleGo) {
  Models& models = Open({"a", "b"}, {.idle_ms = 1});
  {
    const Models::Use use = Take(0);
    { const Models::Use other = Take(1); }
    WaitForSaid("unloading idle b");
    EXPECT_EQ(StateOf(0), State::kLoaded);
  }
  WaitForSaid("unloading idle a");
  { const Models::Use again = Take(0); }
  EXPECT_EQ(models.status(0).loads, 2);
}

TEST_F(ModelsTest, ThatWereLoadedAtTheStartGoIfNoRequestComes) {
  Open({"a"}, {.idle_ms = 1}).LoadThoseThatFit([](int64_t, int64_t) {});
  WaitForSaid("unloading idle a");
}

TEST_F(ModelsTest, StayForTheirTime) {
  static std::atomic<double> clock_ms;
  clock_ms = 0;
  Models& models = Open({"a", "b"}, {.idle_ms = 100, .now_ms = [] { return clock_ms.load(); }});
  { const Models::Use use = Take(0); }
  clock_ms = 60;
  { const Models::Use use = Take(1); }
  clock_ms = 100;
  { const Models::Use use = Take(1); }  // wakes the thread that unloads
  WaitForSaid("unloading idle a");
  EXPECT_EQ(StateOf(1), State::kLoaded);
  EXPECT_EQ(models.status(1).loads, 1);
}

}  // namespace
}  // namespace godwit::server::models_test
