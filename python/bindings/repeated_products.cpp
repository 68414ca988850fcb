#include "python/bindings/repeated_products.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "python/bindings/arguments.hpp"
#include "python/bindings/engine.hpp"
#include "python/bindings/function_keys.hpp"
#include "python/bindings/tensor.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/engine/recent.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

/// Whether PyTorch records operators for gradients, or a transformation of torch.func is active.
class TorchModes {
 public:
  TorchModes() {
    static PyObject *enabled = nullptr, *transforms = nullptr;  // guarded by the GIL
    const nb::handle is_enabled = function_of("torch", "_C", "is_grad_enabled", enabled);
    const nb::handle are_active = function_of("torch", "_C", "_are_functorch_transforms_active", transforms);
    records_ = !is_enabled.is_valid() || is_enabled().is(Py_True);
    transforms_ = !are_active.is_valid() || are_active().is(Py_True);
  }
  /// Whether the operators of PyTorch must be used on the tensor.
  bool apply_to(nb::handle tensor) const {
    static PyObject* const name = PyUnicode_InternFromString("requires_grad");
    if (transforms_) return true;
    if (!records_) return false;
    const nb::object requires_grad = nb::steal(PyObject_GetAttr(tensor.ptr(), name));
    return !requires_grad.is(Py_False);
  }

 private:
  bool records_, transforms_;
};

/// An operand of the epilogue: an array or a number.
struct EpilogueOperand {
  nb::object name;
  std::optional<op::Tensor> tensor;
  double number = 0.0;

  bool is_same(const EpilogueOperand& other) const;
};

bool same_text(nb::handle x, nb::handle y) {
  return x.is(y) ||
         (PyUnicode_Check(x.ptr()) != 0 && PyUnicode_Check(y.ptr()) != 0 && PyUnicode_Compare(x.ptr(), y.ptr()) == 0);
}

bool same_bits(double x, double y) { return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y); }

/// Whether the tensors differ at most in their addresses.
bool same_but_for_address(const op::Tensor& x, const op::Tensor& y) {
  return x.dtype == y.dtype && x.shape == y.shape && x.stride == y.stride && x.device == y.device;
}

bool EpilogueOperand::is_same(const EpilogueOperand& other) const {
  if (!same_text(name, other.name) || tensor.has_value() != other.tensor.has_value()) return false;
  return tensor ? same_but_for_address(*tensor, *other.tensor) : same_bits(number, other.number);
}

/// The arguments of a call of matmul() as far as a later call may be like it.
struct ReadCall {
  nb::object epilogue;  // the key of a function; None, a str, an Epilogue or a function of a library such as torch.relu
  nb::object out_dtype, accumulator, math;
  double alpha = 1.0, beta = 0.0;
  PyTypeObject* framework = nullptr;  // the class of a, which is that of a new array
  op::Tensor a = {}, b = {};
  std::optional<op::Tensor> out = {};  // if the caller gave one
  std::optional<op::Tensor> c = {};
  std::vector<EpilogueOperand> operands = {};

