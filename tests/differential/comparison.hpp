// Executes forms of instructions on two devices, and compares the results.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "instruction_form.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::differential {

/// One register of one sample that differs.
struct Mismatch {
  std::size_t sample = 0;
  std::size_t destination = 0;
  std::vector<std::uint64_t> sources;
  std::uint64_t reference = 0, actual = 0;
};

struct FormReport {
  const InstructionForm* form = nullptr;
  std::string failure;           // why the form could not be executed; empty if it could
  std::uint64_t results = 0;     // numbers compared
  std::uint64_t equal = 0;       // of them bit for bit
  std::uint64_t mismatches = 0;  // beyond the tolerance
  double largest_error = 0;      // as a multiple of the tolerance
  Mismatch first, worst;

  bool matches() const { return failure.empty() && mismatches == 0; }
};

struct ComparisonSettings {
  std::size_t samples = 65536;  // a multiple of kBlockThreads
  std::uint64_t seed = 1;
  std::size_t forms_per_kernel = 24;
  /// Writes the kernel of `actual`, for tests of the comparison.
  std::function<InstructionForm(const InstructionForm&)> altered;
};

/// The reference is an emulated device; `actual` may be a GPU.
std::vector<FormReport> compare(const std::shared_ptr<runtime::Device>& reference,
                                const std::shared_ptr<runtime::Device>& actual, std::span<const InstructionForm> forms,
                                const ComparisonSettings& settings);

/// The values of each source register of each form, as compare() draws them: [form][register][sample].
std::vector<std::vector<std::vector<std::uint64_t>>> draw_sources(std::span<const InstructionForm> forms,
                                                                  const ComparisonSettings& settings);
/// The values of each destination register: [form][register][sample].
std::vector<std::vector<std::vector<std::uint64_t>>> execute(
    const std::shared_ptr<runtime::Device>& device, std::span<const InstructionForm> forms,
    std::span<const std::vector<std::vector<std::uint64_t>>> sources, std::size_t samples);

/// One or two lines for a form that differs; else empty.
std::string describe_mismatch(const FormReport& report);
/// A line per instruction: how many forms and results were compared, how many are equal, and the largest error.
std::string summarise(std::span<const FormReport> reports);

}  // namespace tilewright::differential
