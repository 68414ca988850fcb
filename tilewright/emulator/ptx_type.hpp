// The operand types of PTX: names, widths and classes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright::emulator {

enum class PtxType : std::uint8_t {
  pred,
  b8,
  u8,
  s8,
  b16,
  u16,
  s16,
  f16,
  bf16,
  b32,
  u32,
  s32,
  f32,
  f16x2,
  bf16x2,
  tf32,
  e4m3,
  e5m2,
  e4m3x2,
  e5m2x2,
  b64,
  u64,
  s64,
  f64,
  b128,
};

enum class TypeClass : std::uint8_t { predicate, untyped, unsigned_integer, signed_integer, small_float, floating };

/// Width of an element in memory; 1 for a predicate.
int bits(PtxType type);
inline int bytes(PtxType type) { return (bits(type) + 7) / 8; }
TypeClass type_class(PtxType type);
/// "u32": the name without the dot.
std::string_view name(PtxType type);
std::optional<PtxType> parse_ptx_type(std::string_view text);

inline bool is_integer(PtxType type) {
  const TypeClass c = type_class(type);
  return c == TypeClass::untyped || c == TypeClass::unsigned_integer || c == TypeClass::signed_integer;
}
inline bool is_signed(PtxType type) { return type_class(type) == TypeClass::signed_integer; }

}  // namespace tilewright::emulator
