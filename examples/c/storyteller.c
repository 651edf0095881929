#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "godwit/godwit.h"

static godwit_session* session = NULL;

/* Ctrl-C ends the text, not the program. */
static void stop(int signal_number) {
  (void)signal_number;
  godwit_session_cancel(session);
}

static bool write_text(void* user_data, const godwit_event* event) {
  fwrite(event->text, 1, event->text_bytes, (FILE*)user_data);
  fflush((FILE*)user_data);
  return true; /* go on */
}

/* The exit code: 0, or 1 for an error, which is told and freed. */
static int tell(godwit_error* error) {
  if (error == NULL) return 0;
  fprintf(stderr, "%s\n", error->message);
  if (error->code == GODWIT_CODE_PROMPT_TOO_LONG) {
    fprintf(stderr, "found %lld, the limit is %lld\n", (long long)error->found,
            (long long)error->limit);
  }
  godwit_error_free(error);
  return 1;
}

static int tell_a_story(const godwit_engine* engine, const char* prompt) {
  godwit_session_options keep;
  godwit_session_options_init(&keep, sizeof keep);
  keep.kv = "sinks:4+252";
  if (tell(godwit_session_new(engine, &keep, &session))) return 1;

  godwit_tokens* tokens;
  if (tell(godwit_session_tokenize(session, prompt, strlen(prompt), true, &tokens))) return 1;

  godwit_sampler_options greedy;
  godwit_sampler_options_init(&greedy, sizeof greedy);
  greedy.temperature = 0;
  godwit_generate_options options;
  godwit_generate_options_init(&options, sizeof options);
  options.max_tokens = 32;
  options.sampler = &greedy;
  options.user_data = stdout;
  options.on_event = write_text;

  signal(SIGINT, stop);
  godwit_result* result;
  const int failed =
      tell(godwit_session_generate(session, tokens->ids, tokens->count, &options, &result));
  signal(SIGINT, SIG_DFL);
  if (!failed) {
    fprintf(stderr, "\n%lld of %lld tokens kept\n", (long long)result->kv->kept,
            (long long)result->kv->seen);
    godwit_result_free(result);
  }
  godwit_tokens_free(tokens);
  return failed;
}

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: %s MODEL PROMPT\n", argv[0]), 2;
  godwit_engine* engine;
  if (tell(godwit_engine_load(argv[1], NULL, &engine))) return 1;
  const int failed = tell_a_story(engine, argv[2]);
  godwit_session_free(session);
  godwit_engine_free(engine);
  return failed;
}
