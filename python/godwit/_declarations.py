"""The C API as ctypes knows it, from godwit.h by make_declarations.py."""

# fmt: off
from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char_p, c_double, c_float,
                    c_int32, c_int64, c_size_t, c_uint64, c_void_p)

GODWIT_ERROR_INPUT = 1
GODWIT_ERROR_IO = 2
GODWIT_ERROR_FORMAT = 3
GODWIT_ERROR_UNSUPPORTED = 4
GODWIT_ERROR_MEMORY = 5
GODWIT_ERROR_CANCELLED = 6
GODWIT_ERROR_INTERNAL = 7
GODWIT_CODE_OTHER = 0
GODWIT_CODE_WINDOW_TOO_LONG = 1
GODWIT_CODE_TEXT_TOO_LONG = 2
GODWIT_CODE_PROMPT_TOO_LONG = 3
GODWIT_CODE_STREAM_TOO_LONG = 4
GODWIT_CODE_NEEDS_INT8_KV = 5
GODWIT_CODE_QUANTIZED_OTHERWISE = 6
GODWIT_CODE_NEVER_REACHED = 7
GODWIT_CODE_NO_DRAFT_HEADS = 8
GODWIT_CODE_NO_PREDICTION = 9
GODWIT_CODE_NO_EAGLE3 = 10
GODWIT_CODE_WEIGHTS_TOO_LARGE = 11
GODWIT_CODE_OTHER_RANK = 12
GODWIT_CODE_NO_DRAFT_MODEL = 13
GODWIT_STEP_PENALTIES = 0
GODWIT_STEP_TOP_K = 1
GODWIT_STEP_TOP_P = 2
GODWIT_STEP_MIN_P = 3
GODWIT_STEP_ETA = 4
GODWIT_STEP_TEMPERATURE = 5
GODWIT_FINISH_STOP = 0
GODWIT_FINISH_LENGTH = 1
GODWIT_FINISH_CONTEXT_FULL = 2
GODWIT_FINISH_CANCELLED = 3
GODWIT_FINISH_TIMEOUT = 4


class godwit_group(Structure):
    pass


class godwit_engine(Structure):
    pass


class godwit_session(Structure):
    pass


class godwit_generation(Structure):
    pass


class godwit_chat(Structure):
    pass


class godwit_error(Structure):
    pass


class godwit_text(Structure):
    pass


class godwit_tokens(Structure):
    pass


class godwit_strings(Structure):
    pass


class godwit_load_options(Structure):
    pass


class godwit_group_memory(Structure):
    pass


class godwit_engine_facts(Structure):
    pass


class godwit_message(Structure):
    pass


class godwit_session_options(Structure):
    pass


class godwit_fill_file(Structure):
    pass


class godwit_fill_in(Structure):
    pass


class godwit_fill_prompt(Structure):
    pass


class godwit_chat_prompt(Structure):
    pass


class godwit_logit_bias(Structure):
    pass


class godwit_sampler_options(Structure):
    pass


class godwit_thought_marks(Structure):
    pass


class godwit_prompt_progress(Structure):
    pass


class godwit_token_logprob(Structure):
    pass


class godwit_token_logprobs(Structure):
    pass


class godwit_event(Structure):
    pass


class godwit_generate_options(Structure):
    pass


class godwit_kv_span(Structure):
    pass


class godwit_kv_report(Structure):
    pass


class godwit_draft_source(Structure):
    pass


class godwit_draft_report(Structure):
    pass


class godwit_result(Structure):
    pass


class godwit_rows_options(Structure):
    pass


class godwit_saved_text(Structure):
    pass


class godwit_saved_texts(Structure):
    pass


class godwit_chat_options(Structure):
    pass


