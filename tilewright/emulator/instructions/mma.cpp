// mma.sync, for all rows of arch/mma_atom. Numerics: those of tensor_core_sum.hpp; f64 rounds at each multiply-add, in
// the order of k; integers are exact and wrap, or clamp with .satfinite.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tilewright/arch/mma_atom.hpp"
#include "tilewright/emulator/cta.hpp"
#include "tilewright/emulator/instructions/block_transpose.hpp"
#include "tilewright/emulator/instructions/hardware_fma.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"
#include "tilewright/emulator/instructions/matrix_element.hpp"
#include "tilewright/emulator/instructions/tensor_core_sum.hpp"

namespace tilewright::emulator {
namespace {

constexpr int kMaxN = 8;
constexpr int kMaxK = 32;

/// The fragment layout of an operand. Value i of the values of a register of all lanes, in the order of memory, is at
/// begin[register] + i / inner * outer + i % inner * step of a tile of ProductTiles.
struct FragmentTable {
  int registers = 0;  // per lane
  int inner = 0, outer = 0, step = 0;
  std::vector<int> begin;
  /// Registers with rows 0 to 7 and 8 to 15 of the same columns of the tile: all registers, or none.
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
};

struct MmaTable {
  int m = 0, n = 0, k = 0;
  FragmentTable a, b, c;
};

/// See FragmentTable::pairs. `width`: the values of a row in a register.
std::vector<std::pair<std::size_t, std::size_t>> paired_rows(const FragmentTable& table, int width) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  if (table.inner != width || table.outer != 1) return pairs;
  for (std::size_t low = 0; low < table.begin.size(); ++low) {
    const auto high = std::ranges::find(table.begin, table.begin[low] + kTileRows / 2);
    if (table.begin[low] % kTileRows == 0 && high != table.begin.end())
      pairs.emplace_back(low, static_cast<std::size_t>(high - table.begin.begin()));
  }
  if (2 * pairs.size() != table.begin.size()) pairs.clear();
  return pairs;
}

/// `tv` maps (lane, value) to an offset in a column-major tile of `rows` rows; tile_index(row, column) is the index in
/// a tile of ProductTiles.
template <class TileIndex>
FragmentTable make_fragment(const layout::Layout& tv, int registers, int rows, TileIndex&& tile_index) {
  FragmentTable table;
  table.registers = registers;
  const int values = static_cast<int>(layout::size(tv)) / kWarpSize;
  const int per_register = values / registers;
  const int count = kWarpSize * per_register;
  std::vector<int> indices;
  for (int r = 0; r < registers; ++r) {
    for (int i = 0; i < count; ++i) {
      const int value = r * per_register + i % per_register;
      const auto offset = static_cast<int>(tv(std::int64_t{i / per_register} + std::int64_t{kWarpSize} * value));
      indices.push_back(tile_index(offset % rows, offset / rows));
    }
  }
  const auto at = [&](int r, int i) {
    return indices[static_cast<std::size_t>(r) * static_cast<std::size_t>(count) + static_cast<std::size_t>(i)];
  };
  table.step = at(0, 1) - at(0, 0);
  table.inner = 1;
  while (table.inner < count && at(0, table.inner) - at(0, 0) == table.inner * table.step) ++table.inner;
  table.outer = table.inner < count ? at(0, table.inner) - at(0, 0) : 0;
  for (int r = 0; r < registers; ++r) {
    table.begin.push_back(at(r, 0));
    for (int i = 0; i < count; ++i) {
      TILEWRIGHT_CHECK(at(r, i) - at(r, 0) == i / table.inner * table.outer + i % table.inner * table.step,
                       "value {} of register {} of a fragment is not where its first values say", i, r);
    }
  }
  table.pairs = paired_rows(table, count / 8);
  return table;
}

MmaTable make_table(const arch::MmaAtom& atom) {
  return {atom.m,
          atom.n,
          atom.k,
          make_fragment(atom.a_tv, atom.a_registers, atom.m, [](int m, int k) { return k * kTileRows + m; }),
          make_fragment(atom.b_tv, atom.b_registers, atom.n, [&](int n, int k) { return n * atom.k + k; }),
          make_fragment(atom.c_tv, atom.c_registers, atom.m, [](int m, int n) { return n * kTileRows + m; })};
}

const MmaTable& table_of(const arch::MmaAtom& atom) {
  static const auto tables = [] {
    std::unordered_map<const arch::MmaAtom*, MmaTable> all;
    for (const arch::MmaAtom& each : arch::mma_atoms()) all.emplace(&each, make_table(each));
    return all;
  }();
  return tables.at(&atom);
}

/// The number of values in a register of all lanes: it packs as many as fit into 32 bits, the first in the low bits.
template <class Element>
constexpr int kValuesOf = kWarpSize*(sizeof(typename Element::Stored) < 4 ? 4 / sizeof(typename Element::Stored) : 1);

/// Puts the values of a register of all lanes into the tile: eight rows of it, as rows or as columns of the tile.
template <Shuffles kShuffles, int kValues, class Number>
[[gnu::always_inline]] inline void place_values(const FragmentTable& table, int begin, const Number* values,
                                                Number* tile) {
  constexpr int kWidth = kValues / 8;
  if (table.inner == kWidth && table.outer == 1) {
    store_columns<kShuffles, kWidth>(values, tile + begin, table.step);
  } else if (table.inner == kWidth && table.step == 1) {
    for (int row = 0; row < 8; ++row) std::copy_n(values + row * kWidth, kWidth, tile + begin + row * table.outer);
  } else {
    for (int i = 0; i < kValues; ++i)
      tile[begin + i / table.inner * table.outer + i % table.inner * table.step] = values[i];
  }
}

/// Puts the values of registers into the tile, as whole columns.
template <class Element>
[[gnu::always_inline]] inline void read_pairs(Warp& warp, const Slot* registers, const FragmentTable& table,
                                              float* tile) {
  constexpr int kWidth = kValuesOf<Element> / 8;
  using Stored = typename Element::Stored;
  for (const auto& [low, high] : table.pairs) {
    RowBlock<kWidth> low_rows, high_rows;
    read_block<Element, kWidth>(warp.reg<Stored>(registers[low]), low_rows);
    read_block<Element, kWidth>(warp.reg<Stored>(registers[high]), high_rows);
    store_whole_columns<kWidth>(low_rows, high_rows, tile + table.begin[low], table.step);
  }
}

template <Shuffles kShuffles, class Element, class Number>
[[gnu::always_inline]] inline void read_fragment_inline(Warp& warp, const Slot* registers, const FragmentTable& table,
                                                        Number* tile) {
  if constexpr (kShuffles == Shuffles::avx512 && std::is_same_v<Number, float>) {
    if (!table.pairs.empty()) return read_pairs<Element>(warp, registers, table, tile);
  }
  for (int r = 0; r < table.registers; ++r) {
    constexpr int kValues = kValuesOf<Element>;
    alignas(64) NumberOf<Element> room[kValues];
    const Number* const numbers = numbers_in<Element, kValues>(warp.reg<typename Element::Stored>(registers[r]), room);
    place_values<kShuffles, kValues>(table, table.begin[static_cast<std::size_t>(r)], numbers, tile);
  }
}

template <class Element, class Number>
TILEWRIGHT_TARGET_AVX512 void read_fragment_with_avx512(Warp& warp, const Slot* registers, const FragmentTable& table,
                                                        Number* tile) {
  read_fragment_inline<Shuffles::avx512, Element>(warp, registers, table, tile);
}

template <class Element, class Number>
void read_fragment(Warp& warp, const Slot* registers, const FragmentTable& table, Number* tile) {
  if (has_avx512()) {
    read_fragment_with_avx512<Element>(warp, registers, table, tile);
  } else {
    read_fragment_inline<Shuffles::none, Element>(warp, registers, table, tile);
  }
}

/// The inverse of read_pairs().
template <class Accumulator>
[[gnu::always_inline]] inline void write_pairs(Warp& warp, const Slot* registers, const FragmentTable& table,
                                               const float* tile) {
  constexpr int kWidth = kValuesOf<Accumulator> / 8;
  using Stored = typename Accumulator::Stored;
  for (const auto& [low, high] : table.pairs) {
    RowBlock<kWidth> low_rows, high_rows;
    load_whole_columns<kWidth>(tile + table.begin[low], table.step, low_rows, high_rows);
    store_block<Accumulator, kWidth>(low_rows, warp.reg<Stored>(registers[low]));
    store_block<Accumulator, kWidth>(high_rows, warp.reg<Stored>(registers[high]));
  }
}

/// D is column-major, and a register has eight rows of it.
template <Shuffles kShuffles, class Accumulator, class Number>
[[gnu::always_inline]] inline void write_fragment_inline(Warp& warp, const Slot* registers, const FragmentTable& table,
                                                         const Number* tile, bool saturates) {
  if constexpr (kShuffles == Shuffles::avx512 && std::is_same_v<Number, float>) {
    if (!table.pairs.empty()) return write_pairs<Accumulator>(warp, registers, table, tile);
  }
  constexpr int kValues = kValuesOf<Accumulator>;
  for (int r = 0; r < table.registers; ++r) {
    alignas(64) Number numbers[kValues];
    load_columns<kShuffles, kValues / 8>(tile + table.begin[static_cast<std::size_t>(r)], table.step, numbers);
    store_numbers<Accumulator, kValues>(numbers, warp.reg<typename Accumulator::Stored>(registers[r]), saturates);
  }
}

template <class Accumulator, class Number>
TILEWRIGHT_TARGET_AVX512 void write_fragment_with_avx512(Warp& warp, const Slot* registers, const FragmentTable& table,
                                                         const Number* tile, bool saturates) {
  write_fragment_inline<Shuffles::avx512, Accumulator>(warp, registers, table, tile, saturates);
}

template <class Accumulator, class Number>
void write_fragment(Warp& warp, const Slot* registers, const FragmentTable& table, const Number* tile, bool saturates) {
  if (has_avx512()) {
    write_fragment_with_avx512<Accumulator>(warp, registers, table, tile, saturates);
  } else {
    write_fragment_inline<Shuffles::none, Accumulator>(warp, registers, table, tile, saturates);
  }
}

[[gnu::always_inline]] inline void fused_multiply_add(const MmaTable& table, const double* a, const double* b,
                                                      double* c) {
  for (int n = 0; n < kMaxN; ++n) {
    for (int k = 0; k < table.k; ++k) {
      const double x = b[n * table.k + k];
      for (int m = 0; m < kTileRows; ++m)
        c[n * kTileRows + m] = std::fma(a[k * kTileRows + m], x, c[n * kTileRows + m]);
    }
  }
}

TILEWRIGHT_TARGET_FMA void fused_multiply_add_with_hardware(const MmaTable& table, const double* a, const double* b,
                                                            double* c) {
  fused_multiply_add(table, a, b, c);
}

/// f64 rounds at each multiply-add.
void multiply_add_doubles(const MmaTable& table, const double* a, const double* b, double* c) {
  static const bool hardware = has_hardware_fma();
  if (hardware) {
    fused_multiply_add_with_hardware(table, a, b, c);
  } else {
    fused_multiply_add(table, a, b, c);
  }
}

/// The NaN of an element of an f64 product: of each multiply-add that of B's element, else that of the sum so far, else
/// that of A's. Measured on an H100.
double nan_of(const MmaTable& table, const double* a, const double* b, double c, int m, int n) {
  double result = c;
  for (int k = 0; k < table.k; ++k) {
    const double x = a[k * kTileRows + m], y = b[n * table.k + k];
    if (std::isnan(y)) {
      result = quieted(y);
    } else if (!std::isnan(result)) {
      result = std::isnan(x) ? quieted(x) : std::fma(x, y, result);
    }
  }
  return std::isnan(result) ? quieted(result) : result;
}

/// Operands: the registers of D, A, B, C. mode: .satfinite.
template <class A, class B, class Accumulator>
void execute_mma(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.converge(in, lanes, kAllLanes)) return;
  const auto& table = *static_cast<const MmaTable*>(in.table);
  alignas(64) NumberOf<A> a[kTileRows * kMaxK];
  alignas(64) NumberOf<B> b[kMaxK * kMaxN];
  alignas(64) NumberOf<Accumulator> c[kTileRows * kMaxN];
  if (table.m < kTileRows) std::ranges::fill(a, NumberOf<A>());
  // Fragments of 16 rows fill the tile of floats, and its products are those that must be fast.
  constexpr bool kIsFloat = std::is_same_v<NumberOf<Accumulator>, float>;
  if (!kIsFloat || table.m < kTileRows) std::ranges::fill(c, NumberOf<Accumulator>());
  const Slot* const d_registers = in.op;
  const Slot* const a_registers = d_registers + table.c.registers;
  const Slot* const b_registers = a_registers + table.a.registers;
  const Slot* const c_registers = b_registers + table.b.registers;
  read_fragment<A>(warp, a_registers, table.a, a);
  read_fragment<B>(warp, b_registers, table.b, b);
  read_fragment<Accumulator>(warp, c_registers, table.c, c);
  if constexpr (std::is_same_v<Accumulator, S32Accumulator>) {
    alignas(64) float sums[kTileRows * kMaxN] = {};
    multiply_add_integers({kMaxN, table.k, a, b, sums});
    for (int i = 0; i < kTileRows * kMaxN; ++i) c[i] += static_cast<std::int64_t>(sums[i]);
  } else if constexpr (std::is_same_v<Accumulator, F64Accumulator>) {
    double before[kTileRows * kMaxN];
    std::ranges::copy(c, before);
    multiply_add_doubles(table, a, b, c);
    for (int i = 0; i < kTileRows * kMaxN; ++i) {
      if (std::isnan(c[i])) c[i] = nan_of(table, a, b, before[i], i % kTileRows, i / kTileRows);
    }
  } else {
    constexpr int kElementBytes = sizeof(typename A::Stored);
    multiply_add_of_mma(
        {kMaxN, table.k, a, b, c, kElementBytes, A::kLeastExponent, B::kLeastExponent, Accumulator::kLeastExponent},
        warp.cta().launch().target, std::is_same_v<Accumulator, F16Accumulator>);
  }
  if (Profile* const profile = warp.cta().launch().profile)
    profile->count_product(warp.code_index(in), table.m, table.n, table.k);
  write_fragment<Accumulator>(warp, d_registers, table.c, c, in.mode != 0);
}

