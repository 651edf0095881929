#include "capi/options.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/objects.h"
#include "chat/answer_form.h"

namespace godwit::capi {
namespace {

// Limits of a struct_size: more is no struct of any version.
constexpr size_t kMaxStructBytes = size_t{1} << 16;

void CheckSize(size_t struct_size, const char* name) {
  if (struct_size < sizeof(size_t) || struct_size > kMaxStructBytes) {
    Throw(ErrorKind::kInput, "{}: struct_size is {}, expected sizeof({})", name, struct_size, name);
  }
}

godwit_load_options Defaults(godwit_load_options*) {
  const LoadOptions defaults;
  godwit_load_options options{};
  options.cache_every_tokens = defaults.cache_every_tokens;
  options.step_tokens = defaults.step_tokens;
  options.tensor_parallel = defaults.tensor_parallel;
  options.gpu_window_texts = defaults.gpu_window_texts;
  options.mpi_silence_ms = defaults.mpi_silence_ms;
  return options;
}

godwit_session_options Defaults(godwit_session_options*) {
  godwit_session_options options{};
  options.int8_attention = -1;
  options.chunk_tokens = SessionOptions().chunk_tokens;
  return options;
}

void TakeNumbers(const SamplerOptions& sampler, godwit_sampler_options& options) {
  options.repeat_last_n = sampler.repeat_last_n;
  options.repeat_penalty = sampler.repeat_penalty;
  options.presence_penalty = sampler.presence_penalty;
  options.frequency_penalty = sampler.frequency_penalty;
  options.temperature = sampler.temperature;
  options.top_k = sampler.top_k;
  options.top_p = sampler.top_p;
  options.min_p = sampler.min_p;
  options.eta = sampler.eta;
  options.seed = sampler.seed;
}

godwit_sampler_options Defaults(godwit_sampler_options*) {
  godwit_sampler_options options{};
  TakeNumbers(SamplerOptions(), options);
  return options;
}

godwit_generate_options Defaults(godwit_generate_options*) {
  const GenerateOptions defaults;
  godwit_generate_options options{};
  options.max_tokens = defaults.max_tokens;
  options.query_tokens = defaults.query_tokens;
  options.top_logprobs = defaults.top_logprobs;
  return options;
}

godwit_rows_options Defaults(godwit_rows_options*) { return {}; }
godwit_chat_options Defaults(godwit_chat_options*) { return {}; }
godwit_fill_in Defaults(godwit_fill_in*) { return {}; }
godwit_thought_marks Defaults(godwit_thought_marks*) { return {}; }

// The struct as this library has it.
template <typename T>
T Known(const T* given, const char* name) {
  T known = Defaults(static_cast<T*>(nullptr));
  if (given != nullptr) {
    const size_t bytes = given->struct_size;
    CheckSize(bytes, name);
    std::memcpy(&known, given, std::min(bytes, sizeof(T)));
    const char* const all = reinterpret_cast<const char*>(given);
    if (bytes > sizeof(T) && std::any_of(all + sizeof(T), all + bytes, [](char c) { return c; })) {
      Throw(ErrorKind::kUnsupported,
            "{}: the program sets an option that this library, which is older, does not know",
            name);
    }
  }
  known.struct_size = sizeof(T);
  return known;
}

template <typename T>
void Init(T* options, size_t struct_size) noexcept {
  if (options == nullptr || struct_size < sizeof(size_t)) return;
  std::memset(options, 0, struct_size);
  const T defaults = Defaults(static_cast<T*>(nullptr));
  std::memcpy(options, &defaults, std::min(struct_size, sizeof(T)));
  options->struct_size = struct_size;
}

ThoughtMarks MarksOf(const godwit_thought_marks* given) {
  if (given == nullptr) return {};
  const auto marks = Known(given, "godwit_thought_marks");
  return {
      .begin = StringOf(marks.begin),
      .end = StringOf(marks.end),
      .open = marks.open,
      .before_answer = StringsOf(marks.before_answer, marks.before_answer_count, "before_answer")};
}

void TakeChatPrompt(const ChatPrompt& chat, GenerateOptions& options) {
  options.query_tokens = chat.query_tokens;
  options.thought = chat.prompt.form.thought;
  const auto marks = chat::MarksOf(chat.prompt.form, !chat.request.tools.list.empty());
  options.spelled_out.insert(options.spelled_out.end(), marks.begin(), marks.end());
}

}  // namespace

LoadOptions OptionsOf(const godwit_load_options* given) {
  const auto c = Known(given, "godwit_load_options");
  LoadOptions options;
  options.threads = c.threads;
  options.isa = StringOf(c.isa);
  options.numa = StringOf(c.numa);
  if (c.weights != nullptr) options.weights = c.weights;
  options.packed = StringOf(c.packed);
  options.pack = c.pack;
  options.packed_dir = StringOf(c.packed_dir);
  options.chat_template = StringOf(c.chat_template);
  options.kv_memory_bytes = c.kv_memory_bytes;
  options.kv_file = StringOf(c.kv_file);
  options.kv_file_bytes = c.kv_file_bytes;
  options.cache_dir = StringOf(c.cache_dir);
  options.cache_bytes = c.cache_bytes;
  options.cache_every_tokens = c.cache_every_tokens;
  options.step_tokens = c.step_tokens;
  options.prompt_slowdown = c.prompt_slowdown;
  options.mpi = c.mpi;
  options.tensor_parallel = c.tensor_parallel;
  options.mpi_silence_ms = c.mpi_silence_ms;
  options.mtp = c.mtp;
  options.draft_model = StringOf(c.draft_model);
  options.step_scales = c.step_scales;
  options.device = StringOf(c.device);
  options.gpu_memory_bytes = c.gpu_memory_bytes;
  options.gpu_attention = c.gpu_attention;
  options.gpu_window = c.gpu_window;
  options.gpu_window_texts = c.gpu_window_texts;
  if (c.group != nullptr) options.group = c.group->group;
  options.needs_text = c.needs_text;
  const auto say = [user = c.user_data](auto* callback) {
    return [user, callback](const std::string& message) { callback(user, message.c_str()); };
  };
  if (c.on_cache_notice != nullptr) options.on_cache_notice = say(c.on_cache_notice);
  if (c.on_warning != nullptr) options.on_warning = say(c.on_warning);
  if (c.on_stage != nullptr) {
    options.on_stage = [user = c.user_data, callback = c.on_stage](std::string_view stage) {
      callback(user, std::string(stage).c_str());
    };
  }
  if (c.on_progress != nullptr) {
    options.on_progress = [user = c.user_data, callback = c.on_progress](int64_t done,
                                                                         int64_t total) {
      if (!callback(user, done, total)) Throw(ErrorKind::kCancelled, "loading was cancelled");
    };
  }
  return options;
}

SessionOptions OptionsOf(const godwit_session_options* given) {
  const auto c = Known(given, "godwit_session_options");
  if (c.int8_attention < -1 || c.int8_attention > 1) {
    Throw(ErrorKind::kInput, "int8_attention is {}, expected -1, 0 or 1", c.int8_attention);
  }
  SessionOptions options;
  if (c.kv != nullptr) options.kv = c.kv;
  options.prefill = StringOf(c.prefill);
  if (c.kv_type != nullptr) options.kv_type = c.kv_type;
  if (c.int8_attention >= 0) options.int8_attention = c.int8_attention == 1;
  options.context_tokens = c.context_tokens;
  options.chunk_tokens = c.chunk_tokens;
  options.owner = StringOf(c.owner);
  options.gpu_window = c.gpu_window;
  return options;
}

SamplerOptions OptionsOf(const godwit_sampler_options* given) {
  const auto c = Known(given, "godwit_sampler_options");
  SamplerOptions options;
  for (const auto& [token, bias] : SpanOf(c.logit_bias, c.logit_bias_count, "logit_bias")) {
    options.logit_bias[token] = bias;
  }
  if (c.steps != nullptr) {
    options.steps.clear();
    for (const int32_t step : SpanOf(c.steps, c.steps_count, "steps")) {
      if (step < GODWIT_STEP_PENALTIES || step > GODWIT_STEP_TEMPERATURE) {
        Throw(ErrorKind::kInput, "steps: expected {} to {}, found {}",
              static_cast<int>(GODWIT_STEP_PENALTIES), static_cast<int>(GODWIT_STEP_TEMPERATURE),
              step);
      }
      options.steps.push_back(static_cast<SamplerStep>(step));
    }
  }
  options.repeat_last_n = c.repeat_last_n;
  options.repeat_penalty = c.repeat_penalty;
  options.presence_penalty = c.presence_penalty;
  options.frequency_penalty = c.frequency_penalty;
  options.temperature = c.temperature;
  options.top_k = c.top_k;
  options.top_p = c.top_p;
  options.min_p = c.min_p;
  options.eta = c.eta;
  options.seed = c.seed;
  return options;
}

void WriteSampler(const SamplerOptions& sampler, godwit_sampler_options& options) {
  auto whole = Known(&options, "godwit_sampler_options");
  TakeNumbers(sampler, whole);
  whole.struct_size = options.struct_size;
  std::memcpy(&options, &whole, std::min(options.struct_size, sizeof(whole)));
}

GenerateOptions OptionsOf(const godwit_generate_options* given) {
  const auto c = Known(given, "godwit_generate_options");
  GenerateOptions options;
  options.max_tokens = c.max_tokens;
  options.query_tokens = c.query_tokens;
  options.sampler = OptionsOf(c.sampler);
  options.sequence = c.sequence;
  options.stop = StringsOf(c.stop, c.stop_count, "stop");
  options.ignore_eos = c.ignore_eos;
  options.json_schema = StringOf(c.json_schema);
  options.thought = MarksOf(c.thought);
  options.spelled_out = StringsOf(c.spelled_out, c.spelled_out_count, "spelled_out");
  options.top_logprobs = c.top_logprobs;
  options.timeout_ms = c.timeout_ms;
  options.draft = StringOf(c.draft);
  options.keep_as = StringOf(c.keep_as);
  if (c.answers != nullptr) TakeChatPrompt(static_cast<const ChatPrompt&>(*c.answers), options);
  return options;
}

Listener ListenerOf(const godwit_generate_options* options) {
  const auto c = Known(options, "godwit_generate_options");
  return {.on_event = c.on_event, .user_data = c.user_data};
}

godwit_rows_options Complete(const godwit_rows_options* options) {
  return Known(options, "godwit_rows_options");
}
godwit_chat_options Complete(const godwit_chat_options* options) {
  return Known(options, "godwit_chat_options");
}
godwit_fill_in Complete(const godwit_fill_in* fill) {
  return Known(&Require(fill, "fill"), "godwit_fill_in");
}

template <typename T>
void WriteFacts(const T& facts, T* out, const char* name) {
  Require(out, name);
  CheckSize(out->struct_size, name);
  const size_t bytes = out->struct_size;
  std::memset(out, 0, bytes);
  std::memcpy(out, &facts, std::min(bytes, sizeof(T)));
  out->struct_size = bytes;
}
template void WriteFacts(const godwit_engine_facts&, godwit_engine_facts*, const char*);
template void WriteFacts(const godwit_group_memory&, godwit_group_memory*, const char*);

}  // namespace godwit::capi

void godwit_load_options_init(godwit_load_options* options, size_t struct_size) {
  godwit::capi::Init(options, struct_size);
}
void godwit_session_options_init(godwit_session_options* options, size_t struct_size) {
  godwit::capi::Init(options, struct_size);
}
void godwit_sampler_options_init(godwit_sampler_options* options, size_t struct_size) {
  godwit::capi::Init(options, struct_size);
}
void godwit_generate_options_init(godwit_generate_options* options, size_t struct_size) {
  godwit::capi::Init(options, struct_size);
}
