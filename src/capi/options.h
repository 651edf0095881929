// Options of C as those of C++.
#pragma once

#include "godwit/engine.h"
#include "godwit/godwit.h"

namespace godwit::capi {

// Each takes the defaults for NULL and for what an older program's struct lacks. Throws
// Error(kInput) for a struct_size that is none, and Error(kUnsupported) for a newer program's
// struct with an option that this library does not know.
LoadOptions OptionsOf(const godwit_load_options* options);
SessionOptions OptionsOf(const godwit_session_options* options);
SamplerOptions OptionsOf(const godwit_sampler_options* options);
// Without the callback: `on_event` and `user_data` are in ListenerOf.
GenerateOptions OptionsOf(const godwit_generate_options* options);

struct Listener {
  bool (*on_event)(void* user_data, const godwit_event* event) = nullptr;
  void* user_data = nullptr;
};
Listener ListenerOf(const godwit_generate_options* options);

// A copy of the struct with the defaults of its init for what it lacks.
godwit_rows_options Complete(const godwit_rows_options* options);
godwit_chat_options Complete(const godwit_chat_options* options);
godwit_fill_in Complete(const godwit_fill_in* fill);

// Writes a sampler's numbers into the caller's struct, as much of it as the caller has.
void WriteSampler(const SamplerOptions& sampler, godwit_sampler_options& options);

// Writes `facts` into the caller's struct, as much of it as the caller has. Throws Error(kInput)
// for a struct_size that is none. name: the struct.
template <typename T>
void WriteFacts(const T& facts, T* out, const char* name);

}  // namespace godwit::capi
