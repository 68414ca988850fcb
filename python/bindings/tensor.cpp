#include "python/bindings/tensor.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/bindings/device_array.hpp"
#include "python/bindings/dlpack_exchange.hpp"
#include "python/bindings/dtype.hpp"
#include "python/bindings/read.hpp"
#include "python/bindings/unlocked.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

using op::MemoryDevice;

/// The shape, element type and strides of an array without memory, which is enough to find and compile kernels.
struct ShapeOnly {
  std::vector<std::int64_t> shape;
  DType dtype;
  std::vector<std::int64_t> stride;  // in elements

  bool operator==(const ShapeOnly&) const = default;
};

/// As an expression of Python.
std::string to_string(const ShapeOnly& self) {
  const char* const end = self.shape.size() == 1 ? "," : "";
  return fmt::format("ShapeOnly(({}{}), '{}', ({}{}))", fmt::join(self.shape, ", "), end, name(self.dtype),
                     fmt::join(self.stride, ", "), end);
}

using Integers = nb::typed<nb::sequence, int>;

std::vector<std::int64_t> list_of(const op::Dims& dims) {
  std::vector<std::int64_t> values;
  for (int mode = 0; mode < dims.rank(); ++mode) values.push_back(dims[mode]);
  return values;
}

/// @pre 0 <= rank <= Dims::kMaxRank
op::Dims zeros(int rank) {
  op::Dims dims;
  for (int mode = 0; mode < rank; ++mode) dims.append(0);
  return dims;
}

std::int64_t integer_of(PyObject* number) {
  const std::int64_t value = PyLong_AsLongLong(number);
  if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return value;
}

/// An entry of a shape or of strides; `what` is "shape" or "stride".
std::int64_t extent_of(PyObject* number, const char* what) {
  const std::int64_t value = PyLong_AsLongLong(number);
  if (value != -1 || PyErr_Occurred() == nullptr) return value;
  PyErr_Clear();
  return read_integer<std::int64_t>(number, fmt::format("an entry of the {}", what).c_str());
}

nb::object item(nb::handle sequence, Py_ssize_t index) {
  PyObject* const found = PySequence_GetItem(sequence.ptr(), index);
  if (found == nullptr) throw nb::python_error();
  return nb::steal(found);
}

/// The elements of a sequence of two. @throws InvalidArgument, which begins with `what`, if it is none
std::pair<nb::object, nb::object> pair_of(nb::handle object, const char* what) {
  if (PySequence_Check(object.ptr()) == 0 || nb::len(object) != 2)
    throw InvalidArgument(fmt::format("{}, got {}", what, shown(object)));
  return {item(object, 0), item(object, 1)};
}

}  // namespace

op::Dims dims_of(nb::handle sequence, const char* what) {
  if (PySequence_Check(sequence.ptr()) == 0)
    throw nb::type_error(fmt::format("{} must be a sequence of integers, got {}", what, shown(sequence)).c_str());
  const std::size_t rank = nb::len(sequence);
  if (rank > op::Dims::kMaxRank)
    throw InvalidArgument(
        fmt::format("a tensor has at most {} modes, got a {} of length {}", op::Dims::kMaxRank, what, rank));
  op::Dims values = zeros(static_cast<int>(rank));
  const bool is_tuple = PyTuple_Check(sequence.ptr()) != 0;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto place = static_cast<Py_ssize_t>(i);
    values[static_cast<int>(i)] = is_tuple ? extent_of(PyTuple_GetItem(sequence.ptr(), place), what)
                                           : extent_of(item(sequence, place).ptr(), what);
  }
  return values;
}

op::Dims packed_strides(const op::Dims& shape) {
  op::Dims strides = shape;
  std::int64_t step = 1;
  for (int mode = shape.rank() - 1; mode >= 0; --mode) {
    strides[mode] = step;
    if (__builtin_mul_overflow(step, std::max<std::int64_t>(1, shape[mode]), &step))
      throw InvalidArgument(fmt::format("an array of shape {} has more than 2^63 elements", op::to_string(shape)));
  }
  return strides;
}

