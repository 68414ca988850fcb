// tilewright profile: verifies and times kernels for lists and ranges of problems, and writes tables and reports.
// tilewright report: makes other formats from the JSON of a profile.
#include <CLI/CLI.hpp>
#include <array>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "tilewright/base/interruption.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/kernels/list.hpp"
#include "tilewright/op/problem_text.hpp"
#include "tilewright/profile/formats.hpp"
#include "tilewright/profile/profile.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/input_file.hpp"
#include "tools/cli/kernel_choice.hpp"
#include "tools/cli/number.hpp"
#include "tools/cli/output_file.hpp"
#include "tools/cli/peers.hpp"
#include "tools/cli/problem_file.hpp"
#include "tools/cli/problem_list.hpp"
#include "tools/cli/progress.hpp"
#include "tools/cli/standard_streams.hpp"

namespace tilewright::cli {
namespace {

struct Format {
  const char* ending;
  std::string (*make)(std::string_view json);
};
constexpr std::array kFormats{Format{".json", [](std::string_view json) { return std::string(json) + "\n"; }},
                              Format{".csv", profile::to_csv}, Format{".xml", profile::to_junit},
                              Format{".html", profile::to_html}, Format{".txt", profile::to_table}};

const Format& format_of(const std::string& path) {
  for (const Format& format : kFormats) {
    if (path.ends_with(format.ending)) return format;
  }
  throw InvalidArgument(fmt::format(
      "'{}' must end in .json, .csv, .xml (JUnit), .html (report) or .txt (table), which chooses the format",
      printable(path)));
}

void check_files(const std::vector<std::string>& paths, const std::vector<std::string>& inputs, const char* option) {
  std::vector<NamedFile> outputs, read;
  for (const std::string& path : paths) {
    static_cast<void>(format_of(path));
    outputs.push_back({option, path});
  }
  for (const std::string& path : inputs) read.push_back({"an input", path});
  check_outputs(outputs, read);
}

void write(const std::string& path, const std::string& json) {
  const std::string text = format_of(path).make(json);
  write_output(path, std::as_bytes(std::span(text)));
}

struct ProfileCommandOptions {
  ProblemRanges ranges;
  std::vector<std::string> lists, files, outputs;
  KernelOptions kernel;  // only `device` and the promises are used
  profile::ProfileOptions profile;
  PeerRequest peers;
  bool skips_verification = false;
  bool dry_run = false;
  bool json = false;
};

/// `files` keeps the sizes of groups.
std::vector<op::Problem> read_problems(const ProfileCommandOptions& options, const registry::Registry& registry,
                                       std::vector<ProblemFile>& files) {
  std::vector<op::Problem> problems;
  if (options.ranges.are_given()) problems = problems_of(options.ranges);
  for (const std::string& path : options.lists) {
    for (op::Problem& problem : problems_of_list(path)) problems.push_back(std::move(problem));
  }
  for (const std::string& path : options.files) {
    for (ProblemFile& each : ProblemFile::read_all(path, registry))
      problems.push_back(files.emplace_back(std::move(each)).problem());
  }
  if (problems.empty()) throw InvalidArgument("give problems: --m, --n and --k, or --problems, or --problem");
  return problems;
}

void check_peers(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!is_peer(name))
      throw InvalidArgument(fmt::format("--peers takes names of torch, cublaslt and cudnn, got '{}'", printable(name)));
  }
}

// wrong_result if a kernel computed a wrong result; environment if one failed, or a problem has no kernel.
ExitCode verdict(const profile::Profile& profile) {
  bool has_failed = false;
  for (const profile::ProblemProfile& problem : profile.problems) {
    if (profile.is_complete && problem.kernels.empty()) {
      say("no kernel for " + problem.problem);
      has_failed = true;
    }
    for (const profile::KernelProfile& kernel : problem.kernels) {
      if (kernel.disposition == profile::Disposition::wrong) {
        say(fmt::format("wrong result: {}: {}: {}", problem.problem, kernel.kernel, kernel.reason));
        return ExitCode::wrong_result;
      }
      if (kernel.disposition == profile::Disposition::failed) {
        say(fmt::format("failed: {}: {}: {}", problem.problem, kernel.kernel, kernel.reason));
        has_failed = true;
      }
    }
  }
  return has_failed ? ExitCode::environment : ExitCode::ok;
}

