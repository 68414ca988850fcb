#include "python/bindings/pointer_array.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/dtype.hpp"
#include "python/bindings/engine.hpp"
#include "python/bindings/read.hpp"
#include "python/bindings/tensor.hpp"
#include "python/bindings/unlocked.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/runtime/capture.hpp"
#include "tilewright/runtime/cuda_device.hpp"
#include "tilewright/runtime/stream.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

using Integers = nb::typed<nb::sequence, int>;

/// tilewright.PointerArray: an array of addresses, and what they point to.
struct PointerArray {
  nb::object addresses;
  op::Tensor matrix;  // without an address
  int alignment = op::kPointerAlignment;
};

/// The addresses of the matrices, in the memory of a GPU.
class DeviceAddresses {
 public:
  /// Waits until the addresses have been copied. @pre the GIL is not held
  DeviceAddresses(const op::MemoryDevice& memory, const std::vector<std::uint64_t>& addresses) {
    const auto device = std::dynamic_pointer_cast<runtime::CudaDevice>(engine_for(memory)->device());
    TILEWRIGHT_CHECK(device != nullptr, "{} is no GPU", op::to_string(memory));
    const runtime::Stream stream(device->context());
    const std::size_t bytes = addresses.size() * sizeof(std::uint64_t);
    buffer_ = runtime::DeviceBuffer::of_zeros(device, bytes);
    device->copy_in(buffer_.address(), addresses.data(), bytes, stream.handle());
    stream.synchronize();
  }

  std::uint64_t address() const { return buffer_.address(); }

 private:
  runtime::DeviceBuffer buffer_;
};

template <class Held>
nb::object hold(std::unique_ptr<Held> held) {
  return nb::capsule(held.release(), [](void* each) noexcept { delete static_cast<Held*>(each); });
}

void check_not_captured(const ArgumentsReader& reader, const op::MemoryDevice& memory, const char* role) {
  const runtime::StreamHandle stream = stream_for(nb::none(), reader.streams.all(), memory);
  const Unlocked unlocked;
  const auto device = std::dynamic_pointer_cast<runtime::CudaDevice>(engine_for(memory)->device());
  TILEWRIGHT_CHECK(device != nullptr, "{} is no GPU", op::to_string(memory));
  const runtime::ContextScope scope(*device->context());
  if (!runtime::is_capturing(device->context()->driver(), stream)) return;
  throw InvalidArgument(
      fmt::format("{} is a list of arrays, whose addresses cannot be copied while a CUDA graph is captured: make "
                  "GemmArguments before the capture, and keep them as long as the graph",
                  role));
}

/// Keeps 64-bit words where `device` is, as long as `reader`, and returns their address.
std::uint64_t keep_words(ArgumentsReader& reader, std::unique_ptr<std::vector<std::uint64_t>> words,
                         const op::MemoryDevice& device, const char* role) {
  if (device.kind == op::MemoryDevice::Kind::shape) return 0;
  if (device.kind != op::MemoryDevice::Kind::cuda) {
    const auto address = reinterpret_cast<std::uint64_t>(words->data());
    reader.owners.push_back(hold(std::move(words)));
    return address;
  }
  check_not_captured(reader, device, role);
  std::unique_ptr<DeviceAddresses> copied;
  {
    const Unlocked unlocked;
    copied = std::make_unique<DeviceAddresses>(device, *words);
  }
  const std::uint64_t address = copied->address();
  reader.lent.push_back(hold(std::move(copied)));
  reader.owners.push_back(reader.lent.back());
  return address;
}