namespace {

/// A class of a module, or nullptr if the module is not imported yet. `known` caches the class once it is found;
/// looking up a module that is not imported is cheap.
PyTypeObject* class_of(const char* module, const char* name, PyTypeObject*& known) {
  if (known != nullptr) return known;
  const nb::object loaded = imported(module);
  if (loaded.is_none() || !nb::hasattr(loaded, name)) return nullptr;
  known = reinterpret_cast<PyTypeObject*>(nb::object(loaded.attr(name)).release().ptr());
  return known;
}

PyTypeObject* torch_tensor_type() {
  static PyTypeObject* type = nullptr;  // guarded by the GIL; torch is never unloaded
  return class_of("torch", "Tensor", type);
}
PyTypeObject* numpy_array_type() {
  static PyTypeObject* type = nullptr;
  return class_of("numpy", "ndarray", type);
}
/// The base class of NumPy's scalars, such as numpy.float32(2).
PyTypeObject* numpy_scalar_type() {
  static PyTypeObject* type = nullptr;
  return class_of("numpy", "generic", type);
}
PyTypeObject* cupy_array_type() {
  static PyTypeObject* type = nullptr;
  return class_of("cupy", "ndarray", type);
}

bool is_of(nb::handle object, PyTypeObject* type) {
  return type != nullptr && PyType_IsSubtype(Py_TYPE(object.ptr()), type) != 0;
}

nb::object call(nb::handle object, nb::handle method) {
  PyObject* const result = PyObject_CallMethodObjArgs(object.ptr(), method.ptr(), nullptr);
  if (result == nullptr) throw nb::python_error();
  return nb::steal(result);
}

nb::object attribute(nb::handle object, nb::handle name) {
  PyObject* const result = PyObject_GetAttr(object.ptr(), name.ptr());
  if (result == nullptr) throw nb::python_error();
  return nb::steal(result);
}

/// Interned attribute names, which are made once because every call looks them up.
struct Interned {
  nb::object data_ptr = nb::steal(PyUnicode_InternFromString("data_ptr"));
  nb::object shape = nb::steal(PyUnicode_InternFromString("shape"));
  nb::object stride = nb::steal(PyUnicode_InternFromString("stride"));
  nb::object dtype = nb::steal(PyUnicode_InternFromString("dtype"));
  nb::object device = nb::steal(PyUnicode_InternFromString("device"));
  nb::object get_device = nb::steal(PyUnicode_InternFromString("get_device"));
  nb::object is_neg = nb::steal(PyUnicode_InternFromString("is_neg"));
  nb::object layout = nb::steal(PyUnicode_InternFromString("layout"));
  nb::object strides = nb::steal(PyUnicode_InternFromString("strides"));
  nb::object data = nb::steal(PyUnicode_InternFromString("data"));
  nb::object typestr = nb::steal(PyUnicode_InternFromString("typestr"));
  nb::object stream = nb::steal(PyUnicode_InternFromString("stream"));
  nb::object array_interface = nb::steal(PyUnicode_InternFromString("__array_interface__"));
};
const Interned& interned() {
  static const Interned* names = new Interned;  // lives as long as the interpreter
  return *names;
}

struct DlpackType {
  DType type;
  int code, bits;
};
using Code = nb::dlpack::dtype_code;
constexpr std::array kDlpackTypes{
    DlpackType{DType::f64, int(Code::Float), 64},
    DlpackType{DType::f32, int(Code::Float), 32},
    DlpackType{DType::f16, int(Code::Float), 16},
    DlpackType{DType::bf16, int(Code::Bfloat), 16},
    DlpackType{DType::s32, int(Code::Int), 32},
    DlpackType{DType::s8, int(Code::Int), 8},
    DlpackType{DType::u8, int(Code::UInt), 8},
    DlpackType{DType::e4m3, 10, 8},  // DLPack 1.1: kDLFloat8_e4m3fn
    DlpackType{DType::e5m2, 12, 8},  // kDLFloat8_e5m2
};

/// The element type of an array interface's typestr, for example "<f4".
DType of_typestr(const std::string& typestr) {
  constexpr std::pair<std::string_view, DType> kTypes[] = {{"f8", DType::f64}, {"f4", DType::f32}, {"f2", DType::f16},
                                                           {"i4", DType::s32}, {"i1", DType::s8},  {"u1", DType::u8}};
  for (const auto& [ending, type] : kTypes) {
    if (typestr.size() == 3 && typestr.ends_with(ending)) return type;
  }
  throw InvalidArgument(
      fmt::format("the array has no dtype, and its typestr '{}' is no supported element type", printable(typestr)));
}

DType of_dlpack(const nb::dlpack::dtype& type) {
  for (const DlpackType& each : kDlpackTypes) {
    if (type.code == each.code && type.bits == each.bits && type.lanes == 1) return each.type;
  }
  throw InvalidArgument(
      fmt::format("the DLPack type with code {} and {} bits is no supported element type", type.code, type.bits));
}

MemoryDevice of_dlpack(int device_type, int device_id) {
  if (device_type == nb::device::cuda::value) return {MemoryDevice::Kind::cuda, device_id};
  if (device_type == nb::device::cpu::value || device_type == nb::device::cuda_host::value) return {};
  throw InvalidArgument(fmt::format("arrays on a device of DLPack's type {} are not supported", device_type));
}

op::Dims dims_at(const std::int64_t* values, int rank) {
  if (rank > op::Dims::kMaxRank)
    throw InvalidArgument(fmt::format("a tensor has at most {} modes, got {}", op::Dims::kMaxRank, rank));
  op::Dims dims = zeros(rank);
  for (int mode = 0; mode < rank; ++mode) dims[mode] = values[mode];
  return dims;
}

/// Whether the array is a JAX array. JAX arrays are immutable, but do not always say so in their interfaces.
bool is_immutable(nb::handle object) {
  const auto type = nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
  return as_text(type.attr("__module__")).starts_with("jax");
}

/// Reads a tensor by DLPack's C exchange API. Returns nullopt if that fails, as it does for tensors without memory, and
/// for a GPU tensor whose framework does not tell its current stream.
std::optional<ReadTensor> read_exchanged(const ExchangeTable& table, nb::handle object, nb::handle dtype) {
  ExchangedTensor view;
  if (table.view(object.ptr(), &view) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  ReadTensor read{.tensor = {}, .is_read_only = false, .stream = {}, .owner = nb::borrow(object)};
  op::Tensor& tensor = read.tensor;
  if (view.device_type == nb::device::cuda::value) {
    // Without the current stream, __dlpack__ must be used instead: it synchronizes the array with a stream of ours.
    if (table.current_stream == nullptr) return std::nullopt;
    read.stream = {.kind = StreamSource::Kind::table, .handle = 0, .table = &table};
  }
  tensor.dtype = dtype.is_none() ? of_dlpack(view.dtype) : read_dtype(dtype);
  tensor.shape = dims_at(view.shape, view.rank);
  tensor.stride = view.strides != nullptr ? dims_at(view.strides, view.rank) : packed_strides(tensor.shape);
  tensor.device = of_dlpack(view.device_type, view.device_id);
  tensor.address = reinterpret_cast<std::uint64_t>(view.data) + view.byte_offset;
  return read;
}

/// Whether a tensor is a FakeTensor of torch.compile, which has a device but no memory. Its data_ptr() prints a
/// warning, so that it must not be called.
bool is_fake(nb::handle object) {
  if (Py_TYPE(object.ptr()) == torch_tensor_type()) return false;
  return as_text(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))).attr("__name__")) == "FakeTensor";
}

