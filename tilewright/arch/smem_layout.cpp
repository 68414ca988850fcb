// Swizzles for shared memory, and the bank model.
#include "tilewright/arch/smem_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/base/power_of_two.hpp"
#include "tilewright/base/rounding.hpp"

namespace tilewright::arch {
namespace {

constexpr int kWarp = 32;

int log2(int power_of_two) { return std::countr_zero(static_cast<unsigned>(power_of_two)); }

int chunk_bytes(SmemAccess access) { return access == SmemAccess::rows_of_16_bytes ? 16 : 32; }

/// The number of lanes that are served together.
std::size_t lanes_served(int access_bytes) {
  return static_cast<std::size_t>(kWarp / std::max(1, access_bytes / kSmemBankBytes));
}

/// Wavefronts of lanes that are served together: the largest number of different words in one bank.
int clocks(std::span<const std::int64_t> byte_offsets, int access_bytes) {
  std::vector<std::int64_t> words;
  for (const std::int64_t offset : byte_offsets) {
    for (std::int64_t byte = offset; byte < offset + access_bytes; byte += kSmemBankBytes)
      words.push_back(byte / kSmemBankBytes);
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::array<int, kSmemBanks> load{};
  for (const std::int64_t word : words) ++load[static_cast<std::size_t>(word % kSmemBanks)];
  return *std::max_element(load.begin(), load.end());
}

void require_access(std::span<const std::int64_t> byte_offsets, int access_bytes) {
  if (access_bytes > 16 || !is_power_of_two(access_bytes))
    throw InvalidArgument(fmt::format("a lane must access 1, 2, 4, 8 or 16 bytes, got {}", access_bytes));
  if (byte_offsets.size() > static_cast<std::size_t>(kWarp))
    throw InvalidArgument(fmt::format("a warp has {} lanes, got {} offsets", kWarp, byte_offsets.size()));
  for (const std::int64_t offset : byte_offsets) {
    if (offset < 0 || offset % access_bytes != 0)
      throw InvalidArgument(fmt::format("offset {} is not a multiple of the {} bytes accessed", offset, access_bytes));
  }
}

}  // namespace

Result<layout::Swizzle> swizzle_for(int row_bytes, SmemAccess access) {
  const int chunk = chunk_bytes(access);
  if (row_bytes < chunk || row_bytes > kSmemLineBytes || !is_power_of_two(row_bytes))
    return refuse("rows of a panel must be a power of two from {} to {} bytes, got {}", chunk, kSmemLineBytes,
                  row_bytes);
  // A line is 128 bytes, one word of each bank, and holds one or more rows. The low bits of the line number are XORed
  // into the number of the chunk in the row, so that chunks of one column are in different banks in consecutive lines.
  const int chunks_log2 = log2(row_bytes) - log2(chunk);
  return layout::Swizzle(chunks_log2, log2(chunk), log2(kSmemLineBytes) - log2(chunk));
}

int smem_wavefronts(std::span<const std::int64_t> byte_offsets, int access_bytes) {
  require_access(byte_offsets, access_bytes);
  const std::size_t group = lanes_served(access_bytes);
  int total = 0;
  for (std::size_t first = 0; first < byte_offsets.size(); first += group)
    total += clocks(byte_offsets.subspan(first, std::min(group, byte_offsets.size() - first)), access_bytes);
  return total;
}

int bank_conflicts(std::span<const std::int64_t> byte_offsets, int access_bytes) {
  const std::size_t group = lanes_served(access_bytes);
  const int groups = static_cast<int>(ceil_div(byte_offsets.size(), group));
  return smem_wavefronts(byte_offsets, access_bytes) - groups;
}

}  // namespace tilewright::arch
