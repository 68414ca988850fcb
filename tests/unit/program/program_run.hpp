// Shared by the tests of programs: compiles them and runs them on the emulator.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/compile/artifact.hpp"
#include "tilewright/emulator/device.hpp"
#include "tilewright/program/launch.hpp"
#include "tilewright/program/program.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::program {

/// An emulated device of sm_90a, the same for all tests.
std::shared_ptr<runtime::Device> test_device();

/// As long as it exists, test_device() is another device, with these options.
class OtherTestDevice {
 public:
  explicit OtherTestDevice(const emulator::EmulatorOptions& options);
  ~OtherTestDevice();
  OtherTestDevice(const OtherTestDevice&) = delete;
  OtherTestDevice& operator=(const OtherTestDevice&) = delete;
};

/// Compiles the program, lowered to CUDA C++. @throws CompileError
compile::Artifact compile_as_cuda(const Program& program);
/// The same for text that a test has changed.
compile::Artifact compile_as_cuda(const Program& program, const std::string& text);

/// Compiles the program, lowered to MLIR. @throws CompileError, ToolchainNotFound
compile::Artifact compile_as_mlir(const Program& program);
/// The PTX of the program, which is not assembled, by MLIR if there is one.
std::string compile_to_ptx(const Program& program);

/// Runs PTX of the program on the emulator. @throws EmulationError
void run(const Program& program, const std::string& ptx, const LaunchArguments& arguments);

/// The first `count` floats at the parameter "out", which begin as `initial`, after a run of the program. Fails the
/// test if CUDA C++ and MLIR give different ones.
std::vector<float> results_of(const Program& program, const LaunchArguments& arguments, std::size_t count,
                              float initial);

/// Calls `visit` for each block of a program, with those inside after it.
void for_each_block(Block& block, const std::function<void(Block&)>& visit);

/// Changes the instruction with number `number`, from 0 on in the order of the listing, of those whose text has `part`.
/// It must exist. The instruction is removed if `change` returns false.
void change_instruction(Program& program, std::string_view part, int number, bool (*change)(Instruction&));

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
