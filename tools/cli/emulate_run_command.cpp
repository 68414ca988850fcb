// tilewright emulate run: runs a CUDA program with libcudart and libcuda of the emulator in front, and reports what its
// kernels did wrong.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/compile/file.hpp"
#include "tilewright/emulator/emulated_kernel.hpp"
#include "tilewright/emulator/instruction_targets.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/finding_report.hpp"
#include "tools/cli/interrupt_signals.hpp"
#include "tools/cli/number.hpp"
#include "tools/cli/output_file.hpp"
#include "tools/cli/sarif.hpp"
#include "tools/cuda_runtime/run_report.hpp"

namespace tilewright::cli {
namespace {

namespace fs = std::filesystem;
using cuda_runtime::RunReport;

struct EmulateRunOptions {
  std::vector<std::string> program;
  cuda_runtime::Settings settings;
  std::int64_t memory_gib = 8;
  std::string suppressions;
  std::string json, sarif;  // files
  bool fast = false;
  bool warnings_fail = false;
  bool notes_fail = false;
};

/// The folder of libcudart.so.13: beside the command's own, in the build folder and where Tilewright is installed.
fs::path library_folder() {
  std::error_code error;
  const fs::path command = fs::read_symlink("/proc/self/exe", error);
  fs::path folder = command.parent_path().parent_path() / "lib" / "emulated_cuda";
  if (!fs::exists(folder / "libcudart.so.13", error)) {
    throw Error(
        fmt::format("{} has no libcudart.so.13: Tilewright was built without the headers of CUDA 13; install "
                    "them (apt-get install cuda-cudart-dev-13-0) and build again",
                    printable(folder.string())));
  }
  return folder;
}

/// A folder that is deleted at the end.
class ReportFolder {
 public:
  ReportFolder() {
    const char* const parent = std::getenv("TMPDIR");
    path_ = fmt::format("{}/tilewright-emulate-XXXXXX", parent == nullptr || *parent == '\0' ? "/tmp" : parent);
    if (mkdtemp(path_.data()) == nullptr)
      throw Error(fmt::format("{}: cannot be created: {}", printable(path_), std::strerror(errno)));
  }
  ~ReportFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  ReportFolder(const ReportFolder&) = delete;
  ReportFolder& operator=(const ReportFolder&) = delete;

  const std::string& path() const { return path_; }

  /// What all processes of the program have reported.
  RunReport read() const {
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
    std::ranges::sort(files);
    RunReport all;
    for (const fs::path& path : files) {
      std::ifstream file(path);
      std::ostringstream text;
      text << file.rdbuf();
      all.merge(cuda_runtime::parse_report(text.str()));
    }
    return all;
  }

 private:
  std::string path_;
};

/// "NAME=value" with `first` in front of the value that the environment has.
std::string prepend(const char* name, const std::string& first, char separator) {
  const char* const rest = std::getenv(name);
  return rest == nullptr || *rest == '\0' ? fmt::format("{}={}", name, first)
                                          : fmt::format("{}={}{}{}", name, first, separator, rest);
}

std::vector<std::string> environment_of(const std::string& libraries, const cuda_runtime::Settings& settings) {
  // A program may name another folder in its DT_RPATH, which is searched before LD_LIBRARY_PATH.
  std::string preloaded = libraries + "/libcudart.so.13";
  std::error_code error;
  const std::string host_blocks = libraries + "/libtilewright_host_blocks.so";
  if (fs::exists(host_blocks, error)) preloaded += ':' + host_blocks;
  std::vector<std::string> all{prepend("LD_LIBRARY_PATH", libraries, ':'), prepend("LD_PRELOAD", preloaded, ':'),
                               fmt::format("{}={}", cuda_runtime::kSettingsVariable, to_json(settings))};
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view text(*each);
    const std::string_view name = text.substr(0, text.find('='));
    if (name != "LD_LIBRARY_PATH" && name != "LD_PRELOAD" && name != cuda_runtime::kSettingsVariable)
      all.emplace_back(text);
  }
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// Waits for the child's end, and returns its status as waitpid() does. A signal that interrupts this process is passed
/// on to the child, unless it ends soon because it has got the signal, too, as on Ctrl-C.
int wait_for(pid_t child) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kPatience = std::chrono::milliseconds(200);
  const compile::UniqueFd descriptor(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  std::optional<Clock::time_point> interrupted;
  bool passed_on = false;
  while (true) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) throw Error(fmt::format("waitpid: {}", std::strerror(errno)));
    if (const int signal = caught_signal(); signal != 0 && !passed_on) {
      if (!interrupted) interrupted = Clock::now();
      passed_on = Clock::now() - *interrupted > kPatience;
      if (passed_on) kill(child, signal);
    }
    // Without a descriptor, because the kernel is older than Linux 5.3, poll() only waits.
    pollfd ready{descriptor.get(), POLLIN, 0};
    static_cast<void>(poll(&ready, 1, descriptor.get() < 0 ? 5 : 50));
  }
}

