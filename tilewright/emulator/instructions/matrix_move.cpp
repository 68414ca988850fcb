// ldmatrix and stmatrix: 8x8 matrices of 16-bit elements between shared memory and the registers of a warp.
#include <algorithm>
#include <array>
#include <utility>

#include "tilewright/emulator/access.hpp"
#include "tilewright/emulator/cta.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"
#include "tilewright/emulator/undefined_source.hpp"

namespace tilewright::emulator {
namespace {

constexpr std::uint32_t kRowBytes = 16;
constexpr int kMatrixRows = 8;

/// The lanes that give row addresses: lane 8*i + r that of row r of matrix i.
Mask address_lanes(const Instruction& in) {
  const int lanes = kMatrixRows * in.elements;
  return lanes == kWarpSize ? kAllLanes : (Mask{1} << lanes) - 1;
}

/// The row of an element of a matrix, as the lane that gives its address, and its offset in the row.
std::pair<int, std::uint32_t> place(int matrix, int lane, int half, bool transposed) {
  int row = lane / 4;
  int column = 2 * (lane % 4) + half;
  if (transposed) std::swap(row, column);
  return {kMatrixRows * matrix + row, 2 * static_cast<std::uint32_t>(column)};
}

/// Address of a lane's element `half` (0 or 1) of a matrix: lane 4*r + c holds elements (r, 2c) and (r, 2c + 1), or
/// with .trans (2c, r) and (2c + 1, r).
std::byte* element(const LanePointers& rows, int matrix, int lane, int half, bool transposed) {
  const auto [row, offset] = place(matrix, lane, half, transposed);
  return rows.at[row] + offset;
}

/// Marks the registers of lanes that get elements which no one has written.
void note_undefined(Warp& warp, const Instruction& in, const LanePointers& rows) {
  const UndefinedSource source(warp, rows);
  UndefinedValues& values = warp.track_undefined_values();
  const std::uint32_t origin = source.new_origin(values, in, kRowBytes);
  for (int matrix = 0; matrix < in.elements; ++matrix) {
    UndefinedBits undefined;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (int half = 0; half < 2; ++half) {
        const auto [row, offset] = place(matrix, lane, half, in.mode != 0);
        if (!source.is_undefined(row, offset, 2)) continue;
        for (unsigned byte = 0; byte < 2; ++byte) {
          undefined.at[static_cast<unsigned>(4 * lane + 2 * half) + byte] =
              std::byte{source.undefined_bits(row, offset + byte)};
        }
      }
    }
    values.define(in.op[matrix], kAllLanes, undefined, origin);
  }
}

/// Called after a stmatrix of undefined values: the elements that it wrote are undefined.
void follow_stored(Warp& warp, const Instruction& in, const LanePointers& rows) {
  for (int matrix = 0; matrix < in.elements; ++matrix) {
    const UndefinedBits& bits = warp.undefined_values()->bits(in.op[matrix]);
    each_lane(warp.undefined_values()->undefined(in.op[matrix]).first, [&](int lane) {
      for (int half = 0; half < 2; ++half) {
        const auto [row, offset] = place(matrix, lane, half, in.mode != 0);
        if (((rows.shared >> row) & 1) == 0) continue;
        for (unsigned byte = 0; byte < 2; ++byte) {
          const auto undefined =
              std::to_integer<std::uint8_t>(bits.at[static_cast<unsigned>(4 * lane + 2 * half) + byte]);
          if (undefined != 0) warp.cta().shared().mark_undefined_bits(rows.address[row] + offset + byte, undefined);
        }
      }
    });
  }
}

/// Operands: one register per matrix, then the address. mode: .trans.
void execute_ldmatrix(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.converge(in, lanes, kAllLanes)) return;
  LanePointers rows;
  rows.follows_undefined = true;
  resolve(warp, in, address_lanes(in), Space::shared, 0, kRowBytes, AccessKind::read, rows);
  if (rows.undefined != 0) note_undefined(warp, in, rows);
  for (int matrix = 0; matrix < in.elements; ++matrix) {
    auto* const d = warp.reg<std::byte>(in.op[matrix]);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (int half = 0; half < 2; ++half) {
        std::memcpy(d + 4 * lane + 2 * half, element(rows, matrix, lane, half, in.mode != 0), 2);
      }
    }
  }
}

