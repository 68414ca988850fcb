// wmma.load, wmma.store and wmma.mma. Which lane holds which element of a fragment is not specified (PTX ISA, "Matrix
// Fragments for WMMA"): here element e of lane l is element 32 * e + l of the row-major tile. Fragments of A and B in
// f16 have 16 elements, as on GPUs; in most shapes that is every element more than once, so that element e + 8 of
// m16n16k16 is element e. Numerics are those of mma.sync.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "tilewright/emulator/access.hpp"
#include "tilewright/emulator/cta.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"
#include "tilewright/emulator/instructions/matrix_element.hpp"
#include "tilewright/emulator/instructions/tensor_core_sum.hpp"

namespace tilewright::emulator {
namespace {

struct Shape {
  std::string_view name;
  int m, n, k;
};
constexpr Shape kShapes[] = {{"m16n16k16", 16, 16, 16}, {"m32n8k16", 32, 8, 16}, {"m8n32k16", 8, 32, 16},
                             {"m16n16k8", 16, 16, 8},   {"m8n8k4", 8, 8, 4},     {"m8n8k32", 8, 8, 32},  // of s4 and u4
                             {"m8n8k128", 8, 8, 128}};                                                   // of b1
constexpr int kMaxTile = 32 * 16;

/// The contents of a fragment's registers, and the extents of its tile.
struct Fragment {
  int rows = 0, columns = 0;
  int element_bytes = 0;
  int registers = 0;
  int register_bytes = 4;

  int elements() const { return rows * columns / kWarpSize; }  // different ones, per lane
  int per_register() const { return register_bytes / element_bytes; }
  int slots() const { return registers * per_register(); }
};

const Shape* take_shape(InstructionReader& reader) {
  for (const Shape& shape : kShapes) {
    if (reader.take(shape.name)) return &shape;
  }
  reader.refuse(fmt::format("the shape of {}", reader.parsed().opcode));
}

/// `operand`: 'a', 'b', or 'c' for C and D.
Fragment fragment_of(InstructionReader& reader, const Shape& shape, char operand, PtxType type) {
  Fragment fragment;
  fragment.rows = operand == 'b' ? shape.k : shape.m;
  fragment.columns = operand == 'a' ? shape.k : shape.n;
  fragment.element_bytes = bytes(type);
  fragment.register_bytes = type == PtxType::f64 ? 8 : 4;
  const bool duplicated = operand != 'c' && type == PtxType::f16;
  fragment.registers = (duplicated ? 16 : fragment.elements()) * fragment.element_bytes / fragment.register_bytes;
  if (fragment.registers == 0) reader.refuse(fmt::format("the fragment of {}", reader.parsed().opcode));
  return fragment;
}

void add_registers(InstructionReader& reader, const Operand& operand, const Fragment& fragment, bool written) {
  const std::vector<Operand> registers = reader.elements(operand);
  if (static_cast<int>(registers.size()) != fragment.registers) {
    reader.refuse(fmt::format("a fragment of {} registers, which must have {}", registers.size(), fragment.registers));
  }
  const PtxType word = fragment.register_bytes == 8 ? PtxType::b64 : PtxType::b32;
  for (const Operand& one : registers) {
    if (written) {
      reader.destination(one, word);
    } else {
      reader.source(one, word);
    }
  }
}

/// Where element `index` of the lane's elements is in the registers.
std::byte* element_at(Warp& warp, const Slot* registers, const Fragment& fragment, int lane, int index) {
  const int per_register = fragment.per_register();
  return warp.reg<std::byte>(registers[index / per_register]) + lane * fragment.register_bytes +
         index % per_register * fragment.element_bytes;
}

// Loads and stores --------------------------------------------------------------------------------------------------

/// Instruction::immediate of loads and stores.
struct Transfer {
  Fragment fragment;
  bool column_major = false;
  Space space = Space::generic;
};

/// Operands: the fragment's registers, the address, the leading dimension. mode: .volatile is ignored.
template <bool kLoads>
void execute_transfer(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.converge(in, lanes, kAllLanes)) return;
  const auto& transfer = *static_cast<const Transfer*>(in.table);
  const Fragment& fragment = transfer.fragment;
  const auto* const stride = warp.reg<std::uint32_t>(in.op[fragment.registers + 1]);
  const auto size = static_cast<std::uint32_t>(fragment.element_bytes);
  for (int index = 0; index < fragment.elements(); ++index) {
    std::int64_t offsets[kWarpSize];
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const int at = kWarpSize * index + lane;
      const std::int64_t row = at / fragment.columns, column = at % fragment.columns;
      offsets[lane] = (transfer.column_major ? column * stride[lane] + row : row * stride[lane] + column) * size;
    }
    LanePointers memory;
    std::byte values[kWarpSize * 8];
    if (!kLoads) {
      for (int lane = 0; lane < kWarpSize; ++lane)
        std::memcpy(values + static_cast<std::size_t>(lane) * size, element_at(warp, in.op, fragment, lane, index),
                    size);
      memory.values = values;
    }
    resolve_with_offsets(warp, in, kAllLanes, transfer.space, 0, offsets, {size, size},
                         kLoads ? AccessKind::read : AccessKind::write, memory);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      std::byte* const element = element_at(warp, in.op, fragment, lane, index);
      if (kLoads) {
        std::memcpy(element, memory.at[lane], size);
        for (int copy = index + fragment.elements(); copy < fragment.slots(); copy += fragment.elements())
          std::memcpy(element_at(warp, in.op, fragment, lane, copy), element, size);
      } else {
        std::memcpy(memory.at[lane], element, size);
      }
    }
  }
}

