#include "tilewright/base/memory.hpp"

#include <algorithm>
#include <cstring>

#include "tilewright/base/interruption.hpp"

namespace tilewright {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{32} << 20;

template <class Work>
void for_each_chunk(std::size_t bytes, const Work& work) {
  for (std::size_t offset = 0; offset < bytes; offset += kChunkBytes) {
    if (offset != 0) check_interruption();
    work(offset, std::min(kChunkBytes, bytes - offset));
  }
}

}  // namespace

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  for_each_chunk(bytes, [&](std::size_t offset, std::size_t size) {
    std::memcpy(static_cast<std::byte*>(to) + offset, static_cast<const std::byte*>(from) + offset, size);
  });
}

void fill_bytes(void* to, unsigned char value, std::size_t bytes) {
  for_each_chunk(bytes, [&](std::size_t offset, std::size_t size) {
    std::memset(static_cast<std::byte*>(to) + offset, value, size);
  });
}

}  // namespace tilewright
