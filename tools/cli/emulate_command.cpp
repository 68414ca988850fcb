// tilewright emulate: runs a kernel of the user's on the emulator, and reports what is wrong with it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <span>
#include <string>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/compile/file.hpp"
#include "tilewright/emulator/emulated_module.hpp"
#include "tilewright/emulator/instruction_targets.hpp"
#include "tilewright/engine/kernel_file.hpp"
#include "tilewright/engine/options.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/emulate_arguments.hpp"
#include "tools/cli/finding_report.hpp"
#include "tools/cli/interrupt_signals.hpp"
#include "tools/cli/number.hpp"
#include "tools/cli/output_file.hpp"
#include "tools/cli/profile_report.hpp"
#include "tools/cli/sarif.hpp"

namespace tilewright::cli {
namespace {

struct EmulateOptions {
  std::string file;
  std::string kernel;
  std::string grid = "1", block = "1", cluster;
  std::string arguments;
  std::string target = "sm_90a";
  std::string out_folder = ".";
  std::string suppressions;
  std::vector<std::string> include_folders;
  std::uint32_t shared_bytes = 0;
  std::uint64_t steps = emulator::checking_options().steps_per_cta;
  bool cooperative = false;
  bool warnings_fail = false;
  bool json = false;
  bool profile = false;
  std::string sarif;
};

/// "8", "8,4" or "8,4,2"
runtime::Dim3 parse_extents(const std::string& option, const std::string& text) {
  const std::vector<std::string> parts = split_arguments(text);
  if (parts.empty() || parts.size() > 3)
    throw InvalidArgument(fmt::format("{} takes X, X,Y or X,Y,Z, got '{}'", option, printable(text, 60)));
  std::uint32_t extents[3] = {1, 1, 1};
  for (std::size_t i = 0; i < parts.size(); ++i)
    extents[i] = parse_integer<std::uint32_t>(option, parts[i], {1, 0x7fffffff});
  return {extents[0], extents[1], extents[2]};
}

/// What to do when NVRTC has refused a source: empty unless the reason is that it has code for the host.
std::string advice(const std::string& path, const std::string& message) {
  std::string text;
  try {
    text = compile::read_file(path, std::size_t{64} << 20);
  } catch (const Error&) {
    // The advice then depends on the message only.
  }
  static const std::regex main_function(R"((^|\n)[ \t]*(int|auto)\s+main\s*\()");
  static const std::regex missing_header(R"_((cannot|could not) open source file "([^"]*)")_");
  std::string reason;
  std::smatch match;
  if (message.find("host functions are not allowed") != std::string::npos) {
    reason = fmt::format("{} has host code, which emulate does not compile.", printable(path));
  } else if (std::regex_search(text, main_function)) {
    reason = fmt::format("{} has a main(), and emulate compiles device code only.", printable(path));
  } else if (std::regex_search(message, match, missing_header)) {
    const std::string header = match[2];
    if (header.find_first_of("./") != std::string::npos)
      return fmt::format("\nTo say where {} is, add -I FOLDER.", printable(header));
    reason =
        fmt::format("<{}> is a header of the host's C++ library, which device code cannot use.", printable(header));
  }
  if (reason.empty()) return {};
  return fmt::format(
      "\n{0} Compile the whole program with nvcc and run it:\n"
      "  nvcc -cudart shared -lineinfo -arch=compute_80 {1} -o program\n"
      "  tilewright emulate run -- ./program\n"
      "or enclose the host's part in #ifndef __CUDACC_RTC__ ... #endif, or move the kernels to a file of their own.",
      reason, printable(path));
}

engine::KernelFile read_kernel(const EmulateOptions& options, Target target) {
  try {
    return engine::read_kernel_file(options.file, target, engine::Options::from_environment().toolchain,
                                    options.include_folders);
  } catch (const CompileError& error) {
    throw InvalidArgument(error.what() + advice(options.file, error.what()));  // the source is the user's
  }
}

std::string output_path(const EmulateOptions& options, const ArrayItem& item) {
  return options.out_folder == "." ? item.output : options.out_folder + "/" + item.output;
}

std::vector<emulator::KernelArgument> kernel_arguments(std::vector<ArgumentItem>& items) {
  std::vector<emulator::KernelArgument> arguments;
  for (ArgumentItem& item : items) {
    if (auto* const array = std::get_if<ArrayItem>(&item)) {
      arguments.emplace_back(emulator::ArrayArgument{array->array.data, array->initialised});
    } else {
      arguments.emplace_back(std::get<std::vector<std::byte>>(item));
    }
  }
  return arguments;
}

struct Report {
  std::string kernel;
  std::vector<emulator::Finding> findings;
  std::size_t suppressed = 0;
  std::vector<std::string> outputs;
  std::optional<emulator::LaunchProfile> profile;
  bool is_interrupted = false;

  std::size_t count(emulator::Severity severity) const {
    return static_cast<std::size_t>(std::ranges::count(findings, severity, &emulator::Finding::severity));
  }
};

void print_text(const Report& report, const SourceExcerpts& excerpts) {
  for (const emulator::Finding& finding : report.findings) fmt::print("{}\n", report_text(finding, excerpts));
  const std::size_t errors = report.count(emulator::Severity::error);
  const std::size_t warnings = report.findings.size() - errors;
  fmt::print("{}: {} error{}, {} warning{}", report.kernel, errors, errors == 1 ? "" : "s", warnings,
             warnings == 1 ? "" : "s");
  if (report.suppressed != 0) fmt::print(", {} suppressed", report.suppressed);
  fmt::print("\n");
  if (report.is_interrupted) {
    fmt::print("note: the launch was interrupted; this is what was found until then, and no array was written\n");
  }
  for (const std::string& output : report.outputs) fmt::print("wrote {}\n", printable(output));
  if (report.profile) fmt::print("\n{}", profile_text(*report.profile));
}

void print_json(const Report& report, const SourceExcerpts& excerpts) {
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  for (const emulator::Finding& finding : report.findings) findings.push_back(report_json(finding, excerpts));
  nlohmann::ordered_json json{{"kernel", report.kernel},
                              {"errors", report.count(emulator::Severity::error)},
                              {"warnings", report.count(emulator::Severity::warning)},
                              {"interrupted", report.is_interrupted},
                              {"suppressed", report.suppressed},
                              {"findings", findings},
                              {"outputs", report.outputs}};
  if (report.profile) json["profile"] = profile_json(*report.profile);
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

/// The module, or the findings that keep it from being loaded, which are the file's fault.
std::unique_ptr<emulator::EmulatedModule> load(const engine::KernelFile& file, Target target,
                                               const EmulateOptions& options) {
  emulator::EmulatorOptions checks = emulator::checking_options();
  checks.steps_per_cta = options.steps;
  checks.steps_setting = "--steps";
  checks.print_to_stderr = options.json;
  try {
    return std::make_unique<emulator::EmulatedModule>(file.ptx, target, checks);
  } catch (const emulator::EmulationFinding& finding) {
    throw InvalidArgument(fmt::format("{}: {}", printable(file.path), finding.what()));
  }
}

ExitCode run(const EmulateOptions& options) {
  if (options.file.empty()) throw InvalidArgument("emulate takes a file with a kernel, or the command run");
  const Result<Target> target = emulator::parse_emulated_target(options.target);
  if (!target) throw InvalidArgument(fmt::format("--target: {}", target.reason()));
  runtime::LaunchConfig config;
  config.grid = parse_extents("--grid", options.grid);
  config.block = parse_extents("--block", options.block);
  if (!options.cluster.empty()) config.cluster = parse_extents("--cluster", options.cluster);
  config.dynamic_smem_bytes = options.shared_bytes;
  config.cooperative = options.cooperative;
  const Suppressions suppressions =
      options.suppressions.empty() ? Suppressions() : Suppressions::read(options.suppressions);

  const engine::KernelFile file = read_kernel(options, *target);
  const std::unique_ptr<emulator::EmulatedModule> module = load(file, *target, options);
  const emulator::KernelInfo& kernel = module->kernel(options.kernel);
  std::vector<ArgumentItem> items = read_arguments(options.arguments, kernel);
  for (const std::string& sentence : other_elements(items, kernel)) fmt::print(stderr, "note: {}\n", sentence);
  std::vector<NamedFile> outputs, inputs{{"FILE", options.file}};
  for (const ArgumentItem& item : items) {
    const auto* const array = std::get_if<ArrayItem>(&item);
    if (array == nullptr) continue;
    if (!array->output.empty()) outputs.push_back({"--args", output_path(options, *array)});
  }
  check_outputs(outputs, inputs);

  const std::vector<emulator::KernelArgument> arguments = kernel_arguments(items);
  Report report;
  report.kernel = printable(kernel.name, 200);
  if (options.profile) report.profile.emplace();
  try {
    report.findings =
        module->launch(kernel, config, arguments, report.profile ? &*report.profile : nullptr, &report.is_interrupted);
  } catch (const emulator::EmulationFinding& finding) {
    throw InvalidArgument(fmt::format("{}: {}", printable(file.path), finding.what()));
  }
  // An interruption of the launch must not stop the report of the findings before it.
  std::optional<ScopedInterruptCheck> uninterrupted;
  if (report.is_interrupted) {
    uninterrupted.emplace(std::function<void()>{});
    report.profile.reset();
  }
  report.suppressed =
      std::erase_if(report.findings, [&](const emulator::Finding& finding) { return suppressions.match(finding); });
  for (const ArgumentItem& item : items) {
    const auto* const array = std::get_if<ArrayItem>(&item);
    if (array == nullptr || array->output.empty() || report.is_interrupted) continue;
    report.outputs.push_back(output_path(options, *array));
    write_output(report.outputs.back(), npy_bytes(array->array));
  }
  const SourceExcerpts excerpts(file);
  if (!options.sarif.empty()) {
    const std::string sarif = sarif_text(report.findings, excerpts);
    write_output(options.sarif, std::as_bytes(std::span(sarif)));
  }
  options.json ? print_json(report, excerpts) : print_text(report, excerpts);
  if (report.is_interrupted) return static_cast<ExitCode>(128 + caught_signal());
  const bool fails = options.warnings_fail ? !report.findings.empty() : report.count(emulator::Severity::error) != 0;
  return fails ? ExitCode::wrong_result : ExitCode::ok;
}

}  // namespace

Command add_emulate_command(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "emulate", "run a CUDA C++ or PTX kernel on the emulator, and report races, bad accesses and deadlocks");
  const auto options = std::make_shared<EmulateOptions>();
  app->add_option("FILE", options->file, "kernel.cu, which NVRTC compiles, or kernel.ptx");
  app->add_option("--kernel", options->kernel, "the kernel's name or symbol; default: the only kernel of the file");
  app->add_option("--grid", options->grid, "CTAs: X, X,Y or X,Y,Z; default 1");
  app->add_option("--block", options->block, "threads per CTA: X, X,Y or X,Y,Z; default 1");
  app->add_option("--cluster", options->cluster, "CTAs per cluster: X, X,Y or X,Y,Z");
  add_integer<std::uint32_t>(*app, "--shared", options->shared_bytes, {0, 1U << 20}, "dynamic shared memory in bytes");
  app->add_option("--args", options->arguments,
                  "arguments, separated by commas: a.npy, out:f32[32,64], out:f32[64]=0, out:a.npy, numbers, null");
  app->add_option("--target", options->target, "sm_75 to sm_100a; default sm_90a");
  app->add_option("-I", options->include_folders, "a folder with headers; may be given several times")
      ->allow_extra_args(false);
  app->add_option("--out-dir", options->out_folder, "the folder of the arrays that are written; default .");
  app->add_option("--suppressions", options->suppressions,
                  "a file with lines KIND, KIND FILE or KIND FILE:LINE, whose findings are not reported");
  add_integer<std::uint64_t>(
      *app, "--steps", options->steps, {1},
      "warp instructions after which a CTA that does not end is a finding; default 67108864 (2^26)");
  app->add_flag("--cooperative", options->cooperative, "a cooperative launch: all CTAs are resident at once");
  app->add_flag("--warnings-fail", options->warnings_fail, "exit with code 1 if there are warnings but no errors");
  app->add_flag("--json", options->json, "print the findings as JSON; printf() of the kernel writes to stderr");
  app->add_flag("--profile", options->profile,
                "count instructions, memory sectors, bank conflicts and active lanes, by line and by instruction");
  app->add_option("--sarif", options->sarif, "a file for the findings as SARIF 2.1.0");
  app->footer(
      "Exit codes: 0 no errors were found, 1 findings, 2 bad input, 3 the environment failed, 130 and 143 "
      "interrupted.");
  const Command program = add_emulate_run_command(*app);
  return {app, [options, program] { return program.app->parsed() ? program.run() : run(*options); }};
}

}  // namespace tilewright::cli
