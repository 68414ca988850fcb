// Values that a program's instructions define: registers of a thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright::program {

/// The type of a register. Packed elements (two f16, four s8) are in a b32.
enum class RegisterType : std::uint8_t { b16, b32, b64, f32, f64 };

/// Width in bits.
constexpr int bits(RegisterType type) {
  return type == RegisterType::b16 ? 16 : type == RegisterType::b32 || type == RegisterType::f32 ? 32 : 64;
}
/// "b32"
std::string_view name(RegisterType type);

/// `count` registers of one type, from number `first` on of those that definition `id` has. Each is defined once. A
/// value of several registers is a fragment.
struct Value {
  std::int32_t id = -1;
  RegisterType type = RegisterType::b32;
  std::int32_t first = 0;
  std::int32_t count = 1;
  std::uint32_t kernel = 0;  // the number of the builder that defined it

  /// One register. @throws InvalidArgument unless 0 <= i < count
  Value operator[](std::int32_t i) const { return slice(i, 1); }
  /// `length` registers from number `begin` on. @throws InvalidArgument unless they are in this value
  Value slice(std::int32_t begin, std::int32_t length) const;

  bool operator==(const Value&) const = default;
};

/// "v3", "v3[2]", "v3[4:8]"; `whole` is the number of registers of the definition.
std::string to_string(const Value& value, std::int32_t whole);

}  // namespace tilewright::program
