// Records a kernel as a program: declares parameters and shared memory, and appends instructions, loops and branches in
// the order in which the author calls.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "tilewright/base/dtype.hpp"
#include "tilewright/program/program.hpp"
#include "tilewright/program/shared_bounds.hpp"

namespace tilewright::program {

class KernelBuilder;

/// A number or value that the kernel changes while it runs, such as a pipeline's stage or an accumulator. Loops and
/// branches carry the cells that they change. Copies refer to the same cell. A cell lives until the loop, branch or arm
/// ends in which it was made.
class NumberCell {
 public:
  /// The present number. This and the functions below throw InvalidArgument for a cell that no longer lives.
  Number get() const;
  /// Replaces it. @throws InvalidArgument for a number that may be outside the cell's range
  void set(const Number& number) const;
  /// The same for a number that the caller knows to be in the range, although its bounds do not say so.
  void set_within(const Number& number) const;

 private:
  friend class KernelBuilder;
  NumberCell(KernelBuilder& kernel, std::size_t index, std::int64_t serial)
      : kernel_(&kernel), index_(index), serial_(serial) {}
  KernelBuilder* kernel_;
  std::size_t index_;
  std::int64_t serial_;
};
class ValueCell {
 public:
  Value get() const;
  /// @throws InvalidArgument for a value of another type, or of another number of registers
  void set(const Value& value) const;

 private:
  friend class KernelBuilder;
  ValueCell(KernelBuilder& kernel, std::size_t index, std::int64_t serial)
      : kernel_(&kernel), index_(index), serial_(serial) {}
  KernelBuilder* kernel_;
  std::size_t index_;
  std::int64_t serial_;
};

using ValueCells = std::vector<ValueCell>;

/// Memory of a CTA, a part of its dynamic shared memory.
struct SharedMemory {
  Number address;  // a shared address
  std::int64_t bytes = 0;
};

/// The workspace of a launch.
struct WorkspaceMemory {
  /// How many flags there are, see raise_flag().
  static constexpr std::int64_t kFlags = 63480;

  Value address;           // a b64
  std::int64_t flags = 0;  // the offset of words of 32 bits that are 0 when the kernel starts, and must be when it ends
  std::int64_t data = 0;   // the offset of the data, such that their address is a multiple of 256
};

/// Functions that take names throw InvalidArgument for names that are no identifiers or are used twice. Functions that
/// take Numbers or Values throw InvalidArgument for those that are not defined where they are used: defined in a loop
/// or branch that has ended, or by another builder.
class KernelBuilder {
 public:
  /// @throws InvalidArgument unless 1 <= threads <= 1024 and the cluster has 1 to 16 CTAs
  KernelBuilder(std::string symbol, const Target& target, int threads, std::array<int, 3> cluster = {1, 1, 1});
  KernelBuilder(const KernelBuilder&) = delete;
  KernelBuilder& operator=(const KernelBuilder&) = delete;

  const Target& target() const { return program_.target; }
  int threads() const { return program_.threads; }
  const std::array<int, 3>& cluster() const { return program_.cluster; }
  /// Owns the Numbers of this kernel.
  const std::shared_ptr<layout::NumberScope>& scope() const { return program_.scope; }
  /// The least number of CTAs that one SM shall hold; bounds the registers of a thread. Default: 1.
  void set_min_ctas(int ctas) { program_.min_ctas = ctas; }
  int min_ctas() const { return program_.min_ctas; }
  /// The number of groups of wgmma that have been recorded, which wgmma_commit() counts.
  std::int64_t wgmma_groups() const { return wgmma_groups_; }
  void count_wgmma_group() { ++wgmma_groups_; }

  /// Appends griddepcontrol.wait: all threads wait until the kernels that this launch depends on have ended. It must
  /// come before all accesses of global memory, and lets the kernel start while the last one of its stream ends.
  void wait_for_last_kernel();

  // Parameters, which are fields of the struct that the kernel takes by value, in the order of these calls.

