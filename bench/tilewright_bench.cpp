// tilewright_bench: measures Tilewright's kernels and cuBLASLt on the problems of a file.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <optional>

#include "cublaslt.hpp"
#include "report.hpp"
#include "separate_epilogue.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright_kernels.hpp"

namespace tilewright::bench {
namespace {

/// How many of cuBLASLt's algorithms are measured to find its best.
constexpr int kCublasLtAlgorithms = 32;
constexpr const char* kNoAlgorithm = "cuBLASLt has no algorithm for these types and layouts";

/// Options of a short measurement that only finds the fastest contender.
MeasureOptions brief(MeasureOptions options) {
  options.least_samples = std::min(options.least_samples, 3);
  options.most_samples = std::min(options.most_samples, 7);
  options.warmups = std::min(options.warmups, 1);
  options.warmup_ms = std::min(options.warmup_ms, 100);
  return options;
}

struct BenchOptions {
  std::vector<std::string> files;
  std::string device = "cuda";
  std::string cublaslt_path;
  std::string json_path;
  std::string kernel;
  int workspace_mib = 128;
  int candidates = 1;  // 0: all
  bool all = false;
  bool without_cublaslt = false;
  MeasureOptions measure;
};

/// Verifies contenders of the same computation: each against exact sums, and against the first one that was correct.
class Peers {
 public:
  Peers(const Problem& problem, const Sources& sources) : verifier_(problem, sources) {}

  Verdict judge(Output output, double rounding) {
    const Verdict verdict = verifier_.against_exact(output, rounding);
    if (!verdict.right) return verdict;
    if (!first_) {
      first_ = std::move(output);
      rounding_of_first_ = rounding;
      return verdict;
    }
    const std::string disagreement = verifier_.disagreement(output, *first_, std::max(rounding, rounding_of_first_));
    return disagreement.empty() ? verdict : Verdict{.right = false, .reason = disagreement};
  }

 private:
  Verifier verifier_;
  std::optional<Output> first_;
  double rounding_of_first_ = 0.0;
};

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::vector<Problem> read_all(const BenchOptions& options) {
  std::vector<Problem> problems;
  for (const std::string& name : options.files) {
    std::ifstream file(name);
    if (!file) throw InvalidArgument(fmt::format("cannot read {}", name));
    std::ranges::move(read_problems(file, name), std::back_inserter(problems));
  }
  for (Problem& problem : problems) {
    if (!options.kernel.empty()) problem.kernel = options.kernel;
  }
  return problems;
}

/// Runs the problems, one after another.
class Bench {
 public:
  explicit Bench(const BenchOptions& options) : options_(options), engine_(engine_options(options)) {
    device_ = std::dynamic_pointer_cast<runtime::CudaDevice>(engine_.device());
    if (device_ == nullptr)
      throw InvalidArgument("the benchmark needs a GPU, got " + engine_.device()->properties().name);
    if (!options.without_cublaslt) open_cublaslt();
  }

  Setting setting(const std::string& command) {
    const runtime::DeviceProperties& properties = device_->properties();
    int version = 0;
    device_->context()->driver().driver_get_version(&version);
    return {.date = utc_now(),
            .command = command,
            .gpu = properties.name,
            .sm_count = properties.sm_count,
            .l2_bytes = properties.l2_bytes,
            .kernel_driver = kernel_driver_version(),
            .cuda_driver = runtime::cuda_version_text(version),
            .cublaslt = cublaslt_ ? cublaslt_->version() : "",
            .compiler = engine_.compiler().identity()};
  }

  /// A failure is recorded in the problem's outcome, so that the other problems still run.
  Outcome run(const Problem& problem) {
    Outcome outcome;
    outcome.problem = problem;
    try {
      compare(outcome);
    } catch (const Error& error) {
      outcome.failure = error.what();
    }
    return outcome;
  }

 private:
  static engine::Options engine_options(const BenchOptions& options) {
    engine::Options result = engine::Options::from_environment();
    result.device = options.device;
    return result;
  }

