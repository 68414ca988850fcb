#include "tilewright/engine/options.hpp"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::engine {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = ::secure_getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

template <class Integer>
void read_integer(const char* name, Integer& to) {
  const std::optional<std::string> text = variable(name);
  if (!text) return;
  const char* const end = text->data() + text->size();
  Integer value{};
  const auto [stopped, status] = std::from_chars(text->data(), end, value);
  if (status != std::errc() || stopped != end || value < 0) {
    throw InvalidArgument(fmt::format("{} must be a number of at least 0, got '{}'", name, printable(*text)));
  }
  to = value;
}

Tuning parse_tuning(const std::string& text) {
  if (text == "off") return Tuning::off;
  if (text == "use") return Tuning::use;
  if (text == "on_first_use") return Tuning::on_first_use;
  throw InvalidArgument(fmt::format("TILEWRIGHT_TUNING must be off, use or on_first_use, got '{}'", printable(text)));
}

}  // namespace

Options Options::from_environment() {
  Options options;
  options.device = variable("TILEWRIGHT_DEVICE").value_or(options.device);
  options.toolchain.cuda_home = variable("TILEWRIGHT_CUDA_HOME").value_or("");
  options.toolchain.dump_dir = variable("TILEWRIGHT_DUMP_DIR").value_or("");
  if (const std::optional<std::string> backend = variable("TILEWRIGHT_COMPILER")) {
    if (*backend != "nvrtc" && *backend != "nvcc") {
      throw InvalidArgument(fmt::format("TILEWRIGHT_COMPILER must be nvrtc or nvcc, got '{}'", printable(*backend)));
    }
    options.toolchain.backend = *backend == "nvcc" ? compile::Backend::nvcc : compile::Backend::nvrtc;
  }
  options.cache_dir = variable("TILEWRIGHT_CACHE_DIR").value_or("");
  int cache_disable = 0;
  read_integer("TILEWRIGHT_CACHE_DISABLE", cache_disable);
  options.cache_on_disk = cache_disable == 0;
  read_integer("TILEWRIGHT_CACHE_MAX_BYTES", options.cache_max_bytes);
  read_integer("TILEWRIGHT_JOBS", options.compile_threads);
  if (const std::optional<std::string> tuning = variable("TILEWRIGHT_TUNING")) options.tuning = parse_tuning(*tuning);
  return options;
}

}  // namespace tilewright::engine