op::Tensor read_list(ArgumentsReader& reader, const nb::sequence& list, bool is_written, const char* role) {
  const std::size_t count = nb::len(list);
  if (count == 0) throw InvalidArgument(fmt::format("{} is an empty list: it must have at least one array", role));
  auto addresses = std::make_unique<std::vector<std::uint64_t>>();
  addresses->reserve(count);
  op::Tensor first;
  std::uint64_t all = static_cast<std::uint64_t>(op::kPointerAlignment);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = fmt::format("{}[{}]", role, i);
    op::Tensor matrix = reader.read(list[i], is_written, name.c_str());
    reader.matrices.push_back({role, static_cast<int>(i), matrix, is_written});
    addresses->push_back(std::exchange(matrix.address, 0));
    all |= addresses->back();
    if (i == 0) first = matrix;
    if (matrix.shape.rank() != 2)
      throw InvalidArgument(fmt::format("{} must be a matrix, got shape {}", name, op::to_string(matrix.shape)));
    if (addresses->back() % static_cast<std::uint64_t>(bytes(matrix.dtype)) != 0)
      throw InvalidArgument(fmt::format("{} must be aligned to its element size of {} bytes, got address {:#x}", name,
                                        bytes(matrix.dtype), addresses->back()));
    if (matrix == first) continue;
    throw InvalidArgument(
        fmt::format("{} is {}{} with strides {} on {}, but {}[0] is {}{} with strides {} on {}: they must be alike",
                    name, tilewright::name(matrix.dtype), op::to_string(matrix.shape), op::to_string(matrix.stride),
                    op::to_string(matrix.device), role, tilewright::name(first.dtype), op::to_string(first.shape),
                    op::to_string(first.stride), op::to_string(first.device)));
  }
  const auto batch = static_cast<std::int64_t>(count);
  const int alignment = 1 << std::countr_zero(all);
  return op::pointer_array(first, keep_words(reader, std::move(addresses), first.device, role), batch, alignment);
}

/// The layout that all matrices have; a matrix of one line has both. @throws InvalidArgument with the first that
/// differs
op::MatrixLayout common_layout(const std::vector<op::Tensor>& matrices, const char* role) {
  const auto is_contiguous = [](const op::Tensor& matrix, int mode) {
    return matrix.shape[mode] <= 1 || matrix.stride[mode] == 1;
  };
  for (const auto& [layout, mode] : {std::pair{op::MatrixLayout::row_major, 1}, {op::MatrixLayout::column_major, 0}}) {
    if (std::ranges::all_of(matrices, [&](const op::Tensor& each) { return is_contiguous(each, mode); })) return layout;
  }
  const int mode = is_contiguous(matrices[0], 1) ? 1 : 0;
  const auto other = std::ranges::find_if(matrices, [&](const op::Tensor& each) { return !is_contiguous(each, mode); });
  throw InvalidArgument(fmt::format(
      "{}[{}] of shape {} has strides {}: the matrices of all groups must be row-major, or all column-major", role,
      other - matrices.begin(), op::to_string(other->shape), op::to_string(other->stride)));
}

/// The leading dimension, in elements. That of a matrix of one line is a multiple of `multiple`.
/// @throws InvalidArgument for a stride that is no leading dimension of 31 bits
std::int64_t leading_dimension(const op::Tensor& matrix, op::MatrixLayout layout, std::int64_t multiple,
                               const std::string& name) {
  const int along = layout == op::MatrixLayout::row_major ? 1 : 0;
  const std::int64_t line = std::max<std::int64_t>(matrix.shape[along], 1);
  if (matrix.shape[1 - along] <= 1) return round_up(line, multiple);
  const std::int64_t ld = matrix.stride[1 - along];
  if (ld < 0) throw InvalidArgument(fmt::format("{} has a negative stride {}", name, ld));
  if (ld < line) {
    throw InvalidArgument(fmt::format("{} of shape {} needs a leading dimension of at least {}, got {}", name,
                                      op::to_string(matrix.shape), line, ld));
  }
  if (ld > std::numeric_limits<std::int32_t>::max()) {
    throw InvalidArgument(
        fmt::format("the leading dimension of {} must be from {} to 2^31 - 1, got {}", name, line, ld));
  }
  return ld;
}

