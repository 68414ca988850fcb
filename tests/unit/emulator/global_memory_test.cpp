// What is said of an address in no allocation.
#include "tilewright/emulator/global_memory.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tilewright::emulator {
namespace {

std::string describe(const GlobalMemory& memory, std::uint64_t address) { return memory.snapshot().describe(address); }

TEST(GlobalMemory, NamesAllocationsThatWereFreed) {
  GlobalMemory memory(1 << 30);
  const std::uint64_t kept = memory.allocate(1024), freed = memory.allocate(4096);
  EXPECT_EQ(describe(memory, freed + 4096), "0 bytes past the end of a 4096-byte allocation");
  memory.deallocate(freed);
  EXPECT_EQ(describe(memory, freed + 16), "16 bytes into a 4096-byte allocation that was freed");
  EXPECT_EQ(describe(memory, freed + 4095), "4095 bytes into a 4096-byte allocation that was freed");
  EXPECT_EQ(describe(memory, kept + 1024), "0 bytes past the end of a 1024-byte allocation");
  EXPECT_EQ(describe(memory, kept - 1), "1 bytes before the start of a 1024-byte allocation");
}

TEST(GlobalMemory, ForgetsFreedAllocationsWhoseMemoryIsUsedAgain) {
  GlobalMemory memory(1 << 30);
  const std::uint64_t first = memory.allocate(1024);
  memory.deallocate(first);
  std::byte* const host = reinterpret_cast<std::byte*>(first);
  ASSERT_TRUE(memory.lend(host, 1024));
  EXPECT_EQ(describe(memory, first + 4), "the last 1020 bytes of a 1024-byte allocation");
  memory.deallocate(first, false);
  EXPECT_EQ(describe(memory, first).find("freed"), std::string::npos) << describe(memory, first);
  for (int i = 0; i < 1000; ++i) memory.deallocate(memory.allocate(64));
}

TEST(GlobalMemory, AnIndexThatIsOffByAWholeArrayIsInNoAllocation) {
  GlobalMemory memory(1 << 30);
  std::vector<std::uint64_t> arrays(4);
  for (const std::size_t bytes : {std::size_t{4096}, std::size_t{100'000}}) {
    for (std::uint64_t& array : arrays) array = memory.allocate(bytes);
    for (const std::uint64_t array : arrays) {
      EXPECT_FALSE(memory.find(array + bytes, bytes));
      EXPECT_FALSE(memory.find(array + 2 * bytes - 1, 1));
      EXPECT_FALSE(memory.find(array - bytes, bytes));
    }
  }
}

TEST(GlobalMemory, NamesMemoryOfTheHost) {
  const GlobalMemory memory(1 << 30);
  int of_the_stack = 0;
  EXPECT_EQ(describe(memory, reinterpret_cast<std::uint64_t>(&of_the_stack)), "in memory of the host");
  EXPECT_EQ(describe(memory, 0), "a null pointer");
  EXPECT_EQ(describe(memory, 8), "8 bytes after a null pointer");
  EXPECT_EQ(describe(memory, 4096), "in no allocation");
}

}  // namespace
}  // namespace tilewright::emulator