// Elements of less than a byte --------------------------------------------------------------------------------------
// Register 0 of lane l has 32 bits of row l / 4 of A, or of column l / 4 of B: part l % 4 of its 128 bits.

/// Operands: the register, the address, the leading dimension in elements. immediate: bits of an element; mode: Space.
void execute_narrow_load(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.converge(in, lanes, kAllLanes)) return;
  const auto* const stride = warp.reg<std::uint32_t>(in.op[2]);
  std::int64_t offsets[kWarpSize];
  for (int lane = 0; lane < kWarpSize; ++lane)
    offsets[lane] = std::int64_t{lane / 4} * stride[lane] * in.immediate / 8 + 4 * (lane % 4);
  LanePointers memory;
  resolve_with_offsets(warp, in, kAllLanes, static_cast<Space>(in.mode), 0, offsets, {4, 4}, AccessKind::read, memory);
  auto* const d = warp.reg<std::uint32_t>(in.op[0]);
  for (int lane = 0; lane < kWarpSize; ++lane) std::memcpy(&d[lane], memory.at[lane], sizeof(d[lane]));
}

/// Takes the element type of less than a byte; empty if there is none.
std::string_view take_narrow_type(InstructionReader& reader) {
  for (const std::string_view type : {"s4", "u4", "b1"}) {
    if (reader.take(type)) return type;
  }
  return {};
}

/// False for other types. A must be row-major and B column-major.
bool decode_narrow_load(InstructionReader& reader, char operand) {
  const std::string_view type = take_narrow_type(reader);
  if (type.empty()) return false;
  if (!reader.take(type == "b1" ? "m8n8k128" : "m8n8k32") || !reader.take(operand == 'a' ? "row" : "col"))
    reader.refuse(fmt::format("instruction {}", reader.parsed().opcode));
  Space space = Space::generic;
  if (reader.take("global")) space = Space::global;
  if (reader.take("shared") || reader.take("shared::cta")) space = Space::shared;
  reader.finish();
  reader.expect_operands(2, 3);
  reader.destination(reader.elements(reader.operand(0)).front(), PtxType::b32);
  reader.address(reader.operand(1), space);
  reader.source(reader.operands() == 3 ? reader.operand(2) : integer_operand(type == "b1" ? 128 : 32), PtxType::u32);
  reader.out().immediate = type == "b1" ? 1 : 4;
  reader.out().mode = static_cast<std::uint8_t>(space);
  reader.out().execute = &execute_narrow_load;
  return true;
}

struct NarrowTypes {
  int bits = 4;
  bool is_signed = false;
  bool conjunction = false;  // of bits: .and.popc, else .xor.popc
};

