#include "http/curl_library.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/shared_library.h"

namespace godwit {
namespace {

// The library of version 4, whose interface has not changed since 2006.
constexpr const char* kFile = "libcurl.so.4";

CurlLibrary Load() {
  const SharedLibrary library(
      kFile, ErrorKind::kIo,
      fmt::format("downloads need {}, which is in Debian's package libcurl4", kFile));
  const auto find = [&](auto*& function, const char* name) {
    library.Find(function, name, "version 7.85 or later");
  };
  CurlLibrary curl;
  find(curl.easy_cleanup, "curl_easy_cleanup");
  find(curl.easy_getinfo, "curl_easy_getinfo");
  find(curl.easy_init, "curl_easy_init");
  find(curl.easy_reset, "curl_easy_reset");
  find(curl.easy_setopt, "curl_easy_setopt");
  find(curl.easy_strerror, "curl_easy_strerror");
  find(curl.free, "curl_free");
  find(curl.multi_add_handle, "curl_multi_add_handle");
  find(curl.multi_cleanup, "curl_multi_cleanup");
  find(curl.multi_info_read, "curl_multi_info_read");
  find(curl.multi_init, "curl_multi_init");
  find(curl.multi_perform, "curl_multi_perform");
  find(curl.multi_poll, "curl_multi_poll");
  find(curl.multi_remove_handle, "curl_multi_remove_handle");
  find(curl.slist_append, "curl_slist_append");
  find(curl.slist_free_all, "curl_slist_free_all");
  find(curl.url, "curl_url");
  find(curl.url_cleanup, "curl_url_cleanup");
  find(curl.url_get, "curl_url_get");
  find(curl.url_set, "curl_url_set");
  decltype(&curl_global_init) global_init;
  find(global_init, "curl_global_init");
  if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    Throw(ErrorKind::kIo, "{} fails to start", kFile);
  }
  return curl;
}

}  // namespace

const CurlLibrary& Curl() {
  static const CurlLibrary curl = Load();
  return curl;
}

}  // namespace godwit
