// The registers of a warp that hold undefined values: those of bytes that no one has written.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tilewright/emulator/checks.hpp"
#include "tilewright/emulator/program.hpp"

namespace tilewright::emulator {

class Warp;

/// It is no fault to read bytes that no one has written as long as their value does not matter: kernels load what lies
/// beyond the end of a tile, and discard the result. This class follows the values through registers and predicates,
/// lane by lane, and reports a read when its value decides a branch or a guarded access, is an address or an operand of
/// an atomic operation, a barrier or a matrix product, or is stored to global memory. A value that is stored to shared
/// or local memory makes these bytes undefined. So do the undefined bytes of a word of 8 bytes that has defined ones,
/// too, in any memory: structures have padding, and are copied in words.
class UndefinedValues {
 public:
  /// Whether a register holds an undefined value.
  bool any() const { return !registers_.empty(); }
  void clear();

  /// A bit for each byte of a register.
  using Bytes = std::uint32_t;
  static constexpr Bytes kAllBytes = 0xffff;

  /// The lanes of `undefined` get a value in a register of which these bytes are undefined; the other lanes of `lanes`
  /// a defined one.
  void define(Slot slot, Mask lanes, Mask undefined, std::uint32_t origin, Bytes bytes = kAllBytes);
  std::uint32_t new_origin(FindingKind kind, std::uint32_t code, std::vector<std::string> details);

  /// Called before each instruction, with the lanes that execute it and those whose guard decides that: moves the marks
  /// from sources to destinations, and reports values that matter.
  void step(Warp& warp, const Instruction& instruction, Mask lanes, Mask guarded);
  /// The lanes in which the register is undefined, and the origin of the first.
  std::pair<Mask, std::uint32_t> undefined(Slot slot) const;
  /// The bytes of the register that are undefined in any lane.
  Bytes undefined_bytes(Slot slot) const;
  /// Reports the read that the value of these lanes comes from. `use` says what the instruction does with the value.
  void report(Warp& warp, const Instruction& instruction, Mask lanes, std::uint32_t origin, std::string_view use);

 private:
  struct Origin {
    FindingKind kind = FindingKind::uninitialised_shared_read;
    std::uint32_t code = 0;            // index in Program::code
    std::vector<std::string> details;  // by lane
  };
  struct Marks {
    Mask lanes = 0;
    std::uint32_t origin = 0;
    Bytes bytes = 0;
  };

  /// The undefined bytes of the result in slots[written], in an instruction with undefined sources. All of them, unless
  /// the instruction moves bytes.
  Bytes bytes_of_result(Warp& warp, const Instruction& instruction, std::string_view opcode, std::size_t written) const;

  std::unordered_map<Slot, Marks> registers_;
  std::vector<Origin> origins_;
};

}  // namespace tilewright::emulator
