// tilewright doctor: what this machine has and where it was found, and the command that installs what is missing.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/cache/store.hpp"
#include "tilewright/compile/assembler.hpp"
#include "tilewright/compile/mlir_job.hpp"
#include "tilewright/compile/toolchain.hpp"
#include "tilewright/emulator/instruction_targets.hpp"
#include "tilewright/engine/options.hpp"
#include "tilewright/runtime/cuda_device.hpp"
#include "tools/cli/commands.hpp"

namespace tilewright::cli {
namespace {

// The result of looking for one part of the environment.
struct Finding {
  std::string what;
  bool is_found = false;
  bool is_needed = false;
  std::string detail;  // where it is, or why it was not found
  std::string fix;     // the command that provides it; empty if there is none
  std::vector<std::string> searched;
};

Finding report_search(const char* what, const compile::Search& search, bool is_needed, std::string_view fix) {
  Finding finding{what, search.path.has_value(), is_needed, search.path.value_or("not found"), {}, {}};
  if (finding.is_found) return finding;
  finding.fix = fix;
  for (const compile::SearchedPlace& place : search.places) finding.searched.push_back(place.where);
  return finding;
}

/// The library that compiles kernels in MLIR, its LLVM, and what assembles their PTX.
Finding report_mlir(const compile::Environment& environment) {
  const compile::Search search = compile::find_mlir(environment);
  Finding finding = report_search("MLIR", search, false, compile::kInstallMlir);
  if (!finding.is_found) return finding;
  std::string error;
  const std::optional<std::string> llvm = compile::mlir_llvm_version(*search.path, error);
  if (!llvm) return {"MLIR", false, false, error, std::string(compile::kInstallMlir), {}};
  const compile::Search assembler = compile::find_assembler(environment);
  finding.detail = fmt::format("{} (LLVM {}), PTX is assembled by {}", *search.path, *llvm,
                               assembler.path.value_or("nothing: there is neither ptxas nor NVRTC"));
  return finding;
}

Finding report_gpus() {
  std::string why_none;
  const int count = runtime::cuda_device_count(&why_none);
  if (count == 0) return {"GPU", false, false, why_none, {}, {}};
  std::string names;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    const runtime::DeviceProperties properties = runtime::open_cuda_device(ordinal)->properties();
    names += fmt::format("{}cuda:{} {} ({}, {} SMs, {} MiB)", ordinal == 0 ? "" : ", ", ordinal, properties.name,
                         properties.target.name(), properties.sm_count, properties.memory_bytes >> 20);
  }
  return {"GPU", true, false, names, {}, {}};
}

Finding report_cache(const engine::Options& options) {
  const cache::Store store({options.cache_dir, options.cache_on_disk, options.cache_max_bytes});
  if (!store.root().empty()) return {"kernel cache", true, false, store.root(), {}, {}};
  const std::vector<std::string> warnings = store.warnings();
  return {"kernel cache",
          false,
          false,
          warnings.empty() ? "in memory only" : warnings.front(),
          "export TILEWRIGHT_CACHE_DIR=\"$HOME/.cache/tilewright\"",
          {}};
}

std::vector<Finding> examine() {
  const engine::Options options = engine::Options::from_environment();
  compile::Environment environment = compile::capture_environment();
  environment.cuda_home = options.toolchain.cuda_home;
  environment.mlir_library = options.toolchain.mlir_library;
  std::vector<Finding> findings;
  findings.push_back(report_search("NVRTC", compile::find_nvrtc(environment), true, compile::kInstallNvrtc));
  findings.push_back(report_search("nvcc", compile::find_tool("nvcc", environment), false, compile::kInstallNvcc));
  findings.push_back(report_mlir(environment));
  findings.push_back(report_gpus());
  findings.push_back({"emulator", true, false, emulator::emulated_devices() + ": built in", {}, {}});
  findings.push_back(report_cache(options));
  findings.push_back({"device", true, true, engine::open_device(options)->properties().name, {}, {}});
  return findings;
}

void print_text(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    const char* state = finding.is_found ? "ok" : finding.is_needed ? "MISSING" : "absent";
    fmt::print("{:<8} {:<13} {}\n", state, finding.what, finding.detail);
    for (const std::string& place : finding.searched) fmt::print("{:<22} looked in {}\n", "", place);
    if (!finding.fix.empty()) fmt::print("{:<22} to {}: {}\n", "", finding.is_needed ? "fix" : "install", finding.fix);
  }
}

void print_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    json.push_back({{"what", finding.what},
                    {"found", finding.is_found},
                    {"needed", finding.is_needed},
                    {"detail", finding.detail},
                    {"fix", finding.fix},
                    {"searched", finding.searched}});
  }
  fmt::print("{}\n", json.dump(2));
}

ExitCode run(bool json) {
  const std::vector<Finding> findings = examine();
  json ? print_json(findings) : print_text(findings);
  for (const Finding& finding : findings) {
    if (finding.is_needed && !finding.is_found) return ExitCode::environment;
  }
  return ExitCode::ok;
}

}  // namespace

Command add_doctor_command(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "doctor", "print what Tilewright found on this machine, and how to install what is missing");
  const auto json = std::make_shared<bool>(false);
  app->add_flag("--json", *json, "print the findings as JSON");
  return {app, [json] { return run(*json); }};
}

}  // namespace tilewright::cli
