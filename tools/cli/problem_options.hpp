// The options that describe a GEMM and its kernel, which the commands gemm, run, find, tune and emit share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tilewright::cli {

/// One operand's options. The file of a transposed operand holds the transpose in row-major order, so that the operand
/// is column-major and nothing is copied.
struct OperandOptions {
  std::string file;
  bool is_transposed = false;
  std::int64_t ld = 0;  // elements; 0: packed
};

struct ProblemOptions {
  OperandOptions a, b, c, d;
  std::optional<std::int64_t> m, n, k;  // extents of random inputs
  std::optional<std::int64_t> batch;    // of random inputs; nullopt: single matrices
  std::uint64_t seed = 0;
  std::string distribution = "integer";  // of random inputs: "integer" or "normal"
  double alpha = 1.0;
  double beta = 0.0;
  bool has_beta = false;    // --beta is given
  std::string dtype;        // empty: the type of the files, or f32
  std::string b_dtype;      // empty: the same as dtype
  std::string accumulator;  // empty, here and in the next two: the default for dtype
  std::string out_dtype;
  std::string math;
  std::string epilogue = "linear_combination";
  std::vector<std::string> epilogue_inputs, epilogue_outputs;  // "NAME=FILE"
  std::vector<std::string> epilogue_scalars;                   // "NAME=NUMBER"
  std::vector<std::string> epilogue_dtypes;                    // of tensors without a file: "NAME=TYPE"
};

/// The kernel to use: the best-ranked one, one by its name, or an explicit design.
struct KernelOptions {
  std::string device = "auto";
  std::string target;  // empty: the device's
  std::string kernel;
  std::string tile, warps, cluster, instruction;  // "128x128x8", "2x4x1", "2x1x1", "16x8x16"
  std::string op_class;                           // "simt" or "tensor_op"
  std::string schedule;                           // "cooperative" or "ping_pong"
  bool swaps_operands = false;
  bool repacks_operands = false;
  std::string mix;  // of a program; see plan::AtomMix
  int stages = 0;   // 0, here and in raster_width and split_k: not given
  int raster_width = 0;
  std::string raster_along;  // "m" or "n"; empty: not given
  int split_k = 0;
  bool splits_in_turn = false;
  bool deterministic = false, batch_invariant = false;  // required of the kernel

  bool has_design() const { return !tile.empty(); }
};

void add_problem_options(CLI::App& command, ProblemOptions& options);

void add_device_option(CLI::App& command, KernelOptions& options);

/// Adds --deterministic and --batch-invariant.
void add_promise_options(CLI::App& command, KernelOptions& options);

/// Adds --device and the options that choose a kernel. `with_target` adds --target, for commands that do not run the
/// kernel.
void add_kernel_options(CLI::App& command, KernelOptions& options, bool with_target);

}  // namespace tilewright::cli