int narrow_element(std::uint32_t word, int index, bool is_signed) {
  const int value = static_cast<int>(word >> (4 * index)) & 15;
  return is_signed && value >= 8 ? value - 16 : value;
}

/// Operands: two registers of D, one of A and of B, two of C. mode: .satfinite.
void execute_narrow_product(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.converge(in, lanes, kAllLanes)) return;
  const auto& types = *static_cast<const NarrowTypes*>(in.table);
  const auto* const a = warp.reg<std::uint32_t>(in.op[2]);
  const auto* const b = warp.reg<std::uint32_t>(in.op[3]);
  std::int32_t results[2][kWarpSize];
  for (int i = 0; i < 2 * kWarpSize; ++i) {  // elements of D, row-major
    std::int64_t sum = warp.reg<std::int32_t>(in.op[4 + i / kWarpSize])[i % kWarpSize];
    for (int part = 0; part < 4; ++part) {
      const std::uint32_t x = a[i / 8 * 4 + part], y = b[i % 8 * 4 + part];
      if (types.bits == 1) {
        sum += std::popcount(types.conjunction ? x & y : x ^ y);
        continue;
      }
      for (int e = 0; e < 8; ++e) sum += narrow_element(x, e, types.is_signed) * narrow_element(y, e, types.is_signed);
    }
    results[i / kWarpSize][i % kWarpSize] = S32Accumulator::stored(sum, in.mode != 0);
  }
  for (int r = 0; r < 2; ++r) std::copy_n(results[r], kWarpSize, warp.reg<std::int32_t>(in.op[r]));
  if (Profile* const profile = warp.cta().launch().profile)
    profile->count_product(warp.code_index(in), 8, 8, 128 / types.bits);
}

/// False for other types.
bool decode_narrow_product(InstructionReader& reader) {
  const std::string_view type = take_narrow_type(reader);
  if (type.empty()) return false;
  auto types = std::make_shared<NarrowTypes>();
  types->bits = type == "b1" ? 1 : 4;
  types->is_signed = type == "s4";
  bool known = reader.take(type) && reader.take(type == "b1" ? "m8n8k128" : "m8n8k32");
  known = known && reader.take("row") && reader.take("col");
  if (type == "b1") {
    types->conjunction = reader.take_one_of({"xor", "and"}) == 1;
    known = known && reader.take("popc");
  }
  const bool saturates = reader.take("satfinite");
  known = known && reader.take("s32") && reader.take("s32");
  if (!known) reader.refuse(fmt::format("instruction {}", reader.parsed().opcode));
  reader.finish();
  reader.expect_operands(4);
  for (std::size_t i = 0; i < 4; ++i) {
    const std::vector<Operand> registers = reader.elements(reader.operand(i));
    const std::size_t count = i == 0 || i == 3 ? 2 : 1;
    if (registers.size() != count)
      reader.refuse(fmt::format("a fragment of {} registers, which must have {}", registers.size(), count));
    for (const Operand& one : registers) {
      if (i == 0) {
        reader.destination(one, PtxType::b32);
      } else {
        reader.source(one, PtxType::b32);
      }
    }
  }
  reader.out().table = reader.keep(types);
  reader.out().mode = saturates ? 1 : 0;
  reader.out().execute = &execute_narrow_product;
  return true;
}

template <bool kLoads>
void decode_transfer(InstructionReader& reader) {
  reader.take("sync");
  reader.take("aligned");
  if (kLoads && decode_narrow_load(reader, reader.parsed().opcode[10])) return;
  const std::string_view rest = reader.parsed().opcode.substr(kLoads ? 10 : 11);  // "wmma.load.a", "wmma.store.d"
  char operand = rest[0];
  if (operand == 'd') operand = 'c';
  const Shape& shape = *take_shape(reader);
  const int major = reader.take_one_of({"row", "col"});
  Transfer transfer;
  transfer.column_major = major == 1;
  if (reader.take("global")) transfer.space = Space::global;
  if (reader.take("shared") || reader.take("shared::cta")) transfer.space = Space::shared;
  const PtxType type = reader.type();
  reader.finish();
  reader.expect_operands(2, 3);
  transfer.fragment = fragment_of(reader, shape, operand, type);
  add_registers(reader, reader.operand(kLoads ? 0 : 1), transfer.fragment, kLoads);
  reader.address(reader.operand(kLoads ? 1 : 0), transfer.space);
  const int least = transfer.column_major ? transfer.fragment.rows : transfer.fragment.columns;
  reader.source(reader.operands() == 3 ? reader.operand(2) : integer_operand(static_cast<std::uint64_t>(least)),
                PtxType::u32);
  reader.out().table = reader.keep(std::make_shared<Transfer>(transfer));
  reader.out().execute = &execute_transfer<kLoads>;
}

