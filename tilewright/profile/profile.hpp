// Profiles kernels: verifies them, times them on a GPU, and counts what they do. On the emulator there are counts and
// predictions, and no times.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tilewright/emulator/profile.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/plan/shared_layouts.hpp"
#include "tilewright/tune/timer.hpp"

namespace tilewright::profile {

struct ProfileOptions {
  int top = 1;           // number of kernels for each problem, from the top of the ranking
  std::string kernel{};  // only kernels whose names contain this text
  /// The families whose kernels are profiled side by side, `top` kernels of each. Empty: `top` kernels of all families.
  std::vector<std::string> providers{};
  double seconds = 0.5;  // budget of device time for each problem
  int least_samples = 10;
  bool verifies = true;
  bool returns_when_interrupted = false;            // instead of throwing, with what was measured before
  std::optional<registry::Promises> required = {};  // of the kernels; default: engine::Options::required
  std::shared_ptr<tune::Timer> timer = nullptr;     // null: CUDA events; on the emulator nothing is timed
};

enum class Disposition : std::uint8_t {
  passed,        // it ran and its results are correct
  not_verified,  // it ran, or was only counted, without a comparison
  wrong,         // a result exceeds the error bound, or it wrote outside its outputs
  failed,        // it did not compile, load or launch
  not_run,       // no kernel can compute the problem, or the profile ended before its turn
};

std::string_view name(Disposition disposition);

/// Device times in microseconds, each of one call whose operands were not in the L2 cache.
struct Times {
  int samples = 0;
  double median_us = 0.0, p05_us = 0.0, p95_us = 0.0;
};

struct KernelProfile {
  std::string kernel{};
  std::string provider{};  // the kernel's family
  std::string design{};    // tile, stages, warps, cluster, ...; empty if an author's kernel states none
  Disposition disposition = Disposition::not_run;
  std::string reason{};                  // one line; may be empty
  std::optional<double> predicted_us{};  // by the cost model, for the device's architecture
  std::optional<Times> times{};          // nullopt on the emulator, and for kernels that are not sound
  std::optional<int> registers{}, spill_bytes{};
  double compile_ms = 0.0;
  std::array<std::uint32_t, 3> grid{}, block{}, tile{};
  std::int64_t smem_bytes = 0, workspace_bytes = 0;
  std::vector<plan::SharedLayout> shared_layouts{};  // of A and B; may be empty
  /// Bytes of A and B that CTAs read through L2, if each reads its tiles once: more than `ProblemProfile::bytes`.
  std::optional<double> l2_bytes{};
  std::vector<std::pair<std::string, int>> instructions{};  // see count_instructions()
  /// CTAs that an SM holds at once, by threads, registers and shared memory; nullopt if the registers are unknown.
  std::optional<int> ctas_per_sm{};
  /// Warps of these CTAs, as a share of those that an SM can hold.
  std::optional<double> occupancy{};
  /// The counts of the verification, which launches each function of the kernel once. Only the emulator has them.
  std::optional<emulator::LaunchProfile> counts{};
};

struct ProblemProfile {
  std::string problem{};  // op::problem_text()
  std::string operation{};
  std::string group{};                          // the class in the report: operation and types
  std::int64_t m = 0, n = 0, k = 0, batch = 1;  // 0 if the problem is not computed as a GEMM
  double flops = 0.0;
  double bytes = 0.0;  // of all operands, each once
  /// The time that the device needs at least, by its peak rates; nullopt without flops.
  std::optional<double> bound_us{};
  int refused = 0;  // kernels that cannot compute the problem
  std::vector<KernelProfile> kernels{};
};

struct Profile {
  std::string device{}, target{};
  bool is_emulated = false;
  bool is_complete = true;  // false: it was interrupted
  double peak_flops = 0.0;  // of the fastest unit, in f16; 0: unknown
  double peak_bytes_per_s = 0.0;
  std::vector<ProblemProfile> problems{};
};

/// Says how far a profile is.
struct Progress {
  std::size_t done = 0, all = 0;         // problems
  const ProblemProfile* last = nullptr;  // the problem that was finished; null before the first
};

/// Profiles the problems in this order. Their memory is not accessed. An interruption (check_interruption()) ends the
/// profile; see ProfileOptions::returns_when_interrupted.
/// @throws InvalidArgument for options out of range and invalid problems, ToolchainNotFound, OutOfMemory
Profile profile(engine::Engine& engine, std::span<const op::Problem> problems, const ProfileOptions& options = {},
                const std::function<void(const Progress&)>& on_progress = {});

/// A JSON object with `schema` 1 and keys in a fixed order.
std::string to_json(const Profile& profile);

}  // namespace tilewright::profile