  bool is_like(const ReadCall& other) const {
    const auto both = [](const std::optional<op::Tensor>& x, const std::optional<op::Tensor>& y) {
      return x.has_value() == y.has_value() && (!x || same_but_for_address(*x, *y));
    };
    return framework == other.framework && same_text(epilogue, other.epilogue) && same_but_for_address(a, other.a) &&
           same_but_for_address(b, other.b) && both(out, other.out) && both(c, other.c) &&
           same_bits(alpha, other.alpha) && same_bits(beta, other.beta) && same_text(out_dtype, other.out_dtype) &&
           same_text(accumulator, other.accumulator) && same_text(math, other.math) &&
           std::ranges::equal(operands, other.operands, [](const auto& x, const auto& y) { return x.is_same(y); });
  }
  /// A hash of what is_like() compares.
  std::size_t hash() const {
    std::uint64_t hash = operands.size();
    const auto add = [&](std::uint64_t value) {
      hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
      hash ^= hash >> 32;
    };
    if (PyUnicode_Check(epilogue.ptr()) == 0) add(reinterpret_cast<std::uintptr_t>(epilogue.ptr()));
    for (const op::Tensor* each : {&a, &b}) {
      for (int mode = 0; mode < each->shape.rank(); ++mode) add(static_cast<std::uint64_t>(each->shape[mode]));
    }
    add(static_cast<std::uint64_t>(a.dtype));
    return hash;
  }
  /// The addresses of all arrays, in the order of places().
  std::vector<std::uint64_t> addresses(std::uint64_t of_out) const {
    std::vector<std::uint64_t> all{a.address, b.address, of_out, c ? c->address : 0};
    all.reserve(all.size() + operands.size());
    for (const EpilogueOperand& each : operands) all.push_back(each.tensor ? each.tensor->address : 0);
    return all;
  }
  /// The place in addresses() of each operand of the problem that the call became. `labels` has the names in the graph
  /// of arrays of the epilogue, and the operands for which they stand. Nullopt if one of them is unknown.
  std::optional<std::vector<std::size_t>> places(const op::Problem& problem,
                                                 const std::map<std::string, std::string>& labels) const {
    constexpr std::array<std::string_view, 4> kMatrices{"A", "B", "D", "C"};
    std::vector<std::size_t> all;
    for (const op::ConstOperand& operand : op::operands(problem)) {
      const auto matrix = std::ranges::find(kMatrices, operand.name);
      all.push_back(static_cast<std::size_t>(matrix - kMatrices.begin()));
      if (matrix != kMatrices.end()) continue;
      const auto label = labels.find(std::string(operand.name));
      if (label == labels.end()) return std::nullopt;
      const auto source = std::ranges::find_if(operands, [&](const EpilogueOperand& each) {
        return each.tensor && nb::cast<std::string>(each.name) == label->second;
      });
      if (source == operands.end()) return std::nullopt;
      all.back() += static_cast<std::size_t>(source - operands.begin());
    }
    return all;
  }
};

/// An earlier call, and the problem that it became.
struct KnownCall {
  ReadCall call;
  op::Problem problem;
  std::vector<std::size_t> places;  // ReadCall::places() of the problem
  op::Tensor out;
  nb::object out_shape, out_dtype;  // of the array that is made for the result

  op::Problem at(const std::vector<std::uint64_t>& addresses) const {
    op::Problem moved = problem;
    const std::vector<op::Operand> all = op::operands(moved);
    for (std::size_t i = 0; i < all.size(); ++i) all[i].tensor->address = addresses[places[i]];
    return moved;
  }
};
using KnownPtr = std::shared_ptr<const KnownCall>;

/// A call with the addresses that a program uses again and again.
struct PlacedCall {
  KnownPtr known;
  std::vector<std::uint64_t> addresses;
  engine::Call call;
};

using KnownCalls = std::unordered_multimap<std::size_t, KnownPtr>;
KnownCalls& known_calls() {
  static auto* all = new KnownCalls;  // guarded by the GIL; lives as long as the process
  return *all;
}

KnownPtr find(const ReadCall& call, std::size_t hash) {
  const auto [begin, end] = known_calls().equal_range(hash);
  const auto found = std::find_if(begin, end, [&](const auto& each) { return each.second->call.is_like(call); });
  return found == end ? nullptr : found->second;
}

engine::Call placed(const KnownPtr& known, const ReadCall& call, std::uint64_t of_out, std::size_t hash) {
  static auto* const recent = new engine::RecentTable<PlacedCall>;  // lives as long as the process
  std::vector<std::uint64_t> addresses = call.addresses(of_out);
  for (const std::uint64_t address : addresses) hash = (hash ^ (address >> 4)) * 0x9e3779b97f4a7c15ULL;
  hash ^= hash >> 32;
  const std::shared_ptr<const PlacedCall> found =
      recent->find(hash, [&](const PlacedCall& each) { return each.known == known && each.addresses == addresses; });
  if (found != nullptr) return found->call;
  engine::Call made(known->at(addresses));
  recent->insert(hash, std::make_shared<const PlacedCall>(known, std::move(addresses), made));
  return made;
}

/// The parameters of matmul() by which calls differ.
struct GivenCall {
  nb::handle a, b, out, epilogue, operands, c, alpha, beta, out_dtype, accumulator, math;
};