// Products ----------------------------------------------------------------------------------------------------------

struct Product {
  Shape shape;
  Fragment a, b, c, d;
};

template <class Element, class Number>
void read_tile(Warp& warp, const Slot* registers, const Fragment& fragment, Number* tile) {
  for (int index = 0; index < fragment.elements(); ++index) {
    for (int lane = 0; lane < kWarpSize; ++lane) {
      typename Element::Stored stored;
      std::memcpy(&stored, element_at(warp, registers, fragment, lane, index), sizeof(stored));
      tile[kWarpSize * index + lane] = Element::number(stored);
    }
  }
}

/// Calls multiply(tiles) for each kTileRows columns of D, with the transposed product: the row-major tiles of B and D
/// are column-major tiles of their transposes.
template <class F>
void multiply_transposed(const Shape& shape, const float* a, const float* b, float* c, F&& multiply) {
  const auto [name, m, n, k] = shape;
  alignas(64) float of_b[kTileRows * 16], of_a[kMaxTile], sums[kTileRows * 32];
  std::copy_n(a, m * k, of_a);
  for (int first = 0; first < n; first += kTileRows) {
    const int columns = std::min(n - first, kTileRows);
    std::ranges::fill(of_b, 0.0F);
    std::ranges::fill(sums, 0.0F);
    for (int row = 0; row < k; ++row) std::copy_n(b + row * n + first, columns, of_b + row * kTileRows);
    for (int row = 0; row < m; ++row) std::copy_n(c + row * n + first, columns, sums + row * kTileRows);
    multiply(ProductTiles{m, k, of_b, of_a, sums});
    for (int row = 0; row < m; ++row) std::copy_n(sums + row * kTileRows, columns, c + row * n + first);
  }
}

/// Operands: the registers of D, A, B and C. mode: .satfinite.
template <class A, class B, class C, class D>
void execute_product(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.converge(in, lanes, kAllLanes)) return;
  const auto& product = *static_cast<const Product*>(in.table);
  NumberOf<A> a[kMaxTile] = {};
  NumberOf<B> b[kMaxTile] = {};
  NumberOf<C> c[kMaxTile] = {};
  const Slot* const a_registers = in.op + product.d.registers;
  const Slot* const b_registers = a_registers + product.a.registers;
  read_tile<A>(warp, a_registers, product.a, a);
  read_tile<B>(warp, b_registers, product.b, b);
  read_tile<C>(warp, b_registers + product.b.registers, product.c, c);
  const auto [name, m, n, k] = product.shape;
  if constexpr (std::is_same_v<D, F16Accumulator> || std::is_same_v<D, F32Accumulator>) {
    constexpr int kElementBytes = sizeof(typename A::Stored);
    multiply_transposed(product.shape, a, b, c, [&](ProductTiles tiles) {
      tiles.element_bytes = kElementBytes;
      tiles.least_exponent_a = B::kLeastExponent;
      tiles.least_exponent_b = A::kLeastExponent;
      tiles.least_exponent_c = C::kLeastExponent;
      multiply_add_of_mma(tiles, warp.cta().launch().target, std::is_same_v<D, F16Accumulator>);
    });
  } else if constexpr (std::is_same_v<D, S32Accumulator>) {
    float sums[kMaxTile] = {};
    multiply_transposed(product.shape, a, b, sums, multiply_add_integers);
    for (int i = 0; i < m * n; ++i) c[i] += static_cast<std::int64_t>(sums[i]);
  } else {
    for (int i = 0; i < m; ++i) {
      for (int l = 0; l < k; ++l) {
        for (int j = 0; j < n; ++j) c[i * n + j] = std::fma(a[i * k + l], b[l * n + j], c[i * n + j]);
      }
    }
  }
  if (Profile* const profile = warp.cta().launch().profile) profile->count_product(warp.code_index(in), m, n, k);
  for (int index = 0; index < product.d.elements(); ++index) {
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const typename D::Stored stored = D::stored(c[kWarpSize * index + lane], in.mode != 0);
      std::memcpy(element_at(warp, in.op, product.d, lane, index), &stored, sizeof(stored));
    }
  }
}

