#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/objects.h"
#include "capi/options.h"

using godwit::capi::Guard;
using godwit::capi::Require;

namespace godwit::capi {
namespace {

// Makes a handle of a session. `make` returns the session.
void NewSession(const std::shared_ptr<const Engine>& engine, FunctionRef<Session()> make,
                godwit_session** session) {
  Require(session, "session");
  *session = std::make_unique<godwit_session>(godwit_session{make(), engine}).release();
}

using Row = std::function<void(int64_t, std::span<const float>)>;
using OnProgress = std::function<void(const PromptProgress&)>;

// The rows of a text, for the caller of `read`, which is Logits or HiddenStates.
godwit_error* ReadRows(godwit_session* handle, const int32_t* ids, int64_t count,
                       const godwit_rows_options* given,
                       void (Session::*read)(std::span<const int32_t>, const Row&, int64_t,
                                             const OnProgress&)) {
  return Guard([&] {
    Session& session = Require(handle, "session").session;
    const godwit_rows_options options = Complete(given);
    const auto refuse = [] { Throw(ErrorKind::kCancelled, "cancelled by a callback"); };
    const auto row = [&](int64_t position, std::span<const float> values) {
      const int64_t width = std::ssize(values);
      if (options.out != nullptr) {
        std::copy(values.begin(), values.end(), options.out + (position - options.first) * width);
      }
      if (options.on_row != nullptr &&
          !options.on_row(options.user_data, position, values.data(), width)) {
        refuse();
      }
    };
    OnProgress on_progress;
    if (options.on_progress != nullptr) {
      on_progress = [&](const PromptProgress& progress) {
        const auto view = ProgressView(progress);
        if (!options.on_progress(options.user_data, &view)) refuse();
      };
    }
    (session.*read)(SpanOf(ids, count, "ids"), row, options.first, on_progress);
  });
}

}  // namespace
}  // namespace godwit::capi

godwit_error* godwit_session_new(const godwit_engine* engine, const godwit_session_options* options,
                                 godwit_session** session) {
  return Guard([&] {
    const auto& model = Require(engine, "engine").engine;
    godwit::capi::NewSession(
        model, [&] { return model->NewSession(godwit::capi::OptionsOf(options)); }, session);
  });
}

void godwit_session_free(godwit_session* session) { delete session; }

godwit_error* godwit_session_fork(const godwit_session* session, godwit_session** fork) {
  return Guard([&] {
    const godwit_session& parent = Require(session, "session");
    godwit::capi::NewSession(
        parent.engine, [&] { return parent.session.Fork(); }, fork);
  });
}

godwit_error* godwit_session_tokenize(const godwit_session* session, const char* text,
                                      size_t text_bytes, bool add_special, godwit_tokens** tokens) {
  return Guard([&] {
    Require(tokens, "tokens");
    *tokens = godwit::capi::NewTokens(
        Require(session, "session")
            .session.Tokenize(godwit::capi::TextOf(text, text_bytes, "text"), add_special));
  });
}

godwit_error* godwit_session_tokens(const godwit_session* session, godwit_tokens** tokens) {
  return Guard([&] {
    Require(tokens, "tokens");
    const auto text = Require(session, "session").session.tokens();
    *tokens = godwit::capi::NewTokens({text.begin(), text.end()});
  });
}

godwit_error* godwit_session_limits(const godwit_session* session, int64_t* limit_tokens,
                                    int64_t* learned_positions) {
  return Guard([&] {
    const godwit::Session& text = Require(session, "session").session;
    if (limit_tokens != nullptr) *limit_tokens = text.limit_tokens();
    if (learned_positions != nullptr) *learned_positions = text.learned_positions();
  });
}

void godwit_session_cancel(godwit_session* session) {
  if (session != nullptr) session->session.Cancel();
}

godwit_error* godwit_session_save(godwit_session* session, int64_t* tokens) {
  return Guard([&] {
    const int64_t saved = Require(session, "session").session.Save();
    if (tokens != nullptr) *tokens = saved;
  });
}

godwit_error* godwit_session_load(godwit_session* session, const char* name, int64_t* tokens) {
  return Guard([&] {
    const int64_t loaded = Require(session, "session").session.Load(&Require(name, "name"));
    if (tokens != nullptr) *tokens = loaded;
  });
}

godwit_error* godwit_session_get_kv(const godwit_session* session, godwit_kv_report** report) {
  return Guard([&] {
    Require(report, "report");
    *report = godwit::capi::NewKvReport(Require(session, "session").session.kv());
  });
}

godwit_error* godwit_session_fill_prompt(const godwit_session* session, const godwit_fill_in* fill,
                                         godwit_fill_prompt** prompt) {
  return Guard([&] {
    Require(prompt, "prompt");
    const auto c = godwit::capi::Complete(fill);
    godwit::FillIn hole{.before = godwit::capi::StringOf(c.before),
                        .behind = godwit::capi::StringOf(c.behind)};
    for (const auto& [name, text] : godwit::capi::SpanOf(c.files, c.files_count, "files")) {
      hole.files.push_back(
          {.name = godwit::capi::StringOf(name), .text = godwit::capi::StringOf(text)});
    }
    hole.begun = godwit::capi::StringOf(c.begun);
    *prompt = godwit::capi::NewFillPrompt(Require(session, "session").session.PromptToFill(hole));
  });
}

godwit_error* godwit_session_logits(godwit_session* session, const int32_t* ids, int64_t count,
                                    const godwit_rows_options* options) {
  return godwit::capi::ReadRows(session, ids, count, options, &godwit::Session::Logits);
}

godwit_error* godwit_session_hidden_states(godwit_session* session, const int32_t* ids,
                                           int64_t count, const godwit_rows_options* options) {
  return godwit::capi::ReadRows(session, ids, count, options, &godwit::Session::HiddenStates);
}