template <class A>
Handler integer_handler(DType b) {
  return b == DType::s8 ? Handler{&execute_mma<A, S8Element, S32Accumulator>}
                        : &execute_mma<A, U8Element, S32Accumulator>;
}

template <class A, class B>
Handler float8_handler_of(bool half) {
  return half ? Handler{&execute_mma<A, B, F16Accumulator>} : &execute_mma<A, B, F32Accumulator>;
}

template <class A>
Handler float8_handler(DType b, bool half) {
  return b == DType::e4m3 ? float8_handler_of<A, E4m3Element>(half) : float8_handler_of<A, E5m2Element>(half);
}

Handler handler_of(const arch::MmaAtom& atom) {
  const bool half = atom.c == DType::f16;
  switch (atom.a) {
    case DType::f16:
      return half ? Handler{&execute_mma<F16Element, F16Element, F16Accumulator>}
                  : &execute_mma<F16Element, F16Element, F32Accumulator>;
    case DType::bf16:
      return &execute_mma<Bf16Element, Bf16Element, F32Accumulator>;
    case DType::tf32:
      return &execute_mma<Tf32Element, Tf32Element, F32Accumulator>;
    case DType::f64:
      return &execute_mma<F64Element, F64Element, F64Accumulator>;
    case DType::e4m3:
      return float8_handler<E4m3Element>(atom.b, half);
    case DType::e5m2:
      return float8_handler<E5m2Element>(atom.b, half);
    case DType::s8:
      return integer_handler<S8Element>(atom.b);
    case DType::u8:
      return integer_handler<U8Element>(atom.b);
    default:
      return nullptr;
  }
}

