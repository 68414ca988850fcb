// The table of PTX types.
#include "tilewright/emulator/ptx_type.hpp"

#include <array>

namespace tilewright::emulator {
namespace {

struct TypeRow {
  PtxType type;
  std::string_view name;
  int bits;
  TypeClass cls;
};

constexpr std::array kTypes = {
    TypeRow{PtxType::pred, "pred", 1, TypeClass::predicate},
    TypeRow{PtxType::b8, "b8", 8, TypeClass::untyped},
    TypeRow{PtxType::u8, "u8", 8, TypeClass::unsigned_integer},
    TypeRow{PtxType::s8, "s8", 8, TypeClass::signed_integer},
    TypeRow{PtxType::b16, "b16", 16, TypeClass::untyped},
    TypeRow{PtxType::u16, "u16", 16, TypeClass::unsigned_integer},
    TypeRow{PtxType::s16, "s16", 16, TypeClass::signed_integer},
    TypeRow{PtxType::f16, "f16", 16, TypeClass::small_float},
    TypeRow{PtxType::bf16, "bf16", 16, TypeClass::small_float},
    TypeRow{PtxType::b32, "b32", 32, TypeClass::untyped},
    TypeRow{PtxType::u32, "u32", 32, TypeClass::unsigned_integer},
    TypeRow{PtxType::s32, "s32", 32, TypeClass::signed_integer},
    TypeRow{PtxType::f32, "f32", 32, TypeClass::floating},
    TypeRow{PtxType::f16x2, "f16x2", 32, TypeClass::small_float},
    TypeRow{PtxType::bf16x2, "bf16x2", 32, TypeClass::small_float},
    TypeRow{PtxType::tf32, "tf32", 32, TypeClass::small_float},
    TypeRow{PtxType::e4m3, "e4m3", 8, TypeClass::small_float},
    TypeRow{PtxType::e5m2, "e5m2", 8, TypeClass::small_float},
    TypeRow{PtxType::e4m3x2, "e4m3x2", 16, TypeClass::small_float},
    TypeRow{PtxType::e5m2x2, "e5m2x2", 16, TypeClass::small_float},
    TypeRow{PtxType::b64, "b64", 64, TypeClass::untyped},
    TypeRow{PtxType::u64, "u64", 64, TypeClass::unsigned_integer},
    TypeRow{PtxType::s64, "s64", 64, TypeClass::signed_integer},
    TypeRow{PtxType::f64, "f64", 64, TypeClass::floating},
    TypeRow{PtxType::b128, "b128", 128, TypeClass::untyped},
};

const TypeRow& row(PtxType type) { return kTypes[static_cast<std::size_t>(type)]; }

}  // namespace

int bits(PtxType type) { return row(type).bits; }
TypeClass type_class(PtxType type) { return row(type).cls; }
std::string_view name(PtxType type) { return row(type).name; }

std::optional<PtxType> parse_ptx_type(std::string_view text) {
  for (const TypeRow& candidate : kTypes) {
    if (candidate.name == text) return candidate.type;
  }
  return std::nullopt;
}

}  // namespace tilewright::emulator
