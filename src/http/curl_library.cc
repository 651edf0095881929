#include "http/curl_library.h"

#include <dlfcn.h>

#include "base/error.h"

namespace godwit {
namespace {

// The library of version 4, whose interface has not changed since 2006.
constexpr const char* kFile = "libcurl.so.4";

class Loader {
 public:
  Loader() : library_(dlopen(kFile, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) {
      const char* why = dlerror();
      Throw(ErrorKind::kIo, "downloads need {}, which is in Debian's package libcurl4: {}", kFile,
            why == nullptr ? "it does not load" : why);
    }
  }

  // The library is never closed: its threads and tables last as long as the process.
  template <typename Function>
  void Find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (function == nullptr) {
      Throw(ErrorKind::kUnsupported, "{} has no {}: expected version 7.85 or later", kFile, name);
    }
  }

 private:
  void* library_;
};

CurlLibrary Load() {
  const Loader loader;
  CurlLibrary curl;
  loader.Find(curl.easy_cleanup, "curl_easy_cleanup");
  loader.Find(curl.easy_getinfo, "curl_easy_getinfo");
  loader.Find(curl.easy_init, "curl_easy_init");
  loader.Find(curl.easy_reset, "curl_easy_reset");
  loader.Find(curl.easy_setopt, "curl_easy_setopt");
  loader.Find(curl.easy_strerror, "curl_easy_strerror");
  loader.Find(curl.free, "curl_free");
  loader.Find(curl.multi_add_handle, "curl_multi_add_handle");
  loader.Find(curl.multi_cleanup, "curl_multi_cleanup");
  loader.Find(curl.multi_info_read, "curl_multi_info_read");
  loader.Find(curl.multi_init, "curl_multi_init");
  loader.Find(curl.multi_perform, "curl_multi_perform");
  loader.Find(curl.multi_poll, "curl_multi_poll");
  loader.Find(curl.multi_remove_handle, "curl_multi_remove_handle");
  loader.Find(curl.slist_append, "curl_slist_append");
  loader.Find(curl.slist_free_all, "curl_slist_free_all");
  loader.Find(curl.url, "curl_url");
  loader.Find(curl.url_cleanup, "curl_url_cleanup");
  loader.Find(curl.url_get, "curl_url_get");
  loader.Find(curl.url_set, "curl_url_set");
  decltype(&curl_global_init) global_init;
  loader.Find(global_init, "curl_global_init");
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