godwit_error._fields_ = [
    ("struct_size", c_size_t),
    ("kind", c_int32),
    ("code", c_int32),
    ("message", c_char_p),
    ("found", c_int64),
    ("limit", c_int64),
    ("fits", c_int64),
    ("learned_positions", c_int64),
    ("ranks", c_int32),
    ("unit", c_char_p),
]
godwit_text._fields_ = [
    ("struct_size", c_size_t),
    ("data", c_void_p),
    ("bytes", c_size_t),
]
godwit_tokens._fields_ = [
    ("struct_size", c_size_t),
    ("ids", POINTER(c_int32)),
    ("count", c_int64),
]
godwit_strings._fields_ = [
    ("struct_size", c_size_t),
    ("strings", POINTER(c_char_p)),
    ("count", c_int64),
]
godwit_load_options._fields_ = [
    ("struct_size", c_size_t),
    ("threads", c_int32),
    ("isa", c_char_p),
    ("numa", c_char_p),
    ("weights", c_char_p),
    ("packed", c_char_p),
    ("pack", c_bool),
    ("packed_dir", c_char_p),
    ("chat_template", c_char_p),
    ("kv_memory_bytes", c_int64),
    ("kv_file", c_void_p),
    ("kv_file_bytes", c_int64),
    ("cache_dir", c_char_p),
    ("cache_bytes", c_int64),
    ("cache_every_tokens", c_int64),
    ("step_tokens", c_int64),
    ("prompt_slowdown", c_double),
    ("mpi", c_bool),
    ("tensor_parallel", c_int32),
    ("mpi_silence_ms", c_double),
    ("mtp", c_bool),
    ("group", POINTER(godwit_group)),
    ("needs_text", c_bool),
    ("user_data", c_void_p),
    ("on_progress", CFUNCTYPE(c_bool, c_void_p, c_int64, c_int64)),
    ("on_stage", CFUNCTYPE(None, c_void_p, c_char_p)),
    ("on_warning", CFUNCTYPE(None, c_void_p, c_char_p)),
    ("on_cache_notice", CFUNCTYPE(None, c_void_p, c_char_p)),
    ("draft_model", c_char_p),
    ("step_scales", c_bool),
    ("device", c_char_p),
    ("gpu_memory_bytes", c_int64),
    ("gpu_attention", c_bool),
    ("gpu_window", c_int64),
    ("gpu_window_texts", c_int64),
]
godwit_group_memory._fields_ = [
    ("struct_size", c_size_t),
    ("kv_memory_bytes", c_int64),
    ("used_kv_bytes", c_int64),
    ("mapped_bytes", c_int64),
]
godwit_engine_facts._fields_ = [
    ("struct_size", c_size_t),
    ("vocab_size", c_int64),
    ("hidden_size", c_int64),
    ("max_context", c_int64),
    ("sink_token", c_int32),
    ("threads", c_int32),
    ("isa", c_char_p),
    ("kv_memory_bytes", c_int64),
    ("weight_bytes", c_int64),
    ("load_ms", c_double),
    ("weights_ms", c_double),
    ("tokenizer_ms", c_double),
    ("end_tokens", POINTER(c_int32)),
    ("end_tokens_count", c_int64),
]
godwit_message._fields_ = [
    ("struct_size", c_size_t),
    ("role", c_char_p),
    ("content", c_void_p),
    ("content_bytes", c_size_t),
    ("fields", c_char_p),
]
godwit_session_options._fields_ = [
    ("struct_size", c_size_t),
    ("kv", c_char_p),
    ("prefill", c_char_p),
    ("kv_type", c_char_p),
    ("int8_attention", c_int32),
    ("context_tokens", c_int64),
    ("chunk_tokens", c_int64),
    ("owner", c_char_p),
    ("gpu_window", c_int64),
]
godwit_fill_file._fields_ = [
    ("name", c_char_p),
    ("text", c_char_p),
]
godwit_fill_in._fields_ = [
    ("struct_size", c_size_t),
    ("before", c_char_p),
    ("behind", c_char_p),
    ("files", POINTER(godwit_fill_file)),
    ("files_count", c_int64),
    ("begun", c_char_p),
]
godwit_fill_prompt._fields_ = [
    ("struct_size", c_size_t),
    ("ids", POINTER(c_int32)),
    ("count", c_int64),
    ("ends", POINTER(c_char_p)),
    ("ends_count", c_int64),
]
godwit_chat_prompt._fields_ = [
    ("struct_size", c_size_t),
    ("ids", POINTER(c_int32)),
    ("count", c_int64),
    ("query_tokens", c_int64),
]
godwit_logit_bias._fields_ = [
    ("token", c_int32),
    ("bias", c_float),
]
godwit_sampler_options._fields_ = [
    ("struct_size", c_size_t),
    ("logit_bias", POINTER(godwit_logit_bias)),
    ("logit_bias_count", c_int64),
    ("steps", POINTER(c_int32)),
    ("steps_count", c_int64),
    ("repeat_last_n", c_int32),
    ("repeat_penalty", c_float),
    ("presence_penalty", c_float),
    ("frequency_penalty", c_float),
    ("temperature", c_float),
    ("top_k", c_int32),
    ("top_p", c_float),
    ("min_p", c_float),
    ("eta", c_float),
    ("seed", c_uint64),
]
godwit_thought_marks._fields_ = [
    ("struct_size", c_size_t),
    ("begin", c_char_p),
    ("end", c_char_p),
    ("open", c_bool),
    ("before_answer", POINTER(c_char_p)),
    ("before_answer_count", c_int64),
]
godwit_prompt_progress._fields_ = [
    ("struct_size", c_size_t),
    ("done_tokens", c_int64),
    ("total_tokens", c_int64),
    ("cached_tokens", c_int64),
    ("elapsed_ms", c_double),
    ("left_ms", c_double),
]
godwit_token_logprob._fields_ = [
    ("token", c_int32),
    ("logprob", c_float),
]
godwit_token_logprobs._fields_ = [
    ("top", POINTER(godwit_token_logprob)),
    ("top_count", c_int32),
    ("logprob", c_float),
]
godwit_event._fields_ = [
    ("struct_size", c_size_t),
    ("progress", POINTER(godwit_prompt_progress)),
    ("tokens", POINTER(c_int32)),
    ("tokens_count", c_int64),
    ("logprobs", POINTER(godwit_token_logprobs)),
    ("text", c_void_p),
    ("text_bytes", c_size_t),
    ("thought_tokens", c_int64),
    ("done", c_bool),
]
godwit_generate_options._fields_ = [
    ("struct_size", c_size_t),
    ("max_tokens", c_int64),
    ("query_tokens", c_int64),
    ("sampler", POINTER(godwit_sampler_options)),
    ("sequence", c_uint64),
    ("stop", POINTER(c_char_p)),
    ("stop_count", c_int64),
    ("ignore_eos", c_bool),
    ("json_schema", c_char_p),
    ("thought", POINTER(godwit_thought_marks)),
    ("spelled_out", POINTER(c_char_p)),
    ("spelled_out_count", c_int64),
    ("top_logprobs", c_int32),
    ("timeout_ms", c_double),
    ("draft", c_char_p),
    ("keep_as", c_char_p),
    ("answers", POINTER(godwit_chat_prompt)),
    ("user_data", c_void_p),
    ("on_event", CFUNCTYPE(c_bool, c_void_p, POINTER(godwit_event))),
]
godwit_kv_span._fields_ = [
    ("begin", c_int64),
    ("end", c_int64),
]
godwit_kv_report._fields_ = [
    ("struct_size", c_size_t),
    ("policy", c_char_p),
    ("prefill", c_char_p),
    ("seen", c_int64),
    ("context_tokens", c_int64),
    ("kept", c_int64),
    ("dropped", POINTER(godwit_kv_span)),
    ("dropped_count", c_int64),
    ("bytes", c_int64),
    ("in_file", c_bool),
    ("file_in_memory_bytes", c_int64),
    ("file_read_bytes", c_int64),
]
godwit_draft_source._fields_ = [
    ("name", c_char_p),
    ("accepted", c_int64),
    ("skipped_steps", c_int64),
]
godwit_draft_report._fields_ = [
    ("struct_size", c_size_t),
    ("steps", c_int64),
    ("draft_tokens", c_int64),
    ("accepted", c_int64),
    ("steps_short_of_memory", c_int64),
    ("sources", POINTER(godwit_draft_source)),
    ("sources_count", c_int64),
]
godwit_result._fields_ = [
    ("struct_size", c_size_t),
    ("text", c_void_p),
    ("text_bytes", c_size_t),
    ("tokens", POINTER(c_int32)),
    ("tokens_count", c_int64),
    ("thought_tokens", c_int64),
    ("prompt_tokens", c_int64),
    ("cached_tokens", c_int64),
    ("disk_tokens", c_int64),
    ("read_tokens", c_int64),
    ("finish_reason", c_int32),
    ("stop", c_char_p),
    ("logprobs", POINTER(godwit_token_logprobs)),
    ("pauses", c_int64),
    ("kv", POINTER(godwit_kv_report)),
    ("drafts", POINTER(godwit_draft_report)),
    ("prompt_ms", c_double),
    ("predicted_ms", c_double),
]
godwit_rows_options._fields_ = [
    ("struct_size", c_size_t),
    ("first", c_int64),
    ("out", POINTER(c_float)),
    ("user_data", c_void_p),
    ("on_row", CFUNCTYPE(c_bool, c_void_p, c_int64, POINTER(c_float), c_int64)),
    ("on_progress", CFUNCTYPE(c_bool, c_void_p, POINTER(godwit_prompt_progress))),
]
godwit_saved_text._fields_ = [
    ("id", c_char_p),
    ("tokens", c_int64),
    ("bytes", c_int64),
    ("model", c_char_p),
    ("names", POINTER(c_char_p)),
    ("names_count", c_int64),
]
godwit_saved_texts._fields_ = [
    ("struct_size", c_size_t),
    ("texts", POINTER(godwit_saved_text)),
    ("count", c_int64),
]
godwit_chat_options._fields_ = [
    ("struct_size", c_size_t),
    ("session", POINTER(godwit_session_options)),
    ("model_name", c_char_p),
    ("lenient", c_bool),
]