/// Refuses a view whose memory has the negated elements, which only PyTorch's own operators take into account.
void check_not_negated(nb::handle tensor) {
  if (call(tensor, interned().is_neg).is(Py_True))
    throw InvalidArgument("the tensor is a view of negated elements (is_neg()): pass .resolve_neg()");
}

ReadTensor read_torch(nb::handle object) {
  const Interned& names = interned();
  if (const std::string layout = as_text(attribute(object, names.layout)); layout != "torch.strided")
    throw InvalidArgument(fmt::format("the tensor has the layout {}: pass .to_dense()", printable(layout)));
  check_not_negated(object);
  ReadTensor read{.tensor = {}, .is_read_only = false, .stream = {}, .owner = nb::borrow(object)};
  op::Tensor& tensor = read.tensor;
  tensor.dtype = read_dtype(attribute(object, names.dtype));
  tensor.shape = dims_of(attribute(object, names.shape), "shape");
  tensor.stride = dims_of(call(object, names.stride), "stride");
  if (is_fake(object)) {
    tensor.device = {MemoryDevice::Kind::shape, 0};
    return read;
  }
  constexpr std::int64_t kNoGpu = -1;
  if (const std::int64_t ordinal = integer_of(call(object, names.get_device).ptr()); ordinal != kNoGpu) {
    tensor.device = {MemoryDevice::Kind::cuda, static_cast<int>(ordinal)};
    read.stream.kind = StreamSource::Kind::torch;
  }
  tensor.address = static_cast<std::uint64_t>(integer_of(call(object, names.data_ptr).ptr()));
  if (tensor.address != 0) return read;
  const std::string kind = as_text(attribute(object, names.device).attr("type"));
  if (kind == "meta") tensor.device = {MemoryDevice::Kind::shape, 0};
  return read;
}