  void open_cublaslt() {
    try {
      cublaslt_ = std::make_unique<CublasLt>(device_, options_.cublaslt_path,
                                             static_cast<std::size_t>(options_.workspace_mib) << 20);
    } catch (const ToolchainNotFound& error) {
      no_cublaslt_ = error.what();
    }
  }

  void compare(Outcome& outcome) {
    const OperandSets sets(device_, outcome.problem, options_.measure.seed);
    outcome.operand_sets = sets.count();
    std::vector<Contender> contenders;
    if (outcome.problem.epilogue == nullptr) {
      add_cublaslt(sets, contenders, outcome);
      add_ours(sets, contenders, outcome);
    } else {
      add_ours(sets, contenders, outcome);
      add_our_plain(sets, contenders, outcome);
      add_cublaslt_with_epilogue(sets, contenders, outcome);
    }
    verify(outcome.problem, sets, contenders, outcome.rows);
    time(contenders, sets.count(), outcome);
  }

  /// Adds our best-ranked kernel for the product without the epilogue.
  void add_our_plain(const OperandSets& sets, std::vector<Contender>& contenders, Outcome& outcome) {
    Result<OurKernels> found = tilewright_contenders(engine_, plain(outcome.problem), sets, 1);
    if (!found) {
      outcome.no_plain = found.reason();
      return;
    }
    contenders.push_back(named("tilewright_plain", found->contenders.front()));
  }

  /// Adds cuBLASLt's plain product, its fused epilogue, and its product followed by a separate kernel. If one of them
  /// is impossible or fails, the outcome gets the reason and the others are still measured.
  void add_cublaslt_with_epilogue(const OperandSets& sets, std::vector<Contender>& contenders, Outcome& outcome) {
    const Problem& problem = outcome.problem;
    if (cublaslt_ == nullptr) {
      outcome.no_cublaslt = why_no_cublaslt();
      return;
    }
    outcome.no_cublaslt = why_not([&] {
      std::vector<Contender> algorithms = cublaslt_->contenders(problem, sets, 1, MatmulForm::plain);
      if (algorithms.empty()) return std::string(kNoAlgorithm);
      contenders.push_back(named("cublaslt_plain", std::move(algorithms.front())));
      return std::string();
    });
    outcome.no_fused = why_not([&] {
      if (problem.epilogue->cublaslt == CublasLtEpilogue::none) return std::string("cuBLASLt has no such epilogue");
      return add_best_of("cublaslt_fused", cublaslt_->contenders(problem, sets, kCublasLtAlgorithms, MatmulForm::fused),
                         sets.count(), contenders);
    });
    outcome.no_separate = why_not([&] {
      Result<std::vector<Contender>> separate = with_separate_epilogue(
          engine_, problem, sets, cublaslt_->contenders(problem, sets, kCublasLtAlgorithms, MatmulForm::product));
      if (!separate) return separate.reason();
      return add_best_of("cublaslt_separate", *std::move(separate), sets.count(), contenders);
    });
  }

  /// The reason that `add` returns, or the message of the error that it throws.
  template <class Add>
  static std::string why_not(const Add& add) {
    try {
      return add();
    } catch (const Error& error) {
      return error.what();
    }
  }

  /// Adds the first and the best of the algorithms. Returns why none was added; empty if one was.
  std::string add_best_of(const std::string& name, std::vector<Contender> algorithms, int set_count,
                          std::vector<Contender>& contenders) const {
    if (algorithms.empty()) return kNoAlgorithm;
    for (Contender& algorithm : algorithms) algorithm.name = name;
    add_first_and_best(std::move(algorithms), set_count, name + "_best", contenders);
    return "";
  }

  static Contender named(const std::string& name, Contender contender) {
    contender.name = name;
    return contender;
  }

  std::string why_no_cublaslt() const {
    return "no cuBLASLt: " + (no_cublaslt_.empty() ? "disabled by --no-cublaslt" : no_cublaslt_);
  }