  /// An integer that each launch gives: an extent, a stride. It must be a multiple of `divisor` and within the bounds,
  /// which launch() checks.
  Number launch(std::string_view name, std::int64_t divisor = 1, std::int64_t lower = 0,
                std::int64_t upper = std::numeric_limits<std::int32_t>::max());
  /// An integer that launch() computes from launch variables, so that the kernel need not: it is a parameter, too.
  /// launch() refuses values above 2^31 - 1. The result is `expression` itself if that is static.
  Number computed(std::string_view name, const Number& expression);
  /// The address of an array in global memory, a b64. Each launch gives it; `alignment` in bytes is checked. `element`
  /// is the type of its elements, for callers of the program.
  Value address(std::string_view name, std::int64_t alignment = 1, std::optional<DType> element = std::nullopt);
  /// Global memory that each launch has for itself, with `bytes` bytes of data, of launch variables. The data may still
  /// be that of an earlier launch. @throws InvalidArgument if the kernel has a workspace, or if `bytes` depends on
  /// values of the kernel
  WorkspaceMemory workspace(const Number& bytes);
  /// A number that each launch gives, an f32.
  Value scalar(std::string_view name);
  /// A tensor map, for the array whose address is the launch's argument `name`. The result is the parameter's index.
  int tensor_map(std::string_view name, const TensorMap& map, std::vector<Number> extents, std::vector<Number> strides,
                 std::optional<DType> element = std::nullopt);

  /// Declares what the array of an address or a tensor map is, for check_array(): its extents and strides by mode, in
  /// elements, of launch variables. @throws InvalidArgument if there is no such parameter
  void declare_tensor(std::string_view name, std::vector<Number> extents, std::vector<Number> strides);
  /// The parameter with an index. @throws InvalidArgument if there is none
  const Parameter& parameter(int index) const;

  /// A condition on launch variables that launch() checks, with `number` in the message.
  void require(const Number& holds, std::string reason, const Number& number);
  /// The grid in CTAs, of launch variables. Default: 1. block() and blocks() that are used afterwards are known to be
  /// within its bounds, so that it should come first. @throws InvalidArgument if it depends on values of the kernel,
  /// and if it has been set
  void set_grid(const Number& x, const Number& y = 1, const Number& z = 1);

  // Special registers.

  /// threadIdx.x: 0 to threads() - 1.
  const Number& thread() const { return program_.variables.thread; }
  /// blockIdx and gridDim of a mode, 0 to 2. @throws InvalidArgument for other modes
  Number block(int mode = 0);
  Number blocks(int mode = 0);
  /// The rank of this CTA in its cluster.
  const Number& cluster_rank() const { return program_.variables.cluster_rank; }

  /// Reserves shared memory. `alignment` is a power of two of at most 1024 bytes. @throws InvalidArgument if the CTA
  /// would have more shared memory than the target allows
  SharedMemory shared(std::int64_t bytes, std::int64_t alignment = 16);
  /// @throws InvalidArgument for an access of `bytes` bytes at a shared address, by the thread that records it, that is
  /// certain to be outside of what shared() has reserved, to cross from the memory of one call to that of another, or
  /// to be at no multiple of `alignment`
  void check_shared(const Number& address, std::int64_t bytes, std::int64_t alignment = 1) const;

  // Structure.

  /// Appends a loop with a counter from `first` to before `end`; `body` appends its statements. The counter has 32
  /// bits: an `end` of launch variables that may be above 2^31 - 1 becomes a condition of the launch. @throws
  /// InvalidArgument for another `end` that may be, and for a `first` or `step` that may be negative
  void loop(const Number& first, const Number& end, const Number& step, const std::function<void(const Number&)>& body);
  void loop(const Number& end, const std::function<void(const Number&)>& body) { loop(0, end, 1, body); }
  /// Appends a loop that runs while `condition` is not 0, which each iteration evaluates anew from the cells that it
  /// gets. It appends no instructions: what these compute is kept in a cell that the body sets.
  /// @throws InvalidArgument for a condition that does, and if the body sets no cell that the condition gets, as such a
  /// loop would not end
  void loop_while(const std::function<Number()>& condition, const std::function<void()>& body);
  /// Appends statements that run if `condition` is not 0. A static condition leaves out the arm that does not run.
  void branch(const Number& condition, const std::function<void()>& body, const std::function<void()>& otherwise = {});
  /// The same in pieces, for callers without closures. Each begin needs its end.
  Number begin_loop(const Number& first, const Number& end, const Number& step);
  /// The same for loop_while(); end_loop() ends it.
  void begin_while(const std::function<Number()>& condition);
  void end_loop();
  void begin_branch(const Number& condition);
  void begin_otherwise();
  void end_branch();
  /// Opens the branch that has just ended again, at the beginning of its other arm, for callers that learn only then
  /// that there is one. end_branch() ends it again.
  /// @throws InvalidArgument if the branch has two arms, or if anything was recorded since its end
  void reopen_otherwise();

