// What the conformance tests share: an engine a device, and one kernel's run on operands between red zones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/problem.hpp"
#include "tests/conformance/guarded_operands.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/op/problem.hpp"

namespace tilewright::conformance {

/// One engine a device for the whole program: its kernels are compiled once.
engine::Engine& engine_of(const std::string& device);

/// Those of TILEWRIGHT_DEVICES, else the emulators.
std::vector<std::string> devices();

/// A GPU that this machine does not have.
bool is_missing(const std::string& device);

/// The problem, with placeholder addresses: four matrices of whole pages far from each other.
op::Gemm shape_of(const bench::Problem& problem);

/// `batch` of every operand; those of `one` (letters of A, B, C) are one matrix for all.
op::Gemm batch_of(op::Gemm gemm, std::int64_t batch, const std::string& one = "");

/// Integers whose sums of k products are exact in the accumulator, and in range of an 8-bit D.
void fill_exactly(const op::Gemm& gemm);
/// Normal numbers of deviation 1, of integers 20.
void fill_randomly(const op::Tensor& tensor, std::uint64_t seed);
void fill_randomly(const op::Gemm& gemm);

op::Comparison run_once(engine::Engine& engine, const registry::KernelPtr& kernel, GuardedProblem& problem);
void expect_exact(engine::Engine& engine, const registry::KernelPtr& kernel, GuardedProblem& problem);
void expect_within_bound(engine::Engine& engine, const registry::KernelPtr& kernel, GuardedProblem& problem);

/// The best-ranked kernel of each family that takes the problem.
std::vector<registry::KernelPtr> best_of_each_family(const engine::Engine& engine, const op::Gemm& gemm);

/// The text as the name of a test.
std::string identifier(std::string text);

}  // namespace tilewright::conformance
