// tilewright_bench: measures Tilewright's kernels and cuBLASLt on problems from files or drawn at random.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <memory>
#include <numeric>
#include <thread>

#include "candidates.hpp"
#include "cublaslt.hpp"
#include "cublaslt_recheck.hpp"
#include "random_class.hpp"
#include "random_problems.hpp"
#include "report.hpp"
#include "separate_epilogue.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright/engine/host_operands.hpp"
#include "tilewright_kernels.hpp"
#include "verification.hpp"
#include "work_ahead.hpp"

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

/// Indices of the timings, the fastest first.
std::vector<std::size_t> by_median(const std::vector<Timing>& timings) {
  std::vector<std::size_t> order(timings.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t index) { return timings[index].median_us; });
  return order;
}

struct BenchOptions {
  std::vector<std::string> files;
  std::vector<RandomDraw> draws;
  RandomFilter filter;
  std::string device = "cuda";
  std::string cublaslt_path;
  std::string json_path;
  std::string kernel;
  int workspace_mib = 128;
  int candidates = 1;  // 0: all
  bool all = false;
  bool without_cublaslt = false;
  bool random_report = false;
  std::string dump_path;                  // of candidate lines; empty: compare with cuBLASLt instead
  std::vector<plan::FlatDesign> designs;  // KernelChoice::designs
  int verified_mib = 64;                  // candidates are verified if one operand set is at most this large
  MeasureOptions measure;
  SurveyOptions survey;

  /// The kernels of ours that are measured.
  KernelChoice choice() const { return {.most = all ? 0 : candidates, .designs = designs}; }
  bool reports_random() const { return random_report || !draws.empty(); }
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
  for (const RandomDraw& draw : options.draws)
    std::ranges::move(random_problems(draw.seed, draw.count, options.filter), std::back_inserter(problems));
  for (Problem& problem : problems) {
    if (!options.kernel.empty()) problem.kernel = options.kernel;
  }
  return problems;
}

int cores() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

/// The ranking is judged, so no tuning may choose a kernel.
engine::Options engine_options(const BenchOptions& options) {
  engine::Options result = engine::Options::from_environment();
  result.device = options.device;
  result.compile_threads = cores();
  result.tuning = engine::Tuning::off;
  return result;
}

/// The kernels that will be measured for the problem; empty if there are none.
std::vector<registry::KernelPtr> kernels_of(engine::Engine& engine, const Problem& problem,
                                            const KernelChoice& choice) {
  const op::MemoryDevice here = engine::memory_device(engine.device()->properties());
  std::vector<registry::KernelPtr> kernels;
  const auto add = [&](const Problem& one, const KernelChoice& wanted) {
    const Result<op::Gemm> call = gemm(one, placeholder_addresses(), here);
    if (!call) return;
    const Result<FoundKernels> found = find_kernels(engine, *call, one.kernel, wanted);
    if (!found) return;
    for (const engine::RankedKernel& ranked : found->kernels) kernels.push_back(ranked.kernel);
  };
  add(problem, choice);
  if (problem.epilogue != nullptr) add(plain(problem), {.most = 1});
  return kernels;
}

/// Compiles the kernels of all problems on other threads, in the order of the problems.
std::unique_ptr<WorkAhead> compile_ahead(engine::Engine& engine, const std::vector<Problem>& problems,
                                         const KernelChoice& choice, int threads) {
  return std::make_unique<WorkAhead>(problems.size(), threads, [&engine, &problems, choice](std::size_t item) {
    std::vector<WorkAhead::Work> works;
    for (const registry::KernelPtr& kernel : kernels_of(engine, problems[item], choice))
      works.push_back([&engine, kernel] { engine.compile(kernel); });
    return works;
  });
}

/// Runs the problems, one after another.
class Bench {
 public:
  explicit Bench(const BenchOptions& options) : options_(options), engine_(engine_options(options)) {
    device_ = std::dynamic_pointer_cast<runtime::CudaDevice>(engine_.device());
    if (device_ == nullptr)
      throw InvalidArgument("the benchmark needs a GPU, got " + engine_.device()->properties().name);
    random_ = std::make_unique<RandomBlocks>(device_, options.measure.seed);
    if (!options.without_cublaslt && options.dump_path.empty()) open_cublaslt();
  }

