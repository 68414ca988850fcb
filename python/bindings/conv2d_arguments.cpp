// tilewright.Conv2dArguments: a convolution, or one of its gradients, on Python's arrays.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "python/bindings/arguments.hpp"
#include "python/bindings/dtype.hpp"
#include "python/bindings/epilogue_arguments.hpp"
#include "python/bindings/read.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/op/epilogue_tensors.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

constexpr int kRank = 4;         // of tensors in the caller's layout
constexpr int kBlockedRank = 5;  // of tensors with blocks of 32 channels, whose modes have one order

/// For each mode of a tensor in the order of op::Conv2d, which has the channels last, its mode in the caller's order.
using ModeOrder = std::array<int, kRank>;
constexpr ModeOrder kChannelsLast{0, 1, 2, 3}, kChannelsSecond{0, 2, 3, 1};

/// Reads the name of one of the values `all`. @throws InvalidArgument
template <class Enum, std::size_t count>
Enum read_name(nb::handle text, const char* what, const std::array<Enum, count>& all) {
  const std::string given = read_text(text, what);
  std::string names;
  for (const Enum each : all) {
    if (op::name(each) == given) return each;
    names += fmt::format("{}\"{}\"", names.empty() ? "" : each == all.back() ? " or " : ", ", op::name(each));
  }
  throw InvalidArgument(fmt::format("{} must be {}, got \"{}\"", what, names, printable(given)));
}

ModeOrder read_layout(nb::handle text) {
  const std::string layout = read_text(text, "layout");
  if (layout == "nchw") return kChannelsSecond;
  if (layout == "nhwc") return kChannelsLast;
  throw InvalidArgument(fmt::format("layout must be \"nchw\" or \"nhwc\", got \"{}\"", printable(layout)));
}

/// One number for both axes, or (height, width).
std::array<std::int64_t, 2> read_pair(nb::handle given, const char* what) {
  constexpr std::int64_t kMaxValue = std::int64_t{1} << 30;
  if (PyIndex_Check(given.ptr()) != 0) {
    const std::int64_t both = read_signed(given, what, -kMaxValue, kMaxValue);
    return {both, both};
  }
  if (!nb::isinstance<nb::sequence>(given) || nb::isinstance<nb::str>(given) || nb::len(given) != 2)
    throw InvalidArgument(fmt::format("{} must be an int or a pair (height, width), got {}", what, shown(given)));
  return {read_signed(given[0], what, -kMaxValue, kMaxValue), read_signed(given[1], what, -kMaxValue, kMaxValue)};
}

/// The tensor with the channels last; tensors of another rank are left for op::validate() to refuse.
op::Tensor ordered(const op::Tensor& tensor, const ModeOrder& order) {
  if (tensor.shape.rank() != kRank) return tensor;
  op::Tensor result = tensor;
  for (int mode = 0; mode < kRank; ++mode) {
    const int from = order[static_cast<std::size_t>(mode)];
    result.shape[mode] = tensor.shape[from];
    result.stride[mode] = tensor.stride[from];
  }
  return result;
}

/// The result of a reduction that lacks the mode that is reduced, as in NumPy without keepdims, with an extent of 1 in
/// its place: channels of fprop and dgrad, filters of wgrad. Modes are in the caller's order.
op::Tensor with_reduced_mode(const op::Tensor& tensor, const op::EpilogueTensor& role, const op::Conv2d& conv,
                             const ModeOrder& order) {
  const bool is_of_filters = conv.pass == op::ConvPass::wgrad;
  const op::Broadcast left{.along_m = !is_of_filters, .along_n = is_of_filters};
  if (!role.is_written || !(role.broadcast == left)) return tensor;
  if (tensor.shape.rank() != kRank - 1 || conv.written().shape.rank() != kRank) return tensor;
  const int reduced = order[is_of_filters ? 0 : kRank - 1];
  op::Tensor result = tensor;
  result.shape = result.stride = {};
  for (int mode = 0, own = 0; mode < kRank; ++mode) {
    const bool is_own = mode != reduced;
    result.shape.append(is_own ? tensor.shape[own] : 1);
    result.stride.append(is_own ? tensor.stride[own] : 0);
    own += is_own ? 1 : 0;
  }
  return result;
}