void execute_stmatrix(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.converge(in, lanes, kAllLanes)) return;
  LanePointers rows;
  resolve(warp, in, address_lanes(in), Space::shared, 0, kRowBytes, AccessKind::write, rows);
  for (int matrix = 0; matrix < in.elements; ++matrix) {
    const auto* const a = warp.reg<std::byte>(in.op[matrix]);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (int half = 0; half < 2; ++half) {
        std::memcpy(element(rows, matrix, lane, half, in.mode != 0), a + 4 * lane + 2 * half, 2);
      }
    }
  }
  if (warp.undefined_values() != nullptr) follow_stored(warp, in, rows);
}

/// Operands: d, a, each a matrix: lane 4*r + c holds elements (r, 2c) and (r, 2c + 1).
void execute_movmatrix(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.converge(in, lanes, kAllLanes)) return;
  auto* const d = warp.reg<std::uint16_t>(in.op[0]);
  const auto* const a = warp.reg<std::uint16_t>(in.op[1]);
  std::uint16_t matrix[kMatrixRows * kMatrixRows];
  std::copy(a, a + kMatrixRows * kMatrixRows, matrix);
  for (int row = 0; row < kMatrixRows; ++row) {
    for (int column = 0; column < kMatrixRows; ++column)
      d[kMatrixRows * row + column] = matrix[kMatrixRows * column + row];
  }
}

void decode_movmatrix(InstructionReader& reader) {
  for (const std::string_view modifier : {"sync", "aligned", "m8n8", "trans"}) {
    if (!reader.take(modifier)) reader.refuse("this form of movmatrix");
  }
  if (reader.type() != PtxType::b16) reader.refuse("matrices of this type");
  decode_uniform(reader, PtxType::b32, 2, &execute_movmatrix);
}

void decode(InstructionReader& reader, bool loads) {
  reader.take("sync");
  reader.take("aligned");
  if (!reader.take("m8n8")) reader.refuse("matrices of this shape");
  const int count = reader.take_one_of({"x1", "x2", "x4"});
  if (count < 0) reader.refuse("this number of matrices");
  const bool transposed = reader.take("trans");
  if (!reader.take("shared") && !reader.take("shared::cta")) reader.refuse("matrices in this state space");
  if (reader.type() != PtxType::b16) reader.refuse("matrices of this type");
  reader.finish();
  reader.expect_operands(2);
  const std::vector<Operand> registers = reader.elements(reader.operand(loads ? 0 : 1));
  if (registers.size() != 1U << count) reader.refuse("a vector operand whose length differs from the instruction's");
  for (const Operand& one : registers) {
    if (loads) {
      reader.destination(one, PtxType::b32);
    } else {
      reader.source(one, PtxType::b32);
    }
  }
  reader.address(reader.operand(loads ? 1 : 0), Space::shared);
  reader.out().elements = static_cast<std::uint8_t>(1U << count);
  reader.out().mode = transposed ? 1 : 0;
  if (loads) reader.out().registers = RegisterUse::loads;
  reader.out().execute = loads ? &execute_ldmatrix : &execute_stmatrix;
}

void decode_ldmatrix(InstructionReader& reader) { decode(reader, true); }
void decode_stmatrix(InstructionReader& reader) { decode(reader, false); }

constexpr std::array kOpcodes = {
    OpcodeRow{"ldmatrix", OperandClass::any, decode_ldmatrix},
    OpcodeRow{"stmatrix", OperandClass::any, decode_stmatrix},
    OpcodeRow{"movmatrix", OperandClass::any, decode_movmatrix},
};

}  // namespace

std::span<const OpcodeRow> matrix_move_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