  void add_cublaslt(const OperandSets& sets, std::vector<Contender>& contenders, Outcome& outcome) {
    if (cublaslt_ == nullptr) {
      outcome.no_cublaslt = why_no_cublaslt();
      return;
    }
    std::vector<Contender> algorithms = cublaslt_->contenders(outcome.problem, sets, kCublasLtAlgorithms);
    if (algorithms.empty()) {
      outcome.no_cublaslt = kNoAlgorithm;
    } else {
      add_first_and_best(std::move(algorithms), sets.count(), "cublaslt_best", contenders);
    }
  }

  void add_ours(const OperandSets& sets, std::vector<Contender>& contenders, Outcome& outcome) {
    Result<OurKernels> found =
        tilewright_contenders(engine_, outcome.problem, sets, options_.all ? 0 : options_.candidates);
    if (!found) {
      outcome.no_kernel = found.reason();
      return;
    }
    OurKernels ours = *std::move(found);
    outcome.kernels = ours.found;
    outcome.candidates = static_cast<int>(ours.contenders.size());
    if (options_.all) {
      std::ranges::move(ours.contenders, std::back_inserter(contenders));
    } else {
      add_first_and_best(std::move(ours.contenders), sets.count(), "tilewright_best", contenders);
    }
  }

  /// Adds the first of a ranking and, as `best_name`, the one that is fastest in a short measurement.
  void add_first_and_best(std::vector<Contender> ranked, int set_count, const std::string& best_name,
                          std::vector<Contender>& contenders) const {
    if (ranked.size() == 1) {
      contenders.push_back(std::move(ranked.front()));
      return;
    }
    const std::vector<Timing> timings = measure(*device_, ranked, set_count, brief(options_.measure));
    contenders.push_back(ranked.front());
    const auto best = std::ranges::min_element(timings, {}, &Timing::median_us);
    Contender& winner = ranked[static_cast<std::size_t>(best - timings.begin())];
    winner.name = best_name;
    contenders.push_back(std::move(winner));
  }

  /// Runs each contender once with poisoned outputs and adds a row for it. Removes contenders whose result is wrong, or
  /// differs from that of the first correct contender of the same computation.
  void verify(const Problem& problem, const OperandSets& sets, std::vector<Contender>& contenders,
              std::vector<Row>& rows) {
    const Sources sources = sets.read_sources(0);
    std::optional<Peers> of_product, of_epilogue;
    std::vector<Contender> right;
    for (Contender& contender : contenders) {
      std::optional<Peers>& peers = contender.applies_epilogue ? of_epilogue : of_product;
      if (!peers) peers.emplace(contender.applies_epilogue ? problem : plain(problem), sources);
      Verdict verdict;
      verdict.reason = why_not([&] {
        sets.poison_output(0);
        contender.run(0, nullptr);
        device_->synchronize(nullptr);
        verdict =
            peers->judge(contender.applies_epilogue ? sets.read_output(0) : sets.read_plain(0), contender.rounding);
        return verdict.reason;
      });
      rows.push_back({contender.name, contender.detail, verdict, {}});
      if (verdict.right) right.push_back(std::move(contender));
    }
    contenders = std::move(right);
  }

  void time(const std::vector<Contender>& contenders, int set_count, Outcome& outcome) {
    if (contenders.empty()) return;
    TelemetryRecorder recorder(device_->properties().ordinal);
    const std::vector<Timing> timings = measure(*device_, contenders, set_count, options_.measure);
    outcome.telemetry = recorder.stop();
    auto timing = timings.begin();
    for (Row& row : outcome.rows) {
      if (row.verdict.right) row.timing = *timing++;
    }
  }