# name: (result, arguments)
FUNCTIONS = {
    "godwit_version": (c_char_p, []),
    "godwit_error_free": (None, [POINTER(godwit_error)]),
    "godwit_text_free": (None, [POINTER(godwit_text)]),
    "godwit_tokens_free": (None, [POINTER(godwit_tokens)]),
    "godwit_strings_free": (None, [POINTER(godwit_strings)]),
    "godwit_load_options_init": (None, [POINTER(godwit_load_options), c_size_t]),
    "godwit_group_new": (POINTER(godwit_error), [POINTER(godwit_load_options), POINTER(POINTER(godwit_group))]),
    "godwit_group_free": (None, [POINTER(godwit_group)]),
    "godwit_group_forget_texts": (POINTER(godwit_error), [POINTER(godwit_group)]),
    "godwit_group_get_memory": (POINTER(godwit_error), [POINTER(godwit_group), POINTER(godwit_group_memory)]),
    "godwit_engine_load": (POINTER(godwit_error), [c_char_p, POINTER(godwit_load_options), POINTER(POINTER(godwit_engine))]),
    "godwit_engine_free": (None, [POINTER(godwit_engine)]),
    "godwit_engine_get_facts": (POINTER(godwit_error), [POINTER(godwit_engine), POINTER(godwit_engine_facts)]),
    "godwit_engine_tokenize": (POINTER(godwit_error), [POINTER(godwit_engine), c_char_p, c_size_t, c_bool, c_int64, POINTER(POINTER(godwit_tokens))]),
    "godwit_engine_detokenize": (POINTER(godwit_error), [POINTER(godwit_engine), POINTER(c_int32), c_int64, c_bool, POINTER(POINTER(godwit_text))]),
    "godwit_engine_has_chat_template": (POINTER(godwit_error), [POINTER(godwit_engine), POINTER(c_bool)]),
    "godwit_engine_apply_chat_template": (POINTER(godwit_error), [POINTER(godwit_engine), POINTER(godwit_message), c_int64, c_bool, c_char_p, c_char_p, POINTER(POINTER(godwit_text))]),
    "godwit_session_options_init": (None, [POINTER(godwit_session_options), c_size_t]),
    "godwit_engine_kv_bytes": (POINTER(godwit_error), [POINTER(godwit_engine), c_int64, POINTER(godwit_session_options), POINTER(c_int64)]),
    "godwit_session_new": (POINTER(godwit_error), [POINTER(godwit_engine), POINTER(godwit_session_options), POINTER(POINTER(godwit_session))]),
    "godwit_session_free": (None, [POINTER(godwit_session)]),
    "godwit_session_fork": (POINTER(godwit_error), [POINTER(godwit_session), POINTER(POINTER(godwit_session))]),
    "godwit_session_tokenize": (POINTER(godwit_error), [POINTER(godwit_session), c_char_p, c_size_t, c_bool, POINTER(POINTER(godwit_tokens))]),
    "godwit_session_tokens": (POINTER(godwit_error), [POINTER(godwit_session), POINTER(POINTER(godwit_tokens))]),
    "godwit_session_limits": (POINTER(godwit_error), [POINTER(godwit_session), POINTER(c_int64), POINTER(c_int64)]),
    "godwit_session_cancel": (None, [POINTER(godwit_session)]),
    "godwit_session_save": (POINTER(godwit_error), [POINTER(godwit_session), POINTER(c_int64)]),
    "godwit_session_load": (POINTER(godwit_error), [POINTER(godwit_session), c_char_p, POINTER(c_int64)]),
    "godwit_session_fill_prompt": (POINTER(godwit_error), [POINTER(godwit_session), POINTER(godwit_fill_in), POINTER(POINTER(godwit_fill_prompt))]),
    "godwit_fill_prompt_free": (None, [POINTER(godwit_fill_prompt)]),
    "godwit_session_chat_prompt": (POINTER(godwit_error), [POINTER(godwit_session), POINTER(godwit_message), c_int64, c_char_p, c_char_p, POINTER(POINTER(godwit_chat_prompt))]),
    "godwit_chat_prompt_free": (None, [POINTER(godwit_chat_prompt)]),
    "godwit_chat_prompt_read": (POINTER(godwit_error), [POINTER(godwit_chat_prompt), c_char_p, c_size_t, POINTER(POINTER(godwit_text))]),
    "godwit_sampler_options_init": (None, [POINTER(godwit_sampler_options), c_size_t]),
    "godwit_engine_recommend_sampler": (POINTER(godwit_error), [POINTER(godwit_engine), POINTER(godwit_sampler_options), POINTER(POINTER(godwit_strings))]),
    "godwit_event_free": (None, [POINTER(godwit_event)]),
    "godwit_generate_options_init": (None, [POINTER(godwit_generate_options), c_size_t]),
    "godwit_session_get_kv": (POINTER(godwit_error), [POINTER(godwit_session), POINTER(POINTER(godwit_kv_report))]),
    "godwit_kv_report_free": (None, [POINTER(godwit_kv_report)]),
    "godwit_result_free": (None, [POINTER(godwit_result)]),
    "godwit_session_generate": (POINTER(godwit_error), [POINTER(godwit_session), POINTER(c_int32), c_int64, POINTER(godwit_generate_options), POINTER(POINTER(godwit_result))]),
    "godwit_engine_submit": (POINTER(godwit_error), [POINTER(godwit_engine), POINTER(c_int32), c_int64, POINTER(godwit_generate_options), POINTER(godwit_session_options), POINTER(POINTER(godwit_generation))]),
    "godwit_generation_next": (POINTER(godwit_error), [POINTER(godwit_generation), c_double, POINTER(POINTER(godwit_event))]),
    "godwit_generation_wait": (POINTER(godwit_error), [POINTER(godwit_generation), POINTER(POINTER(godwit_result))]),
    "godwit_generation_cancel": (None, [POINTER(godwit_generation)]),
    "godwit_generation_free": (None, [POINTER(godwit_generation)]),
    "godwit_session_logits": (POINTER(godwit_error), [POINTER(godwit_session), POINTER(c_int32), c_int64, POINTER(godwit_rows_options)]),
    "godwit_session_hidden_states": (POINTER(godwit_error), [POINTER(godwit_session), POINTER(c_int32), c_int64, POINTER(godwit_rows_options)]),
    "godwit_engine_list_saved": (POINTER(godwit_error), [POINTER(godwit_engine), POINTER(POINTER(godwit_saved_texts))]),
    "godwit_saved_texts_free": (None, [POINTER(godwit_saved_texts)]),
    "godwit_engine_remove_saved": (POINTER(godwit_error), [POINTER(godwit_engine), c_char_p, POINTER(c_bool)]),
    "godwit_engine_stop_keeping": (POINTER(godwit_error), [POINTER(godwit_engine), c_char_p, POINTER(c_bool)]),
    "godwit_chat_new": (POINTER(godwit_error), [POINTER(godwit_engine), POINTER(godwit_chat_options), POINTER(POINTER(godwit_chat))]),
    "godwit_chat_free": (None, [POINTER(godwit_chat)]),
    "godwit_chat_complete": (POINTER(godwit_error), [POINTER(godwit_chat), c_char_p, c_size_t, CFUNCTYPE(c_bool, c_void_p, c_void_p, c_size_t), c_void_p, POINTER(POINTER(godwit_text))]),
    "godwit_chat_cancel": (None, [POINTER(godwit_chat)]),
    "godwit_engine_follow_rank_zero": (POINTER(godwit_error), [POINTER(godwit_engine)]),
    "godwit_engine_ranks_ended": (POINTER(godwit_error), [POINTER(godwit_engine), POINTER(c_bool)]),
}
