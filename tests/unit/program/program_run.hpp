// Shared by the tests of programs: compiles them and runs them on the emulator.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tilewright/compile/artifact.hpp"
#include "tilewright/emulator/device.hpp"
#include "tilewright/program/launch.hpp"
#include "tilewright/program/program.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::program {

/// One emulated device for all tests, of sm_90a.
std::shared_ptr<runtime::Device> test_device();

/// Compiles the program, lowered to CUDA C++. @throws CompileError
compile::Artifact compile_as_cuda(const Program& program);
/// The same for text that a test has changed.
compile::Artifact compile_as_cuda(const Program& program, const std::string& text);

/// Compiles the program, lowered to MLIR. @throws CompileError, ToolchainNotFound
compile::Artifact compile_as_mlir(const Program& program);

/// Runs PTX of the program on the emulator. @throws EmulationError
void run(const Program& program, const std::string& ptx, const LaunchArguments& arguments);

/// A copy of host memory on the device.
template <class T>
runtime::DeviceBuffer upload(const std::vector<T>& values) {
  runtime::DeviceBuffer buffer(test_device(), values.size() * sizeof(T));
  test_device()->copy_in(buffer.address(), values.data(), values.size() * sizeof(T), nullptr);
  return buffer;
}
template <class T>
std::vector<T> download(const runtime::DeviceBuffer& buffer) {
  std::vector<T> values(buffer.bytes() / sizeof(T));
  test_device()->copy_out(values.data(), buffer.address(), buffer.bytes(), nullptr);
  return values;
}

}  // namespace tilewright::program
