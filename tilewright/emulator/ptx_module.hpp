// A parsed PTX module: variables, functions, and instructions whose operands are resolved to indices.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/emulator/checks.hpp"
#include "tilewright/emulator/ptx_type.hpp"

namespace tilewright::emulator {

enum class Space : std::uint8_t { generic, global, constant, shared, local, param };

inline constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// One element of a variable's initialiser: a number, or the address of a variable.
struct Initialiser {
  std::uint64_t bits = 0;          // the number, in the element's type; or the offset from the variable's address
  std::uint32_t variable = kNone;  // index into Module::variables
  std::uint32_t function = kNone;  // or into Module::functions
  bool pending = false;            // the parser has not resolved the name yet
};

struct Variable {
  std::string_view name;
  Space space = Space::global;
  PtxType type = PtxType::b8;
  std::uint64_t size = 0;  // bytes
  std::uint64_t alignment = 1;
  bool pointer = false;   // .ptr: a parameter that the source declares as a pointer
  bool external = false;  // .extern; an external .shared variable of size 0 is the dynamic shared memory
  std::vector<Initialiser> initialisers;
  int line = 0;
};

struct Operand {
  enum class Kind : std::uint8_t {
    reg,       // index into Function::registers
    variable,  // index into Module::variables or, when local_scope, Function::variables; plus offset
    special,   // name: "%tid.x"
    label,     // index into Function::labels
    function,  // name; index into Module::functions, or kNone for one that is not in the module
    integer,   // bits
    real,      // bits of an f64
    real_f32,  // bits of an f32
    address,   // elements[0] is the base (reg, variable or integer), plus offset; further elements are coordinates
    vector,    // { elements }
    list,      // ( elements )
    pair,      // elements[0] | elements[1]
    sink,      // _
  };
  Kind kind = Kind::sink;
  bool negated = false;  // !p, or -%r of a video instruction
  bool local_scope = false;
  std::uint32_t index = kNone;
  std::uint32_t scope = 0;  // the parser's scope in which a label is looked up
  std::string_view name;
  std::string_view part;  // "b1" of %r.b1 in a video instruction
  std::int64_t offset = 0;
  std::uint64_t bits = 0;
  std::vector<Operand> elements;
};

/// An integer operand that is not in the PTX text: the default of an optional operand.
inline Operand integer_operand(std::uint64_t value) {
  Operand operand;
  operand.kind = Operand::Kind::integer;
  operand.bits = value;
  return operand;
}

/// A .loc directive.
struct Location {
  int file = 0;
  int line = 0;
  int column = 0;
  std::uint32_t inlined_at = kNone;  // index of the location that this one was inlined at
};

struct ParsedInstruction {
  std::string_view opcode;      // dotted, whole: "ld.global.nc.v4.f32"
  std::string_view text;        // the statement as written, without the semicolon
  std::uint32_t guard = kNone;  // index into Function::registers
  bool guard_negated = false;
  int line = 0;
  std::uint32_t location = kNone;
  std::vector<Operand> operands;
};

struct Register {
  PtxType type = PtxType::b32;
};

struct Label {
  std::string_view name;
  std::uint32_t instruction = kNone;   // index of the instruction that follows the label
  std::vector<std::uint32_t> targets;  // of a .branchtargets table: indices into Function::labels
};

struct Function {
  std::string_view name;
  bool entry = false;
  bool declared_only = false;
  bool address_taken = false;  // by an initialiser or a mov, so that a pointer may call it
  int line = 0;
  std::vector<Register> registers;
  std::vector<Variable> variables;        // parameters first, then the variables that the body declares
  std::vector<std::uint32_t> parameters;  // indices into variables
  std::vector<std::uint32_t> results;     // of a .func
  std::vector<Label> labels;
  std::vector<ParsedInstruction> instructions;
  std::uint32_t required_block[3] = {0, 0, 0};    // .reqntid, 0 when not given
  std::uint32_t maximum_block = 0;                // product of .maxntid, 0 when not given
  std::uint32_t required_cluster[3] = {0, 0, 0};  // .reqnctapercluster, 0 when not given
};

struct Module {
  std::string text;
  int version_major = 0, version_minor = 0;
  std::string target;     // "sm_90a"
  bool is_debug = false;  // nvcc -G: variables are in local memory
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<std::string> files;  // by number
  std::vector<Location> locations;
  std::deque<std::string> generated_names;  // of variables declared as a family: "p<3>" is p0, p1, p2

  const Function* find(std::string_view function) const;
  /// The location of an instruction, with the lines it was inlined at.
  CodeLocation locate(const ParsedInstruction& instruction) const;
};

}  // namespace tilewright::emulator
