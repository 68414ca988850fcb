#include "tilewright/base/memory.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/unit/base/end_asked.hpp"

namespace tilewright {
namespace {

constexpr std::size_t kPieces = (std::size_t{64} << 20) + 12345;  // two whole ones and a part

TEST(Memory, CopiesAndFillsEveryByte) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, kPieces}) {
    std::vector<unsigned char> from(bytes), to(bytes + 1, 0x11);
    for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<unsigned char>(i * 2654435761U >> 24);
    copy_bytes(to.data(), from.data(), bytes);
    EXPECT_TRUE(bytes == 0 || std::memcmp(to.data(), from.data(), bytes) == 0);
    fill_bytes(to.data(), 0xab, bytes);
    EXPECT_EQ(std::count(to.begin(), to.end(), 0xab), static_cast<std::ptrdiff_t>(bytes));
    EXPECT_EQ(to.back(), 0x11);
  }
}

TEST(Memory, LongOnesAreInterruptedAndShortOnesAreNot) {
  std::vector<unsigned char> memory(kPieces), other(kPieces);
  time_to_end([&] { fill_bytes(memory.data(), 1, memory.size()); }, std::chrono::milliseconds(0));
  EXPECT_EQ(memory.back(), 0);
  time_to_end([&] { copy_bytes(other.data(), memory.data(), memory.size()); }, std::chrono::milliseconds(0));
  const ScopedInterruptCheck check([] { throw EndAsked(); });
  EXPECT_NO_THROW(fill_bytes(memory.data(), 1, 4096));
}

}  // namespace
}  // namespace tilewright
