// The registers of a warp that hold undefined values: those of bytes that no one has written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tilewright/emulator/checks.hpp"
#include "tilewright/emulator/program.hpp"

namespace tilewright::emulator {

class Warp;

/// The undefined bits of a register in all lanes, as ones, in the layout of the register file.
struct UndefinedBits {
  static constexpr std::size_t kMaxWidth = 16;  // bytes per lane
  alignas(kSlotAlignment) std::array<std::byte, kWarpSize * kMaxWidth> at{};
};

/// It is no fault to read bytes that no one has written as long as their value does not matter: kernels load what lies
/// beyond the end of a tile and discard the result, and the first store to a bit-field loads the word that it is in.
/// This class follows the values through registers and predicates, bit by bit, and reports a read when its value
/// decides a branch or a guarded access, is an address or an operand of an atomic operation, a barrier or a matrix
/// product, or is stored to global memory. Undefined bits that are stored to shared or local memory make it undefined.
/// So do the undefined bits of a value that has defined ones, too, in global memory: structures have padding and
/// bit-fields, and are copied in words.
class UndefinedValues {
 public:
  explicit UndefinedValues(const Program& program) : program_(program) {}

  /// Whether a register holds an undefined value.
  bool any() const { return !registers_.empty(); }
  void clear();

  /// The lanes of `undefined` get a value in a register all of whose bits are undefined; the other lanes of `lanes` get
  /// a defined one.
  void define(Slot slot, Mask lanes, Mask undefined, std::uint32_t origin);
  /// The lanes get a value with these undefined bits. `is_copy`: it is what memory contains, unchanged.
  void define(Slot slot, Mask lanes, const UndefinedBits& bits, std::uint32_t origin, bool is_copy = false);
  /// `addresses` has the addresses in global memory that the value comes from, by lane, or is empty.
  std::uint32_t new_origin(FindingKind kind, std::uint32_t code, std::vector<std::string> details,
                           std::vector<std::uint64_t> addresses = {});

  /// Called before each instruction, with the lanes that execute it and those whose guard decides that: moves the marks
  /// from sources to destinations, and reports values that matter.
  void step(Warp& warp, const Instruction& instruction, Mask lanes, Mask guarded);
  /// The lanes in which the register is undefined, at least in part, and the origin of the first.
  std::pair<Mask, std::uint32_t> undefined(Slot slot) const;
  /// The undefined bits of the register.
  const UndefinedBits& bits(Slot slot) const;
  /// Whether the undefined value of the register is what memory contains, unchanged.
  bool is_copy(Slot slot) const;
  /// Whether the lane has loaded an undefined value from this address in global memory.
  bool has_loaded(int lane, std::uint64_t address) const;
  /// Reports the read that the value of these lanes comes from. `use` says what the instruction does with the value.
  void report(Warp& warp, const Instruction& instruction, Mask lanes, std::uint32_t origin, std::string_view use);

 private:
  struct Origin {
    FindingKind kind = FindingKind::uninitialised_shared_read;
    std::uint32_t code = 0;                // index in Program::code
    std::vector<std::string> details;      // by lane
    std::vector<std::uint64_t> addresses;  // by lane, or empty
  };
  struct Marks {
    Mask lanes = 0;
    std::uint32_t origin = 0;
    bool is_copy = false;
    UndefinedBits bits;
  };
  /// The values of an instruction's sources that are undefined in part.
  struct Sources {
    Mask lanes = 0;  // that have such a value
    std::uint32_t origin = 0;
  };

  /// The lanes of `sources` for which a comparison or a combination of predicates depends on undefined bits.
  Mask undecided(Warp& warp, const Instruction& instruction, const Sources& sources) const;
  /// Whether the comparison of the lane's operands has one result for all values of their undefined bits.
  bool is_decided(Warp& warp, const Instruction& instruction, int lane) const;
  // Each defines the results of an instruction with undefined sources.
  void follow_moves(Warp& warp, const Instruction& instruction, Mask lanes, const Sources& sources,
                    std::size_t controls);
  void follow_logic(Warp& warp, const Instruction& instruction, Mask lanes, const Sources& sources,
                    std::uint8_t truth_table);
  void follow_carries(const Instruction& instruction, Mask lanes, const Sources& sources);
  void follow_halves(const Instruction& instruction, Mask lanes, const Sources& sources);
  void follow_selection(Warp& warp, const Instruction& instruction, Mask lanes, const Sources& sources);

  const Program& program_;
  std::unordered_map<Slot, Marks> registers_;
  std::vector<Origin> origins_;
};

}  // namespace tilewright::emulator