/// A vector or a number as a tensor with the modes of the output, as far as its broadcast says which mode it has:
/// channels of fprop and dgrad, filters of wgrad.
op::Tensor with_all_modes(op::Tensor tensor, const op::Broadcast& broadcast, const op::Conv2d& conv) {
  const op::ConvPass pass = conv.pass;
  const int rank = tensor.shape.rank();
  const bool is_single = !broadcast.along_m && !broadcast.along_n;
  const bool is_vector =
      rank == 1 && broadcast.along_m != broadcast.along_n && broadcast.along_m == (pass == op::ConvPass::wgrad);
  if (rank > 1 || !(is_single || is_vector)) return tensor;
  const std::int64_t extent = rank == 1 ? tensor.shape[0] : 1, step = rank == 1 ? tensor.stride[0] : 1;
  if (conv.written().shape.rank() == kBlockedRank) {
    const bool is_whole = extent % op::kInterleaved == 0;
    const std::int64_t block = is_whole ? op::kInterleaved : 1;  // another extent is left for op::validate() to refuse
    tensor.shape = {1, extent / block, 1, 1, block};
    tensor.stride = {extent * step, block * step, block * step, block * step, step};
    return tensor;
  }
  const bool is_first = pass == op::ConvPass::wgrad;
  tensor.shape = is_first ? op::Dims{extent, 1, 1, 1} : op::Dims{1, 1, 1, extent};
  tensor.stride = is_first ? op::Dims{step, 1, 1, 1} : op::Dims{extent * step, extent * step, extent * step, step};
  return tensor;
}

void read_tensors(ArgumentsReader& reader, op::Conv2d& conv, nb::handle tensors, const ModeOrder& order) {
  if (tensors.is_none()) return;
  if (!nb::isinstance<nb::dict>(tensors))
    throw nb::type_error(fmt::format("tensors must be a dict of names and arrays, got {}", shown(tensors)).c_str());
  const std::vector<op::EpilogueTensor> expected = op::epilogue_tensors(conv.epilogue);
  for (const auto& [key, array] : nb::cast<nb::dict>(tensors)) {
    std::string label = read_text(key, "the name of a tensor");
    const auto found = std::ranges::find(expected, std::string_view(label), &op::EpilogueTensor::label);
    if (found == expected.end())
      throw InvalidArgument(fmt::format("the epilogue has no tensor '{}'", printable(label)));
    const op::Tensor given = reader.read(array, found->is_written, label.c_str());
    const op::Tensor read = ordered(with_reduced_mode(given, *found, conv, order), order);
    conv.tensors.push_back({std::move(label), with_all_modes(read, found->broadcast, conv)});
  }
}

/// The output as a matrix. Its modes are in the caller's order.
OutputExtents output_extents(const op::Conv2d& conv, const ModeOrder& order) {
  for (const op::Tensor* const tensor : {&conv.x, &conv.w, &conv.y}) {
    const int rank = tensor->shape.rank();
    if (rank != kRank && rank != kBlockedRank) op::validate(conv).or_throw();  // it has no extents
  }
  op::Dims shape = conv.written().shape;
  if (shape.rank() == kBlockedRank) {
    return {nb::none(), shape[0] * shape[2] * shape[3], shape[1] * shape[4], "mnmmn"};
  }
  // A gated epilogue writes half of the filters.
  if (conv.pass == op::ConvPass::fprop) shape[kRank - 1] = conv.w.shape[conv.w.shape.rank() == kRank ? 0 : 3];
  const int row_modes = conv.pass == op::ConvPass::wgrad ? 1 : kRank - 1;
  std::int64_t m = 1, n = 1;
  std::string modes(kRank, 'n');
  for (int mode = 0; mode < kRank; ++mode) {
    (mode < row_modes ? m : n) *= shape[mode];
    if (mode < row_modes) modes[static_cast<std::size_t>(order[static_cast<std::size_t>(mode)])] = 'm';
  }
  return {nb::none(), m, n, modes};
}

