// The options that describe a problem and how to solve it: the same for gemm, find, tune and emit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tilewright::cli {

/// One operand's options. A layout is chosen by transposition: the file of a transposed operand holds its transpose,
/// row by row, so that the operand itself is column-major and nothing is copied.
struct OperandOptions {
  std::string file;
  bool is_transposed = false;
  std::int64_t ld = 0;  // elements; 0: packed
};

struct ProblemOptions {
  OperandOptions a, b, c, d;
  std::optional<std::int64_t> m, n, k;  // of a random problem
  std::optional<std::int64_t> batch;    // of a random problem; none: plain matrices
  std::uint64_t seed = 0;
  std::string fill = "integer";
  double alpha = 1.0;
  double beta = 0.0;
  std::string dtype;        // empty: the files', or f32
  std::string b_dtype;      // empty: as dtype
  std::string accumulator;  // empty: the type's own, and so on
  std::string out_dtype;
  std::string math;
  std::string epilogue = "linear_combination";
  std::vector<std::string> sources, outputs;  // of the epilogue: "NAME=FILE"
  std::vector<std::string> scalars;           // "NAME=NUMBER"
  std::vector<std::string> tensor_dtypes;     // of its tensors without a file: "NAME=TYPE"
};

/// Which kernel: the best one, one by name, or a design of the caller's own.
struct KernelOptions {
  std::string device = "auto";
  std::string target;  // empty: the device's
  std::string kernel;
  std::string tile, warps, cluster, instruction;  // "128x128x8", "2x4x1", "2x1x1", "16x8x16"
  std::string op_class;                           // "simt" or "tensor_op"
  std::string schedule;                           // "cooperative" or "ping_pong"
  bool swaps_operands = false;
  bool repacks_operands = false;
  int stages = 0;  // 0: not given, and so are the next two
  int swizzle = 0;
  bool swizzles_rows = false;
  int split_k = 0;

  bool has_design() const { return !tile.empty(); }
};

void add_problem_options(CLI::App& command, ProblemOptions& options);

void add_device_option(CLI::App& command, KernelOptions& options);

/// The device among them. `with_target`: for commands that need not run what they compile.
void add_kernel_options(CLI::App& command, KernelOptions& options, bool with_target);

}  // namespace tilewright::cli