/// Runs the program, and returns its status as waitpid() does.
int run_program(std::vector<std::string> arguments, std::vector<std::string> environment) {
  const std::vector<char*> argv = pointers(arguments), envp = pointers(environment);
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) != 0) throw Error(fmt::format("pipe: {}", std::strerror(errno)));
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a command that is killed leaves no program behind
    if (getppid() == parent) execvpe(argv[0], argv.data(), envp.data());
    const int error = errno;
    _exit(write(failure[1], &error, sizeof(error)) == sizeof(error) ? 127 : 126);
  }
  const int fork_error = errno;
  close(failure[1]);
  int error = 0;
  const bool failed = child < 0 || read(failure[0], &error, sizeof(error)) == sizeof(error);
  close(failure[0]);
  if (child < 0) throw Error(fmt::format("fork: {}", std::strerror(fork_error)));
  if (failed) {
    waitpid(child, nullptr, 0);
    throw InvalidArgument(fmt::format("{}: cannot be started: {}", printable(arguments[0]), std::strerror(error)));
  }
  return wait_for(child);
}

std::string describe(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exited with code {}", WEXITSTATUS(status));
}

void print_report(const RunReport& report, std::size_t suppressed, int status) {
  const SourceExcerpts excerpts;
  bool needs_lines = false, has_lines = false;
  for (const cuda_runtime::KernelFinding& each : report.findings) {
    fmt::print(stderr, "{}", report_text(each.finding, excerpts));
    if (!each.kernel.empty()) fmt::print(stderr, "  kernel: {}\n", printable(source_name(each.kernel), 200));
    fmt::print(stderr, "\n");
    needs_lines |= each.finding.location.ptx_line != 0 && each.finding.location.source.empty();
    has_lines |= !each.finding.location.source.empty();
  }
  for (const auto& [function, calls] : report.unsupported)
    fmt::print(stderr, "not emulated: {}, called {} time{}\n", printable(function), calls, calls == 1 ? "" : "s");
  for (const std::string& note : report.notes) fmt::print(stderr, "note: {}\n", printable(note, 1000));
  if (needs_lines && !has_lines) fmt::print(stderr, "note: compile with nvcc -lineinfo to see source lines\n");
  if (report.skipped != 0) {
    fmt::print(stderr, "note: {} launch{} or fills would only have repeated others, and did not run (--skip-repeats)\n",
               report.skipped, report.skipped == 1 ? "" : "es");
  }
  if (caught_signal() != 0) fmt::print(stderr, "note: the run was interrupted; this is what was found until then\n");
  if (report.timed) fmt::print(stderr, "note: the times that the program measured are the emulator's\n");
  const auto errors = static_cast<std::size_t>(std::ranges::count(
      report.findings, emulator::Severity::error, [](const auto& each) { return each.finding.severity; }));
  const std::size_t warnings = report.findings.size() - errors;
  fmt::print(stderr, "{}: {} error{}, {} warning{}", printable(report.program), errors, errors == 1 ? "" : "s",
             warnings, warnings == 1 ? "" : "s");
  if (suppressed != 0) fmt::print(stderr, ", {} suppressed", suppressed);
  fmt::print(stderr, "; {} launch{} in {:.1f} s; the program {}\n", report.launches, report.launches == 1 ? "" : "es",
             report.seconds, describe(status));
}

