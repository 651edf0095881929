// SessionOf, for tests: a session of an engine that outlives it and stays the test's.
#pragma once

#include <memory>

#include "engine/engine_impl.h"

namespace godwit {

inline Session SessionOf(const Engine::Impl& engine, const SessionOptions& options = {}) {
  const std::shared_ptr<const Engine::Impl> borrowed(std::shared_ptr<void>(), &engine);
  return Session(std::make_unique<Session::Impl>(borrowed, options));
}

}  // namespace godwit
