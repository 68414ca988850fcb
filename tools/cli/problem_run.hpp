// What the commands run and contract do with a problem: compute it, rank the kernels for it, or verify several.
#pragma once

#include <cstdint>
#include <memory>

#include "tilewright/registry/registry.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/kernel_choice.hpp"
#include "tools/cli/problem_file.hpp"

namespace tilewright::cli {

struct ProblemRunOptions {
  KernelOptions kernel;
  std::uint64_t seed = 0;
  bool find = false;
  bool verify_candidates = false;
  bool verify = false;
  bool json = false;
};

void add_run_options(CLI::App& command, ProblemRunOptions& options);

/// @throws InvalidArgument if several of find, verify_candidates and verify are set
ExitCode run_problem(ProblemFile& problem, const ProblemRunOptions& options,
                     const std::shared_ptr<registry::Registry>& registry);

}  // namespace tilewright::cli