std::optional<DType> element_type(PtxType type) { return parse_dtype(name(type)); }

const arch::MmaAtom* find_atom(InstructionReader& reader) {
  static constexpr std::pair<std::string_view, std::array<int, 3>> kShapes[] = {
      {"m8n8k4", {8, 8, 4}},   {"m8n8k16", {8, 8, 16}},   {"m16n8k4", {16, 8, 4}},
      {"m16n8k8", {16, 8, 8}}, {"m16n8k16", {16, 8, 16}}, {"m16n8k32", {16, 8, 32}},
  };
  for (const auto& [text, mnk] : kShapes) {
    if (!reader.take(text)) continue;
    const PtxType d = reader.type();
    const auto a = element_type(reader.type());
    const auto b = element_type(reader.type());
    const PtxType c = reader.type();
    const auto accumulator = element_type(c);
    if (d != c || !a || !b || !accumulator) return nullptr;
    return arch::find_mma_atom(mnk[0], mnk[1], mnk[2], *a, *b, *accumulator);
  }
  return nullptr;
}

/// Decodes the operands D, A, B and C, given their numbers of registers.
void take_fragments(InstructionReader& reader, const std::array<int, 4>& counts, PtxType word) {
  reader.expect_operands(4);
  for (std::size_t i = 0; i < 4; ++i) {
    const std::vector<Operand> registers = reader.elements(reader.operand(i));
    if (static_cast<int>(registers.size()) != counts[i]) {
      reader.refuse(fmt::format("a fragment of {} registers, which must have {}", registers.size(), counts[i]));
    }
    for (const Operand& one : registers) {
      if (i == 0) {
        reader.destination(one, word);
      } else {
        reader.source(one, word);
      }
    }
  }
}

