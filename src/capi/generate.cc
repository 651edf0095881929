#include <memory>
#include <optional>
#include <utility>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/objects.h"
#include "capi/options.h"

using godwit::capi::Guard;
using godwit::capi::Require;

godwit_error* godwit_session_generate(godwit_session* handle, const int32_t* prompt, int64_t count,
                                      const godwit_generate_options* given,
                                      godwit_result** result) {
  return Guard([&] {
    Require(result, "result");
    godwit::Session& session = Require(handle, "session").session;
    godwit::GenerateOptions options = godwit::capi::OptionsOf(given);
    const godwit::capi::Listener listener = godwit::capi::ListenerOf(given);
    if (listener.on_event != nullptr) {
      options.on_event = [&](const godwit::Event& event) {
        const godwit::capi::EventView view(event);
        if (!listener.on_event(listener.user_data, view.get())) session.Cancel();
      };
    }
    *result = godwit::capi::NewResult(
        session.Generate(godwit::capi::SpanOf(prompt, count, "prompt"), options));
  });
}

godwit_error* godwit_engine_submit(const godwit_engine* engine, const int32_t* prompt,
                                   int64_t count, const godwit_generate_options* options,
                                   const godwit_session_options* session,
                                   godwit_generation** generation) {
  return Guard([&] {
    Require(generation, "generation");
    if (godwit::capi::ListenerOf(options).on_event != nullptr) {
      godwit::Throw(godwit::ErrorKind::kInput,
                    "a submitted request has events, no callback: leave on_event out");
    }
    auto submitted =
        Require(engine, "engine")
            .engine->Submit(godwit::capi::SpanOf(prompt, count, "prompt"),
                            godwit::capi::OptionsOf(options), godwit::capi::OptionsOf(session));
    *generation =
        std::make_unique<godwit_generation>(godwit_generation{std::move(submitted)}).release();
  });
}

godwit_error* godwit_generation_next(godwit_generation* generation, double wait_ms,
                                     godwit_event** event) {
  return Guard([&] {
    Require(event, "event");
    godwit::Generation& request = Require(generation, "generation").generation;
    std::optional<godwit::Event> next =
        wait_ms < 0 ? std::optional(request.Next()) : request.Next(wait_ms);
    *event = next ? godwit::capi::NewEvent(std::move(*next)) : nullptr;
  });
}

godwit_error* godwit_generation_wait(godwit_generation* generation, godwit_result** result) {
  return Guard([&] {
    Require(result, "result");
    *result = godwit::capi::NewResult(Require(generation, "generation").generation.Wait());
  });
}

void godwit_generation_cancel(godwit_generation* generation) {
  if (generation != nullptr) generation->generation.Cancel();
}

void godwit_generation_free(godwit_generation* generation) { delete generation; }
