// Epilogue partitions: the addresses of a store's threads, composed with the layout in shared memory. Source: PTX ISA,
// "Matrix Fragments" of wgmma, and stmatrix.
#include "tilewright/arch/epilogue_partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tilewright/arch/smem_layout.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/layout/algebra.hpp"

namespace tilewright::arch {
namespace {

using layout::Layout;

constexpr std::int64_t kWarp = 32;
constexpr std::int64_t kInstructionRows = 64;
constexpr std::int64_t kMaxN = 256;

/// The number of instructions of one warpgroup along m.
std::int64_t instructions(const EpilogueRequest& r) { return r.m / (kInstructionRows * r.warpgroups); }

Support check(const EpilogueRequest& r, std::int64_t columns) {
  if (r.element_bits != 16 && r.element_bits != 32)
    return refuse("accumulators must be stored as 16 or 32 bits, got {}", r.element_bits);
  if (r.warpgroups < 1 || r.m < 1 || r.m % (kInstructionRows * r.warpgroups) != 0)
    return refuse("{} warpgroups need a multiple of {} rows, got {}", r.warpgroups, kInstructionRows * r.warpgroups,
                  r.m);
  if (r.n < 8 || r.n > kMaxN || r.n % 8 != 0) return refuse("n must be a multiple of 8 up to {}, got {}", kMaxN, r.n);
  if (columns < 8 || columns % 8 != 0 || r.n % columns != 0)
    return refuse("the columns of a pass must be a multiple of 8 that divides n = {}, got {}", r.n, columns);
  return {};
}

/// The tile of one pass in shared memory, and its swizzle mode.
Result<layout::ComposedLayout> pass_tile(const EpilogueRequest& r, std::int64_t columns, SwizzleMode& mode) {
  const Major major = r.order == OutputOrder::row_major ? Major::k : Major::mn;
  const Result<SwizzleMode> widest = widest_swizzle(major, r.element_bits, r.m, columns);
  if (!widest) return widest.refusal();
  const bool stores_pairs = r.element_bits == 32 && r.order == OutputOrder::row_major;
  mode = stores_pairs ? std::min(*widest, SwizzleMode::bytes_32) : *widest;
  return smem_tile({.major = major, .mode = mode, .element_bits = r.element_bits, .mn = r.m, .k = columns});
}

/// (thread, store) -> offset in the column-major (m, columns) tile of the 8-element row whose address the thread
/// provides. Lane 8j + i provides row i of matrix j. Matrices 0 and 1 are 16 rows of m, matrices 2 and 3 the next 8
/// columns. With .trans, the rows of a matrix are columns.
Layout stmatrix_rows(const EpiloguePartition& p, const EpilogueRequest& r, std::int64_t columns) {
  const std::int64_t row = p.store == SmemStore::stmatrix ? 1 : r.m;
  const std::int64_t groups = p.registers / 2;  // groups of 8 columns; for x2, lanes 16 to 31 repeat lanes 0 to 15
  return {
      {{8, 2, 2, 4, r.warpgroups}, {columns / (8 * groups), instructions(r)}},
      {{row, 8, groups == 2 ? 8 * r.m : 0, 16, kInstructionRows}, {8 * groups * r.m, kInstructionRows * r.warpgroups}}};
}

/// The same for st.shared: a thread provides the address of its first word of the C fragment.
Layout st_shared_words(const EpiloguePartition& p, const EpilogueRequest& r, std::int64_t columns) {
  const std::int64_t words_apart = 2 / p.registers;
  return {{{4, 8, 4, r.warpgroups}, {words_apart, 2, columns / 8, instructions(r)}},
          {{2 * r.m, 1, 16, kInstructionRows}, {r.m, 8, 8 * r.m, kInstructionRows * r.warpgroups}}};
}

/// Sets the store instruction and its registers.
void choose_store(EpiloguePartition& p, const EpilogueRequest& r, std::int64_t columns) {
  const bool row_major = r.order == OutputOrder::row_major;
  if (r.element_bits == 32) {
    p.store = SmemStore::st_shared;
    p.registers = row_major ? 2 : 1;
  } else {
    p.store = row_major ? SmemStore::stmatrix : SmemStore::stmatrix_trans;
    p.registers = columns % 16 == 0 ? 4 : 2;
  }
}

}  // namespace

Result<EpiloguePartition> epilogue_partition(const EpilogueRequest& request) {
  const std::int64_t columns = request.columns == 0 ? request.n : request.columns;
  const Support support = check(request, columns);
  if (!support) return Refusal{support.reason()};

  EpiloguePartition p;
  p.element_bits = request.element_bits;
  choose_store(p, request, columns);
  Result<layout::ComposedLayout> smem = pass_tile(request, columns, p.mode);
  if (!smem) return smem.refusal();
  p.smem = *std::move(smem);

  const bool words = p.store == SmemStore::st_shared;
  p.address = layout::composition(p.smem.layout,
                                  words ? st_shared_words(p, request, columns) : stmatrix_rows(p, request, columns));

  const std::int64_t values = p.registers * 32 / p.element_bits;
  const std::int64_t values_per_instruction = request.n / 2;
  const std::int64_t values_per_pass = columns / 2;
  p.accumulator = Layout({values, {values_per_pass / values, instructions(request)}, request.n / columns},
                         {1, {values, values_per_instruction}, values_per_pass});
  return p;
}

std::int64_t store_address(const EpiloguePartition& partition, std::int64_t thread, std::int64_t store) {
  return partition.smem.swizzle(partition.address(thread, store)) * partition.element_bits / 8;
}

int bank_conflicts(const EpiloguePartition& partition) {
  const int access_bytes = partition.store == SmemStore::st_shared ? 4 * partition.registers : 16;
  const std::int64_t threads = layout::size(partition.address.mode(0));
  const std::int64_t stores = layout::size(partition.address.mode(1));
  int conflicts = 0;
  for (std::int64_t warp = 0; warp < threads; warp += kWarp) {
    for (std::int64_t store = 0; store < stores; ++store) {
      std::array<std::int64_t, kWarp> lanes{};
      for (std::int64_t lane = 0; lane < kWarp; ++lane)
        lanes[static_cast<std::size_t>(lane)] = store_address(partition, warp + lane, store);
      conflicts += bank_conflicts(lanes, access_bytes);
    }
  }
  return conflicts;
}

}  // namespace tilewright::arch