ExitCode run_profile(ProfileCommandOptions& options) {
  const std::shared_ptr<registry::Registry> registry = kernels::make_registry();
  std::vector<std::string> inputs = options.lists;
  inputs.insert(inputs.end(), options.files.begin(), options.files.end());
  check_files(options.outputs, inputs, "--output");
  std::vector<ProblemFile> files;
  const std::vector<op::Problem> problems = read_problems(options, *registry, files);
  check_peers(options.peers.peers);
  if (options.dry_run) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const op::Problem& problem : problems) list.push_back(op::problem_text(problem));
    if (options.json) {
      fmt::print("{}\n", nlohmann::ordered_json{{"problems", list}}.dump(2));
    } else {
      for (const auto& each : list) fmt::print("{}\n", each.get<std::string>());
    }
    return ExitCode::ok;
  }
  options.profile.verifies = !options.skips_verification;
  options.profile.returns_when_interrupted = true;
  engine::Engine engine(engine_options(options.kernel), registry);
  const bool has_peers = !options.peers.peers.empty();
  if (has_peers && !engine.device()->properties().emulated) options.peers.python = find_python(options.peers.python);
  profile::Profile profile;
  {
    ProgressLine line(options.json);
    profile = profile::profile(engine, problems, options.profile, [&](const profile::Progress& progress) {
      line.show(progress.done, progress.all, progress.last == nullptr ? "" : progress.last->problem);
    });
  }
  std::string json = profile::to_json(profile), failure;
  if (has_peers && profile.is_complete) {
    options.peers.seconds = options.profile.seconds;
    ProfileWithPeers found = with_peers(json, problems, options.peers);
    json = std::move(found.json);
    failure = std::move(found.failure);
  }
  // What was measured before an interruption is kept, so that it must not interrupt the writing.
  const ScopedInterruptCheck uninterrupted(std::function<void()>{});
  fmt::print("{}", options.json ? json + "\n" : profile::to_table(json));
  for (const std::string& path : options.outputs) write(path, json);
  const ExitCode code = verdict(profile);
  if (failure.empty()) return code;
  say(failure);
  return code == ExitCode::ok ? ExitCode::environment : code;
}

struct ReportCommandOptions {
  std::string profile;
  std::vector<std::string> outputs;
};

ExitCode run_report(const ReportCommandOptions& options) {
  check_files(options.outputs, {options.profile}, "--output");
  constexpr std::size_t kMaxBytes = std::size_t{1} << 28;
  const std::string json = read_input_file(options.profile, kMaxBytes);
  try {
    if (options.outputs.empty()) fmt::print("{}", profile::to_table(json));
    for (const std::string& path : options.outputs) write(path, json);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}: {}", printable(options.profile), error.what()));
  }
  return ExitCode::ok;
}

}  // namespace

