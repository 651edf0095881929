// The web page: files that are part of the program (page/, room.cmake). They need no key and no
// model, and a browser runs nothing else in them.
#pragma once

#include <span>
#include <string_view>

#include "server/http_server.h"

namespace godwit::server {

struct PageFile {
  std::string_view name;
  std::string_view text;
};

std::span<const PageFile> PageFiles();

// Answers a request for one of them: "/" is index.html, "/page/NAME" any other. False: it is for
// something else.
bool AnswerPage(const HttpRequest& request, HttpReply& reply);

}  // namespace godwit::server
