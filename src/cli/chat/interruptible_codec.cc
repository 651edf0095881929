#include "cli/chat/interruptible_codec.h"

#include <utility>

#include "console/terminal/interrupt.h"

namespace godwit::cli {
namespace {

template <typename Result, typename... Arguments>
std::function<Result(Arguments...)> Interruptible(std::function<Result(Arguments...)> work) {
  return [work = std::move(work)](Arguments... arguments) {
    CancelToken unused;
    const console::CancelOnInterrupt leave(unused, /*presses_to_exit=*/1);
    return work(arguments...);
  };
}

}  // namespace

chat::ChatCodec Interruptible(chat::ChatCodec codec) {
  codec.render = Interruptible(std::move(codec.render));
  codec.encode = Interruptible(std::move(codec.encode));
  return codec;
}

}  // namespace godwit::cli
