// What the library logs goes to Python's logging, as the logger "tilewright": no handler is installed, nothing is
// printed but by those that a program has.
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

/// Without a mutex of its own, which a thread could wait for with the GIL: the GIL is what guards it.
class PythonSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (Py_IsInitialized() == 0) return;
    const Locked gil;
    try {
      const nb::object logger = nb::module_::import_("logging").attr("getLogger")("tilewright");
      logger.attr("log")(level_of(message.level), "%s", std::string(message.payload.data(), message.payload.size()));
    } catch (nb::python_error& error) {  // a handler's; what logs need not expect it
      error.discard_as_unraisable("tilewright's log");
    }
  }
  void flush_() override {}
};

}  // namespace

void bind_logging(nb::module_& module) {
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("tilewright", std::make_shared<PythonSink>()));
  // What is logged while the interpreter goes down is lost.
  module.def("_stop_logging", [] { spdlog::set_default_logger(std::make_shared<spdlog::logger>("tilewright")); });
}

}  // namespace tilewright::python
