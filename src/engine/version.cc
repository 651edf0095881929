#include "godwit/version.h"

namespace godwit {

const char* Version() { return GODWIT_VERSION; }

}  // namespace godwit
