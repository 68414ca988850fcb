#include "tilewright/base/memory.hpp"

#include <algorithm>
#include <cstring>

#include "tilewright/base/interruption.hpp"

namespace tilewright {
namespace {

constexpr std::size_t kPiece = std::size_t{32} << 20;

template <class Work>
void in_pieces(std::size_t bytes, const Work& work) {
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    if (at != 0) check_interruption();
    work(at, std::min(kPiece, bytes - at));
  }
}

}  // namespace

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  in_pieces(bytes, [&](std::size_t at, std::size_t size) {
    std::memcpy(static_cast<std::byte*>(to) + at, static_cast<const std::byte*>(from) + at, size);
  });
}

void fill_bytes(void* to, unsigned char value, std::size_t bytes) {
  in_pieces(bytes,
            [&](std::size_t at, std::size_t size) { std::memset(static_cast<std::byte*>(to) + at, value, size); });
}

}  // namespace tilewright
