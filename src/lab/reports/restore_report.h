// What saving texts and going on from them takes, as a table for people or as JSON.
#pragma once

#include <span>
#include <string>

#include "bench/restore.h"

namespace godwit::lab {

std::string RestoreText(std::span<const bench::RestoreResult> results);
std::string RestoreJson(std::span<const bench::RestoreResult> results);

}  // namespace godwit::lab
