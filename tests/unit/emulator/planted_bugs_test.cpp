// Bugs of CUDA C++ kernels that EmulatedModule must find, with kind, thread and line, and suspicious kernels that are
// right, in which it must find nothing. planted_bugs/ has the kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>

#include "cuda_kernel.hpp"
#include "tilewright/emulator/emulated_module.hpp"

namespace tilewright::emulator {
namespace {

constexpr std::size_t kElements = 256;

/// A kernel of a file, and what its comment says of it (planted_kernel.cuh).
struct PlantedKernel {
  std::string name;
  runtime::LaunchConfig launch;
  std::string kind;  // identifier of the finding; empty: the kernel is right
  Severity severity = Severity::error;
  std::uint32_t thread = 0;
  int line_of_bug = 0;
};

std::string read_file(const std::string& name) {
  std::ifstream file(TILEWRIGHT_SOURCE_DIR "/tests/unit/emulator/planted_bugs/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<PlantedKernel> planted_kernels(const std::string& text) {
  const std::regex launch(R"(// <<<(\d+), (\d+)>>>(: (warning )?(\w+) in thread (\d+))?)"),
      head(R"(KERNEL\((\w+)\).*)");
  std::vector<PlantedKernel> kernels;
  std::istringstream stream(text);
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    std::smatch found;
    if (std::regex_match(line, found, launch)) {
      PlantedKernel& kernel = kernels.emplace_back();
      kernel.launch.grid.x = static_cast<std::uint32_t>(std::stoul(found[1]));
      kernel.launch.block.x = static_cast<std::uint32_t>(std::stoul(found[2]));
      if (found[3].matched) {
        kernel.severity = found[4].matched ? Severity::warning : Severity::error;
        kernel.kind = found[5];
        kernel.thread = static_cast<std::uint32_t>(std::stoul(found[6]));
      }
    } else if (!kernels.empty() && std::regex_match(line, found, head)) {
      kernels.back().name = found[1];
    } else if (!kernels.empty() && line.ends_with("// BUG")) {
      kernels.back().line_of_bug = number;
    }
  }
  return kernels;
}

class PlantedBugs : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (compiler() == nullptr) GTEST_SKIP() << "no NVRTC on this machine";
  }

  static std::unique_ptr<EmulatedModule> compiled(const std::string& text, const std::string& symbol) {
    compile::Source source;
    source.name = source.symbol = symbol;
    source.text = text;
    source.headers = {{"planted_kernel.cuh", read_file("planted_kernel.cuh")}};
    source.target = kSm90a;
    source.outputs = {false, true};
    EmulatorOptions options = checking_options();
    options.steps_per_cta = 1 << 20;
    return std::make_unique<EmulatedModule>(compiler()->compile(source).ptx, kSm90a, options);
  }

  static std::vector<Finding> findings_of(EmulatedModule& module, const PlantedKernel& kernel) {
    std::vector<float> x(kElements, 1.0F), out(kElements);
    std::vector<int> n(kElements);
    const std::vector<KernelArgument> arguments{ArrayArgument{std::as_writable_bytes(std::span(x))},
                                                ArrayArgument{std::as_writable_bytes(std::span(out)), false},
                                                ArrayArgument{std::as_writable_bytes(std::span(n))}};
    return module.launch(module.kernel(kernel.name), kernel.launch, arguments);
  }

  static void expect_found(const std::vector<Finding>& findings, const PlantedKernel& kernel) {
    const auto found = std::ranges::find(findings, kernel.kind,
                                         [](const Finding& each) { return std::string(identifier(each.kind)); });
    if (found == findings.end()) {
      ADD_FAILURE() << (findings.empty() ? "no finding" : to_string(findings.front()));
      return;
    }
    EXPECT_EQ(found->severity, kernel.severity);
    ASSERT_TRUE(found->thread.has_value());
    EXPECT_EQ(found->thread->thread, (runtime::Dim3{kernel.thread, 0, 0})) << to_string(*found);
    ASSERT_FALSE(found->location.source.empty());
    EXPECT_EQ(found->location.source.back().line, kernel.line_of_bug) << to_string(*found);
    const auto first_error = std::ranges::find(findings, Severity::error, &Finding::severity);
    EXPECT_EQ(first_error, kernel.severity == Severity::error ? found : findings.end()) << to_string(findings.front());
  }
};

TEST_P(PlantedBugs, AreFoundWithKindThreadAndLineAndNothingElse) {
  const std::string text = read_file(GetParam() + ".cu");
  const std::vector<PlantedKernel> kernels = planted_kernels(text);
  ASSERT_FALSE(kernels.empty());
  const std::unique_ptr<EmulatedModule> module = compiled(text, kernels.front().name);
  for (const PlantedKernel& kernel : kernels) {
    SCOPED_TRACE(kernel.name);
    const std::vector<Finding> findings = findings_of(*module, kernel);
    if (!kernel.kind.empty()) {
      expect_found(findings, kernel);
    } else {
      for (const Finding& finding : findings) ADD_FAILURE() << to_string(finding);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, PlantedBugs,
                         testing::Values("barriers", "global_races", "out_of_bounds", "shared_races", "uninitialised",
                                         "right_barriers", "right_between_ctas", "right_memory"),
                         [](const auto& file) { return file.param; });

}  // namespace
}  // namespace tilewright::emulator