// Integers of 4 bits and 1 bit --------------------------------------------------------------------------------------

/// The types and the shape of a product of elements of less than a byte.
struct NarrowProduct {
  int m = 0, k = 0;  // n is 8
  int bits = 4;      // of an element
  bool a_signed = false, b_signed = false;
  bool conjunction = false;  // of bits: .and.popc, else .xor.popc

  int per_register() const { return 32 / bits; }
  int row_blocks() const { return m / 8; }
  /// Registers of A for each row block, and registers of B.
  int k_blocks() const { return k / (4 * per_register()); }
};

int element_of(std::uint32_t word, int index, int bits, bool is_signed) {
  const std::uint32_t value = (word >> (bits * index)) & ((1U << bits) - 1);
  const bool negative = is_signed && (value >> (bits - 1)) != 0;
  return static_cast<int>(value) - (negative ? 1 << bits : 0);
}

/// The sum of the products of the elements in two registers.
std::int64_t dot(const NarrowProduct& product, std::uint32_t a, std::uint32_t b) {
  if (product.bits == 1) return std::popcount(product.conjunction ? a & b : a ^ b);
  std::int64_t sum = 0;
  for (int i = 0; i < product.per_register(); ++i) {
    sum += std::int64_t{element_of(a, i, product.bits, product.a_signed)} *
           element_of(b, i, product.bits, product.b_signed);
  }
  return sum;
}

