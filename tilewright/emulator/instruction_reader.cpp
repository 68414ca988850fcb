// Decodes the modifiers and operands of a parsed instruction.
#include "tilewright/emulator/instruction_reader.hpp"

#include <bit>

#include "tilewright/base/text.hpp"
#include "tilewright/emulator/program_builder.hpp"

namespace tilewright::emulator {
namespace {

/// The bits of a PTX number as a value of the type. Numbers convert to f32 and f64; for other types they are bits.
std::uint64_t bits_as(const Operand& number, PtxType type) {
  const auto from_f32 = [&] { return std::bit_cast<float>(static_cast<std::uint32_t>(number.bits)); };
  const auto from_f64 = [&] { return std::bit_cast<double>(number.bits); };
  const auto signed_value = static_cast<std::int64_t>(number.bits);
  switch (number.kind) {
    case Operand::Kind::real_f32:
      return type == PtxType::f64 ? std::bit_cast<std::uint64_t>(static_cast<double>(from_f32())) : number.bits;
    case Operand::Kind::real:
      return bytes(type) == 4 ? std::bit_cast<std::uint32_t>(static_cast<float>(from_f64())) : number.bits;
    default:
      if (type == PtxType::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(signed_value));
      if (type == PtxType::f64) return std::bit_cast<std::uint64_t>(static_cast<double>(signed_value));
      return number.bits;
  }
}

bool is_number(const Operand& operand) {
  return operand.kind == Operand::Kind::integer || operand.kind == Operand::Kind::real ||
         operand.kind == Operand::Kind::real_f32;
}

int width_of(PtxType type) { return type == PtxType::pred ? 0 : bytes(type); }

/// Special registers that are always 0: the grid's number and the performance counters.
bool is_zero(std::string_view special) { return special == "%gridid" || special.starts_with("%pm"); }

std::string printable_name(const Operand& operand) { return printable(operand.name, 80); }

}  // namespace

InstructionReader::InstructionReader(ProgramBuilder& builder, const ParsedInstruction& parsed, Instruction& out,
                                     std::string_view modifiers)
    : builder_(builder), parsed_(parsed), out_(out) {
  while (!modifiers.empty()) {
    const std::size_t dot = modifiers.find('.');
    modifiers_.push_back(modifiers.substr(0, dot));
    modifiers = dot == std::string_view::npos ? std::string_view() : modifiers.substr(dot + 1);
  }
}

void InstructionReader::refuse(std::string reason) const { builder_.refuse(parsed_, std::move(reason)); }

void InstructionReader::require(const Target& least) const {
  const Target& target = builder_.target();
  if (target.has_features_of(least)) return;
  ProgramBuilder::require(::tilewright::refuse("{} needs {}, the target is {}", printable(parsed_.opcode, 80),
                                               least.name(), target.name()));
}

bool InstructionReader::take(std::string_view modifier) {
  for (std::string_view& candidate : modifiers_) {
    if (candidate != modifier) continue;
    candidate = {};
    return true;
  }
  return false;
}

int InstructionReader::take_one_of(std::initializer_list<std::string_view> modifiers) {
  int index = 0;
  for (const std::string_view modifier : modifiers) {
    if (take(modifier)) return index;
    ++index;
  }
  return -1;
}

std::optional<PtxType> InstructionReader::try_type() {
  for (std::string_view& candidate : modifiers_) {
    if (candidate.empty()) continue;
    const auto type = parse_ptx_type(candidate);
    if (!type) continue;
    candidate = {};
    return type;
  }
  return std::nullopt;
}

MemoryScope InstructionReader::memory_scope() {
  const int scope = take_one_of({"cta", "cluster", "gpu", "sys"});
  return scope == 0 ? MemoryScope::cta : scope == 1 ? MemoryScope::cluster : MemoryScope::gpu;
}

PtxType InstructionReader::type() {
  const auto type = try_type();
  if (!type) refuse(fmt::format("{}, which has no known type", printable(parsed_.opcode, 80)));
  return *type;
}

void InstructionReader::ignore_prefixed(std::initializer_list<std::string_view> prefixes) {
  for (std::string_view& candidate : modifiers_) {
    for (const std::string_view prefix : prefixes) {
      if (candidate.starts_with(prefix)) candidate = {};
    }
  }
}

void InstructionReader::finish() const {
  for (const std::string_view modifier : modifiers_) {
    if (!modifier.empty()) refuse(fmt::format("modifier .{} of {}", printable(modifier, 40), parsed_.opcode));
  }
}

const Operand& InstructionReader::operand(std::size_t i) const { return parsed_.operands[i]; }

void InstructionReader::expect_operands(std::size_t min, std::size_t max) {
  if (operands() < min || operands() > max) {
    refuse(fmt::format("{} with {} operands", printable(parsed_.opcode, 80), operands()));
  }
}

int InstructionReader::destination_of_any_width(const Operand& operand, PtxType type) {
  const std::uint8_t index = next_operand();
  if (index < 32) out_.written |= 1U << index;
  if (operand.kind == Operand::Kind::sink) {
    builder_.add_operand(builder_.scratch(width_of(type)));
    return width_of(type);
  }
  if (operand.kind != Operand::Kind::reg) refuse("a destination that is not a register");
  if (!operand.part.empty()) refuse("a part of a register");
  builder_.add_operand(builder_.register_slot(operand.index));
  return width_of(builder_.register_type(operand.index));
}

void InstructionReader::destination(const Operand& operand, PtxType type) {
  const int width = destination_of_any_width(operand, type);
  if (width != width_of(type))
    refuse(fmt::format("destination {} of another width than .{}", printable_name(operand), name(type)));
}

int InstructionReader::source_of_any_width(const Operand& operand, PtxType type) {
  if (operand.kind == Operand::Kind::reg) {
    if (operand.negated) refuse("a negated operand");
    if (!operand.part.empty()) refuse("a part of a register");
    builder_.add_operand(builder_.register_slot(operand.index));
    return width_of(builder_.register_type(operand.index));
  }
  const int width = width_of(type);
  if (is_number(operand)) {
    builder_.add_operand(builder_.constant(width, bits_as(operand, type)));
  } else if (operand.kind == Operand::Kind::variable) {
    const auto address = builder_.address_of(operand) + static_cast<std::uint64_t>(operand.offset);
    builder_.add_operand(builder_.constant(width, address, builder_.space_of(operand) == Space::shared));
  } else if (operand.kind == Operand::Kind::function && width == 8 && builder_.function_address(operand) != 0) {
    builder_.add_operand(builder_.constant(width, builder_.function_address(operand)));
  } else if (operand.kind == Operand::Kind::special && is_zero(operand.name)) {
    builder_.add_operand(builder_.constant(width, 0));
  } else if (operand.kind == Operand::Kind::special) {
    const Slot slot = builder_.special(operand.name);
    if (slot == kNone) refuse(fmt::format("special register {}", printable_name(operand)));
    if (width == 8) refuse(fmt::format("special register {} as .{}", printable_name(operand), name(type)));
    builder_.add_operand(slot);
  } else if (operand.kind == Operand::Kind::function && operand.index != kNone) {
    refuse(fmt::format("the address of kernel {}, as for launches by kernels", printable_name(operand)));
  } else {
    refuse(operand.name.empty() ? "an operand of this form" : fmt::format("operand {}", printable_name(operand)));
  }
  return width;
}

void InstructionReader::source(const Operand& operand, PtxType type) {
  const int width = source_of_any_width(operand, type);
  if (width != width_of(type))
    refuse(fmt::format("source {} of another width than .{}", printable_name(operand), name(type)));
}

void InstructionReader::predicate_source(const Operand& operand) {
  Operand plain = operand;
  plain.negated = false;
  source(plain, PtxType::pred);
  builder_.add_operand(builder_.constant(0, operand.negated ? 1 : 0));
}

void InstructionReader::address(const Operand& operand, Space space) {
  if (operand.kind != Operand::Kind::address || operand.elements.empty()) refuse("an operand that is not an address");
  if (operand.elements.size() > 1) refuse("an address with coordinates");
  address_of_base(operand, space);
}

std::size_t InstructionReader::tensor_address(const Operand& operand) {
  if (operand.kind != Operand::Kind::address || operand.elements.size() != 2) {
    refuse("an operand that is not a tensor map with coordinates");
  }
  address_of_base(operand, Space::generic);
  const std::vector<Operand> coordinates = elements(operand.elements[1]);
  for (const Operand& coordinate : coordinates) source(coordinate, PtxType::s32);
  return coordinates.size();
}

void InstructionReader::address_of_base(const Operand& operand, Space space) {
  TILEWRIGHT_CHECK(addresses_ < std::size(out_.address), "{} has more than three addresses", parsed_.opcode);
  const Operand& base = operand.elements[0];
  AddressOperand& address = out_.address[addresses_++];
  address.offset = operand.offset;
  address.shared_cluster = parsed_.opcode.find(".shared::cluster") != std::string_view::npos;
  address.operand = next_operand();
  address.is_constant = base.kind != Operand::Kind::reg;
  if (base.kind == Operand::Kind::variable) {
    std::uint64_t at = builder_.address_of(base);
    const Space own = builder_.space_of(base);
    if (space == Space::generic) at += own == Space::shared ? kSharedWindow : own == Space::local ? kLocalWindow : 0;
    builder_.add_operand(builder_.constant(8, at, own == Space::shared));
    return;
  }
  if (base.kind != Operand::Kind::reg && base.kind != Operand::Kind::integer) refuse("an address of this form");
  const int width = source_of_any_width(base, PtxType::b64);
  if (width != 4 && width != 8) refuse(fmt::format("address register {} of {} bytes", printable_name(base), width));
  address.register_bytes = static_cast<std::uint8_t>(width);
}

std::uint8_t InstructionReader::next_operand() const {
  return static_cast<std::uint8_t>(builder_.operand_count() - out_.first_operand);
}

Space InstructionReader::parameter_space(const Operand& address) const {
  if (address.kind == Operand::Kind::address && !address.elements.empty() &&
      address.elements[0].kind == Operand::Kind::variable) {
    return builder_.space_of(address.elements[0]);
  }
  return builder_.in_kernel() ? Space::param : Space::local;
}

std::vector<Operand> InstructionReader::elements(const Operand& operand) const {
  if (operand.kind == Operand::Kind::vector) return operand.elements;
  return {operand};
}

void InstructionReader::carry_flag() { builder_.add_operand(builder_.carry_flag()); }

const void* InstructionReader::keep(std::shared_ptr<const void> table) { return builder_.keep(std::move(table)); }

bool InstructionReader::is_predicate(const Operand& operand) const {
  return operand.kind == Operand::Kind::reg && builder_.register_type(operand.index) == PtxType::pred;
}

std::uint64_t InstructionReader::number(const Operand& operand) const {
  if (operand.kind != Operand::Kind::integer) refuse("an operand that is not a number");
  return operand.bits;
}

}  // namespace tilewright::emulator
