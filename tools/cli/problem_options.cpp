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
  command.add_option("--a", options.a.file, "A, m x k or batch x m x k, a .npy file of f64, f32, f16, i8 or u8")
      ->type_name("FILE");
  command.add_option("--b", options.b.file, "B, k x n or batch x k x n; without a batch, one for all")
      ->type_name("FILE");
  command.add_option("--c", options.c.file, "C, m x n or batch x m x n, read where beta is not 0")->type_name("FILE");
  add_integer(command, "--m", options.m, kExtents, "rows of D, for random inputs in place of files");
  add_integer(command, "--n", options.n, kExtents, "columns of D");
  add_integer(command, "--k", options.k, kExtents, "length of the sums");
  add_integer(command, "--batch", options.batch, kExtents,
              "compute as many such products, one after another in memory");
  add_integer<std::uint64_t>(command, "--seed", options.seed, {.least = 0}, "seed of the random inputs");
  command.add_option("--fill", options.fill, "random inputs: 'integer' makes every sum exact, or 'normal'");
  add_operand(command, "a", options.a, "the file holds A transposed: A is column-major");
  add_operand(command, "b", options.b, "the file holds B transposed: B is column-major");
  add_operand(command, "c", options.c, "the file holds C transposed: C is column-major");
  add_operand(command, "d", options.d, "write D transposed: D is column-major");
  add_real(command, "--alpha", options.alpha,
           "D = epilogue(alpha * A * B + beta * C); nan, inf and -inf are taken too");
  add_real(command, "--beta", options.beta, "0 never reads C; nan, inf and -inf are taken too");
  command.add_option("--dtype", options.dtype,
                     "f64 f32 tf32 f16 bf16 e4m3 e5m2 s8 u8; default: the files'. bf16, tf32, e4m3 and e5m2 take files "
                     "of f32; a file of u8 given as e4m3 or e5m2 holds their codes");
  command.add_option("--b-dtype", options.b_dtype, "type of B where it is not A's: e4m3 mixes with e5m2, s8 with u8");
  command.add_option("--accumulator", options.accumulator,
                     "type of the sums; default f64 for f64, s32 for integers, else f32");
  command.add_option("--out-dtype", options.out_dtype,
                     "type of C and D; default: A's, s32 for integers, bf16 for e4m3 and e5m2. A D of bf16 is written "
                     "as f32, exactly; one of e4m3 or e5m2 as its codes, u8");
  command.add_option("--math", options.math,
                     "multiply_add, or for f32: multiply_add_tf32, multiply_add_fast_f16, _fast_bf16, _fast_f32; for "
                     "e4m3 and e5m2: multiply_add_fast_accumulate");
  command.add_option("--epilogue", options.epilogue,
                     "linear_combination, clamp, relu, leaky_relu, tanh, sigmoid, silu, hardswish, gelu, or a text as "
                     "\"D = gelu(acc + row(bias)); aux = acc\": docs/epilogues.md has its grammar");
  command.add_option("--source", options.sources, "a tensor that the epilogue reads, from a .npy file; else random")
      ->type_name("NAME=FILE");
  command.add_option("--output", options.outputs, "write what the epilogue stores beside D to a .npy file")
      ->type_name("NAME=FILE");
  command.add_option("--scalar", options.scalars, "the value of $NAME in the epilogue")->type_name("NAME=NUMBER");
  command
      .add_option("--tensor-dtype", options.tensor_dtypes,
                  "type of a tensor of the epilogue that no file holds; default: the epilogue's compute type")
      ->type_name("NAME=TYPE");
}

void add_device_option(CLI::App& command, KernelOptions& options) {
  command.add_option("--device", options.device, "auto, cuda:N, emulator:sm_80 or emulator:sm_90a");
}

void add_kernel_options(CLI::App& command, KernelOptions& options, bool with_target) {
  add_device_option(command, options);
  if (with_target)
    command.add_option("--target", options.target, "such as sm_80, sm_90a or sm_100f; default: the device's");
  command.add_option("--kernel", options.kernel,
                     "a kernel's name; a part of it takes the best-ranked kernel that has it");
  command.add_option("--tile", options.tile, "a design of your own: the CTA's m x n x k, such as 128x128x8");
  add_integer<int>(command, "--stages", options.stages, {}, "shared-memory buffers in flight");
  command.add_option("--warps", options.warps, "warps along m, n, k that multiply, such as 2x4x1");
  command.add_option("--cluster", options.cluster, "CTAs along m, n that share operands (sm_90a): 2x1x1");
  command.add_option("--schedule", options.schedule, "cooperative or ping_pong: how warpgroups share tiles (sm_90a)");
  command.add_flag("--swap", options.swaps_operands, "compute the transposed problem: few rows of A (sm_90a)");
  command.add_option("--instruction", options.instruction, "1x1x1 on CUDA cores, or a tensor-core shape: 16x8x16");
  command.add_option("--op-class", options.op_class, "simt or tensor_op; default: by the instruction");
  add_integer<int>(command, "--swizzle", options.swizzle, {}, "tile columns walked together: 1, 2, 4 or 8");
  command.add_flag("--swizzle-rows", options.swizzles_rows, "as many tile rows instead");
  add_integer<int>(command, "--split-k", options.split_k, {},
                   "CTAs that compute a tile together, each a slice of K (sm_90)");
  command.add_flag("--repack", options.repacks_operands,
                   "first copy operands that TMA or wgmma do not take as they lie (sm_90a)");
}

}  // namespace tilewright::cli