/// Operands: the registers of D, A, B, C. mode: .satfinite. Register r of A in lane l has elements of row
/// l / 4 + 8 * (r % row_blocks) and of the part l % 4 of k-block r / row_blocks; register r of B those of column l / 4;
/// lane l has columns 2 * (l % 4) and the next of C.
void execute_narrow_mma(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.converge(in, lanes, kAllLanes)) return;
  const auto& product = *static_cast<const NarrowProduct*>(in.table);
  const int accumulators = 2 * product.row_blocks();
  const Slot* const a = in.op + accumulators;
  const Slot* const b = a + product.row_blocks() * product.k_blocks();
  const Slot* const c = b + product.k_blocks();
  std::int32_t results[kTileRows][kMaxN] = {};
  for (int m = 0; m < product.m; ++m) {
    for (int n = 0; n < kMaxN; ++n) {
      std::int64_t sum = warp.reg<std::int32_t>(c[m / 8 * 2 + n % 2])[m % 8 * 4 + n / 2];
      for (int block = 0; block < product.k_blocks(); ++block) {
        const auto* const of_a = warp.reg<std::uint32_t>(a[block * product.row_blocks() + m / 8]);
        const auto* const of_b = warp.reg<std::uint32_t>(b[block]);
        for (int part = 0; part < 4; ++part) sum += dot(product, of_a[m % 8 * 4 + part], of_b[n * 4 + part]);
      }
      results[m][n] = S32Accumulator::stored(sum, in.mode != 0);
    }
  }
  for (int value = 0; value < accumulators; ++value) {
    auto* const d = warp.reg<std::int32_t>(in.op[value]);
    for (int lane = 0; lane < kWarpSize; ++lane)
      d[lane] = results[value / 2 * 8 + lane / 4][2 * (lane % 4) + value % 2];
  }
  if (Profile* const profile = warp.cta().launch().profile)
    profile->count_product(warp.code_index(in), product.m, kMaxN, product.k);
}

