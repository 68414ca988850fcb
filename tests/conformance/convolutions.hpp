// The fixture of the tests of convolutions: problems, kernels of a family, and comparisons with the definition.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/conformance/guarded_tensors.hpp"
#include "tests/unit/op/direct_convolution.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/plan/design.hpp"

namespace tilewright::conformance {

using GuardedConvolution = GuardedTensors<op::Conv2d>;

/// Tensors begin at multiples of this address, until they are placed.
constexpr std::uint64_t kApart = std::uint64_t{1} << 40;

/// A convolution of packed tensors; P and Q follow from the other extents.
struct Shape {
  std::int64_t n, h, w, c, k, r, s;
  std::int64_t padding = 0, stride = 1, dilation = 1, groups = 1;
};
op::Conv2d convolution(op::ConvPass pass, const Shape& shape, DType type);
/// The same, in tf32 if the type is f32.
op::Conv2d tensor_core_convolution(op::ConvPass pass, const Shape& shape, DType type);
/// A convolution of f16 or bf16 whose type, mode and beta depend on its number in a list, so that the list has all.
op::Conv2d numbered_convolution(op::ConvPass pass, const Shape& shape, std::size_t number);

/// Lets the tensors be vectors of bit patterns on the host.
void set_addresses(op::Conv2d& conv, std::vector<std::uint16_t>& x, std::vector<std::uint16_t>& w,
                   std::vector<std::uint16_t>& y);

class Convolutions : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam())) GTEST_SKIP() << "no GPU";
  }

  engine::Engine& engine() const { return engine_of(GetParam()); }

  /// One kernel of each family. Its design does not depend on the extents, if possible, so that few are compiled. Those
  /// of stem_conv, stem_wgrad, group_conv and group_wgrad do, and have tests of their own, as repacked_conv has.
  std::vector<registry::KernelPtr> kernels(const op::Problem& problem) const;

  /// The kernels of a family, best first.
  std::vector<registry::KernelPtr> kernels_of_family(const op::Problem& problem, std::string_view family) const;

  /// One kernel for each name that `name_of` gives; kernels whose name is empty are left out.
  template <class NameOf>
  std::vector<registry::KernelPtr> first_kernels(const op::Problem& problem, const NameOf& name_of) const {
    std::map<std::string, registry::KernelPtr> first;
    for (const engine::RankedKernel& candidate : engine().find_kernels(problem)) {
      const std::string name = name_of(candidate.kernel->metadata());
      if (name.empty()) continue;
      registry::KernelPtr& kernel = first[name];
      const auto order = [](const registry::KernelPtr& each) {
        const plan::GemmTiling& tiling = plan::tiling(each->metadata().design);
        return std::tuple{tiling.split_k, std::abs(tiling.tile.m * tiling.tile.n - 64 * 64),
                          plan::to_string(each->metadata().design)};
      };
      if (kernel == nullptr || order(candidate.kernel) < order(kernel)) kernel = candidate.kernel;
    }
    std::vector<registry::KernelPtr> all;
    for (const auto& [name, kernel] : first) all.push_back(kernel);
    return all;
  }

  /// Runs the kernel and compares with the definition and with the reference. The epilogue is a linear combination.
  void expect_exact_of(const registry::KernelPtr& kernel, GuardedConvolution& guarded) const;
  /// The same, twice: the first run must leave the counters of its workspace as it found them.
  void expect_exact_in_two_runs_of(const registry::KernelPtr& kernel, GuardedConvolution& guarded) const;
  /// Runs the kernel and compares with the reference, which has any epilogue.
  void expect_equal_to_reference(const registry::KernelPtr& kernel, GuardedConvolution& guarded) const;
  /// Runs the best kernel of the family with alpha 0, with which its operands are not read, and beta 2.
  void expect_exact_without_product(op::Conv2d conv, std::string_view family) const;
  /// Runs one kernel of each family, and returns the names of the families.
  std::vector<std::string> expect_exact_in_every_family(const op::Conv2d& conv, Placement placement = {}) const;
};

}  // namespace tilewright::conformance
