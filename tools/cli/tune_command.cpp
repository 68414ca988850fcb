// tilewright tune: measures the best-ranked kernels of a problem and stores the fastest correct one in a tuning record.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "tilewright/base/text.hpp"
#include "tilewright/cache/store.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/kernels/list.hpp"
#include "tilewright/tune/tune.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/kernel_choice.hpp"
#include "tools/cli/local_time.hpp"
#include "tools/cli/number.hpp"
#include "tools/cli/problem.hpp"
#include "tools/cli/problem_file.hpp"
#include "tools/cli/standard_streams.hpp"

namespace tilewright::cli {
namespace {

struct TuneCommandOptions {
  ProblemOptions problem;
  std::string file;      // of a problem of any operation, in place of the options of `problem`
  KernelOptions kernel;  // only `device` and the promises are used
  tune::TuneOptions tune;
  bool list = false;
  bool forget = false;
  bool json = false;

  bool has_gemm() const {
    return problem.m || problem.n || problem.k || !problem.a.file.empty() || !problem.b.file.empty();
  }
  bool has_problem() const { return has_gemm() || !file.empty(); }
};

/// The problem of the file, or the GEMM of the options.
class TunedProblem {
 public:
  TunedProblem(const TuneCommandOptions& options, const registry::Registry& registry) {
    if (options.file.empty()) {
      const op::Gemm gemm = Problem(options.problem).gemm();
      description_ = to_string(gemm);
      problem_ = gemm;
      return;
    }
    if (options.has_gemm()) throw InvalidArgument("give either --problem or the extents of a GEMM, not both");
    file_.emplace(options.file, registry);
    description_ = file_->description();
    problem_ = file_->problem();
  }

  const op::Problem& problem() const { return problem_; }
  const std::string& description() const { return description_; }

