// mma.sp: products with a matrix A of which half of the elements are stored. The stored elements of a row are those of
// an mma of half the k; each is multiplied with the row of B that its place in the row of A names. Numerics are those
// of the mma of the stored elements. They are not compared with a GPU.
#include <algorithm>
#include <array>
#include <memory>

#include "tilewright/emulator/cta.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"
#include "tilewright/emulator/instructions/matrix_element.hpp"
#include "tilewright/emulator/instructions/sparse_metadata.hpp"
#include "tilewright/emulator/instructions/tensor_core_sum.hpp"

namespace tilewright::emulator {
namespace {

constexpr int kColumns = 8;
constexpr int kMaxK = 64;

struct SparseProduct {
  SparseMetadata metadata;
  int selector = 0;
  int a_registers = 0, b_registers = 0, c_registers = 0;
};

/// Elements of a register of a lane.
template <class Element>
constexpr int kPerRegister = 4 / sizeof(typename Element::Stored);

/// Calls f(lane, value, number) for the values of a register of all lanes.
template <class Element, class F>
void each_number(Warp& warp, Slot slot, F&& f) {
  constexpr int kPer = kPerRegister<Element>;
  NumberOf<Element> numbers[kWarpSize * kPer];
  read_numbers<Element, kWarpSize * kPer>(warp.reg<typename Element::Stored>(slot), numbers);
  for (int lane = 0; lane < kWarpSize; ++lane) {
    for (int value = 0; value < kPer; ++value) f(lane, value, numbers[lane * kPer + value]);
  }
}

/// The index in a tile of D of a value of register r: rows lane / 4 and the same plus 8, columns
/// 2 * (lane % 4) and the next.
template <class Accumulator>
int place_of_accumulator(int r, int lane, int value) {
  const int number = r * kPerRegister<Accumulator> + value;
  return lane / 4 + 8 * (number / 2) + (2 * (lane % 4) + number % 2) * kTileRows;
}

/// Operands: the registers of D, A, B, C, and the metadata. mode: .satfinite.
template <class A, class B, class Accumulator>
void execute_sparse(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.converge(in, lanes, kAllLanes)) return;
  const auto& product = *static_cast<const SparseProduct*>(in.table);
  const SparseMetadata& metadata = product.metadata;
  const int stored = metadata.stored();
  constexpr int kPer = kPerRegister<A>;
  alignas(64) float a[kTileRows * kMaxStored] = {};
  alignas(64) NumberOf<Accumulator> c[kTileRows * kColumns] = {};
  float b[kMaxK][kColumns] = {};
  const Slot* const of_a = in.op + product.c_registers;
  const Slot* const of_b = of_a + product.a_registers;
  const Slot* const of_c = of_b + product.b_registers;
  for (int r = 0; r < product.a_registers; ++r) {
    each_number<A>(warp, of_a[r], [&](int lane, int value, float number) {
      const int row = lane / 4 + 8 * (r % 2);
      a[(r / 2 * 4 * kPer + lane % 4 * kPer + value) * kTileRows + row] = number;
    });
  }
  for (int r = 0; r < product.b_registers; ++r) {
    each_number<B>(warp, of_b[r], [&](int lane, int value, float number) {
      b[r * 4 * kPer + lane % 4 * kPer + value][lane / 4] = number;
    });
  }
  for (int r = 0; r < product.c_registers; ++r) {
    each_number<Accumulator>(warp, of_c[r], [&](int lane, int value, auto number) {
      c[place_of_accumulator<Accumulator>(r, lane, value)] = number;
    });
  }
  const auto* const words = warp.reg<std::uint32_t>(of_c[product.c_registers]);
  alignas(64) float rows_of_b[kColumns * kMaxStored * kTileRows];
  for (int row = 0; row < kTileRows; ++row) {
    std::array<int, kMaxStored> places{};
    find_stored(warp, in, metadata, words, product.selector, row, places);
    for (int n = 0; n < kColumns; ++n) {
      for (int i = 0; i < stored; ++i)
        rows_of_b[(n * stored + i) * kTileRows + row] = b[places[static_cast<std::size_t>(i)]][n];
    }
  }
  ProductTiles tiles{kColumns, stored, a, rows_of_b, nullptr, metadata.element_bytes};
  tiles.b_has_rows = true;
  if constexpr (std::is_same_v<Accumulator, S32Accumulator>) {
    alignas(64) float sums[kTileRows * kColumns] = {};
    tiles.c = sums;
    multiply_add_integers(tiles);
    for (int i = 0; i < kTileRows * kColumns; ++i) c[i] += static_cast<std::int64_t>(sums[i]);
  } else {
    tiles.c = c;
    tiles.least_exponent_a = A::kLeastExponent;
    tiles.least_exponent_b = B::kLeastExponent;
    tiles.least_exponent_c = Accumulator::kLeastExponent;
    multiply_add_of_mma(tiles, warp.cta().launch().target, std::is_same_v<Accumulator, F16Accumulator>);
  }
  for (int r = 0; r < product.c_registers; ++r) {
    auto* const d = warp.reg<typename Accumulator::Stored>(in.op[r]);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (int value = 0; value < kPerRegister<Accumulator>; ++value) {
        d[lane * kPerRegister<Accumulator> + value] =
            Accumulator::stored(c[place_of_accumulator<Accumulator>(r, lane, value)], in.mode != 0);
      }
    }
  }
  if (Profile* const profile = warp.cta().launch().profile)
    profile->count_product(warp.code_index(in), kTileRows, kColumns, metadata.k);
}

