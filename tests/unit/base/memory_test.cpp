#include "tilewright/base/memory.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/unit/base/interruption_latency.hpp"

namespace tilewright {
namespace {

constexpr std::size_t kThreeChunks = (std::size_t{64} << 20) + 12345;  // two full chunks and a partial one

TEST(Memory, CopiesAndFillsEveryByte) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, kThreeChunks}) {
    std::vector<unsigned char> from(bytes), to(bytes + 1, 0x11);
    for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<unsigned char>(i * 2654435761U >> 24);
    copy_bytes(to.data(), from.data(), bytes);
    EXPECT_TRUE(bytes == 0 || std::memcmp(to.data(), from.data(), bytes) == 0);
    fill_bytes(to.data(), 0xab, bytes);
    EXPECT_EQ(std::count(to.begin(), to.end(), 0xab), static_cast<std::ptrdiff_t>(bytes));
    EXPECT_EQ(to.back(), 0x11);
  }
}

TEST(Memory, LargeSizesAreInterruptibleAndSmallOnesAreNot) {
  std::vector<unsigned char> memory(kThreeChunks), other(kThreeChunks);
  interruption_latency([&] { fill_bytes(memory.data(), 1, memory.size()); }, std::chrono::milliseconds(0));
  EXPECT_EQ(memory.back(), 0);
  interruption_latency([&] { copy_bytes(other.data(), memory.data(), memory.size()); }, std::chrono::milliseconds(0));
  const ScopedInterruptCheck check([] { throw TestInterruption(); });
  EXPECT_NO_THROW(fill_bytes(memory.data(), 1, 4096));
}

}  // namespace
}  // namespace tilewright
