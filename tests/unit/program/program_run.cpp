#include "program_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <variant>

#include "tilewright/compile/compiler.hpp"
#include "tilewright/lower/cuda/program.hpp"
#include "tilewright/lower/mlir/program.hpp"

namespace tilewright::program {

namespace {

std::shared_ptr<runtime::Device> other_device;  // of OtherTestDevice

}  // namespace

OtherTestDevice::OtherTestDevice(const emulator::EmulatorOptions& options) {
  other_device = emulator::make_emulated_device(kSm90a, options);
}
OtherTestDevice::~OtherTestDevice() { other_device.reset(); }

std::shared_ptr<runtime::Device> test_device() {
  static const std::shared_ptr<runtime::Device> device = emulator::make_emulated_device(kSm90a);
  return other_device ? other_device : device;
}

namespace {

compile::Artifact compiled(const Program& program, compile::Language language, const std::string& text,
                           const compile::Outputs& outputs = {}) {
  static const std::unique_ptr<compile::Compiler> compiler = compile::make_compiler({});
  compile::Source source;
  source.name = source.symbol = program.symbol;
  source.language = language;
  source.text = text;
  source.target = program.target;
  source.outputs = outputs;
  return compiler->compile(source);
}

}  // namespace

compile::Artifact compile_as_cuda(const Program& program, const std::string& text) {
  return compiled(program, compile::Language::cuda, text);
}

compile::Artifact compile_as_cuda(const Program& program) {
  return compile_as_cuda(program, lower::cuda::lower(program));
}

compile::Artifact compile_as_mlir(const Program& program) {
  return compiled(program, compile::Language::mlir, lower::mlir::lower(program));
}

std::string compile_to_ptx(const Program& program) {
  const compile::Outputs ptx_only{.cubin = false, .ptx = true};
#ifdef TILEWRIGHT_HAS_MLIR
  return compiled(program, compile::Language::mlir, lower::mlir::lower(program), ptx_only).ptx;
#else
  return compiled(program, compile::Language::cuda, lower::cuda::lower(program), ptx_only).ptx;
#endif
}

void run(const Program& program, const std::string& ptx, const LaunchArguments& arguments) {
  check_arguments(program, arguments).or_throw();
  plan::Launch launch = program::launch(program, arguments);
  const std::vector<plan::TensorMapRequest> maps(launch.tensor_maps().begin(), launch.tensor_maps().end());
  for (const plan::TensorMapRequest& request : maps) launch.set_tensor_map(request, test_device()->encode(request.map));
  // Counters are 0, and what follows them is uninitialised.
  std::vector<std::uint8_t> workspace(launch.workspace_bytes(), 0xff);
  std::fill_n(workspace.begin(), std::min(workspace.size(), plan::kWorkspaceCounterBytes), std::uint8_t{0});
  std::optional<runtime::DeviceBuffer> device_workspace;
  if (!workspace.empty()) {
    device_workspace.emplace(upload(workspace));
    launch.set_workspace(device_workspace->address());
  }
  const auto kernel = test_device()->load({{}, ptx}, program.symbol, launch.dynamic_smem_bytes);
  runtime::LaunchConfig config;
  config.grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  config.block = {launch.block[0], launch.block[1], launch.block[2]};
  config.cluster = {launch.cluster[0], launch.cluster[1], launch.cluster[2]};
  config.dynamic_smem_bytes = launch.dynamic_smem_bytes;
  kernel->launch(config, launch.parameters());
  if (!device_workspace) return;
  const std::vector<std::uint8_t> left = download<std::uint8_t>(*device_workspace);
  EXPECT_TRUE(std::all_of(left.begin(), left.begin() + plan::kWorkspaceCounterBytes, [](std::uint8_t counter) {
    return counter == 0;
  })) << "the next launch needs counters that are 0";
}

std::vector<float> results_of(const Program& program, const LaunchArguments& arguments, std::size_t count,
                              float initial) {
  const auto compute = [&](const compile::Artifact& artifact) {
    const auto out = upload(std::vector<float>(count, initial));
    LaunchArguments all = arguments;
    run(program, artifact.ptx, all.address("out", out.address()));
    return download<float>(out);
  };
  std::vector<float> results = compute(compile_as_cuda(program));
#ifdef TILEWRIGHT_HAS_MLIR
  EXPECT_EQ(compute(compile_as_mlir(program)), results);
#endif
  return results;
}

void for_each_block(Block& block, const std::function<void(Block&)>& visit) {
  visit(block);
  for (Statement& statement : block) {
    if (auto* const loop = std::get_if<Loop>(&statement.node)) for_each_block(loop->body, visit);
    if (auto* const branch = std::get_if<Branch>(&statement.node)) {
      for_each_block(branch->body, visit);
      for_each_block(branch->otherwise, visit);
    }
  }
}

void change_instruction(Program& program, std::string_view part, int number, bool (*change)(Instruction&)) {
  int left = number;
  for_each_block(program.body, [&](Block& block) {
    for (auto statement = block.begin(); statement != block.end(); ++statement) {
      auto* const instruction = std::get_if<Instruction>(&statement->node);
      if (instruction == nullptr || instruction->text.find(part) == std::string::npos || left-- != 0) continue;
      if (!change(*instruction)) statement = block.erase(statement) - 1;
    }
  });
  EXPECT_LT(left, 0) << "no such instruction";
  number_lines(program);
}

}  // namespace tilewright::program
