#include "python/bindings/dlpack_exchange.hpp"

#include <unordered_map>

namespace nb = nanobind;

namespace tilewright::python {
namespace {

constexpr std::uint32_t kMajor = 1;  // DLPack's major version whose ABI dlpack_exchange.hpp declares

const ExchangeTable* table_of(PyTypeObject* type) {
  PyObject* const capsule = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__");
  if (capsule == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  const nb::object owner = nb::steal(capsule);
  const auto* table = static_cast<const ExchangeTable*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  if (table == nullptr) PyErr_Clear();
  while (table != nullptr && table->major != kMajor) table = table->previous;
  return table != nullptr && table->view != nullptr ? table : nullptr;
}

}  // namespace

// DLPack requires tables to live as long as the process. The reference to a type is never released, so that no other
// type can get the same address.
const ExchangeTable* exchange_table(nb::handle object) {
  static std::unordered_map<PyTypeObject*, const ExchangeTable*> known;  // guarded by the GIL
  PyTypeObject* const type = Py_TYPE(object.ptr());
  if (const auto found = known.find(type); found != known.end()) return found->second;
  constexpr std::size_t kMaxKnown = 256;
  const ExchangeTable* const table = table_of(type);
  if (known.size() < kMaxKnown) {
    Py_INCREF(type);
    known.emplace(type, table);
  }
  return table;
}

}  // namespace tilewright::python
