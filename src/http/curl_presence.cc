#include "http/curl_presence.h"

#include "base/error.h"
#include "http/curl_library.h"

namespace godwit {

std::string WhyNoCurl() {
  try {
    Curl();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace godwit
