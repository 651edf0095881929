// The members of a Generation.
#pragma once

#include <memory>
#include <utility>

#include "engine/engine_impl.h"

namespace godwit {

class Generation::Impl {
 public:
  Impl(std::shared_ptr<const Engine::Impl> engine, std::shared_ptr<Request> request)
      : engine_(std::move(engine)), request_(std::move(request)) {}
  ~Impl() {
    if (!ended_) request_->Cancel();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::optional<Event> Next(std::optional<double> wait_ms);
  GenerateResult Wait();
  void Cancel() noexcept { request_->Cancel(); }

 private:
  std::shared_ptr<const Engine::Impl> engine_;
  std::shared_ptr<Request> request_;
  bool ended_ = false;  // its last event was read
};

// Engine::Submit.
Generation SubmitTo(std::shared_ptr<const Engine::Impl> engine, std::span<const int32_t> prompt,
                    const GenerateOptions& options, const SessionOptions& session);

}  // namespace godwit
