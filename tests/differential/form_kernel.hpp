// PTX kernels that execute forms of instructions, one thread per sample.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "instruction_form.hpp"
#include "tilewright/base/target.hpp"

namespace tilewright::differential {

inline constexpr std::size_t kBlockThreads = 256;
inline constexpr std::string_view kFormKernelName = "k";

/// Where the registers of the forms are in memory: one array of `samples` elements per register.
struct FormMemory {
  std::size_t samples = 0;
  std::vector<std::vector<std::size_t>> sources, destinations;  // of each form, the byte offset of each register
  std::size_t source_bytes = 0, destination_bytes = 0;
};

FormMemory lay_out(std::span<const InstructionForm> forms, std::size_t samples);

/// The PTX of a kernel that executes the forms one after the other. Its parameter is a struct of two addresses: of the
/// sources and of the destinations.
std::string form_kernel(std::span<const InstructionForm> forms, const FormMemory& memory,
                        const Target& target = kSm90a);

}  // namespace tilewright::differential
