#include "quant/check_disk.h"

#include "base/error.h"
#include "base/machine_memory.h"
#include "base/quote.h"

namespace godwit::quant {

void CheckDisk(const std::filesystem::path& folder, int64_t bytes) {
  const auto free = static_cast<int64_t>(std::filesystem::space(folder).available);
  if (free >= bytes) return;
  Throw(ErrorKind::kIo, "{}: the result takes {}, and {} are free there",
        QuoteUnlessPlain(folder.native()), FormatBytes(bytes), FormatBytes(free));
}

}  // namespace godwit::quant