void make_conv2d(Conv2dArguments* self, nb::handle x, nb::handle w, nb::handle y, nb::handle accumulator_type,
                 nb::handle epilogue, nb::handle kind, nb::handle stride, nb::handle padding, nb::handle dilation,
                 std::int64_t groups, nb::handle mode, nb::handle layout, nb::handle c, double alpha, double beta,
                 nb::handle math, nb::handle tensors) {
  using enum op::ConvPass;
  ArgumentsReader reader;
  op::Conv2d conv;
  const ModeOrder order = read_layout(layout);
  conv.pass = read_name(kind, "kind", std::array{fprop, dgrad, wgrad});
  conv.mode = read_name(mode, "mode", std::array{op::ConvMode::cross_correlation, op::ConvMode::convolution});
  conv.x = ordered(reader.read(x, conv.pass == dgrad, "x"), order);
  conv.w = ordered(reader.read(w, conv.pass == wgrad, "w"), order);
  conv.y = ordered(reader.read(y, conv.pass == fprop, "y"), order);
  if (!c.is_none()) conv.c = ordered(reader.read(c, false, "C"), order);
  conv.stride = read_pair(stride, "stride");
  conv.padding = read_pair(padding, "padding");
  conv.dilation = read_pair(dilation, "dilation");
  conv.groups = groups;
  const DType type = (conv.pass == fprop ? conv.x : conv.y).dtype;
  conv.accumulator = read_optional_dtype(accumulator_type, "accumulator_type").value_or(op::default_accumulator(type));
  conv.math = read_math(math);
  const DType output = conv.written().dtype;
  ReadEpilogue read =
      read_epilogue(epilogue, output_extents(conv, order), op::default_compute(conv.accumulator, output), output);
  switch (conv.pass) {
    case fprop:
      check_bound_output(epilogue, y, "y");
      break;
    case dgrad:
      check_bound_output(epilogue, x, "x");
      break;
    case wgrad:
      check_bound_output(epilogue, w, "w");
      break;
  }
  conv.epilogue = std::move(read.epilogue);
  conv.alpha = read.alpha.value_or(alpha);
  conv.beta = read.beta.value_or(beta);
  check_used(conv.epilogue, conv.alpha, conv.beta, !c.is_none());
  read_tensors(reader, conv, read.tensors, order);
  read_tensors(reader, conv, tensors, order);
  new (self) Conv2dArguments{{engine::Call(op::Problem(std::move(conv))), std::move(reader.streams),
                              std::move(reader.owners), std::move(reader.lent)}};
}

nb::tuple pair_of(const std::array<std::int64_t, 2>& pair) { return nb::make_tuple(pair[0], pair[1]); }

}  // namespace