op::Tensor read_pointers(ArgumentsReader& reader, const PointerArray& pointers, const char* role) {
  // The address space of an array of 64-bit integers; the element type only gives their size.
  const nb::object words = nb::cast(DType::f64);
  ReadTensor read = read_tensor(pointers.addresses, role, words);
  const op::Tensor& array = read.tensor;
  if (array.shape.rank() != 1 || (array.shape[0] > 1 && array.stride[0] != 1)) {
    throw InvalidArgument(
        fmt::format("the addresses of {} must be one packed row of integers, got shape {} and strides {}", role,
                    op::to_string(array.shape), op::to_string(array.stride)));
  }
  reader.streams.add(read.stream);
  if (read.stream.kind == StreamSource::Kind::lent) reader.lent.push_back(read.owner);
  reader.owners.push_back(std::move(read.owner));
  op::Tensor matrix = pointers.matrix;
  matrix.device = array.device;
  return op::pointer_array(matrix, array.address, array.shape[0], pointers.alignment);
}

void make_pointer_array(PointerArray* self, nb::object addresses, const Integers& shape, nb::handle dtype,
                        const std::optional<Integers>& stride, int alignment) {
  const std::string type =
      nb::hasattr(addresses, "dtype") ? as_text(nb::str(addresses.attr("dtype"))) : shown(addresses);
  if (!type.ends_with("int64"))
    throw InvalidArgument(fmt::format("addresses must be an array of int64 or uint64, got {}", type));
  op::Tensor matrix;
  matrix.dtype = read_dtype(dtype);
  matrix.shape = dims_of(shape, "shape");
  matrix.stride = stride ? dims_of(*stride, "stride") : packed_strides(matrix.shape);
  if (matrix.shape.rank() != 2 || matrix.stride.rank() != 2) {
    throw InvalidArgument(fmt::format("shape and stride must be those of one matrix, (rows, columns), got {} and {}",
                                      op::to_string(matrix.shape), op::to_string(matrix.stride)));
  }
  op::view_matrix(op::pointer_array(matrix, 0, 1, alignment), "PointerArray").value_or_throw();
  new (self) PointerArray{std::move(addresses), matrix, alignment};
}

}  // namespace

GroupMatrices read_group_matrices(ArgumentsReader& reader, nb::handle list, bool is_written, const char* role) {
  const auto sequence = nb::borrow<nb::sequence>(list);
  const std::size_t count = nb::len(sequence);
  if (count == 0) throw InvalidArgument(fmt::format("{} is an empty list: it must have at least one array", role));
  std::vector<op::Tensor> matrices;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = fmt::format("{}[{}]", role, i);
    const op::Tensor matrix = reader.read(sequence[i], is_written, name.c_str());
    reader.matrices.push_back({role, static_cast<int>(i), matrix, is_written});
    if (matrix.shape.rank() != 2)
      throw InvalidArgument(fmt::format("{} must be a matrix, got shape {}", name, op::to_string(matrix.shape)));
    if (i > 0 && (matrix.dtype != matrices[0].dtype || matrix.device != matrices[0].device)) {
      throw InvalidArgument(fmt::format("{} is {} on {}, but {}[0] is {} on {}", name, tilewright::name(matrix.dtype),
                                        op::to_string(matrix.device), role, tilewright::name(matrices[0].dtype),
                                        op::to_string(matrices[0].device)));
    }
    matrices.push_back(matrix);
  }
  GroupMatrices result;
  result.layout = common_layout(matrices, role);
  const auto size = static_cast<std::uint64_t>(bytes(matrices[0].dtype));
  auto all = static_cast<std::uint64_t>(op::kPointerAlignment);
  auto addresses = std::make_unique<std::vector<std::uint64_t>>();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = fmt::format("{}[{}]", role, i);
    const op::Tensor& matrix = matrices[i];
    const std::int64_t ld = leading_dimension(matrix, result.layout, op::kPointerAlignment / bytes(matrix.dtype), name);
    result.shapes.push_back(matrix.shape);
    result.leading_dimensions.push_back(ld);
    addresses->push_back(matrix.address);
    if (matrix.address % size != 0)
      throw InvalidArgument(fmt::format("{} must be aligned to its element size of {} bytes, got address {:#x}", name,
                                        size, matrix.address));
    if (!matrix.is_empty()) all |= matrix.address | static_cast<std::uint64_t>(ld) * size;
  }
  op::Tensor first = matrices[0];
  first.address = 0;
  const std::uint64_t array = keep_words(reader, std::move(addresses), first.device, role);
  result.tensor = op::pointer_array(first, array, static_cast<std::int64_t>(count), 1 << std::countr_zero(all));
  return result;
}