  engine::Engine& engine() { return engine_; }

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

  /// The lines of the problem's candidates (candidates.hpp).
  std::vector<std::string> candidates(const Problem& problem) {
    const CandidateOptions options{.choice = options_.choice(),
                                   .survey = options_.survey,
                                   .most_verified_bytes = static_cast<std::size_t>(options_.verified_mib) << 20,
                                   .seed = options_.measure.seed};
    return survey_candidates(engine_, problem, *random_, options,
                             [&](std::span<const Contender> contenders, int set_count) {
                               return call_timer(*device_, contenders, set_count);
                             });
  }

 private:
  void open_cublaslt() {
    try {
      cublaslt_ = std::make_unique<CublasLt>(device_, options_.cublaslt_path,
                                             static_cast<std::size_t>(options_.workspace_mib) << 20);
    } catch (const ToolchainNotFound& error) {
      no_cublaslt_ = error.what();
    }
  }

  void compare(Outcome& outcome) {
    const OperandSets sets(device_, outcome.problem, *random_, options_.measure.seed);
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
    Verification verification(device_, outcome.problem, sets);
    verify(verification, contenders, outcome.rows);
    if (outcome.problem.epilogue == nullptr) replace_wrong_cublaslt(sets, verification, contenders, outcome);
    time(contenders, sets.count(), outcome);
  }