  /// A cell for numbers from 0 to count - 1. @throws InvalidArgument for a count above 2^31
  NumberCell cell(const Number& initial, std::int64_t count);
  ValueCell cell(const Value& initial);
  /// Registers whose contents do not matter, for accumulators that the first instruction overwrites.
  Value undefined(RegisterType type, int count);

  // Instructions.

  /// Appends an instruction, with the values of its operands of the kinds `output` and `update` filled in. In the
  /// operands that are given, `value` has the type and the number of the registers to define.
  /// @throws InvalidArgument for an operand that the text does not name, for a name without operand, for a text that
  /// does not end with ; or }, and for the update of a value that was defined before the innermost loop: only cells
  /// have another value in the next iteration
  std::vector<Value> instruction(std::string text, std::vector<Operand> operands, Effect effect = Effect::memory);
  /// A Number that instructions computed: `value` is one b32. The caller promises that it is from 0 to count - 1 and a
  /// multiple of `divisor`.
  Number number(const Value& value, const Number& count = layout::NumberScope::kMaxIndex, std::int64_t divisor = 1);
  /// Appends a text to the listing.
  void remark(std::string text);

  /// Ends recording: what appends statements throws InvalidArgument from here on. @throws InvalidArgument if a loop or
  /// branch is open
  Program build();

 private:
  friend class NumberCell;
  friend class ValueCell;

  struct NumberState {
    Number number;
    std::int64_t count = 0;  // its numbers are below
  };
  /// The statements of an arm of a branch, and the cells at its end.
  struct Arm {
    Block block;
    std::vector<Number> numbers;
    std::vector<Value> values;
    std::vector<bool> updates;  // whether an instruction has replaced the value that a cell had before
  };
  /// A loop or an arm that is being recorded, and the cells at its beginning.
  struct Open {
    enum class Kind : std::uint8_t { kernel, loop, body, otherwise } kind = Kind::kernel;
    Block block;
    std::vector<Number> numbers_before, numbers_inside;
    std::vector<Value> values_before, values_inside;
    std::int32_t first_value = 0;    // definitions from here on end with it
    std::size_t first_variable = 0;  // the same for variables_
    Loop loop;
    Branch branch;
    Arm body, otherwise;
  };

  /// The state at the end of a branch with one arm, for reopen_otherwise().
  struct Ended {
    std::size_t depth = 0, statements = 0;  // of the block that has the branch
    std::size_t first_outside = 0;          // definitions before those of the branch's results
    std::size_t definitions = 0, variables = 0;
    std::vector<bool> visible_before;  // at the beginning of the other arm
    std::vector<Number> numbers_before, numbers_after, numbers_body;
    std::vector<Value> values_before, values_after, values_body;
    std::vector<bool> updates_body;
  };

  std::string take_name(std::string_view name);
  Parameter& add_parameter(std::string_view name, Parameter::Kind kind, std::size_t bytes, std::size_t alignment);
  Value define(RegisterType type, int count);
  Number variable(std::string_view name, const Number& count, std::int64_t divisor = 1, std::int64_t lower = 0);
  const Number& grid_of(int mode) const;
  void append(Statement statement);
  Number special(std::array<Number, 3>& variables, std::string_view name, int mode, const Number& count);
  Number loop_end(const Number& end);
  std::size_t live(const NumberCell& cell) const;
  std::size_t live(const ValueCell& cell) const;
  void check_visible(const Value& value) const;
  void check_visible(const Number& number) const;
  void begin(Open::Kind kind);
  void begin_cells_of_loop();
  void end_arm(Open& open);
  void check_cells_are_set(const Open& open) const;
  void hide_definitions_of(const Open& open);

  Program program_;
  std::vector<SharedRegion> shared_regions_;  // in the order of their addresses
  std::vector<Open> open_;
  std::vector<NumberState> number_cells_;
  std::vector<Value> value_cells_;
  std::vector<std::int64_t> number_serials_, value_serials_;  // of the cells; no two cells of a kernel have the same
  std::int64_t next_serial_ = 0;
  std::uint32_t kernel_ = 0;  // Value::kernel of its definitions
  std::int64_t wgmma_groups_ = 0;
  bool has_grid_ = false;
  bool is_built_ = false;
  std::vector<bool> visible_;  // of each definition
  std::vector<const layout::NumberNode*> variables_;
  std::unordered_set<const layout::NumberNode*> visible_variables_;
  Ended ended_;
};

}  // namespace tilewright::program
