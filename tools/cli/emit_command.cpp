// tilewright emit: a kernel's CUDA C++, PTX and cubin, and the resources that it uses.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "tilewright/compile/artifact.hpp"
#include "tilewright/engine/engine.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/kernel_choice.hpp"
#include "tools/cli/output_file.hpp"
#include "tools/cli/problem.hpp"

namespace tilewright::cli {
namespace {

struct EmitOptions {
  ProblemOptions problem;
  KernelOptions kernel;
  bool ptx = false;
  bool stats = false;
  bool json = false;
  std::string cubin;
};

std::string count(const std::optional<int>& value) { return value ? std::to_string(*value) : "unknown"; }

void print_stats(const compile::Artifact& artifact, const plan::Launch& launch) {
  fmt::print("kernel        {}\n", artifact.name);
  fmt::print("target        {}\n", artifact.target.name());
  fmt::print("compiler      {}\n", artifact.compiler);
  fmt::print("compile       {:.1f} ms\n", artifact.compile_ms);
  fmt::print("registers     {} per thread\n", count(artifact.registers));
  fmt::print("spills        {} bytes per thread\n", count(artifact.spill_bytes));
  fmt::print("shared memory {} bytes static, {} dynamic\n", artifact.static_smem_bytes, launch.dynamic_smem_bytes);
  fmt::print("block         {} threads\n", launch.block[0] * launch.block[1] * launch.block[2]);
  fmt::print("grid          {} CTAs\n", std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2]);
  fmt::print("cubin         {} bytes\n", artifact.cubin.size());
}

void print_json(const compile::Artifact& artifact, const plan::Launch& launch) {
  using Json = nlohmann::ordered_json;
  const auto number = [](const std::optional<int>& value) { return value ? Json(*value) : Json(); };
  const Json json{{"kernel", artifact.name},
                  {"target", artifact.target.name()},
                  {"compiler", artifact.compiler},
                  {"compile_ms", artifact.compile_ms},
                  {"registers", number(artifact.registers)},
                  {"spill_bytes", number(artifact.spill_bytes)},
                  {"static_smem_bytes", artifact.static_smem_bytes},
                  {"dynamic_smem_bytes", launch.dynamic_smem_bytes},
                  {"block", launch.block},
                  {"grid", launch.grid},
                  {"cubin_bytes", artifact.cubin.size()}};
  fmt::print("{}\n", json.dump(2));
}

ExitCode run(const EmitOptions& options) {
  if (options.json && (!options.stats || options.ptx)) throw InvalidArgument("--json needs --stats, without --ptx");
  const Problem problem(options.problem);
  if (!options.cubin.empty()) check_outputs({{"--cubin", options.cubin}}, problem.input_files());
  engine::Engine engine(engine_options(options.kernel));
  const registry::KernelPtr kernel = choose_kernel(engine, problem.gemm(), options.kernel).kernel;
  if (!options.ptx && !options.stats && options.cubin.empty()) {
    fmt::print("{}", kernel->source().text);
    return ExitCode::ok;
  }
  const std::shared_ptr<const compile::Artifact> artifact = engine.compile(kernel);
  if (options.ptx) fmt::print("{}", artifact->ptx);
  if (options.stats) (options.json ? print_json : print_stats)(*artifact, kernel->launch(problem.gemm()));
  if (!options.cubin.empty()) write_output(options.cubin, artifact->cubin);
  return ExitCode::ok;
}

}  // namespace

Command add_emit_command(CLI::App& parent) {
  CLI::App* app =
      parent.add_subcommand("emit", "print the CUDA C++ of the kernel for a GEMM, or its PTX, cubin or statistics");
  const auto options = std::make_shared<EmitOptions>();
  add_problem_options(*app, options->problem);
  add_kernel_options(*app, options->kernel, true);
  app->add_flag("--ptx", options->ptx, "compile the kernel and print its PTX");
  app->add_option("--cubin", options->cubin, "compile the kernel and write its cubin to this file")->type_name("FILE");
  app->add_flag("--stats", options->stats,
                "compile the kernel and print its registers, spills, shared memory, grid and block");
  app->add_flag("--json", options->json, "print the statistics as JSON");
  return {app, [options] { return run(*options); }};
}

}  // namespace tilewright::cli