/// The value of a key, or an invalid object if the dictionary does not have it.
nb::object entry(nb::handle dictionary, nb::handle key) {
  PyObject* const found = PyDict_GetItemWithError(dictionary.ptr(), key.ptr());
  if (found == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
  return nb::borrow(found);
}

/// The strides of an array interface in elements. The interface has them in bytes, or None for a packed array.
op::Dims strides_of(nb::handle interface, const op::Dims& shape, DType dtype) {
  const nb::object given = entry(interface, interned().strides);
  if (!given.is_valid() || given.is_none()) return packed_strides(shape);
  op::Dims strides = dims_of(given, "stride");
  if (strides.rank() != shape.rank())
    throw InvalidArgument(fmt::format("the array has {} strides, but {} extents", strides.rank(), shape.rank()));
  for (int mode = 0; mode < strides.rank(); ++mode) {
    if (strides[mode] % bytes(dtype) != 0) {
      throw InvalidArgument(fmt::format("a stride of {} bytes is no multiple of the element size, {} bytes",
                                        strides[mode], bytes(dtype)));
    }
    strides[mode] /= bytes(dtype);
  }
  return strides;
}

DType of_whole_bytes(DType type) {
  if (bits(type) % 8 == 0) return type;
  throw InvalidArgument(
      fmt::format("elements of {} have {} bits, but those of arrays must have whole bytes; "
                  "tilewright.pack_weights() packs weights of 4 bits",
                  name(type), bits(type)));
}

/// The element type from the array's dtype if it has one, else from the typestr.
/// @throws InvalidArgument if both exist and contradict each other
DType element_of(nb::handle object, const std::string& typestr) {
  nb::object type = nb::getattr(object, interned().dtype, nb::none());
  if (type.is_none()) return of_typestr(typestr);
  const DType element = of_whole_bytes(read_dtype(type));
  int width = bytes(element);
  if (typestr.size() > 2) std::from_chars(typestr.data() + 2, typestr.data() + typestr.size(), width);
  if (width == bytes(element)) return element;
  throw InvalidArgument(
      fmt::format("the array's dtype is {}, but its typestr is '{}'", name(element), printable(typestr)));
}

ReadTensor read_interface(nb::handle object, nb::handle interface, MemoryDevice device, nb::handle dtype) {
  const Interned& names = interned();
  ReadTensor read{.tensor = {}, .is_read_only = false, .stream = {}, .owner = nb::borrow(object)};
  if (!PyDict_Check(interface.ptr())) throw InvalidArgument("an array's interface must be a dict");
  const nb::object shape = entry(interface, names.shape), data = entry(interface, names.data);
  const nb::object type = entry(interface, names.typestr);
  const std::string typestr = type.is_valid() ? read_text(type, "the typestr of an array's interface") : "";
  if (typestr.starts_with('>')) {
    throw InvalidArgument(fmt::format("big-endian arrays are not supported: pass .astype('<{}')", typestr.substr(1)));
  }
  read.tensor.dtype = dtype.is_none() ? element_of(object, typestr) : read_dtype(dtype);
  if (!shape.is_valid() || !data.is_valid() || data.is_none())
    throw InvalidArgument("the array's interface has no shape or no data pointer");
  read.tensor.shape = dims_of(shape, "shape");
  read.tensor.stride = strides_of(interface, read.tensor.shape, read.tensor.dtype);
  const auto [address, is_read_only] =
      pair_of(data, "the data of an array's interface must be (address, is_read_only)");
  read.tensor.address = read_unsigned(address, "the address of the array's data");
  read.is_read_only = nb::cast<bool>(nb::bool_(is_read_only));
  read.tensor.device = device;
  return read;
}

constexpr int kMaxOrdinal = 1 << 16;

/// The ordinal of the GPU that holds an array. __cuda_array_interface__ does not have it, but the attribute `device`
/// may.
int ordinal_of(nb::handle object) {
  const nb::object device = nb::getattr(object, "device", nb::int_(0));
  const nb::object id = nb::hasattr(device, "id") ? device.attr("id") : device;
  return nb::isinstance<nb::int_>(id) ? static_cast<int>(read_signed(id, "the array's device", 0, kMaxOrdinal)) : 0;
}

constexpr int kNullStream = 1;  // the null stream in DLPack and __cuda_array_interface__

nb::object dlpack_capsule(nb::handle object, bool is_cuda) {
  nb::dict arguments;
  arguments["max_version"] = nb::make_tuple(1, 1);
  if (is_cuda) arguments["stream"] = kNullStream;
  try {
    return object.attr("__dlpack__")(**arguments);
  } catch (nb::python_error& error) {  // an exporter older than DLPack 1.0 does not know max_version
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return is_cuda ? object.attr("__dlpack__")(nb::arg("stream") = kNullStream) : object.attr("__dlpack__")();
}

ReadTensor read_dlpack(nb::handle object, nb::handle dtype) {
  bool is_cuda = false;
  if (nb::hasattr(object, "__dlpack_device__")) {
    const auto [kind, ordinal] =
        pair_of(object.attr("__dlpack_device__")(), "__dlpack_device__() must return (type, id)");
    is_cuda = read_integer<int>(kind, "the device type of an array") == nb::device::cuda::value;
  }
  const nb::object capsule = dlpack_capsule(object, is_cuda);
  nb::ndarray<> writable;
  const bool is_read_only = !nb::try_cast(capsule, writable);  // fails if the exporter's flag says read-only
  nb::ndarray<nb::ro> array;
  if (!is_read_only) {
    array = nb::ndarray<nb::ro>(writable);
  } else if (!nb::try_cast(capsule, array)) {
    throw InvalidArgument(fmt::format("__dlpack__() must return a DLPack capsule, got {}", shown(capsule)));
  }
  ReadTensor read;
  if (is_cuda) read.stream.kind = StreamSource::Kind::lent;
  read.tensor.address = reinterpret_cast<std::uint64_t>(array.data());
  read.tensor.dtype = dtype.is_none() ? of_dlpack(array.dtype()) : read_dtype(dtype);
  const int rank = static_cast<int>(array.ndim());
  read.tensor.shape = dims_at(array.shape_ptr(), rank);
  read.tensor.stride = dims_at(array.stride_ptr(), rank);
  read.tensor.device = of_dlpack(array.device_type(), array.device_id());
  using Array = nb::ndarray<nb::ro>;
  read.owner = nb::capsule(new Array(array), [](void* held) noexcept { delete static_cast<Array*>(held); });
  read.is_read_only = is_read_only || is_immutable(object);
  return read;
}

ReadTensor read_cuda_interface(nb::handle object, nb::handle dtype) {
  const nb::object interface = object.attr("__cuda_array_interface__");
  ReadTensor read = read_interface(object, interface, {MemoryDevice::Kind::cuda, ordinal_of(object)}, dtype);
  const nb::object stream = entry(interface, interned().stream);
  if (!stream.is_valid() || stream.is_none()) return read;
  read.stream = {.kind = StreamSource::Kind::fixed,
                 .handle = read_unsigned(stream, "the stream of the array's interface"),
                 .table = nullptr};
  if (read.stream.handle == 0)
    throw InvalidArgument(
        "stream 0 in __cuda_array_interface__ is not allowed: the legacy default stream is 1, the per-thread one 2");
  return read;
}

ReadTensor read_numpy(nb::handle object, nb::handle dtype) {
  if (Py_TYPE(object.ptr()) != numpy_array_type() && nb::hasattr(object, "mask"))
    throw InvalidArgument("masked arrays are not supported: pass .data or .filled()");
  return read_interface(object, attribute(object, interned().array_interface), {}, dtype);
}

/// Reads a copy of a scalar of NumPy, which cannot be written. The memory that the scalar's own interface has is that
/// of an array which ends with the interface.
ReadTensor read_numpy_scalar(nb::handle scalar, nb::handle dtype) {
  const nb::object array = scalar.attr("__array__")();
  ReadTensor read = read_interface(array, attribute(array, interned().array_interface), {}, dtype);
  read.is_read_only = true;
  return read;
}

ReadTensor read_shape(const ShapeOnly& shape, nb::handle object) {
  ReadTensor read{.tensor = {}, .is_read_only = false, .stream = {}, .owner = nb::borrow(object)};
  read.tensor.dtype = shape.dtype;
  read.tensor.shape = dims_of(nb::cast(shape.shape), "shape");
  read.tensor.stride = dims_of(nb::cast(shape.stride), "stride");
  read.tensor.device = {MemoryDevice::Kind::shape, 0};
  return read;
}

/// Reads an array by __dlpack__. Returns nullopt if the object has no such method, or if it fails and the object has an
/// array interface that can be tried instead.
std::optional<ReadTensor> try_dlpack(nb::handle object, nb::handle dtype) {
  if (!nb::hasattr(object, "__dlpack__")) return std::nullopt;
  const bool has_another =
      nb::hasattr(object, "__cuda_array_interface__") || nb::hasattr(object, "__array_interface__");
  try {
    return read_dlpack(object, dtype);
  } catch (nb::python_error& error) {
    if (!has_another || !error.matches(PyExc_Exception)) throw;
  } catch (const nb::builtin_exception&) {  // __dlpack__() returned an object of a wrong type
    if (!has_another) throw;
  } catch (const InvalidArgument&) {  // the element type or the device is not supported
    if (!has_another) throw;
  }
  return std::nullopt;
}

}  // namespace

bool is_exactly(nb::handle object, ArrayClass kind) {
  const PyTypeObject* const type = kind == ArrayClass::torch   ? torch_tensor_type()
                                   : kind == ArrayClass::numpy ? numpy_array_type()
                                                               : cupy_array_type();
  return type != nullptr && Py_TYPE(object.ptr()) == type;
}

nb::dlpack::dtype dlpack_type(DType type) {
  for (const DlpackType& each : kDlpackTypes) {
    if (each.type == type) return {static_cast<std::uint8_t>(each.code), static_cast<std::uint8_t>(each.bits), 1};
  }
  throw InvalidArgument(fmt::format("DLPack has no type for {}", name(type)));
}

namespace {

ReadTensor read_unnamed(nb::handle object, nb::handle dtype) {
  const bool is_torch = is_of(object, torch_tensor_type());
  // Subclasses of torch.Tensor inherit its exchange API, but need not have memory.
  const bool is_plain = !is_torch || Py_TYPE(object.ptr()) == torch_tensor_type();
  const ExchangeTable* const table = is_plain ? exchange_table(object) : nullptr;
  if (table != nullptr) {
    std::optional<ReadTensor> read = read_exchanged(*table, object, dtype);
    if (read && (!is_torch || read->tensor.address != 0 || read->tensor.is_empty())) {
      if (is_torch) check_not_negated(object);
      read->is_read_only = !is_torch && is_immutable(object);
      return *std::move(read);
    }
  }
  if (is_torch) {
    ReadTensor read = read_torch(object);
    if (!dtype.is_none()) read.tensor.dtype = read_dtype(dtype);
    return read;
  }
  if (nb::isinstance<ShapeOnly>(object)) return read_shape(nb::cast<const ShapeOnly&>(object), object);
  if (is_of(object, numpy_array_type())) return read_numpy(object, dtype);
  if (is_of(object, numpy_scalar_type())) return read_numpy_scalar(object, dtype);
  if (is_of(object, cupy_array_type())) {
    ReadTensor read = read_cuda_interface(object, dtype);
    read.stream = {.kind = StreamSource::Kind::cupy, .handle = 0, .table = nullptr};
    return read;
  }
  if (std::optional<ReadTensor> read = read_device_array(object)) return *std::move(read);
  const Locked gil;  // methods of unknown classes may be Python functions that take long
  if (std::optional<ReadTensor> read = try_dlpack(object, dtype)) return *std::move(read);
  if (nb::hasattr(object, "__cuda_array_interface__")) return read_cuda_interface(object, dtype);
  if (nb::hasattr(object, "__array_interface__"))
    return read_interface(object, attribute(object, interned().array_interface), {}, dtype);
  throw InvalidArgument(fmt::format(
      "expected an array (torch, NumPy, CuPy, JAX, DLPack, __cuda_array_interface__) or a ShapeOnly, got {}",
      as_text(object.type())));
}

}  // namespace

ReadTensor read_tensor(nb::handle object, const char* role, nb::handle dtype) {
  try {
    return read_unnamed(object, dtype);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}: {}", role, error.what()));
  } catch (const nb::builtin_exception& error) {
    throw nb::type_error(fmt::format("{}: {}", role, error.what()).c_str());
  }
}