void bind_conv2d(nb::module_& module) {
  using IntPair = nb::typed<nb::tuple, int, int>;
  const auto operand = [](op::Tensor op::Conv2d::*which) {
    return [which](const Conv2dArguments& self) { return Operand{self.conv().*which}; };
  };
  nb::class_<Conv2dArguments, OperationArguments>(
      module, "Conv2dArguments",
      "A two-dimensional convolution, y = epilogue(x * w, C), or one of its gradients, in which x or w is written. "
      "With the layout \"nchw\" the shapes are x (n, c, h, w), w (k, c / groups, r, s) and y (n, k, p, q), and the "
      "strides are those of channels-last tensors: the channels are contiguous. With \"nhwc\" the channels are the "
      "last mode of each shape. In \"fprop\" of 8-bit integers the channels may be in blocks of 32: x (n, c / 32, h, "
      "w, "
      "32) with w (c / 32, r, s, k, 32), and y and C (n, k / 32, p, q, 32), in either layout. Arrays are those that "
      "GemmArguments takes. They are referred to and not copied.")
      .def(
          "__init__", &make_conv2d, nb::arg("x"), nb::arg("w"), nb::arg("y"), nb::arg("accumulator_type") = nb::none(),
          nb::arg("epilogue") = nb::none(), nb::kw_only(), nb::arg("kind") = "fprop", nb::arg("stride") = 1,
          nb::arg("padding") = 0, nb::arg("dilation") = 1, nb::arg("groups") = 1, nb::arg("mode") = "cross_correlation",
          nb::arg("layout") = "nchw", nb::arg("C") = nb::none(), nb::arg("alpha") = 1.0, nb::arg("beta") = 0.0,
          nb::arg("math") = nb::none(), nb::arg("tensors") = nb::none(),
          "`kind` is \"fprop\", which writes y; \"dgrad\", which computes the gradient x from that of y; or \"wgrad\", "
          "which computes the gradient w from x and the gradient y. `stride`, `padding` and `dilation` are an int or "
          "(height, width). `padding` is that above and to the left of x; the extents of y say how far the filter "
          "goes. `mode` is \"cross_correlation\", as in neural networks, or \"convolution\", which mirrors the "
          "filter. Tensors of the epilogue have the modes of the output, with extents of 1 where they are broadcast, "
          "or are vectors "
          "with a number for each channel of the output (of wgrad, for each filter). The other parameters are as in "
          "GemmArguments. Raises InvalidArgument, with the number that is wrong, if the arrays do not fit together.")
      .def_prop_ro(
          "x", operand(&op::Conv2d::x),
          "As w, y and C, with the channels last: (n, h, w, c), or with blocks of channels: (n, c / 32, h, w, 32).")
      .def_prop_ro("w", operand(&op::Conv2d::w))
      .def_prop_ro("y", operand(&op::Conv2d::y))
      .def_prop_ro("C", operand(&op::Conv2d::c))
      .def_prop_ro("tensors",
                   [](const Conv2dArguments& self) -> nb::typed<nb::dict, nb::str, Operand> {
                     nb::dict found;
                     for (const op::NamedTensor& each : self.conv().tensors)
                       found[nb::cast(each.name)] = Operand{each.tensor};
                     return found;
                   })
      .def_prop_ro("kind", [](const Conv2dArguments& self) { return op::name(self.conv().pass); })
      .def_prop_ro("stride", [](const Conv2dArguments& self) -> IntPair { return pair_of(self.conv().stride); })
      .def_prop_ro("padding", [](const Conv2dArguments& self) -> IntPair { return pair_of(self.conv().padding); })
      .def_prop_ro("dilation", [](const Conv2dArguments& self) -> IntPair { return pair_of(self.conv().dilation); })
      .def_prop_ro("groups", [](const Conv2dArguments& self) { return self.conv().groups; })
      .def_prop_ro("mode", [](const Conv2dArguments& self) { return op::name(self.conv().mode); })
      .def_prop_ro(
          "m", [](const Conv2dArguments& self) { return op::view(self.conv()).m(); },
          "As n and k, the extent of the GEMM of one group that computes the convolution.")
      .def_prop_ro("n", [](const Conv2dArguments& self) { return op::view(self.conv()).n(); })
      .def_prop_ro("k", [](const Conv2dArguments& self) { return op::view(self.conv()).k(); })
      .def_prop_ro("alpha", [](const Conv2dArguments& self) { return self.conv().alpha; })
      .def_prop_ro("beta", [](const Conv2dArguments& self) { return self.conv().beta; })
      .def_prop_ro("accumulator_type", [](const Conv2dArguments& self) { return self.conv().accumulator; })
      .def_prop_ro("math", [](const Conv2dArguments& self) { return op::name(self.conv().math); })
      .def_prop_ro("epilogue", [](const Conv2dArguments& self) { return self.conv().epilogue; })
      .def("__repr__", [](const Conv2dArguments& self) {
        const op::Conv2d& conv = self.conv();
        return fmt::format("Conv2dArguments(x={}, w={}, y={}, kind='{}', accumulator_type={}, epilogue='{}')",
                           describe(conv.x), describe(conv.w), describe(conv.y), op::name(conv.pass),
                           name(conv.accumulator), op::signature(conv.epilogue));
      });
}

}  // namespace tilewright::python
