// The commands of `tilewright`. Each function adds one command to the command line.
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

/// The exit code of the process. Scripts rely on the values.
enum class ExitCode { ok = 0, wrong_result = 1, bad_input = 2, environment = 3 };

struct Command {
  CLI::App* app = nullptr;        // app->parsed() says whether the command was chosen
  std::function<ExitCode()> run;  // executes the command; exceptions pass to the caller
};

/// Computes one GEMM and, with --verify, compares it with the reference.
Command add_gemm_command(CLI::App& parent);
/// Computes one convolution or one of its gradients and, with --verify, compares it with the reference.
Command add_conv_command(CLI::App& parent);
/// Computes one contraction and, with --verify, compares it with the reference.
Command add_contract_command(CLI::App& parent);
/// Computes a problem of any operation, which a JSON file describes, or ranks or verifies the kernels for it.
/// `registry` has the operations and kernels; null stands for the built-in ones.
Command add_run_command(CLI::App& parent, std::shared_ptr<registry::Registry> registry = nullptr);
/// Ranks the kernels that can compute a GEMM.
Command add_find_command(CLI::App& parent);
/// Measures the best-ranked kernels of a GEMM and stores the fastest in a tuning record.
Command add_tune_command(CLI::App& parent);
/// Verifies and times kernels for lists and ranges of problems.
Command add_profile_command(CLI::App& parent);
/// Makes reports and tables from the JSON of a profile.
Command add_report_command(CLI::App& parent);
/// Prints a kernel's source, PTX, cubin or statistics.
Command add_emit_command(CLI::App& parent);
/// Lists, checks, deletes, exports and imports the kernels on disk.
Command add_cache_command(CLI::App& parent);
/// Evaluates and draws expressions of the layout algebra.
Command add_layout_command(CLI::App& parent);
/// Prints which compilers, GPUs and folders were found.
Command add_doctor_command(CLI::App& parent);
/// Runs a CUDA C++ or PTX kernel on the emulator and reports its findings.
Command add_emulate_command(CLI::App& parent);
/// Runs a CUDA program on the emulator: a command of the command emulate.
Command add_emulate_run_command(CLI::App& emulate);
/// Lists the environment variables that Tilewright reads.
Command add_env_command(CLI::App& parent);

}  // namespace tilewright::cli
