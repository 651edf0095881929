// Engines of one process as ranks, for tests. Only *_test.cc files include it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "dist/local.h"
#include "engine/engine_impl.h"
#include "engine/engine_test_support.h"

namespace godwit {

using EnginePtr = std::shared_ptr<const Engine::Impl>;

// Calls ask(engine) on rank 0, and on_forgotten(rank, its tokens) on the others when a text goes.
// options(rank): of each rank's engine. Returns the error of each rank.
inline std::vector<std::string> OnRanks(
    int ranks, const std::function<LoadOptions(int)>& options,
    const std::function<void(const EnginePtr&)>& ask,
    const std::function<void(int, std::span<const int32_t>)>& on_forgotten =
        [](int, std::span<const int32_t>) {}) {
  LocalWorld world(ranks);
  std::vector<std::string> errors(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto communicator = world.Rank(rank);
      try {
        const auto engine =
            std::make_shared<const Engine::Impl>(kTiny, options(rank), communicator);
        if (rank == 0) return ask(engine);
        engine->FollowRankZero([&](std::span<const int32_t> text) { on_forgotten(rank, text); });
      } catch (const Error& error) {
        errors[rank] = error.what();
        communicator->Leave(error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace godwit
