#include "python/bindings/function_keys.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace tilewright::python {
namespace {

/// Interned attribute names, which are made once because every call looks them up.
struct Interned {
  nb::object code = nb::steal(PyUnicode_InternFromString("__code__"));
  nb::object closure = nb::steal(PyUnicode_InternFromString("__closure__"));
  nb::object cell_contents = nb::steal(PyUnicode_InternFromString("cell_contents"));
  nb::object defaults = nb::steal(PyUnicode_InternFromString("__defaults__"));
  nb::object keyword_defaults = nb::steal(PyUnicode_InternFromString("__kwdefaults__"));
  nb::object dict = nb::steal(PyUnicode_InternFromString("__dict__"));
  nb::object globals = nb::steal(PyUnicode_InternFromString("__globals__"));
};
const Interned& interned() {
  static const Interned* names = new Interned;  // lives as long as the interpreter
  return *names;
}

/// The attribute, or an invalid object if there is none.
nb::object attribute(nb::handle object, nb::handle name) {
  PyObject* const found = PyObject_GetAttr(object.ptr(), name.ptr());
  if (found == nullptr) PyErr_Clear();
  return nb::steal(found);
}

/// An object that a function read when its key was made. References keep its address from being reused.
struct Seen {
  nb::object value;
  nb::object key;  // of a function of the program, whose own code and values may change; else None

  bool is_same(nb::handle now) const { return value.is(now) && (key.is_none() || find_function_key(now).is(key)); }
};

struct Global {
  nb::object name;
  Seen seen;  // an invalid value if the module had no such global
};

/// A function whose key is remembered.
struct Known {
  nb::object code, defaults;
  std::vector<Seen> cells;
  std::vector<Global> globals;
  nb::object key;

  bool has_cells(nb::handle closure) const {
    if (closure.is_none()) return cells.empty();
    if (nb::len(closure) != cells.size()) return false;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const nb::object contents =
          attribute(PyTuple_GetItem(closure.ptr(), static_cast<Py_ssize_t>(i)), interned().cell_contents);
      if (!contents.is_valid() || !cells[i].is_same(contents)) return false;
    }
    return true;
  }
  bool has_globals(nb::handle scope) const {
    return std::ranges::all_of(globals, [&](const Global& each) {
      PyObject* const now = PyDict_GetItemWithError(scope.ptr(), each.name.ptr());
      return now == nullptr ? !each.seen.value.is_valid() : each.seen.is_same(now);
    });
  }
};

/// The remembered functions by the address of their code. The lists are not changed, because reading attributes may run
/// the garbage collector and with it any code, which may add functions.
using KnownFunctions = std::unordered_map<PyObject*, std::shared_ptr<const std::vector<Known>>>;

KnownFunctions& known_functions() {
  static auto* all = new KnownFunctions;  // guarded by the GIL; lives as long as the process
  return *all;
}

bool is_plain(nb::handle function) {
  const nb::object keyword_defaults = attribute(function, interned().keyword_defaults);
  if (!keyword_defaults.is_valid() || !keyword_defaults.is_none()) return false;
  const nb::object dict = attribute(function, interned().dict);
  return dict.is_valid() && PyDict_Check(dict.ptr()) && PyDict_Size(dict.ptr()) == 0;
}

using Tuples = nb::typed<nb::list, nb::typed<nb::tuple, nb::object, nb::ellipsis>>;

void remember(nb::handle function, const nb::object& key, const Tuples& cells, const Tuples& globals) {
  constexpr std::size_t kMaxKnown = 256;
  static std::size_t count = 0;  // guarded by the GIL
  Known known{.code = attribute(function, interned().code),
              .defaults = attribute(function, interned().defaults),
              .cells = {},
              .globals = {},
              .key = key};
  for (const nb::handle each : cells) known.cells.push_back({nb::borrow(each[0]), nb::borrow(each[1])});
  for (const nb::handle each : globals) {
    // (name, key) without a value: the module has no such global.
    const bool is_absent = nb::len(each) == 2;
    Seen seen{is_absent ? nb::object() : nb::borrow(each[2]), nb::borrow(each[1])};
    known.globals.push_back({nb::borrow(each[0]), std::move(seen)});
  }
  KnownFunctions forgotten;  // destroyed last, because destructors may run code
  if (count >= kMaxKnown) {
    std::swap(forgotten, known_functions());
    count = 0;
  }
  std::shared_ptr<const std::vector<Known>>& of_code = known_functions()[known.code.ptr()];
  auto longer =
      of_code == nullptr ? std::make_shared<std::vector<Known>>() : std::make_shared<std::vector<Known>>(*of_code);
  longer->push_back(std::move(known));
  of_code = std::move(longer);
  ++count;
}

}  // namespace

bool is_function(nb::handle object) {
  static PyObject* const type = nb::object(nb::module_::import_("types").attr("FunctionType")).release().ptr();
  return object.type().is(type);
}

nb::object find_function_key(nb::handle function) {
  if (!is_function(function)) return {};
  const Interned& names = interned();
  const nb::object code = attribute(function, names.code);
  const auto found = known_functions().find(code.ptr());
  if (found == known_functions().end()) return {};
  const std::shared_ptr<const std::vector<Known>> known = found->second;
  if (!is_plain(function)) return {};
  const nb::object defaults = attribute(function, names.defaults), closure = attribute(function, names.closure),
                   scope = attribute(function, names.globals);
  for (const Known& each : *known) {
    if (each.defaults.is(defaults) && each.has_cells(closure) && each.has_globals(scope)) return each.key;
  }
  return {};
}

void bind_function_keys(nb::module_& module) {
  module.def(
      "_find_function_key",
      [](nb::handle function) {
        nb::object key = find_function_key(function);
        return key.is_valid() ? key : nb::none();
      },
      nb::arg("function"), "The key that was remembered for the function, or None.");
  module.def(
      "_remember_function_key", &remember, nb::arg("function"), nb::arg("key"), nb::arg("cells"), nb::arg("globals"),
      "`cells` has a pair (value, key) for each cell of the closure, and `globals` a tuple (name, key, value) for "
      "each global that the code may read, or (name, None) if there is none of that name. `key` is None unless "
      "the value is a function with a key.");
}

}  // namespace tilewright::python
