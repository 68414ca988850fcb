#include "tilewright/engine/options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "tilewright/base/environment_variables.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::engine {
namespace {

/// Leaves `to` unchanged if the variable is not set.
template <class Number>
void read_number(const EnvironmentVariable& variable, Number& to) {
  const std::optional<std::string> text = variable.value();
  if (!text) return;
  const char* const end = text->data() + text->size();
  Number value{};
  const auto [stopped, status] = std::from_chars(text->data(), end, value);
  if (status != std::errc() || stopped != end || !(value >= Number{0})) {
    throw InvalidArgument(fmt::format("{} must be a number of at least 0, got '{}'", variable.name, printable(*text)));
  }
  to = value;
}

/// Leaves `to` unchanged if the variable is not set. A number is true unless it is 0.
void read_flag(const EnvironmentVariable& variable, bool& to) {
  const std::optional<std::string> text = variable.value();
  if (!text) return;
  std::string word = *text;
  std::ranges::transform(word, word.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const auto is_one_of = [&](const std::array<std::string_view, 3>& words) {
    return std::ranges::find(words, word) != words.end();
  };
  int number = 0;
  const char* const end = text->data() + text->size();
  const auto [stopped, status] = std::from_chars(text->data(), end, number);
  if (status == std::errc() && stopped == end && number >= 0) {
    to = number != 0;
  } else if (is_one_of({"true", "yes", "on"})) {
    to = true;
  } else if (is_one_of({"false", "no", "off"})) {
    to = false;
  } else {
    throw InvalidArgument(fmt::format("{} must be 1, true, yes or on, or else 0, false, no or off, got '{}'",
                                      variable.name, printable(*text)));
  }
}

Tuning parse_tuning(const std::string& text) {
  if (text == "off") return Tuning::off;
  if (text == "use") return Tuning::use;
  if (text == "on_first_use") return Tuning::on_first_use;
  throw InvalidArgument(fmt::format("TILEWRIGHT_TUNING must be off, use or on_first_use, got '{}'", printable(text)));
}

FirstUse parse_first_use(const std::string& text) {
  if (text == "fastest_kernel") return FirstUse::fastest_kernel;
  if (text == "fastest_start") return FirstUse::fastest_start;
  throw InvalidArgument(
      fmt::format("TILEWRIGHT_FIRST_USE must be fastest_kernel or fastest_start, got '{}'", printable(text)));
}

}  // namespace

Support check(const Options& options) {
  struct Bound {
    std::string_view name;
    std::int64_t value, least;
  };
  for (const Bound& bound : {Bound{"cache_max_bytes", options.cache_max_bytes, 0},
                             {"compile_threads", options.compile_threads, 0},
                             {"max_workspace_bytes", options.max_workspace_bytes.value_or(0), 0},
                             {"max_loaded_kernels", options.max_loaded_kernels, 1},
                             {"max_remembered_calls", options.max_remembered_calls, 1},
                             {"max_rankings", options.max_rankings, 1},
                             {"pool_initial_bytes", options.pool_initial_bytes, 0},
                             {"pool_maximum_bytes", options.pool_maximum_bytes, 0}}) {
    if (bound.value < bound.least)
      return refuse("Options::{} must be at least {}, got {}", bound.name, bound.least, bound.value);
  }
  for (const auto& [name, seconds] : {std::pair{"toolchain.timeout_s", options.toolchain.timeout_s},
                                      {"emulator_progress_seconds", options.emulator_progress_seconds}}) {
    if (!(seconds >= 0)) return refuse("Options::{} must be at least 0, got {}", name, seconds);
  }
  if (options.pool_maximum_bytes != 0 && options.pool_initial_bytes > options.pool_maximum_bytes) {
    return refuse("Options::pool_initial_bytes must be at most pool_maximum_bytes, {}, got {}",
                  options.pool_maximum_bytes, options.pool_initial_bytes);
  }
  return {};
}

Options Options::from_environment() {
  Options options;
  options.device = environment_variable("TILEWRIGHT_DEVICE").value().value_or(options.device);
  options.toolchain.cuda_home = environment_variable("TILEWRIGHT_CUDA_HOME").value().value_or("");
  options.toolchain.mlir_library = environment_variable("TILEWRIGHT_MLIR_LIBRARY").value().value_or("");
  options.toolchain.dump_dir = environment_variable("TILEWRIGHT_DUMP_DIR").value().value_or("");
  if (const std::optional<std::string> backend = environment_variable("TILEWRIGHT_COMPILER").value()) {
    const Result<compile::Backend> parsed = compile::parse_backend(*backend);
    if (!parsed) throw InvalidArgument("TILEWRIGHT_COMPILER " + parsed.reason());
    options.toolchain.backend = *parsed;
  }
  read_number(environment_variable("TILEWRIGHT_COMPILE_TIMEOUT"), options.toolchain.timeout_s);
  options.cache_dir = environment_variable("TILEWRIGHT_CACHE_DIR").value().value_or("");
  bool is_cache_disabled = false;
  read_flag(environment_variable("TILEWRIGHT_CACHE_DISABLE"), is_cache_disabled);
  options.cache_on_disk = !is_cache_disabled;
  read_number(environment_variable("TILEWRIGHT_CACHE_MAX_BYTES"), options.cache_max_bytes);
  if (const std::optional<std::string> shared = environment_variable("TILEWRIGHT_CACHE_SHARED").value())
    options.shared_cache_dirs = split(*shared, ':');
  read_number(environment_variable("TILEWRIGHT_JOBS"), options.compile_threads);
  read_number(environment_variable("TILEWRIGHT_EMULATOR_STEPS"), options.emulator_steps_per_cta);
  read_flag(environment_variable("TILEWRIGHT_EMULATOR_CHECK_GLOBAL"), options.emulator_checks_global);
  read_flag(environment_variable("TILEWRIGHT_OVERLAP_LAUNCHES"), options.overlap_launches);
  read_flag(environment_variable("TILEWRIGHT_DETERMINISTIC"), options.required.deterministic);
  read_flag(environment_variable("TILEWRIGHT_BATCH_INVARIANT"), options.required.batch_invariant);
  if (const std::optional<std::string> tuning = environment_variable("TILEWRIGHT_TUNING").value())
    options.tuning = parse_tuning(*tuning);
  if (const std::optional<std::string> first_use = environment_variable("TILEWRIGHT_FIRST_USE").value())
    options.first_use = parse_first_use(*first_use);
  return options;
}

}  // namespace tilewright::engine