  BenchOptions options_;
  engine::Engine engine_;
  std::shared_ptr<runtime::CudaDevice> device_;
  std::unique_ptr<CublasLt> cublaslt_;
  std::string no_cublaslt_;
};

/// Changes "all" to 0, which BenchOptions::candidates understands, and leaves numbers unchanged. Returns the error for
/// any other text.
std::string all_or_count(std::string& text) {
  int count = 0;
  if (text == "all") {
    text = "0";
  } else if (!CLI::detail::lexical_cast(text, count) || count < 1) {
    return fmt::format("must be 'all' or a positive number, got '{}'", text);
  }
  return "";
}

/// 0: all results are correct; 1: a result of Tilewright is wrong; 3: a problem failed.
int exit_code(const std::vector<Outcome>& outcomes) {
  const auto is_wrong = [](const Row& row) { return row.contender.starts_with("tilewright") && !row.verdict.right; };
  int code = 0;
  for (const Outcome& outcome : outcomes) {
    if (std::ranges::any_of(outcome.rows, is_wrong)) return 1;
    if (!outcome.failure.empty()) code = 3;
  }
  return code;
}

int run(const BenchOptions& options, const std::string& command) {
  const std::vector<Problem> problems = read_all(options);
  Bench bench(options);
  const Setting setting = bench.setting(command);
  print_setting(setting);
  std::vector<Outcome> outcomes;
  for (const Problem& problem : problems) {
    outcomes.push_back(bench.run(problem));
    print_outcome(outcomes.back());
    if (!options.json_path.empty()) write_json(options.json_path, setting, outcomes);
  }
  print_scores(outcomes);
  print_epilogue_scores(outcomes);
  return exit_code(outcomes);
}

}  // namespace
}  // namespace tilewright::bench

int main(int argc, char** argv) {
  using namespace tilewright;
  bench::BenchOptions options;
  CLI::App app("Times Tilewright's kernels and cuBLASLt side by side, on the problems of a file.");
  app.add_option("files", options.files, "problem files, with lines such as 'dtype=f16 m=512 n=512 k=64'")->required();
  app.add_option("--device", options.device, "cuda or cuda:N")->capture_default_str();
  app.add_option("--samples", options.measure.most_samples, "largest number of timed calls of each contender")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--min-samples", options.measure.least_samples, "smallest number of timed calls of each contender")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--target-ms", options.measure.target_ms,
                 "GPU time of a problem's timed calls in ms, within the limits of --samples and --min-samples")
      ->check(CLI::Range(1, 600000))
      ->capture_default_str();
  app.add_option("--warmups", options.measure.warmups, "smallest number of untimed calls of each contender")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  app.add_option("--warmup-ms", options.measure.warmup_ms,
                 "shortest duration of the untimed calls in ms, during which the clock settles")
      ->check(CLI::Range(0, 60000))
      ->capture_default_str();
  app.add_option("--seed", options.measure.seed, "seed of the operands and of the order of calls")
      ->capture_default_str();
  app.add_option("--candidates", options.candidates,
                 "how many of the best-ranked kernels are measured to find tilewright_best: a number or 'all'")
      ->transform(CLI::Validator(bench::all_or_count, "N|all"))
      ->capture_default_str();
  app.add_flag("--all", options.all, "report a row for every kernel of Tilewright that matches");
  app.add_option("--kernel", options.kernel, "measure only kernels whose name contains this; overrides the file");
  app.add_option("--cublaslt", options.cublaslt_path, "path of libcublasLt; default: the usual places are searched");
  app.add_flag("--no-cublaslt", options.without_cublaslt, "measure only Tilewright's kernels");
  app.add_option("--workspace-mib", options.workspace_mib, "size of the workspace that cuBLASLt may use, in MiB")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  app.add_option("--json", options.json_path, "also write the report to this JSON file");
  CLI11_PARSE(app, argc, argv);
  options.measure.least_samples = std::min(options.measure.least_samples, options.measure.most_samples);

  std::string command;
  for (int i = 0; i < argc; ++i) command += (i == 0 ? "" : " ") + std::string(argv[i]);
  try {
    return bench::run(options, command);
  } catch (const InvalidArgument& error) {
    fmt::print(stderr, "tilewright_bench: {}\n", error.what());
    return 2;
  } catch (const Error& error) {
    fmt::print(stderr, "tilewright_bench: {}\n", error.what());
    return 3;
  }
}
