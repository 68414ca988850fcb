// A PTX module on an emulator of its own, for programs that launch kernels of any kind and read all findings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilewright/base/target.hpp"
#include "tilewright/emulator/checks.hpp"
#include "tilewright/emulator/options.hpp"
#include "tilewright/emulator/profile.hpp"
#include "tilewright/emulator/ptx_type.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::emulator {

/// A parameter of a kernel, as the PTX declares it: int and unsigned are both u32, a struct is an array of b8.
struct KernelParameter {
  PtxType type = PtxType::u32;  // of __half, __nv_bfloat16 and the FP8 types, which are structs in PTX: theirs
  std::size_t size = 0;         // bytes
  bool is_pointer = false;      // declared as a pointer in the source
  bool is_struct = false;       // passed by value, as bytes
  /// The type of the elements that a pointer points to, if they are numbers and the kernel's C++ name says so. b8
  /// stands for bytes of any type.
  std::optional<PtxType> element = std::nullopt;

  /// Whether an array may be passed: to pointers, and to 64-bit integers, as older compilers do not mark pointers.
  bool takes_array() const { return !is_struct && size == 8 && is_integer(type); }
};

/// Whether elements of `given` are none of the type that the parameter points to: others in size, or integers for
/// floats or floats for integers. Bytes are elements of every type, and other types of 16 bits than f16 those of bf16.
/// False if the type is not known.
bool is_other_element(const KernelParameter& parameter, PtxType given);

/// "a pointer", "a 32-bit integer", "an f32", "a struct of 24 bytes"
std::string to_string(const KernelParameter& parameter);

struct KernelInfo {
  std::string symbol;     // in the PTX
  std::string name;       // demangled, without parameters: "reduce<float>"
  std::string signature;  // "reduce<float>(float const*, int)"; the symbol if that is no mangled name
  std::vector<KernelParameter> parameters;
};

/// An array in global memory. It is copied to the device before the launch and back after it.
struct ArrayArgument {
  std::span<std::byte> data;
  bool initialised = true;  // false: the contents are not copied in, and it is a finding to read them before a write
};
/// An array, or the bytes of a parameter that is passed by value.
using KernelArgument = std::variant<ArrayArgument, std::vector<std::byte>>;

/// The bytes of a number as a parameter. `index` is the parameter's, for the message.
/// @throws InvalidArgument if the parameter takes no such number
std::vector<std::byte> integer_argument(const KernelParameter& parameter, std::size_t index, bool negative,
                                        std::uint64_t magnitude);
std::vector<std::byte> real_argument(const KernelParameter& parameter, std::size_t index, double value);

/// The options of an emulator that looks for faults in a kernel: all checks, one host thread, and a limit on endless
/// loops that most of them reach within seconds.
EmulatorOptions checking_options();

class EmulatedModule {
 public:
  /// @throws EmulationFinding malformed_ptx; InvalidArgument for a target that the emulator does not support
  EmulatedModule(std::string_view ptx, Target target, EmulatorOptions options = checking_options());
  ~EmulatedModule();

  const std::vector<KernelInfo>& kernels() const { return kernels_; }
  /// The kernel of this symbol or demangled name, with or without the types of its parameters; the only one if `name`
  /// is empty. Blanks do not count, and namespaces in front and template arguments may be left out where one kernel
  /// matches. @throws InvalidArgument that lists the kernels
  const KernelInfo& kernel(std::string_view name) const;

  /// Runs a launch to its end, or as far as its findings let it run, and returns these. The arrays are copied back in
  /// any case. If `profile` is not null, it is set to what the launch executed. If `is_interrupted` is not null and
  /// check_interruption() throws Interrupted, it is set to true, and the findings until then are returned. The module's
  /// variables keep their values for the next launch. config.parameter_offsets is not read.
  /// @throws InvalidArgument for arguments or a configuration that the kernel does not take; as check_interruption()
  std::vector<Finding> launch(const KernelInfo& kernel, const runtime::LaunchConfig& config,
                              std::span<const KernelArgument> arguments, LaunchProfile* profile = nullptr,
                              bool* is_interrupted = nullptr);

 private:
  struct Device;

  std::unique_ptr<Device> device_;
  std::vector<KernelInfo> kernels_;
};

}  // namespace tilewright::emulator