void bind_tensor(nb::module_& module) {
  nb::class_<ShapeOnly>(
      module, "ShapeOnly",
      "An array without memory, as a meta tensor of PyTorch: shape, element type and stride. It can be passed instead "
      "of "
      "an array to find, compile and prepare kernels, but not to run them. `stride` is in elements; the default is "
      "row-major without gaps.")
      .def(
          "__init__",
          [](ShapeOnly* self, const Integers& shape, nb::handle dtype, const std::optional<Integers>& stride) {
            const op::Dims extents = dims_of(shape, "shape");
            for (int mode = 0; mode < extents.rank(); ++mode) {
              if (extents[mode] < 0)
                throw InvalidArgument(fmt::format("shape[{}] must be at least 0, got {}", mode, extents[mode]));
            }
            const op::Dims steps = stride ? dims_of(*stride, "stride") : packed_strides(extents);
            if (steps.rank() != extents.rank()) {
              throw InvalidArgument(
                  fmt::format("stride has {} entries, but shape has {}", steps.rank(), extents.rank()));
            }
            new (self) ShapeOnly{list_of(extents), of_whole_bytes(read_dtype(dtype)), list_of(steps)};
          },
          nb::arg("shape"), nb::arg("dtype"), nb::arg("stride") = nb::none())
      .def_ro("shape", &ShapeOnly::shape)
      .def_ro("dtype", &ShapeOnly::dtype)
      .def_ro("stride", &ShapeOnly::stride)
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const ShapeOnly& self) { return std::hash<std::string>()(to_string(self)); })
      .def(
          "__reduce__",
          [](nb::handle self) {
            const auto& shape = nb::cast<const ShapeOnly&>(self);
            return nb::make_tuple(self.type(),
                                  nb::make_tuple(shape.shape, std::string(name(shape.dtype)), shape.stride));
          },
          nb::sig("def __reduce__(self) -> tuple[object, ...]"))
      .def("__repr__", &to_string);
  module.def(
      "_shape_of",
      [](nb::handle array) {
        const op::Tensor tensor = read_tensor(array, "the array").tensor;
        return ShapeOnly{list_of(tensor.shape), tensor.dtype, list_of(tensor.stride)};
      },
      nb::arg("array"), "The ShapeOnly that describes an array of any framework.");
}

}  // namespace tilewright::python