template <class A>
Handler float_handler(PtxType c, PtxType d) {
  if (d == PtxType::f16) {
    return c == PtxType::f16 ? Handler{&execute_product<A, A, F16Accumulator, F16Accumulator>}
                             : &execute_product<A, A, F32Accumulator, F16Accumulator>;
  }
  return c == PtxType::f16 ? Handler{&execute_product<A, A, F16Accumulator, F32Accumulator>}
                           : &execute_product<A, A, F32Accumulator, F32Accumulator>;
}

Handler product_handler(PtxType a, PtxType c, PtxType d) {
  switch (a) {
    case PtxType::f16:
      return float_handler<F16Element>(c, d);
    case PtxType::bf16:
      return float_handler<Bf16Element>(c, d);
    case PtxType::tf32:
      return float_handler<Tf32Element>(c, d);
    case PtxType::f64:
      return &execute_product<F64Element, F64Element, F64Accumulator, F64Accumulator>;
    case PtxType::s8:
      return &execute_product<S8Element, S8Element, S32Accumulator, S32Accumulator>;
    case PtxType::u8:
      return &execute_product<U8Element, U8Element, S32Accumulator, S32Accumulator>;
    default:
      return nullptr;
  }
}

void decode_product(InstructionReader& reader) {
  reader.take("sync");
  reader.take("aligned");
  if (decode_narrow_product(reader)) return;
  const Shape& shape = *take_shape(reader);
  // The layouts matter to loads only: fragments have the same order of elements for both.
  for (int i = 0; i < 2; ++i) reader.take_one_of({"row", "col"});
  for (int i = 0; i < 2; ++i) reader.take_one_of({"row", "col"});
  reader.take("rn");
  const bool saturates = reader.take("satfinite");
  const PtxType d = reader.type();
  const PtxType second = reader.type();
  const auto third = reader.try_type();
  const PtxType a = third ? second : PtxType::f16;  // f16 products name the types of D and C only
  const PtxType c = third ? reader.type() : second;
  if (third && *third != a) reader.refuse(fmt::format("the types of {}", reader.parsed().opcode));
  const Handler handler = product_handler(a, c, d);
  if (handler == nullptr) reader.refuse(fmt::format("the types of {}", reader.parsed().opcode));
  reader.finish();
  reader.expect_operands(4);
  const Product product{shape, fragment_of(reader, shape, 'a', a), fragment_of(reader, shape, 'b', a),
                        fragment_of(reader, shape, 'c', c), fragment_of(reader, shape, 'c', d)};
  add_registers(reader, reader.operand(0), product.d, true);
  add_registers(reader, reader.operand(1), product.a, false);
  add_registers(reader, reader.operand(2), product.b, false);
  add_registers(reader, reader.operand(3), product.c, false);
  reader.out().table = reader.keep(std::make_shared<Product>(product));
  reader.out().mode = saturates ? 1 : 0;
  reader.out().execute = handler;
}

constexpr std::array kOpcodes = {
    OpcodeRow{"wmma.load.a", OperandClass::any, decode_transfer<true>},
    OpcodeRow{"wmma.load.b", OperandClass::any, decode_transfer<true>},
    OpcodeRow{"wmma.load.c", OperandClass::any, decode_transfer<true>},
    OpcodeRow{"wmma.store.d", OperandClass::any, decode_transfer<false>},
    OpcodeRow{"wmma.mma", OperandClass::any, decode_product},
};

}  // namespace

std::span<const OpcodeRow> wmma_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