  /// Adds our best-ranked kernel for the product without the epilogue.
  void add_our_plain(const OperandSets& sets, std::vector<Contender>& contenders, Outcome& outcome) {
    Result<OurKernels> found = tilewright_contenders(engine_, plain(outcome.problem), sets, {.most = 1});
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
    Result<OurKernels> found = tilewright_contenders(engine_, outcome.problem, sets, options_.choice());
    if (!found) {
      outcome.no_kernel = found.reason();
      return;
    }
    OurKernels ours = *std::move(found);
    outcome.kernels = ours.found;
    outcome.failed_kernels = ours.failed;
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

  /// Adds a row for each contender, and removes those whose result is wrong.
  static void verify(Verification& verification, std::vector<Contender>& contenders, std::vector<Row>& rows) {
    std::vector<Contender> right;
    for (Contender& contender : contenders) {
      const Verdict verdict = verification.judge(contender);
      rows.push_back({contender.name, contender.detail, verdict, {}});
      if (verdict.right) right.push_back(std::move(contender));
    }
    contenders = std::move(right);
  }

  /// If the heuristic's choice is wrong, finds out more about it. If no other algorithm of cuBLASLt is right yet, adds
  /// the fastest one that is.
  void replace_wrong_cublaslt(const OperandSets& sets, Verification& verification, std::vector<Contender>& contenders,
                              Outcome& outcome) {
    const Row* choice = find_row(outcome, "cublaslt");
    if (choice == nullptr || choice->verdict.right) return;
    const std::string error = why_not([&] {
      const auto algorithms = [&](const OperandSets& memory, std::size_t most_workspace_bytes) {
        return cublaslt_->contenders(outcome.problem, memory, 1, MatmulForm::plain, most_workspace_bytes);
      };
      const std::vector<Recheck> rechecks =
          recheck_cublaslt(algorithms, device_, outcome.problem, sets, *random_, options_.measure.seed);
      for (const Recheck& recheck : rechecks) outcome.rechecks.push_back(describe(recheck));
      outcome.conclusion = conclusion(rechecks);
      return std::string();
    });
    if (!error.empty()) outcome.rechecks.push_back("failed: " + error);
    if (cublaslt_reference(outcome) != nullptr) return;
    std::vector<Contender> others = cublaslt_->contenders(outcome.problem, sets, kCublasLtAlgorithms);
    std::erase_if(others, [&](const Contender& one) {
      return std::ranges::any_of(outcome.rows, [&](const Row& row) { return row.detail == one.detail; });
    });
    if (others.empty()) return;
    const std::vector<Timing> timings = measure(*device_, others, sets.count(), brief(options_.measure));
    std::vector<Contender> by_speed;
    for (const std::size_t index : by_median(timings)) by_speed.push_back(named("cublaslt_correct", others[index]));
    const auto found = verification.first_right(by_speed);
    if (!found) return;
    outcome.rows.push_back({found->first.name, found->first.detail, found->second, {}});
    contenders.push_back(found->first);
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
  std::unique_ptr<RandomBlocks> random_;
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

/// Prints the problems as lines of a problem file, with their random classes as comments.
void print_problems(const std::vector<Problem>& problems) {
  for (const Problem& problem : problems) fmt::print("{}  # {}\n", problem.line, random_class(problem).name);
}

/// Compiles the kernels of all problems into the cache. It needs no GPU.
void compile_only(const BenchOptions& options, const std::vector<Problem>& problems) {
  engine::Engine engine(engine_options(options));
  const std::unique_ptr<WorkAhead> ahead = compile_ahead(engine, problems, options.choice(), cores());
  for (std::size_t i = 0; i < problems.size(); ++i) {
    ahead->wait_for(i);
    fmt::print("{} of {} problems: {} kernels compiled\n", i + 1, problems.size(), engine.cache().counters().compiles);
    std::fflush(stdout);
  }
}

/// Leaves cores to the thread that measures.
int compile_threads_beside_measuring() { return std::max(1, cores() - 2); }

int dump_candidates(const BenchOptions& options, const std::vector<Problem>& problems) {
  Bench bench(options);
  std::ofstream file(options.dump_path);
  const std::unique_ptr<WorkAhead> ahead =
      compile_ahead(bench.engine(), problems, options.choice(), compile_threads_beside_measuring());
  for (std::size_t i = 0; i < problems.size(); ++i) {
    ahead->wait_for(i);
    const std::vector<std::string> lines = bench.candidates(problems[i]);
    for (const std::string& line : lines) file << line << '\n';
    if (!file.flush()) throw Error(fmt::format("cannot write {}", options.dump_path));
    fmt::print("{} of {}: {}, {} lines\n", i + 1, problems.size(), title(problems[i]), lines.size());
    std::fflush(stdout);
  }
  return 0;
}

int compare(const BenchOptions& options, const std::vector<Problem>& problems, const std::string& command) {
  Bench bench(options);
  const Setting setting = bench.setting(command);
  print_setting(setting);
  const std::unique_ptr<WorkAhead> ahead =
      compile_ahead(bench.engine(), problems, options.choice(), compile_threads_beside_measuring());
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    ahead->wait_for(i);
    outcomes.push_back(bench.run(problems[i]));
    print_outcome(outcomes.back());
    if (!options.json_path.empty()) write_json(options.json_path, setting, outcomes, options.reports_random());
  }
  print_scores(outcomes);
  if (options.reports_random()) {
    print_random_scores(outcomes);
  } else {
    print_epilogue_scores(outcomes);
  }
  return exit_code(outcomes);
}

/// The problems and options of the command line.
enum class Task { measure, print, compile };

int run(const BenchOptions& options, Task task, const std::string& command) {
  const std::vector<Problem> problems = read_all(options);
  if (task == Task::print) {
    print_problems(problems);
    return 0;
  }
  if (task == Task::compile) {
    compile_only(options, problems);
    return 0;
  }
  return options.dump_path.empty() ? compare(options, problems, command) : dump_candidates(options, problems);
}

std::vector<RandomDraw> read_draws(const std::string& text) {
  Result<std::vector<RandomDraw>> draws = parse_random_draws(text);
  if (!draws) throw InvalidArgument("--random " + draws.reason());
  return *std::move(draws);
}

/// The designs of all files.
std::vector<plan::FlatDesign> read_all_designs(const std::vector<std::string>& names) {
  std::vector<plan::FlatDesign> designs;
  for (const std::string& name : names) {
    std::ifstream file(name);
    if (!file) throw InvalidArgument(fmt::format("cannot read {}", name));
    std::ranges::move(read_designs(file, name), std::back_inserter(designs));
  }
  return designs;
}

/// Options of the command that are no member of BenchOptions as they are given.
struct Choices {
  std::string draws, aligned;
  std::vector<std::string> design_files;
  bool prints = false, compiles = false;
};

void add_options(CLI::App& app, BenchOptions& options, Choices& choices) {
  app.add_option("files", options.files, "problem files, with lines such as 'dtype=f16 m=512 n=512 k=64'");
  app.add_option(
      "--random", choices.draws,
      "draw problems at random: SEED:COUNT, or several separated by commas; seeds from 100 on are for judging "
      "the cost model, the others for fitting it");
  app.add_option("--random-types", options.filter.types, "only random problems of these types, such as f32,f64")
      ->delimiter(',');
  app.add_option("--random-classes", options.filter.classes, "only random problems of these classes, such as decode")
      ->delimiter(',');
  app.add_option("--random-aligned", choices.aligned,
                 "only random problems all of whose rows are at multiples of 16 bytes (yes), or not (no)")
      ->check(CLI::IsMember({"yes", "no"}));
  app.add_option("--random-min-m", options.filter.least_m, "only random problems whose M is at least this")
      ->check(CLI::Range(1, 1 << 30));
  app.add_flag("--random-report", options.random_report,
               "report the problems of files as if they had been drawn at random");
  app.add_flag("--print-problems", choices.prints, "only print the problems");
  app.add_flag("--compile-only", choices.compiles,
               "only compile the kernels into the cache; needs no GPU with --device emulator:sm_90a");
  app.add_option("--dump-candidates", options.dump_path,
                 "write a line of JSON for each of --candidates kernels of each problem to this file, with its design, "
                 "predicted and measured time, from short runs without cuBLASLt");
  app.add_option("--candidate-ms", options.survey.budget_ms,
                 "--dump-candidates: GPU time of a problem's timed calls in ms, but at least 3 rounds")
      ->check(CLI::Range(1.0, 600000.0))
      ->capture_default_str();
  app.add_option("--verify-mib", options.verified_mib,
                 "--dump-candidates: verify candidates if A, B and D have at most this many MiB")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--designs", choices.design_files,
                 "measure these designs too: files with the \"design\" of a candidate on each line")
      ->delimiter(',');
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
      ->transform(CLI::Validator(all_or_count, "N|all"))
      ->capture_default_str();
  app.add_flag("--all", options.all, "report a row for every kernel of Tilewright that matches");
  app.add_option("--kernel", options.kernel, "measure only kernels whose name contains this; overrides the file");
  app.add_option("--cublaslt", options.cublaslt_path, "path of libcublasLt; default: the usual places are searched");
  app.add_flag("--no-cublaslt", options.without_cublaslt, "measure only Tilewright's kernels");
  app.add_option("--workspace-mib", options.workspace_mib, "size of the workspace that cuBLASLt may use, in MiB")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  app.add_option("--json", options.json_path, "also write the report to this JSON file");
}

}  // namespace
}  // namespace tilewright::bench