/// A float, or an int that is no bool. Other objects are left to Python's code.
std::optional<double> plain_number(nb::handle object) {
  const bool is_integer = PyLong_CheckExact(object.ptr()) != 0;
  if (!is_integer && PyFloat_CheckExact(object.ptr()) == 0) return std::nullopt;
  const double value = is_integer ? PyLong_AsDouble(object.ptr()) : PyFloat_AsDouble(object.ptr());
  if (value == -1.0 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return std::nullopt;
  }
  return value;
}

/// Reads a call. Nullopt if it is of a kind that is never remembered: other arrays, functions without a key, gradients.
/// @throws what ArgumentsReader::read() throws
std::optional<ReadCall> read_call(const GivenCall& given, ArgumentsReader& reader) {
  const bool is_text = given.epilogue.is_none() || PyUnicode_CheckExact(given.epilogue.ptr()) != 0;
  const bool is_constant =
      is_text || PyCFunction_Check(given.epilogue.ptr()) != 0 || nb::isinstance<op::Epilogue>(given.epilogue);
  ReadCall call{.epilogue = is_constant ? nb::borrow(given.epilogue) : find_function_key(given.epilogue),
                .out_dtype = nb::borrow(given.out_dtype),
                .accumulator = nb::borrow(given.accumulator),
                .math = nb::borrow(given.math)};
  const std::optional<double> alpha = plain_number(given.alpha);
  const std::optional<double> beta = given.beta.is_none() ? (given.c.is_none() ? 0.0 : 1.0) : plain_number(given.beta);
  if (!call.epilogue.is_valid() || !alpha || !beta) return std::nullopt;
  call.alpha = *alpha;
  call.beta = *beta;
  call.framework = Py_TYPE(given.a.ptr());
  std::optional<TorchModes> modes;
  const auto read = [&](nb::handle array, bool is_written, op::Tensor& tensor) {
    if (is_exactly(array, ArrayClass::torch)) {
      if (!modes) modes.emplace();
      if (modes->apply_to(array)) return false;
    } else if (!is_exactly(array, ArrayClass::numpy) && !is_exactly(array, ArrayClass::cupy)) {
      return false;
    }
    tensor = reader.read(array, is_written, "");
    return true;
  };
  if (!read(given.a, false, call.a) || !read(given.b, false, call.b)) return std::nullopt;
  if (!given.out.is_none() && !read(given.out, true, call.out.emplace())) return std::nullopt;
  if (!given.c.is_none() && !read(given.c, false, call.c.emplace())) return std::nullopt;
  PyObject *name = nullptr, *value = nullptr;
  for (Py_ssize_t place = 0; PyDict_Next(given.operands.ptr(), &place, &name, &value) != 0;) {
    EpilogueOperand& operand = call.operands.emplace_back(EpilogueOperand{.name = nb::borrow(name), .tensor = {}});
    if (const std::optional<double> number = plain_number(value)) {
      operand.number = *number;
    } else if (!read(value, false, operand.tensor.emplace())) {
      return std::nullopt;
    }
  }
  return call;
}

/// read_call(), without a value where it throws: Python's code gives the message.
std::optional<ReadCall> try_read(const GivenCall& given, ArgumentsReader& reader) {
  try {
    return read_call(given, reader);
  } catch (const Error&) {
  } catch (const nb::builtin_exception&) {
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
  }
  return std::nullopt;
}

/// None, True or False; an invalid flag is left to Python's code.
bool read_flag(nb::handle object, std::optional<bool>& flag) {
  if (object.is_none()) return true;
  if (!object.is(Py_True) && !object.is(Py_False)) return false;
  flag = object.is(Py_True);
  return true;
}

/// A new array for the result, on the device of `a`; an invalid object if only Python's code can make it.
nb::object make_out(const KnownCall& known, nb::handle a) {
  static PyObject *const new_empty = PyUnicode_InternFromString("new_empty"), *empty = nullptr;  // guarded by the GIL
  if (is_exactly(a, ArrayClass::torch))
    return nb::borrow(a).attr(new_empty)(known.out_shape, nb::arg("dtype") = known.out_dtype);
  if (!is_exactly(a, ArrayClass::numpy)) return {};
  if (empty == nullptr) empty = nb::object(nb::module_::import_("numpy").attr("empty")).release().ptr();
  return nb::handle(empty)(known.out_shape, known.out_dtype);
}

