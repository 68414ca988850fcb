// Shared by the conformance tests: one engine per device, and the run of a kernel on operands between red zones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/problem.hpp"
#include "tests/conformance/guarded_operands.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/op/problem.hpp"

namespace tilewright::conformance {

/// The engine of a device. The program has one engine per device, so that each kernel is compiled once.
engine::Engine& engine_of(const std::string& device);

/// The devices of TILEWRIGHT_DEVICES; the two emulators unless it is set.
std::vector<std::string> devices();

/// Whether the device is a GPU that this machine does not have.
bool is_missing(const std::string& device);

/// The problem with placeholder addresses, which are page-aligned and far from each other.
op::Gemm shape_of(const bench::Problem& problem);

/// The problem with `batch` matrices per operand. The operands whose letters are in `one` (A, B, C) are broadcast.
op::Gemm batch_of(op::Gemm gemm, std::int64_t batch, const std::string& one = "");

/// The batched problem with pointer arrays for the operands whose letters are in `letters` (A, B, C, D).
op::Gemm with_pointer_arrays(op::Gemm gemm, const std::string& letters, int alignment = op::kPointerAlignment);

/// Fills with integers whose sums of k products are exact in the accumulator and fit into an 8-bit D.
void fill_exactly(const op::Gemm& gemm);
/// Fills with normally distributed numbers; the standard deviation is 1 for floats and 20 for integers.
void fill_randomly(const op::Tensor& tensor, std::uint64_t seed);
void fill_randomly(const op::Gemm& gemm);

op::Comparison run_once(engine::Engine& engine, const registry::KernelPtr& kernel, GuardedProblem& problem);
void expect_exact(engine::Engine& engine, const registry::KernelPtr& kernel, GuardedProblem& problem);
void expect_within_bound(engine::Engine& engine, const registry::KernelPtr& kernel, GuardedProblem& problem);

/// The best-ranked kernel of each family that can compute the problem, without the families of programs: these compute
/// fewer kinds of problems, and program_gemm_test.cpp tests them.
std::vector<registry::KernelPtr> best_of_each_family(const engine::Engine& engine, const op::Problem& problem);

/// The kernels without those whose test on emulator:sm_80 is enough. For emulator:sm_90a, these are the kernels of
/// simt_gemm and sm80_gemm that use no instruction newer than sm_80: neither the products of f64 nor 8-bit floats.
/// Tests of many kernels leave them out there; GemmConformance and RandomProblems do not.
std::vector<registry::KernelPtr> without_kernels_of_sm80(const engine::Engine& engine,
                                                         std::vector<registry::KernelPtr> kernels);

/// The text with all characters replaced that a test's name may not have.
std::string identifier(std::string text);

}  // namespace tilewright::conformance
