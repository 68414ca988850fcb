#include "python/bindings/dtype.hpp"

#include <nanobind/stl/string.h>

#include <string>
#include <unordered_map>

#include "python/bindings/read.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

/// The part after the last dot of "torch.float16" or "<class 'numpy.float16'>".
std::string last_word(std::string text) {
  if (text.starts_with("<class '") && text.ends_with("'>")) text = text.substr(8, text.size() - 10);
  return text.substr(text.rfind('.') + 1);
}

bool is_class(nb::handle object, const PyTypeObject& type) {
  return object.ptr() == reinterpret_cast<const PyObject*>(&type);
}

/// Python's classes float and int have the names of f32 and s32 in C, but are the 64-bit types of NumPy.
DType parse(nb::handle object) {
  if (is_class(object, PyFloat_Type)) return DType::f64;
  const std::string text = is_class(object, PyLong_Type) ? "int64" : last_word(as_text(object));
  if (const std::optional<DType> type = parse_dtype(text)) return *type;
  if (!nb::isinstance<nb::str>(object) && nb::hasattr(object, "name")) {
    const nb::object value = object.attr("name");
    if (nb::isinstance<nb::str>(value)) return read_dtype(value);
  }
  throw InvalidArgument(fmt::format("unknown element type '{}': must be f64, f32, f16, bf16, e4m3, e5m2, s32, s8 or u8",
                                    printable(text)));
}

}  // namespace

// Types are singletons in every framework, so results are cached by the object's address. The cache holds a reference
// to the object, so that its address is not reused.
DType read_dtype(nb::handle object) {
  if (nb::isinstance<DType>(object)) return nb::cast<DType>(object);
  const bool is_array = PyType_Check(object.ptr()) == 0 && nb::hasattr(object, "shape") && nb::hasattr(object, "dtype");
  if (is_array) return read_dtype(object.attr("dtype"));
  static std::unordered_map<PyObject*, DType> known;  // guarded by the GIL
  if (const auto found = known.find(object.ptr()); found != known.end()) return found->second;
  const DType type = parse(object);
  constexpr std::size_t kMaxKnown = 256;
  if (known.size() < kMaxKnown && known.emplace(object.ptr(), type).second) Py_INCREF(object.ptr());
  return type;
}

std::optional<DType> read_optional_dtype(nb::handle object, const char* what) {
  if (object.is_none()) return std::nullopt;
  try {
    return read_dtype(object);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}: {}", what, error.what()));
  }
}

const char* numpy_name(DType type) {
  switch (type) {
    case DType::f64:
      return "float64";
    case DType::f32:
      return "float32";
    case DType::f16:
      return "float16";
    case DType::bf16:
      return "bfloat16";
    case DType::s32:
      return "int32";
    case DType::s8:
      return "int8";
    case DType::u8:
      return "uint8";
    case DType::e4m3:
      return "float8_e4m3fn";
    case DType::e5m2:
      return "float8_e5m2";
    default:
      throw InvalidArgument(fmt::format("NumPy has no element type {}", name(type)));
  }
}

void bind_dtype(nb::module_& module) {
  nb::enum_<DType>(
      module, "DType",
      "Element types. s4, u4 and b1 are those of instructions and packed weights; arrays have none of them.")
      .value("f64", DType::f64)
      .value("f32", DType::f32)
      .value("tf32", DType::tf32)
      .value("f16", DType::f16)
      .value("bf16", DType::bf16)
      .value("s32", DType::s32)
      .value("s8", DType::s8)
      .value("u8", DType::u8)
      .value("e4m3", DType::e4m3)
      .value("e5m2", DType::e5m2)
      .value("s4", DType::s4)
      .value("u4", DType::u4)
      .value("b1", DType::b1);
  module.def("dtype", &read_dtype, nb::arg("type"),
             "The DType of a torch, NumPy, CuPy, JAX or ml_dtypes type, or of a name: \"float16\", \"f16\", \"half\".");
}

}  // namespace tilewright::python
