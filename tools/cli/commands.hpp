// The commands of `tilewright`: what each adds to the command line, and what it does.
#pragma once

#include <functional>
#include <memory>

namespace CLI {
class App;
}
namespace tilewright::registry {
class Registry;
}

namespace tilewright::cli {

/// What the process returns. Scripts rely on the values.
enum class ExitCode { ok = 0, wrong_result = 1, bad_input = 2, environment = 3 };

struct Command {
  CLI::App* app = nullptr;        // tells whether it was chosen
  std::function<ExitCode()> run;  // throws what its work throws
};

/// Computes one problem and, where asked, verifies it.
Command add_gemm_command(CLI::App& parent);
/// Ranks, checks or computes a problem of any operation, from a JSON file. `registry`: the operations and kernels that
/// there are; null: what Tilewright ships.
Command add_run_command(CLI::App& parent, std::shared_ptr<registry::Registry> registry = nullptr);
/// Ranks the kernels that could.
Command add_find_command(CLI::App& parent);
/// Measures those that rank best, and remembers the fastest.
Command add_tune_command(CLI::App& parent);
/// Prints a kernel's source, PTX, cubin or statistics.
Command add_emit_command(CLI::App& parent);
/// Lists, checks, empties and moves the kernel cache.
Command add_cache_command(CLI::App& parent);
/// Evaluates and draws layouts.
Command add_layout_command(CLI::App& parent);
/// Says what this machine has and lacks.
Command add_doctor_command(CLI::App& parent);
/// Lists the environment's variables.
Command add_env_command(CLI::App& parent);

}  // namespace tilewright::cli