op::Tensor group_numbers(ArgumentsReader& reader, const std::vector<std::int32_t>& numbers, std::int64_t groups,
                         const op::MemoryDevice& device) {
  auto words = std::make_unique<std::vector<std::uint64_t>>((numbers.size() + 1) / 2);
  std::memcpy(words->data(), numbers.data(), numbers.size() * sizeof(numbers[0]));
  const std::uint64_t address = keep_words(reader, std::move(words), device, "A");
  const std::int64_t columns = static_cast<std::int64_t>(numbers.size()) / groups;
  return {
      .address = address, .dtype = DType::s32, .shape = {groups, columns}, .stride = {columns, 1}, .device = device};
}

op::Tensor read_operand(ArgumentsReader& reader, nb::handle operand, bool is_written, const char* role) {
  if (nb::isinstance<nb::list>(operand) || nb::isinstance<nb::tuple>(operand))
    return read_list(reader, nb::borrow<nb::sequence>(operand), is_written, role);
  if (nb::isinstance<PointerArray>(operand)) return read_pointers(reader, nb::cast<const PointerArray&>(operand), role);
  const op::Tensor whole = reader.read(operand, is_written, role);
  reader.matrices.push_back({role, PlacedMatrix::kWhole, whole, is_written});
  return whole;
}

void bind_pointer_array(nb::module_& module) {
  nb::class_<PointerArray>(module, "PointerArray",
                           "The matrices of a batch by their addresses: A, B, C or out of GemmArguments and matmul(), "
                           "for programs that have "
                           "such an array already. A list of arrays needs none.")
      .def("__init__", &make_pointer_array, nb::arg("addresses"), nb::arg("shape"), nb::arg("dtype"),
           nb::arg("stride") = nb::none(), nb::arg("alignment") = op::kPointerAlignment,
           "`addresses` is an array of int64 or uint64 in the memory where the matrices are: a GPU array with GPU "
           "addresses, or a NumPy array with host addresses. All matrices have the shape `shape`, (rows, columns), the "
           "element type `dtype` and the strides `stride`, in elements, by default row-major without gaps; every "
           "address must be a multiple of `alignment` bytes. The caller keeps the matrices alive. Addresses that are "
           "wrong or less aligned are not found. Raises InvalidArgument for other arrays, shapes and alignments.")
      .def_prop_ro("addresses", [](const PointerArray& self) { return self.addresses; })
      .def_prop_ro("shape",
                   [](const PointerArray& self) -> nb::typed<nb::tuple, int, int> {
                     return nb::make_tuple(self.matrix.shape[0], self.matrix.shape[1]);
                   })
      .def_prop_ro("stride",
                   [](const PointerArray& self) -> nb::typed<nb::tuple, int, int> {
                     return nb::make_tuple(self.matrix.stride[0], self.matrix.stride[1]);
                   })
      .def_prop_ro("dtype", [](const PointerArray& self) { return self.matrix.dtype; })
      .def_ro("alignment", &PointerArray::alignment)
      .def("__repr__", [](const PointerArray& self) {
        return fmt::format("PointerArray({}{} with strides {}, alignment={})", name(self.matrix.dtype),
                           op::to_string(self.matrix.shape), op::to_string(self.matrix.stride), self.alignment);
      });
}

}  // namespace tilewright::python
