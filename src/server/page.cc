#include "server/page.h"

#include <algorithm>

namespace godwit::server {
namespace {

constexpr std::pair<std::string_view, std::string_view> kHeaders[] = {
    // Allows nothing of other hosts, no inline script, and no page around this one.
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"Referrer-Policy", "no-referrer"},
};

std::string_view TypeOf(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  return "text/javascript; charset=utf-8";
}

}  // namespace

bool AnswerPage(const HttpRequest& request, HttpReply& reply) {
  constexpr std::string_view kFolder = "/page/";
  if (request.method != "GET") return false;
  std::string_view name = request.path;
  if (name == "/") {
    name = "index.html";
  } else if (name.starts_with(kFolder)) {
    name.remove_prefix(kFolder.size());
  } else {
    return false;
  }
  const auto files = PageFiles();
  const auto file = std::ranges::find(files, name, &PageFile::name);
  if (file == files.end()) return false;
  reply.Send(200, TypeOf(name), file->text, kHeaders);
  return true;
}

}  // namespace godwit::server
