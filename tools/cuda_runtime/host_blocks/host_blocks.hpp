// The blocks of memory that the program has got from malloc() and its relatives, and through them from operator new.
#pragma once

#include <cstddef>
#include <cstdint>

/// Sets `begin` and `bytes` to those of the block that the address is in, as the program has asked for it. False if it
/// is in none: on the stack, in a variable, or in memory of another allocator. Libraries find the function by dlsym(),
/// as it is there only if libtilewright_host_blocks.so is preloaded.
extern "C" bool tilewright_find_host_block(std::uint64_t address, std::uint64_t* begin, std::uint64_t* bytes);

/// Whether blocks that this thread allocates from now on are no blocks of the program, as those of the emulator.
extern "C" void tilewright_ignore_host_blocks(bool ignore);