Command add_profile_command(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "profile", "verify and time kernels for lists and ranges of problems; tables, CSV, JSON, JUnit and HTML");
  const auto options = std::make_shared<ProfileCommandOptions>();
  const auto text = [&](const char* name, std::string& target, const char* type, const char* help) {
    app->add_option(name, target, help)->type_name(type);
  };
  text("--m", options->ranges.m, "RANGE",
       "rows of A: 64, a list 64,128, a range that doubles 128:4096, or with a step 128:4096:128");
  text("--n", options->ranges.n, "RANGE", "columns of B, likewise");
  text("--k", options->ranges.k, "RANGE", "columns of A, likewise");
  text("--batch", options->ranges.batch, "RANGE", "numbers of matrices, likewise (default 1)");
  text("--dtype", options->ranges.dtypes, "TYPES", "types of A and B, separated by commas (default f16)");
  text("--layouts", options->ranges.layouts, "LETTERS",
       "layouts of A and B, or of A, B and D, separated by commas: t row-major, n column-major (default tt)");
  text("--out-dtype", options->ranges.out_dtype, "TYPE", "type of D");
  text("--accumulator", options->ranges.accumulator, "TYPE", "type of the accumulators");
  text("--math", options->ranges.math, "NAME", "how f32 and 8-bit floats are multiplied, as in gemm");
  text("--epilogue", options->ranges.epilogue, "TEXT", "name or text of an epilogue without tensors of its own");
  app->add_option("--problems", options->lists,
                  "text file with a problem on each line, such as dtype=f16 m=64 n=64 k=64")
      ->type_name("FILE");
  app->add_option("--problem", options->files,
                  "JSON file with a problem of any operation, as for run, or a list of them; an extent may be a RANGE")
      ->type_name("FILE");
  add_device_option(*app, options->kernel);
  add_promise_options(*app, options->kernel);
  text("--kernel", options->profile.kernel, "TEXT", "only kernels whose names contain this text");
  app->add_option("--providers", options->profile.providers,
                  "families of kernels to profile side by side, such as sm80_gemm,sm90_gemm: --top kernels of each")
      ->delimiter(',')
      ->type_name("NAMES");
  add_integer<int>(*app, "--top", options->profile.top, {}, "how many kernels for each problem (default 1)");
  add_real(*app, "--seconds", options->profile.seconds, "device time for each problem in seconds (default 0.5)");
  app->add_option("--peers", options->peers.peers,
                  "libraries to time beside the kernels, on a GPU: torch, cublaslt (GEMMs), cudnn (convolutions), "
                  "separated by commas")
      ->delimiter(',')
      ->type_name("NAMES");
  text("--python", options->peers.python, "FILE",
       "for --peers: a Python with PyTorch and tilewright (default: python3 beside this program, else on PATH)");
  app->add_flag("--no-verify", options->skips_verification, "do not compare results with the reference");
  app->add_flag("--dry-run", options->dry_run, "list the problems, and run nothing");
  app->add_option("--output", options->outputs,
                  "file to write, also several: .json, .csv, .xml (JUnit), .html (report) or .txt (table)")
      ->type_name("FILE");
  app->add_flag("--json", options->json, "print JSON, and no progress");
  app->footer(
      "Examples:\n"
      "  tilewright profile --m 128:4096 --n 4096 --k 4096 --dtype f16,bf16 --layouts tn --output report.html\n"
      "  tilewright profile --problems bench/problems/shapes.txt --top 4 --output shapes.json --output shapes.csv\n"
      "  tilewright profile --m 4096 --n 4096 --k 4096 --providers sm80_gemm,sm90_gemm --peers torch,cublaslt\n"
      "On the emulator there are no times: it verifies, counts and predicts. Ctrl-C keeps what was measured.");
  return {app, [options] {
            if (options->kernel.deterministic || options->kernel.batch_invariant) {
              options->profile.required = registry::Promises{.deterministic = options->kernel.deterministic,
                                                             .batch_invariant = options->kernel.batch_invariant};
            }
            return run_profile(*options);
          }};
}

Command add_report_command(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("report", "make a report, a table, CSV or JUnit from the JSON of a profile");
  const auto options = std::make_shared<ReportCommandOptions>();
  app->add_option("profile", options->profile, "JSON file that profile wrote")->type_name("FILE")->required();
  app->add_option("--output", options->outputs,
                  "file to write, also several: .html (report), .csv, .xml (JUnit), .txt (table) or .json; without it "
                  "the table is printed")
      ->type_name("FILE");
  app->footer("Example:\n  tilewright report shapes.json --output shapes.html");
  return {app, [options] { return run_report(*options); }};
}

}  // namespace tilewright::cli
