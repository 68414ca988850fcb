// cvt.rn.satfinite to e4m3x2 and e5m2x2 from two f32 or an f16x2, and cvt.rn.f16x2 back.
#include "tilewright/emulator/instructions/fp8_conversion.hpp"

#include "tilewright/base/float_format.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

struct E4m3 {
  static std::uint8_t from(float value) { return f64_to_e4m3(value); }
  static float to(std::uint8_t bits) { return e4m3_to_f32(bits); }
};
struct E5m2 {
  static std::uint8_t from(float value) { return f64_to_e5m2(value); }
  static float to(std::uint8_t bits) { return e5m2_to_f32(bits); }
};

/// Applies .relu if Instruction::mode is set.
float apply_relu(float value, std::uint8_t mode) { return mode != 0 && value <= 0 ? 0.0F : value; }

/// Operands: d, the value of the upper half, that of the lower half.
template <class Format>
void execute_from_f32(Warp& warp, const Instruction& in, Mask lanes) {
  auto* const d = warp.reg<std::uint8_t>(in.op[0]);
  const auto* const upper = warp.reg<float>(in.op[1]);
  const auto* const lower = warp.reg<float>(in.op[2]);
  each_lane(lanes, [&](int l) {
    d[2 * l + 1] = Format::from(apply_relu(upper[l], in.mode));
    d[2 * l] = Format::from(apply_relu(lower[l], in.mode));
  });
}

/// Operands: d, an f16x2.
template <class Format>
void execute_from_f16x2(Warp& warp, const Instruction& in, Mask lanes) {
  auto* const d = warp.reg<std::uint8_t>(in.op[0]);
  const auto* const a = warp.reg<std::uint16_t>(in.op[1]);
  each_lane(lanes, [&](int l) {
    for (int i = 2 * l; i < 2 * l + 2; ++i) d[i] = Format::from(apply_relu(f16_to_f32(a[i]), in.mode));
  });
}

template <class Format>
void execute_to_f16x2(Warp& warp, const Instruction& in, Mask lanes) {
  auto* const d = warp.reg<std::uint16_t>(in.op[0]);
  const auto* const a = warp.reg<std::uint8_t>(in.op[1]);
  each_lane(lanes, [&](int l) {
    for (int i = 2 * l; i < 2 * l + 2; ++i) d[i] = f32_to_f16(apply_relu(Format::to(a[i]), in.mode));
  });
}

}  // namespace

void decode_fp8_conversion(InstructionReader& reader, PtxType to, PtxType from, bool relu) {
  reader.finish();
  const bool e4m3 = to == PtxType::e4m3x2 || from == PtxType::e4m3x2;
  reader.out().mode = relu ? 1 : 0;
  if (is_fp8_pair(to) && from == PtxType::f32) {
    reader.expect_operands(3);
    reader.destination(reader.operand(0), PtxType::b16);
    reader.source(reader.operand(1), PtxType::f32);
    reader.source(reader.operand(2), PtxType::f32);
    reader.out().execute = e4m3 ? &execute_from_f32<E4m3> : &execute_from_f32<E5m2>;
    return;
  }
  const bool narrows = is_fp8_pair(to) && from == PtxType::f16x2;
  if (!narrows && to != PtxType::f16x2) {
    reader.refuse(fmt::format("conversion of .{} to .{}", name(from), name(to)));
  }
  reader.expect_operands(2);
  reader.destination(reader.operand(0), narrows ? PtxType::b16 : PtxType::b32);
  reader.source(reader.operand(1), narrows ? PtxType::b32 : PtxType::b16);
  if (narrows) {
    reader.out().execute = e4m3 ? &execute_from_f16x2<E4m3> : &execute_from_f16x2<E5m2>;
  } else {
    reader.out().execute = e4m3 ? &execute_to_f16x2<E4m3> : &execute_to_f16x2<E5m2>;
  }
}

}  // namespace tilewright::emulator
