#include "tilewright/engine/options.hpp"

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
  int cache_disable = 0;
  read_number(environment_variable("TILEWRIGHT_CACHE_DISABLE"), cache_disable);
  options.cache_on_disk = cache_disable == 0;
  read_number(environment_variable("TILEWRIGHT_CACHE_MAX_BYTES"), options.cache_max_bytes);
  if (const std::optional<std::string> shared = environment_variable("TILEWRIGHT_CACHE_SHARED").value())
    options.shared_cache_dirs = split(*shared, ':');
  read_number(environment_variable("TILEWRIGHT_JOBS"), options.compile_threads);
  read_number(environment_variable("TILEWRIGHT_EMULATOR_STEPS"), options.emulator_steps_per_cta);
  int check_global = 0;
  read_number(environment_variable("TILEWRIGHT_EMULATOR_CHECK_GLOBAL"), check_global);
  options.emulator_checks_global = check_global != 0;
  int overlap = 0;
  read_number(environment_variable("TILEWRIGHT_OVERLAP_LAUNCHES"), overlap);
  options.overlap_launches = overlap != 0;
  int required = 0;
  read_number(environment_variable("TILEWRIGHT_DETERMINISTIC"), required);
  options.required.deterministic = required != 0;
  required = 0;
  read_number(environment_variable("TILEWRIGHT_BATCH_INVARIANT"), required);
  options.required.batch_invariant = required != 0;
  if (const std::optional<std::string> tuning = environment_variable("TILEWRIGHT_TUNING").value())
    options.tuning = parse_tuning(*tuning);
  if (const std::optional<std::string> first_use = environment_variable("TILEWRIGHT_FIRST_USE").value())
    options.first_use = parse_first_use(*first_use);
  return options;
}

}  // namespace tilewright::engine