/// The result, if the call was computed. False: it may be remembered, which tells whether its function has a key, that
/// is made at the first call. None: it is of a kind that is not.
nb::object repeat(nb::handle a, nb::handle b, nb::handle given_out, nb::handle epilogue, nb::handle operands,
                  nb::handle c, nb::handle alpha, nb::handle beta, nb::handle out_dtype, nb::handle accumulator,
                  nb::handle math, nb::handle stream, nb::handle deterministic, nb::handle batch_invariant) {
  Required required;
  if (!read_flag(deterministic, required.deterministic) || !read_flag(batch_invariant, required.batch_invariant))
    return nb::none();
  if (given_out.is_none() && !stream.is_none()) return nb::none();  // an array must be made on that stream
  ArgumentsReader reader;
  const std::optional<ReadCall> call =
      try_read({a, b, given_out, epilogue, operands, c, alpha, beta, out_dtype, accumulator, math}, reader);
  if (!call) return is_function(epilogue) ? nb::borrow(Py_False) : nb::none();
  const std::size_t hash = call->hash();
  const KnownPtr known = find(*call, hash);
  if (known == nullptr) return nb::borrow(Py_False);
  nb::object out = nb::borrow(given_out);
  std::optional<engine::Call> ready;
  try {
    op::Tensor written;
    if (call->out) {
      written = *call->out;
    } else {
      out = make_out(*known, a);
      if (!out.is_valid()) return nb::none();
      written = reader.read(out, true, "out");
      if (!same_but_for_address(written, known->out)) return nb::none();
    }
    ready = placed(known, *call, written.address, hash);
  } catch (const InvalidArgument&) {  // the addresses are misaligned or overlap
    return nb::none();
  }
  run({*ready, std::move(reader.streams), std::move(reader.owners), std::move(reader.lent)}, stream, required);
  return out;
}

/// Remembers a call of which `arguments` were made, with `out` if the caller gave none. `labels` as in
/// ReadCall::places().
void remember(nb::handle a, nb::handle b, nb::handle given_out, nb::handle epilogue, nb::handle operands, nb::handle c,
              nb::handle alpha, nb::handle beta, nb::handle out_dtype, nb::handle accumulator, nb::handle math,
              nb::handle out, const std::map<std::string, std::string>& labels, const OperationArguments& arguments) {
  constexpr std::size_t kMaxKnown = 256;
  ArgumentsReader reader;
  std::optional<ReadCall> call =
      try_read({a, b, given_out, epilogue, operands, c, alpha, beta, out_dtype, accumulator, math}, reader);
  if (!call) return;
  std::optional<std::vector<std::size_t>> places = call->places(arguments.problem(), labels);
  if (!places) return;
  const std::size_t hash = call->hash();
  KnownCalls forgotten;  // destroyed last, because destructors may run code
  if (known_calls().size() >= kMaxKnown) std::swap(forgotten, known_calls());
  known_calls().emplace(hash, std::make_shared<const KnownCall>(
                                  *std::move(call), arguments.problem(), *std::move(places), reader.read(out, true, ""),
                                  nb::tuple(nb::list(out.attr("shape"))), out.attr("dtype")));
}

}  // namespace

void bind_repeated_products(nb::module_& module) {
  module.def(
      "_repeat_product", &repeat, nb::arg("a").none(), nb::arg("b").none(), nb::arg("out").none(),
      nb::arg("epilogue").none(), nb::arg("operands"), nb::arg("c").none(), nb::arg("alpha").none(),
      nb::arg("beta").none(), nb::arg("out_dtype").none(), nb::arg("accumulator_type").none(), nb::arg("math").none(),
      nb::arg("stream").none(), nb::arg("deterministic").none(), nb::arg("batch_invariant").none(),
      "Computes a call of matmul() that is like one that was remembered, and returns the result. Returns False if "
      "there is none yet, and None for a call that cannot be remembered; it may be wrong.");
  module.def("_remember_product", &remember, nb::arg("a"), nb::arg("b"), nb::arg("given_out").none(),
             nb::arg("epilogue").none(), nb::arg("operands"), nb::arg("c").none(), nb::arg("alpha").none(),
             nb::arg("beta").none(), nb::arg("out_dtype").none(), nb::arg("accumulator_type").none(),
             nb::arg("math").none(), nb::arg("out"), nb::arg("labels"), nb::arg("arguments"));
}

}  // namespace tilewright::python
