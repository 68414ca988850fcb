#include "tools/cli/problem_options.hpp"

#include <CLI/CLI.hpp>

#include "tools/cli/number.hpp"

namespace tilewright::cli {
namespace {

constexpr IntegerRange<std::int64_t> kExtents{0, std::numeric_limits<std::int32_t>::max()};

void add_operand(CLI::App& command, const std::string& letter, OperandOptions& operand, const char* transposed) {
  command.add_flag("--transpose-" + letter, operand.is_transposed, transposed);
  add_integer<std::int64_t>(command, "--ld" + letter, operand.ld, {},
                            "leading dimension in elements (default: packed)");
}

}  // namespace

void add_problem_options(CLI::App& command, ProblemOptions& options) {
  command
      .add_option("--a", options.a.file,
                  "A, a .npy file of shape (m, k) or (batch, m, k) and type f64, f32, f16, i8 or u8")
      ->type_name("FILE");
  command
      .add_option("--b", options.b.file,
                  "B, a .npy file of shape (k, n) or (batch, k, n); without a batch it is broadcast")
      ->type_name("FILE");
  command
      .add_option("--c", options.c.file, "C, a .npy file of shape (m, n) or (batch, m, n); read only if beta is not 0")
      ->type_name("FILE");
  add_integer(command, "--m", options.m, kExtents, "rows of D; --m --n --k take random inputs in place of files");
  add_integer(command, "--n", options.n, kExtents, "columns of D");
  add_integer(command, "--k", options.k, kExtents, "extent that is summed: columns of A, rows of B");
  add_integer(command, "--batch", options.batch, kExtents,
              "number of matrices of a batched GEMM, one after another in memory");
  add_integer<std::uint64_t>(command, "--seed", options.seed, {.least = 0}, "seed of the random inputs");
  command.add_option("--fill", options.fill,
                     "random inputs: integer (every sum is exact) or normal (normally distributed)");
  add_operand(command, "a", options.a, "the file holds A transposed: A is column-major");
  add_operand(command, "b", options.b, "the file holds B transposed: B is column-major");
  add_operand(command, "c", options.c, "the file holds C transposed: C is column-major");
  add_operand(command, "d", options.d, "write D transposed: D is column-major");
  add_real(command, "--alpha", options.alpha, "factor of A * B; nan, inf and -inf are accepted");
  add_real(command, "--beta", options.beta,
           "factor of C, which is not read if beta is 0; nan, inf and -inf are accepted");
  command.add_option("--dtype", options.dtype,
                     "type of A and B: f64 f32 tf32 f16 bf16 e4m3 e5m2 s8 u8; default: the type of the files. Files of "
                     "f32 are rounded to bf16, tf32, e4m3 or e5m2; files of u8 are the bit patterns of e4m3 or e5m2");
  command.add_option("--b-dtype", options.b_dtype,
                     "type of B if it differs from A's: e4m3 mixes with e5m2, s8 with u8");
  command.add_option("--accumulator", options.accumulator,
                     "type of the accumulators; default: f64 for f64, s32 for integers, f32 for other types");
  command.add_option(
      "--out-dtype", options.out_dtype,
      "type of C and D; default: s32 for integers, bf16 for e4m3 and e5m2, else the type of A. A D of bf16 "
      "is written as f32, without loss; a D of e4m3 or e5m2 is written as bit patterns in u8");
  command.add_option("--math", options.math,
                     "math operation: multiply_add; for f32 also multiply_add_tf32, multiply_add_fast_f16, "
                     "multiply_add_fast_bf16 and multiply_add_fast_f32; for e4m3 and e5m2 also "
                     "multiply_add_fast_accumulate");
  command.add_option(
      "--epilogue", options.epilogue,
      "linear_combination, clamp, relu, leaky_relu, tanh, sigmoid, silu, hardswish, gelu, or a text such as "
      "\"D = gelu(acc + row(bias)); aux = acc\"; docs/epilogues.md has its grammar");
  command
      .add_option("--source", options.sources,
                  "read the epilogue's tensor NAME from this .npy file; without it the tensor is random")
      ->type_name("NAME=FILE");
  command.add_option("--output", options.outputs, "write the epilogue's output NAME to this .npy file")
      ->type_name("NAME=FILE");
  command.add_option("--scalar", options.scalars, "the value of $NAME in the epilogue")->type_name("NAME=NUMBER");
  command
      .add_option("--tensor-dtype", options.tensor_dtypes,
                  "type of the epilogue's tensor NAME if it is not read from a file; default: the epilogue's compute "
                  "type")
      ->type_name("NAME=TYPE");
}

void add_device_option(CLI::App& command, KernelOptions& options) {
  command.add_option("--device", options.device, "auto, cuda:N, emulator:sm_80 or emulator:sm_90a");
}

void add_kernel_options(CLI::App& command, KernelOptions& options, bool with_target) {
  add_device_option(command, options);
  if (with_target)
    command.add_option("--target", options.target,
                       "architecture to compile for, such as sm_80, sm_90a or sm_100f; default: the device's");
  command.add_option("--kernel", options.kernel,
                     "name of the kernel, or a part of it; the best-ranked kernel that matches is taken");
  command.add_option("--tile", options.tile, "CTA tile MxNxK of an explicit design, such as 128x128x8");
  add_integer<int>(command, "--stages", options.stages, {}, "number of stages of the shared-memory pipeline");
  command.add_option("--warps", options.warps, "warps of a CTA that multiply, along m, n and k, such as 2x4x1");
  command.add_option("--cluster", options.cluster, "CTAs of a cluster along m, n and k, such as 2x1x1 (sm_90a)");
  command.add_option("--schedule", options.schedule,
                     "cooperative or ping_pong: whether the consumer warpgroups share a tile or alternate (sm_90a)");
  command.add_flag("--swap", options.swaps_operands, "compute the transposed problem, for an A of few rows (sm_90a)");
  command.add_option("--instruction", options.instruction,
                     "shape of the math instruction: 1x1x1 on CUDA cores, or a tensor-core shape such as 16x8x16");
  command.add_option("--op-class", options.op_class,
                     "simt or tensor_op; default: simt if the instruction is 1x1x1, else tensor_op");
  add_integer<int>(command, "--swizzle", options.swizzle, {},
                   "width of the raster order: tile columns of a band, 1, 2, 4 or 8");
  command.add_flag("--swizzle-rows", options.swizzles_rows,
                   "the raster order has bands of tile rows instead of columns");
  add_integer<int>(command, "--split-k", options.split_k, {},
                   "split-K: number of CTAs that share a tile, each with a part of K (sm_90a)");
  command.add_flag("--repack", options.repacks_operands,
                   "first copy operands whose layout TMA or wgmma cannot read (sm_90a)");
}

}  // namespace tilewright::cli
