#include "tools/cli/problem_options.hpp"

#include <CLI/CLI.hpp>

#include "tilewright/emulator/instruction_targets.hpp"
#include "tools/cli/number.hpp"

namespace tilewright::cli {
namespace {

constexpr IntegerRange<std::int64_t> kExtents{0, std::numeric_limits<std::int32_t>::max()};

constexpr const char* kOperands = "Operands";
constexpr const char* kTypes = "Types and math";
constexpr const char* kEpilogue = "Epilogue";
constexpr const char* kKernel = "Choice of the kernel";
constexpr const char* kDesign = "Explicit design, instead of a choice by rank or name";

void add_operand(CLI::App& command, const std::string& letter, OperandOptions& operand, const char* transposed) {
  command.add_flag("--transpose-" + letter, operand.is_transposed, transposed)->group(kOperands);
  add_integer<std::int64_t>(command, "--ld" + letter, operand.ld, {}, "leading dimension in elements (default: packed)")
      ->group(kOperands);
}

void add_operands(CLI::App& command, ProblemOptions& options) {
  const auto add_file = [&](const char* name, std::string& file, const char* help) {
    command.add_option(name, file, help)->type_name("FILE")->group(kOperands);
  };
  add_file("--a", options.a.file, "A, a .npy file of shape (m, k) or (batch, m, k) and type f64, f32, f16, i8 or u8");
  add_file("--b", options.b.file, "B, a .npy file of shape (k, n) or (batch, k, n); without a batch it is broadcast");
  add_file("--c", options.c.file,
           "C, a .npy file of shape (m, n) or (batch, m, n), for a --beta or an epilogue with C");
  const auto add_extent = [&](const char* name, std::optional<std::int64_t>& extent, const char* help) {
    add_integer(command, name, extent, kExtents, help)->group(kOperands);
  };
  add_extent("--m", options.m, "rows of A and D; --m, --n and --k make random inputs instead of reading files");
  add_extent("--n", options.n, "columns of B; also of D, unless the epilogue is gated");
  add_extent("--k", options.k, "columns of A and rows of B, over which products are summed");
  add_extent("--batch", options.batch, "number of matrices of a batched GEMM with random inputs, packed");
  command
      .add_option("--distribution", options.distribution,
                  "of random inputs: integer (default; small integers, so that every sum is exact) or normal")
      ->type_name("NAME")
      ->group(kOperands);
  add_integer<std::uint64_t>(command, "--seed", options.seed, {.least = 0}, "seed of the random inputs (default 0)")
      ->group(kOperands);
  add_operand(command, "a", options.a, "the file holds A transposed: A is column-major");
  add_operand(command, "b", options.b, "the file holds B transposed: B is column-major");
  add_operand(command, "c", options.c, "the file holds C transposed: C is column-major");
  add_operand(command, "d", options.d, "write D transposed: D is column-major");
}

void add_types(CLI::App& command, ProblemOptions& options) {
  const auto add = [&](const char* name, std::string& value, const char* type_name, const char* help) {
    command.add_option(name, value, help)->type_name(type_name)->group(kTypes);
  };
  add("--dtype", options.dtype, "TYPE",
      "type of A and B: f64 f32 tf32 f16 bf16 e4m3 e5m2 s8 u8; default: the type of the files, or f32 for random "
      "inputs. Files of f32 are rounded to bf16, tf32, e4m3 or e5m2; files of u8 are the bit patterns of e4m3 or e5m2");
  add("--b-dtype", options.b_dtype, "TYPE", "type of B if it differs from A's: e4m3 mixes with e5m2, s8 with u8");
  add("--accumulator", options.accumulator, "TYPE",
      "type of the accumulators; default: f64 for f64, s32 for integers, f32 for other types");
  add("--out-dtype", options.out_dtype, "TYPE",
      "type of C and D; default: s32 for integers, bf16 for e4m3 and e5m2, else the type of A. A D of bf16 is written "
      "as f32, without loss; a D of e4m3 or e5m2 is written as bit patterns in u8");
  add("--math", options.math, "NAME",
      "math operation: multiply_add; for f32 also multiply_add_tf32, multiply_add_fast_f16, multiply_add_fast_bf16 and "
      "multiply_add_fast_f32 (3xTF32); for e4m3 and e5m2 also multiply_add_fast_accumulate");
}

void add_epilogue(CLI::App& command, ProblemOptions& options) {
  add_real(command, "--alpha", options.alpha, "factor of A * B (default 1); nan, inf and -inf are accepted")
      ->group(kEpilogue);
  add_real(command, "--beta", options.beta,
           "factor of C (default 0, where C is not read); nan, inf and -inf are accepted")
      ->each([&options](const std::string&) { options.has_beta = true; })
      ->group(kEpilogue);
  command
      .add_option(
          "--epilogue", options.epilogue,
          "linear_combination (default), which is alpha * A * B + beta * C; clamp, relu, leaky_relu, tanh, "
          "sigmoid, silu, hardswish or gelu of it; or a text such as \"D = gelu(acc + row(bias)); aux = acc\", whose "
          "grammar is in docs/epilogues.md")
      ->type_name("TEXT")
      ->group(kEpilogue);
  const auto add = [&](const char* name, std::vector<std::string>& values, const char* type_name, const char* help) {
    command.add_option(name, values, help)->type_name(type_name)->group(kEpilogue);
  };
  add("--epilogue-input", options.epilogue_inputs, "NAME=FILE",
      "read the tensor NAME of the epilogue from this .npy file; without it the tensor is random");
  add("--epilogue-output", options.epilogue_outputs, "NAME=FILE",
      "write the output NAME of the epilogue, such as aux, to this .npy file");
  add("--epilogue-scalar", options.epilogue_scalars, "NAME=NUMBER",
      "the value of $NAME in the epilogue; every $NAME needs one");
  add("--epilogue-dtype", options.epilogue_dtypes, "NAME=TYPE",
      "type of the tensor NAME of the epilogue if it is not read from a file; default: the epilogue's compute type");
}

}  // namespace

void add_problem_options(CLI::App& command, ProblemOptions& options) {
  add_operands(command, options);
  add_types(command, options);
  add_epilogue(command, options);
}

void add_device_option(CLI::App& command, KernelOptions& options) {
  command
      .add_option("--device", options.device,
                  "cuda, cuda:N, emulator, " + emulator::emulated_devices() +
                      ", or auto (default): the device that TILEWRIGHT_DEVICE names, else a GPU if there is one, else "
                      "the emulator")
      ->type_name("NAME")
      ->group(kKernel);
}

void add_promise_options(CLI::App& command, KernelOptions& options) {
  command
      .add_flag("--deterministic", options.deterministic,
                "accept only kernels that promise to compute equal bits in every run")
      ->group(kKernel);
  command
      .add_flag("--batch-invariant", options.batch_invariant,
                "accept only kernels with which the bits of a row of D depend neither on M nor on the batch")
      ->group(kKernel);
}

void add_kernel_options(CLI::App& command, KernelOptions& options, bool with_target) {
  add_device_option(command, options);
  add_promise_options(command, options);
  if (with_target) {
    command
        .add_option("--target", options.target,
                    "architecture to compile for, such as sm_80, sm_90a or sm_100f; default: the device's")
        ->type_name("NAME")
        ->group(kKernel);
  }
  command
      .add_option("--kernel", options.kernel,
                  "name of the kernel, or a part of it; the best-ranked kernel that matches is taken")
      ->type_name("NAME")
      ->group(kKernel);
  const auto add = [&](const char* name, std::string& value, const char* type_name, const char* help) {
    command.add_option(name, value, help)->type_name(type_name)->group(kDesign);
  };
  add("--tile", options.tile, "MxNxK", "CTA tile, such as 128x128x8; the other options of a design need it");
  add_integer<int>(command, "--stages", options.stages, {},
                   "number of stages of the shared-memory pipeline (default 2)")
      ->group(kDesign);
  add("--warps", options.warps, "MxNxK", "warps of a CTA that multiply, along m, n and k (default 2x4x1)");
  add("--instruction", options.instruction, "MxNxK",
      "shape of the math instruction: 1x1x1 on CUDA cores (default), or a tensor-core shape such as 16x8x16");
  add("--op-class", options.op_class, "NAME",
      "simt or tensor_op; default: simt if the instruction is 1x1x1, else tensor_op");
  add("--cluster", options.cluster, "MxNxK", "CTAs of a cluster along m, n and k, such as 2x1x1 (sm_90a)");
  add("--schedule", options.schedule, "NAME",
      "cooperative (default): the consumer warpgroups share a tile; ping_pong: they alternate between tiles (sm_90a)");
  add_integer<int>(command, "--raster-width", options.raster_width, {},
                   "raster order: tile columns, or rows, that CTAs take as a group: 1 (default), 2, 4 or 8")
      ->group(kDesign);
  add("--raster-along", options.raster_along, "m|n",
      "raster order: m (default) walks along m through groups of tile columns, n along n through groups of tile rows");
  add_integer<int>(command, "--split-k", options.split_k, {},
                   "split-K: number of CTAs that share a tile, each with a part of K (default 1)")
      ->group(kDesign);
  command
      .add_flag("--split-k-in-turn", options.splits_in_turn,
                "with --split-k: the CTAs add their parts one after another and need not work at once (simt_gemm and "
                "sm80_gemm)")
      ->group(kDesign);
  command
      .add_flag("--swap-operands", options.swaps_operands,
                "compute the transposed problem D' = B' * A', for an A of few rows (sm_90a)")
      ->group(kDesign);
  command
      .add_flag("--repack-operands", options.repacks_operands,
                "first copy operands that TMA or wgmma cannot read to a layout that they can (sm_90a)")
      ->group(kDesign);
  add("--mix", options.mix, "NAME",
      "a kernel that is written as a program (sm_90a): tma_wgmma, cp_async_wgmma, tma_mma or tma_register_wgmma");
}

}  // namespace tilewright::cli