int main(int argc, char** argv) {
  using namespace tilewright;
  bench::BenchOptions options;
  bench::Choices choices;
  CLI::App app("Times Tilewright's kernels and cuBLASLt side by side, on problems from files or drawn at random.");
  bench::add_options(app, options, choices);
  CLI11_PARSE(app, argc, argv);
  if (options.files.empty() && choices.draws.empty()) {
    fmt::print(stderr, "tilewright_bench: give problem files or --random SEED:COUNT\n");
    return 2;
  }
  if (!choices.aligned.empty()) options.filter.aligned = choices.aligned == "yes";
  options.survey.seed = options.measure.seed;
  options.measure.least_samples = std::min(options.measure.least_samples, options.measure.most_samples);

  std::string command;
  for (int i = 0; i < argc; ++i) command += (i == 0 ? "" : " ") + std::string(argv[i]);
  try {
    if (!choices.draws.empty()) options.draws = bench::read_draws(choices.draws);
    options.designs = bench::read_all_designs(choices.design_files);
    const auto task = choices.prints     ? bench::Task::print
                      : choices.compiles ? bench::Task::compile
                                         : bench::Task::measure;
    return bench::run(options, task, command);
  } catch (const InvalidArgument& error) {
    fmt::print(stderr, "tilewright_bench: {}\n", error.what());
    return 2;
  } catch (const Error& error) {
    fmt::print(stderr, "tilewright_bench: {}\n", error.what());
    return 3;
  }
}
