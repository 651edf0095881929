// The functions of fmt, for what must not need libfmt.so on the machine where it runs. Compiled
// with -fkeep-inline-functions, this file has all functions that its header defines.
#define FMT_HEADER_ONLY
#include <fmt/format.h>
