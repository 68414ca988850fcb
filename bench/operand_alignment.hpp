// The alignment of the operands that a call passes to cuBLASLt, whose heuristic otherwise assumes 256 bytes.
#pragma once

#include <cstdint>
#include <span>

namespace tilewright::bench {

/// Device addresses; 0 for an operand that is not passed.
struct OperandAddresses {
  std::uint64_t a = 0, b = 0, c = 0, d = 0;
};

/// In bytes.
struct OperandAlignment {
  std::uint32_t a = 256, b = 256, c = 256, d = 256;
  bool operator==(const OperandAlignment&) const = default;
};

/// The largest power of two, at most 256, of which the addresses of an operand in all calls are multiples.
OperandAlignment common_alignment(std::span<const OperandAddresses> calls);

}  // namespace tilewright::bench
