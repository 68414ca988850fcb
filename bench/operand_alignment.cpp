#include "operand_alignment.hpp"

#include <algorithm>
#include <bit>

namespace tilewright::bench {

OperandAlignment common_alignment(std::span<const OperandAddresses> calls) {
  OperandAlignment common;
  const auto lower = [](std::uint32_t& alignment, std::uint64_t address) {
    if (address != 0) alignment = std::min(alignment, std::uint32_t{1} << std::min(std::countr_zero(address), 8));
  };
  for (const OperandAddresses& call : calls) {
    lower(common.a, call.a);
    lower(common.b, call.b);
    lower(common.c, call.c);
    lower(common.d, call.d);
  }
  return common;
}

}  // namespace tilewright::bench
