// Forwards the library's log messages to the logger "tilewright" of Python's logging. No handler is installed: whether
// messages are printed is up to the program.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>

#include "python/bindings/module.hpp"
#include "python/bindings/unlocked.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

int level_of(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return 10;
    case spdlog::level::info:
      return 20;
    case spdlog::level::warn:
      return 30;
    case spdlog::level::err:
      return 40;
    default:
      return 50;
  }
}

/// The GIL guards the sink. It has no mutex, because a thread that waits for the mutex while it holds the GIL would
/// deadlock with a thread that holds the mutex and waits for the GIL.
class PythonSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (Py_IsInitialized() == 0) return;
    const Locked gil;
    try {
      const nb::object logger = nb::module_::import_("logging").attr("getLogger")("tilewright");
      logger.attr("log")(level_of(message.level), "%s", std::string(message.payload.data(), message.payload.size()));
    } catch (nb::python_error& error) {        // raised by a handler of the log or of a signal
      raise_later(error, "tilewright's log");  // the code that logs must not see it
    }
  }
  void flush_() override {}
};

}  // namespace

void bind_logging(nb::module_& module) {
  auto logger = std::make_shared<spdlog::logger>("tilewright", std::make_shared<PythonSink>());
  logger->set_level(spdlog::level::debug);  // Python's logger decides what is shown
  spdlog::set_default_logger(std::move(logger));
  // Messages that are logged while the interpreter exits are dropped.
  module.def("_stop_logging", [] { spdlog::set_default_logger(std::make_shared<spdlog::logger>("tilewright")); });
}

}  // namespace tilewright::python