 private:
  std::optional<ProblemFile> file_;  // owns the sizes of groups
  op::Problem problem_;
  std::string description_;
};

void print_candidate(const tune::CandidateReport& candidate, const tune::CandidateReport& first) {
  const std::string median = candidate.samples == 0 ? "-" : fmt::format("{:.2f}", candidate.median_us);
  const std::string ratio = candidate.samples == 0 || first.samples == 0
                                ? "-"
                                : fmt::format("{:.2f}x", first.median_us / candidate.median_us);
  fmt::print("{:>10} {:>8}  {:<12} {}{}{}\n", median, ratio, tune::name(candidate.status), candidate.kernel,
             candidate.reason.empty() ? "" : ": ", candidate.reason);
}

void print_text(const tune::TuningReport& report, const std::string& problem) {
  fmt::print("problem   {}\n", problem);
  fmt::print("device    {}\n", report.device);
  fmt::print("reference {}\n",
             report.reference.empty() ? "the host's result, for a sample of elements" : report.reference);
  fmt::print("{:>10} {:>8}  {:<12} {}\n", "median us", "vs first", "outcome", "kernel, in the order of the ranking");
  for (const tune::CandidateReport& candidate : report.candidates) {
    print_candidate(candidate, report.candidates.front());
  }
  for (const std::string& warning : report.warnings) fmt::print("warning   {}\n", printable(warning, 400));
  if (report.winner) fmt::print("winner    {}\n", report.candidates[*report.winner].kernel);
}

// The exit code: wrong_result if a kernel computed a wrong result, wrote outside its outputs or broke a rule;
// environment if a kernel broke the device or no kernel could be run.
ExitCode verdict(const tune::TuningReport& report, bool checks_only) {
  const auto end = [](ExitCode code, const std::string& message) {
    say(message);
    return code;
  };
  if (!report.stopped.empty())
    return end(ExitCode::environment, "the device cannot be used any more: it was broken by " + report.stopped);
  bool is_any_sound = false;
  for (const tune::CandidateReport& candidate : report.candidates) {
    if (tune::is_wrong(candidate.status)) {
      return end(ExitCode::wrong_result, fmt::format("wrong result: {}: {}", candidate.kernel, candidate.reason));
    }
    is_any_sound |= candidate.status == tune::CandidateStatus::sound;
  }
  if (report.winner || (checks_only && is_any_sound)) return ExitCode::ok;
  return end(ExitCode::environment, "no kernel could be run");
}

ExitCode tune(const TuneCommandOptions& options) {
  const std::shared_ptr<registry::Registry> registry = kernels::make_registry();
  const TunedProblem tuned(options, *registry);
  engine::Engine engine(engine_options(options.kernel), registry);
  const tune::TuningReport report = tune::tune(engine, tuned.problem(), options.tune);
  options.json ? fmt::print("{}\n", nlohmann::ordered_json::parse(tune::to_json(report)).dump(2))
               : print_text(report, tuned.description());
  return verdict(report, options.tune.checks_only);
}

// The tuning records that an engine would use. Opening them needs no device.
cache::TuningRecords open_records() {
  const engine::Options options = engine::Options::from_environment();
  return cache::TuningRecords(cache::Store({options.cache_dir, options.cache_on_disk, options.cache_max_bytes}).root());
}

template <class T>
T value_of(Result<T> result) {
  if (!result) throw Error(result.reason());
  return *std::move(result);
}

// The report of a record, or null if it is not JSON. Levels deeper than those of any report are left out, because
// printing needs a stack frame per level and the file may be damaged.
nlohmann::ordered_json parse_report(const std::string& text) {
  constexpr int kDeepest = 16;
  using Event = nlohmann::ordered_json::parse_event_t;
  const auto is_kept = [](int depth, Event, const nlohmann::ordered_json&) { return depth <= kDeepest; };
  nlohmann::ordered_json report = nlohmann::ordered_json::parse(text, is_kept, false);
  return report.is_discarded() ? nlohmann::ordered_json() : report;
}

void print_records_json(const std::vector<cache::TuningRecord>& records,
                        const std::vector<cache::KernelFault>& faults) {
  nlohmann::ordered_json json{{"choices", nlohmann::ordered_json::array()},
                              {"faults", nlohmann::ordered_json::array()}};
  for (const cache::TuningRecord& record : records) {
    json["choices"].push_back({{"device", record.key.device},
                               {"library", record.key.library},
                               {"problem", record.key.problem},
                               {"kernels", record.key.kernels},
                               {"winner", record.winner},
                               {"median_us", record.median_us},
                               {"measured", record.measured_s},
                               {"report", parse_report(record.report)}});
  }
  for (const cache::KernelFault& fault : faults) {
    json["faults"].push_back({{"device", fault.device},
                              {"library", fault.library},
                              {"problem", fault.problem},
                              {"kernel", fault.kernel},
                              {"reason", fault.reason},
                              {"noted", fault.noted_s}});
  }
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

ExitCode list(const TuneCommandOptions& options) {
  const cache::TuningRecords records = open_records();
  const std::vector<cache::TuningRecord> choices = value_of(records.list());
  const std::vector<cache::KernelFault> faults = value_of(records.faults());
  if (options.json) {
    print_records_json(choices, faults);
    return ExitCode::ok;
  }
  for (const cache::TuningRecord& record : choices) {
    fmt::print("{}  {:>10.2f} us  {}\n", local_time(record.measured_s), record.median_us,
               printable(record.winner, 400));
    fmt::print("{:>18}{}\n{:>18}{}\n", "", printable(record.key.problem, 400), "", printable(record.key.device, 400));
  }
  for (const cache::KernelFault& fault : faults) {
    fmt::print("{}  FAULT  {}: {}\n", local_time(fault.noted_s), printable(fault.kernel, 400),
               printable(fault.reason, 400));
  }
  fmt::print("{} choices, {} faults, in {}\n", choices.size(), faults.size(),
             records.root().empty() ? "memory only" : records.root());
  return ExitCode::ok;
}

ExitCode forget(const TuneCommandOptions& options) {
  std::int64_t count = 0;
  if (options.has_problem()) {
    const TunedProblem tuned(options, *kernels::make_registry());
    const engine::Engine engine(engine_options(options.kernel));
    count =
        value_of(open_records().forget(engine::device_identity(*engine.device()), op::problem_class(tuned.problem())));
  } else {
    count = value_of(open_records().forget("", ""));
  }
  options.json ? fmt::print("{}\n", nlohmann::ordered_json{{"forgotten", count}}.dump(2))
               : fmt::print("{} records deleted\n", count);
  return ExitCode::ok;
}

ExitCode run(const TuneCommandOptions& options) {
  if (options.list && options.forget) throw InvalidArgument("give either --list or --forget, not both");
  if (options.list) return list(options);
  return options.forget ? forget(options) : tune(options);
}

}  // namespace

Command add_tune_command(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "tune", "measure the best-ranked kernels of a problem and store the fastest for later runs");
  const auto options = std::make_shared<TuneCommandOptions>();
  add_problem_options(*app, options->problem);
  app->add_option("--problem", options->file,
                  "JSON file with a problem of any operation, as for run, in place of the options of a GEMM")
      ->type_name("FILE");
  add_device_option(*app, options->kernel);
  add_promise_options(*app, options->kernel);
  add_integer<int>(*app, "--top", options->tune.top, {},
                   fmt::format("how many of the best-ranked kernels to measure (default {})", options->tune.top));
  add_real(*app, "--seconds", options->tune.seconds,
           fmt::format("time limit of the measurements in seconds, without compilation (default {})",
                       options->tune.seconds));
  app->add_flag(
      "--verify-candidates", options->tune.checks_only,
      "only run the kernels and verify their results, without measuring: the times of an emulator mean nothing");
  app->add_flag("--list", options->list,
                "list the tuning records: the stored winners, and the kernels that broke a device");
  app->add_flag("--forget", options->forget,
                "delete the tuning records of the given problem, or all of them if no problem is given");
  app->add_flag("--json", options->json, "print the result as JSON");
  return {app, [options] { return run(*options); }};
}

}  // namespace tilewright::cli