/// Decodes mma of .s4, .u4 and .b1. False for other types.
bool decode_narrow_mma(InstructionReader& reader) {
  const std::string_view opcode = reader.parsed().opcode;
  const std::size_t types = opcode.find(".s32.");
  if (types == opcode.npos || opcode.size() < types + 12) return false;
  const std::string_view a = opcode.substr(types + 5, 2), b = opcode.substr(types + 8, 2);
  const bool is_bits = a == "b1";
  if (!is_bits && a != "s4" && a != "u4") return false;
  static constexpr std::pair<std::string_view, std::array<int, 3>> kShapes[] = {
      {"m8n8k32", {8, 32, 4}},   {"m16n8k32", {16, 32, 4}},   {"m16n8k64", {16, 64, 4}},
      {"m8n8k128", {8, 128, 1}}, {"m16n8k128", {16, 128, 1}}, {"m16n8k256", {16, 256, 1}},
  };
  auto product = std::make_shared<NarrowProduct>();
  for (const auto& [text, mkb] : kShapes) {
    if (mkb[2] == (is_bits ? 1 : 4) && reader.take(text)) *product = {mkb[0], mkb[1], mkb[2]};
  }
  if (product->m == 0) return false;
  product->a_signed = a == "s4";
  product->b_signed = b == "s4";
  reader.take(a);
  reader.take(b);
  if (is_bits) {
    product->conjunction = reader.take_one_of({"xor", "and"}) == 1;
    reader.take("popc");
  }
  reader.take("s32");
  reader.take("s32");
  reader.finish();
  if (product->m == 16 || product->conjunction) reader.require(Target{80});
  const int a_registers = product->row_blocks() * product->k_blocks();
  take_fragments(reader, {2 * product->row_blocks(), a_registers, product->k_blocks(), 2 * product->row_blocks()},
                 PtxType::b32);
  reader.out().table = reader.keep(product);
  reader.out().execute = &execute_narrow_mma;
  return true;
}

// m8n8k4 of f16 ------------------------------------------------------------------------------------------------------

/// Four products at once: that of quad pair q is computed by lanes 4 * q to 4 * q + 3 and the same plus 16.
struct QuadPairProduct {
  bool a_is_column_major = false, b_is_column_major = false;
  bool c_is_f16 = false, d_is_f16 = false;
};

/// The row and column of value i of C or D.
std::pair<int, int> place_of_quad_pair(int lane, int i, bool is_f16) {
  const int half = lane >= kWarpSize / 2 ? 4 : 0;
  if (is_f16) return {lane % 4 + half, i};
  return {(lane & 1) + (i & 2) + half, (i & 4) + (lane & 2) + (i & 1)};
}