std::string json_text(const RunReport& report, std::size_t suppressed, int status) {
  const SourceExcerpts excerpts;
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  for (const cuda_runtime::KernelFinding& each : report.findings) {
    nlohmann::ordered_json finding = report_json(each.finding, excerpts);
    finding["kernel"] = source_name(each.kernel);
    findings.push_back(finding);
  }
  const nlohmann::ordered_json json{
      {"program", report.program},   {"status", describe(status)},        {"interrupted", caught_signal() != 0},
      {"launches", report.launches}, {"skipped", report.skipped},         {"seconds", report.seconds},
      {"suppressed", suppressed},    {"unsupported", report.unsupported}, {"notes", report.notes},
      {"findings", findings}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void write_text(const std::string& path, const std::string& text) {
  write_output(path, std::as_bytes(std::span(text)));
}

ExitCode run(const EmulateRunOptions& options) {
  if (options.program.empty())
    throw InvalidArgument("emulate run takes a program: tilewright emulate run -- ./program");
  cuda_runtime::Settings settings = options.settings;
  const Result<Target> target = emulator::parse_emulated_target(settings.target);
  if (!target) throw InvalidArgument(fmt::format("--target: {}", target.reason()));
  static_cast<void>(emulator::make_device_properties(*target, 0));
  const Suppressions suppressions =
      options.suppressions.empty() ? Suppressions() : Suppressions::read(options.suppressions);
  if (settings.skips_repeats && options.fast) {
    throw InvalidArgument(
        "--skip-repeats needs to know what launches access, which --fast does not look at: leave one out");
  }
  const std::string libraries = library_folder().string();
  const ReportFolder folder;
  settings.report_folder = folder.path();
  settings.memory_bytes = options.memory_gib << 30;
  settings.check_global = !options.fast;
  settings.threads = options.fast ? 0 : 1;
  const int status = run_program(options.program, environment_of(libraries, settings));

  // An interruption of the program must not stop the report of the findings before it.
  const ScopedInterruptCheck uninterrupted(std::function<void()>{});
  RunReport report = folder.read();
  if (report.program.empty()) report.program = options.program[0];
  const std::size_t suppressed =
      std::erase_if(report.findings, [&](const auto& each) { return suppressions.match(each.finding); });
  print_report(report, suppressed, status);
  if (!options.json.empty()) write_text(options.json, json_text(report, suppressed, status));
  if (!options.sarif.empty()) {
    std::vector<emulator::Finding> findings;
    for (const auto& each : report.findings) findings.push_back(each.finding);
    write_text(options.sarif, sarif_text(findings, SourceExcerpts()));
  }
  if (caught_signal() != 0) return static_cast<ExitCode>(128 + caught_signal());
  const bool errors = std::ranges::any_of(
      report.findings, [](const auto& each) { return each.finding.severity == emulator::Severity::error; });
  const bool has_notes = !report.notes.empty() || !report.unsupported.empty();
  if (errors || (options.warnings_fail && !report.findings.empty()) || (options.notes_fail && has_notes))
    return ExitCode::wrong_result;
  if (WIFSIGNALED(status)) return static_cast<ExitCode>(128 + WTERMSIG(status));
  return static_cast<ExitCode>(WEXITSTATUS(status));
}

}  // namespace

Command add_emulate_run_command(CLI::App& emulate) {
  CLI::App* app = emulate.add_subcommand(
      "run", "run a CUDA program on the emulator: tilewright emulate run [options] -- ./program arguments");
  const auto options = std::make_shared<EmulateRunOptions>();
  app->add_option("PROGRAM", options->program, "the program and its arguments, after --");
  app->add_option("--target", options->settings.target, "the GPU that is emulated, sm_75 to sm_100a; default sm_90a");
  app->add_flag("--fast", options->fast,
                "use all cores, and do not look for races and uninitialised reads of global memory or within warps");
  app->add_flag("--cooperative", options->settings.cooperative,
                "run all CTAs of a launch that fit on the GPU at the same time, also with --fast");
  app->add_flag(
      "--skip-repeats", options->settings.skips_repeats,
      "leave out sequences of launches that would only compute again what is in memory, as those in the loops "
      "of benchmarks");
  add_integer<int>(*app, "--multiprocessors", options->settings.multiprocessors, {1, 1024},
                   "multiprocessors of the emulated GPU; default 4");
  add_integer<std::int64_t>(*app, "--memory", options->memory_gib, {1, 1024}, "global memory in GiB; default 8");
  add_integer<std::uint64_t>(
      *app, "--steps", options->settings.steps_per_cta, {1},
      "warp instructions after which a CTA that does not end is a finding; default 1073741824 (2^30)");
  app->add_option("--suppressions", options->suppressions,
                  "a file with lines KIND, KIND FILE or KIND FILE:LINE, whose findings are not reported");
  app->add_flag("--warnings-fail", options->warnings_fail, "exit with code 1 if there are warnings but no errors");
  app->add_flag("--notes-fail", options->notes_fail,
                "exit with code 1 if a call of CUDA has failed, as that of a launch which did not run");
  app->add_option("--json", options->json, "a file for the findings as JSON");
  app->add_option("--sarif", options->sarif, "a file for the findings as SARIF 2.1.0");
  app->footer(
      "The report is written to stderr. Exit codes: 1 if there are errors, else the program's own; 2 bad input, 3 the "
      "environment failed, 130 and 143 interrupted.");
  return {app, [options] { return run(*options); }};
}

}  // namespace tilewright::cli
