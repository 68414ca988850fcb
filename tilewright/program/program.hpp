// A kernel as data: parameters, shared memory, and a tree of loops, branches and PTX instructions. KernelBuilder makes
// programs; lower/cuda prints them as CUDA C++, lower/mlir as MLIR.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tilewright/arch/tma_copy.hpp"
#include "tilewright/base/target.hpp"
#include "tilewright/layout/number.hpp"
#include "tilewright/program/value.hpp"

namespace tilewright::program {

using layout::Number;

/// An operand of an instruction. Operand i replaces "$i" in the instruction's text; several registers are printed in
/// braces.
struct Operand {
  enum class Kind : std::uint8_t {
    output,     // the instruction defines `value`
    input,      // it reads `inputs`
    update,     // it reads `inputs`, one whole definition, and leaves the result in the same registers, as `value`
    number,     // it reads a register of `type` with `number`
    immediate,  // `number`, which is static, is part of the text
    address,    // it reads the generic address of the parameter with index `parameter`, in a 64-bit register
  };

  Kind kind = Kind::input;
  RegisterType type = RegisterType::b32;
  Value value = {};
  std::vector<Value> inputs = {};
  Number number = {};
  int parameter = -1;
};

/// How an instruction may be moved and merged.
enum class Effect : std::uint8_t {
  pure,    // the outputs depend on the inputs alone
  memory,  // it accesses memory, or orders accesses: stays in place relative to others of this kind
  state,   // it changes or reads other state, such as wgmma and setmaxnreg: the same, but no memory is involved
};

/// One PTX instruction, or several in braces.
struct Instruction {
  std::string text;
  std::vector<Operand> operands;
  Effect effect = Effect::memory;
};

/// A variable of the algebra that an instruction defines: the registers of `value`, one b32, are the Number `variable`.
struct Binding {
  Number variable;
  Value value;
};

/// A text for the reader of the listing.
struct Remark {
  std::string text;
};

struct Statement;
using Block = std::vector<Statement>;

/// A Number or a value that a loop changes. `inside` is its name in the body, which is `before` in the first iteration
/// and the `after` of the previous iteration in the others. `outside` is its name after the loop. If the loop does not
/// change it, `after` is `inside` and `outside` is `before`.
template <class T>
struct Carried {
  T before, inside, after, outside;
  bool changes() const { return !(after == inside); }
};

/// A Number or a value that an arm of a branch changes: at the end of either arm, and its name after the branch.
template <class T>
struct Chosen {
  T body, otherwise, outside;
};

/// for (counter = first; counter < end; counter += step), all unsigned. With `condition`, which has the names `inside`
/// of numbers: while (condition), without a counter.
struct Loop {
  Number counter, first, end, step;
  std::optional<Number> condition = std::nullopt;
  std::vector<Carried<Number>> numbers;
  std::vector<Carried<Value>> values;
  Block body;
};

/// Runs `body` if the condition is not 0, else `otherwise`.
struct Branch {
  Number condition;
  std::vector<Chosen<Number>> numbers;
  std::vector<Chosen<Value>> values;
  Block body;
  Block otherwise;
};

struct Statement {
  std::variant<Instruction, Binding, Remark, Loop, Branch> node;
  int line = 0;  // of listing(program), from 1 on
};

/// A field of the struct that the kernel takes by value.
struct Parameter {
  enum class Kind : std::uint8_t {
    integer,     // 32 bits; `variable` is its Number
    address,     // 64 bits: of global memory; `value` is its register
    scalar,      // f32; `value` is its register
    tensor_map,  // 128 bytes, encoded by the device
    workspace,   // 64 bits: the address of device memory that the launch has for itself; `value` is its register
  };
  std::string name;
  Kind kind = Kind::integer;
  std::size_t offset = 0;      // in bytes from the beginning of the struct
  std::int64_t alignment = 1;  // of an address, in bytes; launch() checks it
  /// The type of a tile's elements, of an address or a tensor map that a copy reads.
  std::optional<DType> element = std::nullopt;
  /// The tensor that a copy of tiles reads there, in elements, by mode; empty: the kernel has declared none.
  std::vector<Number> extents = {}, strides = {};
  Number variable = {};
  Value value = {};
  /// The value of an integer that launch() computes from the others; other values are arguments of the launch.
  std::optional<Number> computed = std::nullopt;
};

/// The tensor map that a parameter of that kind has in a launch. Extents and strides may depend on launch variables.
struct TensorMapSource {
  int parameter = -1;           // whose name is that of the argument with the address of the tensor
  TensorMap map;                // with the box, the swizzle and the types; extents and strides are those below
  std::vector<Number> extents;  // in elements, mode 0 is contiguous
  std::vector<Number> strides;  // in bytes
};

/// A condition on launch variables, which a launch checks.
struct LaunchCondition {
  Number holds;        // not 0
  std::string reason;  // "k must be a multiple of 8"
  Number number;       // the one that fails
};

/// Special registers and other variables that every program may use; unused ones have no name.
struct SpecialVariables {
  Number thread;                 // threadIdx.x
  std::array<Number, 3> block;   // blockIdx
  std::array<Number, 3> blocks;  // gridDim
  Number cluster_rank;           // %cluster_ctarank
  Number shared;                 // the shared address of the dynamic shared memory, a multiple of 1024
};

struct Program {
  std::string symbol;
  bool waits_for_last_kernel = false;  // see KernelBuilder::wait_for_last_kernel()
  Target target;
  int threads = 0;                      // of a CTA
  std::array<int, 3> cluster{1, 1, 1};  // in CTAs
  int min_ctas = 1;                     // per SM: bounds the registers of a thread
  std::vector<Parameter> parameters;
  std::size_t parameter_bytes = 0;
  std::vector<TensorMapSource> tensor_maps;
  std::vector<LaunchCondition> conditions;
  Number workspace_bytes = 0;           // of a launch, of launch variables
  std::array<Number, 3> grid{1, 1, 1};  // in CTAs, of launch variables
  std::int64_t shared_bytes = 0;        // dynamic shared memory
  SpecialVariables variables;
  std::vector<std::int32_t> counts;  // of the registers of each definition
  std::vector<RegisterType> types;   // of each definition
  Block body;
  std::shared_ptr<layout::NumberScope> scope;  // owns the Numbers

  /// Whether it has been built.
  explicit operator bool() const { return threads != 0; }
};

/// The listing: the kernel's head, then one line for each statement.
std::string listing(const Program& program);
/// The listing with the number before each line, by which messages name it: "reverse.tw:9".
std::string to_string(const Program& program);

/// Sets Statement::line of all statements.
void number_lines(Program& program);

}  // namespace tilewright::program