/// Operands: the registers of D, A, B, C.
void execute_quad_pairs(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.converge(in, lanes, kAllLanes)) return;
  const auto& product = *static_cast<const QuadPairProduct*>(in.table);
  constexpr int kSize = 8, kK = 4;
  const Slot* const of_a = in.op + (product.d_is_f16 ? 4 : 8);
  const Slot* const of_b = of_a + 2;
  const Slot* const of_c = of_b + 2;
  const auto half = [&](const Slot* registers, int lane, int i) {
    return F16Element::number(warp.reg<std::uint16_t>(registers[i / 2])[2 * lane + i % 2]);
  };
  alignas(64) float sums[4][kSize * kTileRows] = {};
  for (int quad = 0; quad < 4; ++quad) {
    alignas(64) float a[kTileRows * kK] = {}, b[kK * kSize] = {};
    for (const int lane : {4 * quad, 4 * quad + 1, 4 * quad + 2, 4 * quad + 3, 4 * quad + 16, 4 * quad + 17,
                           4 * quad + 18, 4 * quad + 19}) {
      const int upper = lane >= kWarpSize / 2 ? 4 : 0, part = lane % 4;
      for (int i = 0; i < kK; ++i) {
        const int row = product.a_is_column_major ? i + upper : part + upper;
        a[(product.a_is_column_major ? part : i) * kTileRows + row] = half(of_a, lane, i);
        const int column = product.b_is_column_major ? part + upper : i + upper;
        b[column * kK + (product.b_is_column_major ? i : part)] = half(of_b, lane, i);
      }
      for (int i = 0; i < kSize; ++i) {
        const auto [row, column] = place_of_quad_pair(lane, i, product.c_is_f16);
        sums[quad][column * kTileRows + row] = product.c_is_f16 ? half(of_c, lane, i) : warp.reg<float>(of_c[i])[lane];
      }
    }
    multiply_add_of_mma({kSize, kK, a, b, sums[quad], 2, F16Element::kLeastExponent, F16Element::kLeastExponent,
                         product.c_is_f16 ? F16Accumulator::kLeastExponent : F32Accumulator::kLeastExponent},
                        warp.cta().launch().target, product.d_is_f16);
  }
  for (int lane = 0; lane < kWarpSize; ++lane) {
    for (int i = 0; i < kSize; ++i) {
      const auto [row, column] = place_of_quad_pair(lane, i, product.d_is_f16);
      const float sum = sums[lane / 4 % 4][column * kTileRows + row];
      if (product.d_is_f16) {
        warp.reg<std::uint16_t>(in.op[i / 2])[2 * lane + i % 2] = F16Accumulator::stored(sum, false);
      } else {
        warp.reg<float>(in.op[i])[lane] = F32Accumulator::stored(sum, false);
      }
    }
  }
  if (Profile* const profile = warp.cta().launch().profile)
    profile->count_product(warp.code_index(in), 4 * kSize, kSize, kK);
}

/// False for other instructions than m8n8k4 of f16.
bool decode_quad_pairs(InstructionReader& reader) {
  const std::string_view opcode = reader.parsed().opcode;
  if (opcode.find(".m8n8k4.") == opcode.npos || opcode.find(".f16.f16.") == opcode.npos) return false;
  auto product = std::make_shared<QuadPairProduct>();
  const std::size_t layouts = opcode.find(".m8n8k4.") + 8;
  const std::string_view a = opcode.substr(layouts, 3), b = opcode.substr(std::min(layouts + 4, opcode.size()), 3);
  reader.take("m8n8k4");
  if (!reader.take(a) || !reader.take(b)) return false;
  product->a_is_column_major = a == "col";
  product->b_is_column_major = b == "col";
  const PtxType d = reader.type();
  reader.take("f16");
  reader.take("f16");
  const PtxType c = reader.type();
  product->d_is_f16 = d == PtxType::f16;
  product->c_is_f16 = c == PtxType::f16;
  const auto is_accumulator = [](PtxType type) { return type == PtxType::f16 || type == PtxType::f32; };
  if (!is_accumulator(d) || !is_accumulator(c)) return false;
  reader.finish();
  take_fragments(reader, {product->d_is_f16 ? 4 : 8, 2, 2, product->c_is_f16 ? 4 : 8}, PtxType::b32);
  reader.out().table = reader.keep(product);
  reader.out().execute = &execute_quad_pairs;
  return true;
}

void decode_mma(InstructionReader& reader) {
  reader.take("sync");
  reader.take("aligned");
  if (decode_quad_pairs(reader)) return;
  const bool is_row_col = reader.take("row") && reader.take("col");
  const bool saturates = reader.take("satfinite");
  reader.out().mode = saturates ? 1 : 0;
  if (is_row_col && decode_narrow_mma(reader)) return;
  const arch::MmaAtom* const atom = find_atom(reader);
  const Handler handler = atom == nullptr ? nullptr : handler_of(*atom);
  if (handler == nullptr || !is_row_col) reader.refuse(fmt::format("instruction {}", reader.parsed().opcode));
  reader.require(atom->min_target);
  reader.finish();
  take_fragments(reader, {atom->c_registers, atom->a_registers, atom->b_registers, atom->c_registers},
                 atom->register_bits == 64 ? PtxType::b64 : PtxType::b32);
  Instruction& out = reader.out();
  out.table = &table_of(*atom);
  out.execute = handler;
}

constexpr std::array kOpcodes = {
    OpcodeRow{"mma", OperandClass::any, decode_mma},
};

}  // namespace

std::span<const OpcodeRow> mma_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
