// Shared by the examples of programs: compiles and runs a program on the device that TILEWRIGHT_DEVICE names.
#pragma once

#include <memory>
#include <vector>

#include "tilewright/compile/artifact.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/lower/cuda/program.hpp"
#include "tilewright/program/launch.hpp"

namespace examples {

/// A copy of host memory on the device.
template <class T>
tilewright::runtime::DeviceBuffer upload(tilewright::engine::Engine& engine, const std::vector<T>& values) {
  tilewright::runtime::DeviceBuffer buffer(engine.device(), values.size() * sizeof(T));
  engine.device()->copy_in(buffer.address(), values.data(), buffer.bytes(), nullptr);
  return buffer;
}

template <class T>
std::vector<T> download(tilewright::engine::Engine& engine, const tilewright::runtime::DeviceBuffer& buffer) {
  std::vector<T> values(buffer.bytes() / sizeof(T));
  engine.device()->copy_out(values.data(), buffer.address(), buffer.bytes(), nullptr);
  return values;
}

inline void run(tilewright::engine::Engine& engine, const tilewright::program::Program& program,
                const tilewright::program::LaunchArguments& arguments) {
  using namespace tilewright;
  program::check_arguments(program, arguments).or_throw();
  plan::Launch launch = program::launch(program, arguments);
  const std::vector<plan::TensorMapRequest> maps(launch.tensor_maps().begin(), launch.tensor_maps().end());
  for (const plan::TensorMapRequest& map : maps) launch.set_tensor_map(map, engine.device()->encode(map.map));

  compile::Source source;
  source.name = source.symbol = program.symbol;
  source.text = lower::cuda::lower(program);
  source.target = program.target;
  const compile::Artifact artifact = engine.compiler().compile(source);
  const auto kernel = engine.device()->load({artifact.cubin, artifact.ptx}, program.symbol, launch.dynamic_smem_bytes);
  runtime::LaunchConfig config;
  config.grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  config.block = {launch.block[0], launch.block[1], launch.block[2]};
  config.cluster = {launch.cluster[0], launch.cluster[1], launch.cluster[2]};
  config.dynamic_smem_bytes = launch.dynamic_smem_bytes;
  kernel->launch(config, launch.parameters());
}

}  // namespace examples
