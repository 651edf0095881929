// The web page: files that are built into the program (page/, room.cmake). They need no key and no
// model, and contain all code that a browser runs.
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

// Answers a request for one of the files: "/" is index.html, "/page/NAME" any other. False: the
// path is not the page's.
bool AnswerPage(const HttpRequest& request, HttpReply& reply);

}  // namespace godwit::server