/// Null for types that mma.sp does not multiply here.
Handler find_handler(std::string_view a, std::string_view b, std::string_view c) {
  const bool half = c == "f16";
  if (c == "s32") {
    if (a == "s8" && b == "s8") return &execute_sparse<S8Element, S8Element, S32Accumulator>;
    if (a == "s8" && b == "u8") return &execute_sparse<S8Element, U8Element, S32Accumulator>;
    if (a == "u8" && b == "s8") return &execute_sparse<U8Element, S8Element, S32Accumulator>;
    if (a == "u8" && b == "u8") return &execute_sparse<U8Element, U8Element, S32Accumulator>;
    return nullptr;
  }
  if (c != "f32" && !half) return nullptr;
  if (a == "f16" && b == "f16") {
    return half ? Handler{&execute_sparse<F16Element, F16Element, F16Accumulator>}
                : &execute_sparse<F16Element, F16Element, F32Accumulator>;
  }
  if (half) return nullptr;
  if (a == "e4m3" && b == "e4m3") return &execute_sparse<E4m3Element, E4m3Element, F32Accumulator>;
  if (a == "e4m3" && b == "e5m2") return &execute_sparse<E4m3Element, E5m2Element, F32Accumulator>;
  if (a == "e5m2" && b == "e4m3") return &execute_sparse<E5m2Element, E4m3Element, F32Accumulator>;
  if (a == "e5m2" && b == "e5m2") return &execute_sparse<E5m2Element, E5m2Element, F32Accumulator>;
  if (a == "bf16" && b == "bf16") return &execute_sparse<Bf16Element, Bf16Element, F32Accumulator>;
  if (a == "tf32" && b == "tf32") return &execute_sparse<Tf32Element, Tf32Element, F32Accumulator>;
  return nullptr;
}

void take_registers(InstructionReader& reader, const Operand& operand, int count, bool written) {
  const std::vector<Operand> registers = reader.elements(operand);
  if (static_cast<int>(registers.size()) != count)
    reader.refuse(fmt::format("a fragment of {} registers, which must have {}", registers.size(), count));
  for (const Operand& one : registers) {
    if (written) {
      reader.destination(one, PtxType::b32);
    } else {
      reader.source(one, PtxType::b32);
    }
  }
}

void decode(InstructionReader& reader, bool ordered) {
  reader.require(Target{80});
  reader.take("sync");
  reader.take("aligned");
  const std::string opcode(reader.parsed().opcode);
  int k = 0;
  for (const int each : {8, 16, 32, 64}) {
    if (reader.take(fmt::format("m16n8k{}", each))) k = each;
  }
  const bool is_row_col = reader.take("row") && reader.take("col");
  const bool saturates = reader.take("satfinite");
  const auto d = reader.try_type(), a = reader.try_type(), b = reader.try_type(), c = reader.try_type();
  const Handler handler = a && b && c && d == c ? find_handler(name(*a), name(*b), name(*c)) : nullptr;
  auto product = std::make_shared<SparseProduct>();
  SparseMetadata& metadata = product->metadata;
  if (handler != nullptr) metadata = {bytes(*a), k, ordered};
  // A row of A has 32 or 64 bytes, stored or not.
  const int row_bytes = k * metadata.element_bytes;
  const bool integers_or_wide = metadata.element_bytes > 1 || (c && *c == PtxType::s32);
  if (handler == nullptr || !is_row_col || row_bytes > 64 || row_bytes < (integers_or_wide ? 32 : 64))
    reader.refuse(fmt::format("instruction {}", opcode));
  if (metadata.element_bytes == 1 && *c != PtxType::s32) reader.require(Target{89});
  reader.finish();
  reader.expect_operands(6);
  const int per_register = 4 / metadata.element_bytes;
  product->a_registers = 2 * metadata.stored() / (4 * per_register);
  product->b_registers = k / (4 * per_register);
  product->c_registers = *c == PtxType::f16 ? 2 : 4;
  take_registers(reader, reader.operand(0), product->c_registers, true);
  take_registers(reader, reader.operand(1), product->a_registers, false);
  take_registers(reader, reader.operand(2), product->b_registers, false);
  take_registers(reader, reader.operand(3), product->c_registers, false);
  reader.source(reader.operand(4), PtxType::b32);
  const std::uint64_t selector = reader.number(reader.operand(5));
  if (selector >= static_cast<std::uint64_t>(metadata.selectors()))
    reader.refuse(fmt::format("a sparsity selector of {}, which must be less than {}", selector, metadata.selectors()));
  product->selector = static_cast<int>(selector);
  reader.out().table = reader.keep(product);
  reader.out().mode = saturates ? 1 : 0;
  reader.out().execute = handler;
}

void decode_sparse(InstructionReader& reader) { decode(reader, false); }
void decode_ordered(InstructionReader& reader) { decode(reader, true); }

constexpr std::array kOpcodes = {
    OpcodeRow{"mma.sp", OperandClass::any, decode_sparse},
    OpcodeRow{"mma.sp::ordered_metadata", OperandClass::any, decode_ordered},
};

}  // namespace

std::span<const OpcodeRow> sparse_mma_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
