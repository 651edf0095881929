// Whether libcurl can be loaded, for rooms that do not see its headers.
#pragma once

#include <string>

namespace godwit {

// Why downloads do not work here, as Curl() (curl_library.h) would say. Empty: they do.
std::string WhyNoCurl();

}  // namespace godwit
