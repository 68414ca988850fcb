// tilewright.KernelMetadata and its parts. Their names are those of cutlass_api.
#include <nanobind/operators.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>

#include <array>
#include <bit>
#include <optional>
#include <string>
#include <utility>

#include "python/bindings/dtype.hpp"
#include "python/bindings/kernel.hpp"
#include "python/bindings/read.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/op/problem.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

using Stride = std::array<std::int64_t, 3>;
using Extents = std::tuple<int, int, int>;

Extents extents_of(const plan::TileShape& shape) { return {shape.m, shape.n, shape.k}; }
plan::TileShape shape_of(const Extents& extents) {
  const auto [m, n, k] = extents;
  return {m, n, k};
}

/// The strides of (batch, rows, columns): (0, 0, 1) for row-major, (0, 1, 0) for column-major. With an interleaved
/// layout, the stride of 1 holds for 32 elements, and that of the other mode is 32.
std::tuple<int, int, int> stride_of(const op::TensorSignature& tensor) {
  const int other = op::is_interleaved(tensor.layout) ? static_cast<int>(op::kInterleaved) : 0;
  return op::has_contiguous_rows(tensor.layout) ? std::tuple{0, other, 1} : std::tuple{0, 1, other};
}

/// Reads the strides of an operand, or the name of its layout.
op::MatrixLayout layout_of(nb::handle stride) {
  if (nb::isinstance<nb::str>(stride)) {
    const std::string text = read_text(stride, "stride");
    if (const auto layout = op::parse_matrix_layout(text)) return *layout;
    throw InvalidArgument(
        fmt::format("stride must be \"row\", \"column\", \"row_interleaved_32\" or \"column_interleaved_32\" as a str, "
                    "got \"{}\"",
                    printable(text)));
  }
  if (!nb::isinstance<nb::sequence>(stride))
    throw nb::type_error(fmt::format("stride must be a str or a tuple of ints, got {}", shown(stride)).c_str());
  const std::size_t rank = nb::len(stride);
  const auto is_one = [&](std::size_t mode) {
    return read_integer<std::int64_t>(stride[mode], "an entry of stride") == 1;
  };
  if (rank >= 2 && is_one(rank - 1)) return op::MatrixLayout::row_major;
  if (rank >= 2 && is_one(rank - 2)) return op::MatrixLayout::column_major;
  throw InvalidArgument(fmt::format("one of the last two entries of stride must be 1, got {}", shown(stride)));
}

/// The operands of a GEMM that a kernel is made for.
struct GemmOperands {
  op::TensorSignature a, b, c, d;
  bool has_c = false;
  DType accumulator = DType::f32;
  op::MathOperation math = op::MathOperation::multiply_add;

  bool operator==(const GemmOperands&) const = default;
};

std::string to_string(const GemmOperands& operands) {
  return fmt::format("A={}, B={}{}, out={}, accumulator_type={}, math={}", op::to_string(operands.a),
                     op::to_string(operands.b), operands.has_c ? ", C=" + op::to_string(operands.c) : "",
                     op::to_string(operands.d), name(operands.accumulator), op::name(operands.math));
}

/// The operands of an Operation that a kernel is made for.
struct OperationOperands {
  std::string operation;
  std::vector<op::OperandSignature> signatures;
};

/// Reads an element type, which means any strides, or (type, divisibility), which means that the last mode is
/// contiguous.
op::OperandSignature read_operand(const op::OperandDeclaration& declared, nb::handle given) {
  op::OperandSignature operand{
      .name = declared.name, .access = declared.access, .rank = static_cast<int>(declared.shape.size())};
  if (!nb::isinstance<nb::tuple>(given)) {
    operand.element = read_dtype(given);
    return operand;
  }
  if (nb::len(given) != 2)
    throw InvalidArgument(
        fmt::format("'{}' must be a type or (type, divisibility), got {}", declared.name, shown(given)));
  operand.element = read_dtype(given[0]);
  operand.alignment = read_integer<int>(given[1], "divisibility");
  operand.contiguous = operand.rank - 1;
  if (operand.alignment < 1 || !std::has_single_bit(static_cast<unsigned>(operand.alignment)))
    throw InvalidArgument(
        fmt::format("the divisibility of '{}' must be a power of two, got {}", declared.name, operand.alignment));
  return operand;
}

void bind_operation_operands(nb::module_& module) {
  nb::class_<OperationOperands>(module, "OperandsMetadata",
                                "Describes the operands of an Operation that a kernel is made for.")
      .def(
          "__init__",
          [](OperationOperands* self, const op::Operation& operation, const nb::kwargs& given) {
            OperationOperands operands{operation.name(), {}};
            for (const op::OperandDeclaration& operand : operation.operands()) {
              if (!given.contains(operand.name.c_str()))
                throw InvalidArgument(fmt::format("{} needs the type of '{}'", operation.name(), operand.name));
              operands.signatures.push_back(read_operand(operand, given[operand.name.c_str()]));
            }
            if (given.size() != operands.signatures.size())
              throw InvalidArgument(fmt::format("{} has {} operands, got the types of {}", operation.name(),
                                                operands.signatures.size(), given.size()));
            new (self) OperationOperands(std::move(operands));
          },
          nb::arg("operation"), nb::arg("operands"),
          nb::sig("def __init__(self, operation: Operation, **operands: object) -> None"),
          "Each keyword is the name of an operand. Its value is an element type, which allows any strides, or (type, "
          "divisibility): then the last mode is contiguous, and addresses and all other strides are multiples of "
          "`divisibility` elements.")
      .def_prop_ro("operation", [](const OperationOperands& self) { return self.operation; })
      .def("__repr__", [](const OperationOperands& self) {
        std::vector<std::string> texts;
        for (const op::OperandSignature& operand : self.signatures) texts.push_back(op::to_string(operand));
        return fmt::format("OperandsMetadata({}: {})", self.operation, fmt::join(texts, ", "));
      });
}

nb::object operands_of(const registry::KernelMetadata& metadata) {
  if (const op::ReduceSplitKSignature* const reduction = metadata.signature.reduce_split_k())
    return nb::cast(*reduction);
  if (metadata.signature.gemm() == nullptr) {
    const auto& signatures = std::get<std::vector<op::OperandSignature>>(metadata.signature.operands);
    return nb::cast(OperationOperands{metadata.signature.operation, signatures});
  }
  const op::GemmSignature& made_for = metadata.operands();
  return nb::cast(GemmOperands{made_for.a, made_for.b, made_for.c, made_for.d, made_for.has_c, made_for.accumulator,
                               made_for.math});
}

plan::OpClass read_op_class(const std::string& text) {
  for (const plan::OpClass each : {plan::OpClass::simt, plan::OpClass::tensor_op}) {
    if (plan::name(each) == text) return each;
  }
  throw InvalidArgument(fmt::format("op_class must be simt or tensor_op, got '{}'", printable(text)));
}

/// Whether the raster order has groups of tile rows, which are walked along n.
bool read_along(const std::string& text) {
  if (text != "m" && text != "n")
    throw InvalidArgument(fmt::format("raster_along must be \"m\" or \"n\", got \"{}\"", printable(text)));
  return text == "n";
}

void bind_tensor_attributes(nb::module_& module) {
  nb::class_<op::TensorSignature>(
      module, "TensorAttributes",
      "Describes an operand that a kernel is made for: its element type, which stride is 1, and its divisibility, the "
      "number of elements of which its address and other strides are multiples.")
      .def(
          "__init__",
          [](op::TensorSignature* self, nb::handle dtype, nb::handle stride, int divisibility, bool is_pointer_array) {
            if (divisibility < 1)
              throw InvalidArgument(fmt::format("divisibility must be at least 1, got {}", divisibility));
            new (self) op::TensorSignature{read_dtype(dtype), layout_of(stride), divisibility, is_pointer_array};
          },
          nb::arg("dtype"), nb::arg("stride"), nb::arg("divisibility") = 1, nb::arg("is_pointer_array") = false,
          "`stride` is (0, 0, 1) or \"row\" for row-major, (0, 1, 0) or \"column\" for column-major; its entries are "
          "the strides of batch, rows and columns. The interleaved layouts are \"row_interleaved_32\" and "
          "\"column_interleaved_32\". With `is_pointer_array`, the matrices of a batch lie at the addresses in an "
          "array: "
          "see PointerArray.")
      .def_ro("is_pointer_array", &op::TensorSignature::is_pointer_array)
      .def_prop_ro("dtype", [](const op::TensorSignature& self) { return self.element; })
      .def_prop_ro("stride", &stride_of)
      .def_prop_ro("layout", [](const op::TensorSignature& self) { return op::name(self.layout); })
      .def_prop_ro("divisibility", [](const op::TensorSignature& self) { return self.alignment; })
      .def_prop_ro(
          "alignment", [](const op::TensorSignature& self) { return self.alignment; }, "The same as divisibility.")
      .def_prop_ro("ptr_alignment_bytes",
                   [](const op::TensorSignature& self) { return self.alignment * bytes(self.element); })
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const op::TensorSignature& self) { return std::hash<std::string>()(op::to_string(self)); })
      .def(
          "__reduce__",
          [](nb::handle self) {
            return nb::make_tuple(self.type(),
                                  nb::make_tuple(self.attr("dtype").attr("name"), self.attr("layout"),
                                                 self.attr("divisibility"), self.attr("is_pointer_array")));
          },
          nb::sig("def __reduce__(self) -> tuple[object, ...]"))
      .def("__repr__", [](const op::TensorSignature& self) { return "TensorAttributes(" + op::to_string(self) + ")"; });
}

void bind_operands(nb::module_& module) {
  nb::class_<GemmOperands>(
      module, "GemmOperandsMetadata",
      "Describes the operands of a GEMM that a kernel is made for, and the type of its accumulators.")
      .def(
          "__init__",
          [](GemmOperands* self, const op::TensorSignature& a, const op::TensorSignature& b,
             const op::TensorSignature& out, nb::handle accumulator_type, const std::optional<op::TensorSignature>& c) {
            new (self) GemmOperands{a, b, c.value_or(out), out, c.has_value(), read_dtype(accumulator_type)};
          },
          nb::arg("A"), nb::arg("B"), nb::arg("out"), nb::arg("accumulator_type"), nb::arg("C") = nb::none())
      .def_ro("A", &GemmOperands::a)
      .def_ro("B", &GemmOperands::b)
      .def_prop_ro("C",
                   [](const GemmOperands& self) {
                     return self.has_c ? std::optional(self.c) : std::optional<op::TensorSignature>();
                   })
      .def_ro("out", &GemmOperands::d)
      .def_ro("accumulator_type", &GemmOperands::accumulator)
      .def_prop_ro("math", [](const GemmOperands& self) { return op::name(self.math); })
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const GemmOperands& self) { return std::hash<std::string>()(to_string(self)); })
      .def(
          "__getstate__",
          [](const GemmOperands& self) {
            return nb::make_tuple(self.a, self.b, self.d, self.has_c ? nb::cast(self.c) : nb::none(),
                                  std::string(name(self.accumulator)), std::string(op::name(self.math)));
          },
          nb::sig("def __getstate__(self) -> object"))
      .def(
          "__setstate__",
          [](GemmOperands& self, const nb::tuple& state) {
            const auto signature = [&](std::size_t place) { return nb::cast<op::TensorSignature>(state[place]); };
            const bool has_c = !state[3].is_none();
            new (&self) GemmOperands{signature(0),
                                     signature(1),
                                     has_c ? signature(3) : signature(2),
                                     signature(2),
                                     has_c,
                                     read_dtype(state[4]),
                                     op::parse_math_operation(nb::cast<std::string>(state[5])).value()};
          },
          nb::sig("def __setstate__(self, state: object, /) -> None"))
      .def("__repr__", [](const GemmOperands& self) { return "GemmOperandsMetadata(" + to_string(self) + ")"; });
}

void bind_reduce_split_k(nb::module_& module) {
  nb::class_<op::ReduceSplitKSignature>(module, "ReduceSplitKOperandsMetadata",
                                        "Describes the operands of a split-K reduction that a kernel is made for, and "
                                        "the type of its sums. kernel.metadata.operands is one.")
      .def_ro("parts", &op::ReduceSplitKSignature::parts)
      .def_prop_ro("C",
                   [](const op::ReduceSplitKSignature& self) {
                     return self.has_c ? std::optional(self.c) : std::optional<op::TensorSignature>();
                   })
      .def_ro("out", &op::ReduceSplitKSignature::d)
      .def_ro("accumulator_type", &op::ReduceSplitKSignature::accumulator);
}

constexpr std::array kDesignFields{"tile_shape",        "cluster_shape",  "stages",   "warp_count",
                                   "instruction_shape", "op_class",       "schedule", "swaps_operands",
                                   "raster_width",      "raster_along",   "split_k",  "repacks_operands",
                                   "repacks_only_b",    "splits_in_turn", "mix",      "target"};

void bind_design(nb::module_& module) {
  nb::class_<plan::FlatDesign>(module, "BLASDesignMetadata",
                               "The design of a kernel: tile shape, stages, warps, instruction, schedule and raster "
                               "order.")
      .def(
          "__init__",
          [](plan::FlatDesign* self, const Extents& tile_shape, const Extents& cluster_shape, int stages,
             const Extents& warp_count, const Extents& instruction_shape, const Text& op_class,
             const Text& schedule_text, bool swaps_operands, int raster_width, const Text& raster_along, int split_k,
             bool repacks_operands, bool repacks_only_b, const std::optional<Text>& mix_text, bool splits_in_turn) {
            plan::FlatDesign design;
            design.tile = shape_of(tile_shape);
            design.cluster = shape_of(cluster_shape);
            design.stages = stages;
            std::tie(design.warps_m, design.warps_n, design.warps_k) = warp_count;
            design.swaps_operands = swaps_operands;
            design.instruction = shape_of(instruction_shape);
            design.op_class = read_op_class(op_class.read("op_class"));
            const std::string schedule = schedule_text.read("schedule");
            const auto parsed = plan::parse_schedule(schedule);
            if (!parsed)
              throw InvalidArgument(
                  fmt::format("unknown schedule '{}': must be cooperative or ping_pong", printable(schedule)));
            design.schedule = *parsed;
            design.raster = {.width = raster_width, .along_n = read_along(raster_along.read("raster_along"))};
            design.split_k = split_k;
            design.repacks_operands = repacks_operands;
            design.repacks_only_b = repacks_only_b;
            design.splits_in_turn = splits_in_turn;
            if (mix_text) {
              const std::string mix = mix_text->read("mix");
              design.mix = plan::parse_mix(mix);
              if (!design.mix) throw InvalidArgument(fmt::format("unknown mix '{}'", printable(mix)));
            }
            new (self) plan::FlatDesign(design);
          },
          nb::arg("tile_shape"), nb::arg("cluster_shape") = Extents{1, 1, 1}, nb::kw_only(), nb::arg("stages") = 2,
          nb::arg("warp_count") = Extents{2, 4, 1}, nb::arg("instruction_shape") = Extents{1, 1, 1},
          nb::arg("op_class") = "simt", nb::arg("schedule") = "cooperative", nb::arg("swaps_operands") = false,
          nb::arg("raster_width") = 1, nb::arg("raster_along") = "m", nb::arg("split_k") = 1,
          nb::arg("repacks_operands") = false, nb::arg("repacks_only_b") = false, nb::arg("mix") = nb::none(),
          nb::arg("splits_in_turn") = false,
          "tile_shape         (m, n, k) of a CTA's tile in one mainloop iteration\n"
          "cluster_shape      CTAs of a cluster along m, n and k, which share operands by multicast (sm_90)\n"
          "stages             shared-memory stages of the mainloop's pipeline\n"
          "warp_count         warps along m, n and k that multiply; producer warps are not counted\n"
          "instruction_shape  (1, 1, 1) on CUDA cores; (16, 8, 16), (64, 128, 16), ... on tensor cores\n"
          "op_class           \"simt\" or \"tensor_op\"\n"
          "schedule           \"cooperative\": consumer warpgroups share a tile (sm_90);\n"
          "                   \"ping_pong\": they alternate between tiles (sm_90)\n"
          "swaps_operands     whether D' = B' @ A' is computed, for an A of few rows (sm_90)\n"
          "raster_width       tile columns, or tile rows, that CTAs take as a group: CUTLASS's swizzle size\n"
          "raster_along       \"m\": CTAs walk along m through groups of tile columns;\n"
          "                   \"n\": they walk along n through groups of tile rows\n"
          "split_k            CTAs that compute one tile together, each a part of K\n"
          "repacks_operands   whether operands that TMA or wgmma cannot read are copied first (sm_90)\n"
          "repacks_only_b     with repacks_operands: whether, of the problem as computed, only B is copied (sm_90)\n"
          "mix                the instructions of a program: \"tma_wgmma\", \"cp_async_wgmma\", \"tma_mma\" or\n"
          "                   \"tma_register_wgmma\"; None for the other families\n"
          "splits_in_turn     with split_k: whether CTAs take parts of K as they become free, and each adds its\n"
          "                   part to the sum of the parts before it (CUDA cores and sm_80)")
      .def_prop_ro("tile_shape", [](const plan::FlatDesign& self) { return extents_of(self.tile); })
      .def_prop_ro("cluster_shape", [](const plan::FlatDesign& self) { return extents_of(self.cluster); })
      .def_prop_ro("warp_count",
                   [](const plan::FlatDesign& self) {
                     return Extents{self.warps_m, self.warps_n, self.warps_k};
                   })
      .def_prop_ro("stages", [](const plan::FlatDesign& self) { return self.stages; })
      .def_prop_ro("schedule", [](const plan::FlatDesign& self) { return plan::name(self.schedule); })
      .def_prop_ro("swaps_operands", [](const plan::FlatDesign& self) { return self.swaps_operands; })
      .def_prop_ro("instruction_shape", [](const plan::FlatDesign& self) { return extents_of(self.instruction); })
      .def_prop_ro("op_class", [](const plan::FlatDesign& self) { return plan::name(self.op_class); })
      .def_prop_ro("raster_width", [](const plan::FlatDesign& self) { return self.raster.width; })
      .def_prop_ro("raster_along", [](const plan::FlatDesign& self) { return self.raster.along_n ? "n" : "m"; })
      .def_prop_ro("split_k", [](const plan::FlatDesign& self) { return self.split_k; })
      .def_prop_ro("repacks_operands", [](const plan::FlatDesign& self) { return self.repacks_operands; })
      .def_prop_ro("repacks_only_b", [](const plan::FlatDesign& self) { return self.repacks_only_b; })
      .def_prop_ro("splits_in_turn", [](const plan::FlatDesign& self) { return self.splits_in_turn; })
      .def_prop_ro("mix",
                   [](const plan::FlatDesign& self) -> std::optional<std::string_view> {
                     if (!self.mix) return std::nullopt;
                     return plan::name(*self.mix);
                   })
      .def_prop_ro("target", [](const plan::FlatDesign& self) { return self.target.name(); })
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const plan::FlatDesign& self) { return std::hash<std::string>()(plan::to_string(self)); })
      .def(
          "__getstate__",
          [](nb::handle self) {
            nb::dict state;
            for (const char* const each : kDesignFields) state[each] = self.attr(each);
            return state;
          },
          nb::sig("def __getstate__(self) -> object"))
      .def(
          "__setstate__",
          [](plan::FlatDesign& self, const nb::dict& state) {
            const auto extents = [&](const char* field) { return shape_of(nb::cast<Extents>(state[field])); };
            const auto text = [&](const char* field) { return nb::cast<std::string>(state[field]); };
            plan::FlatDesign design;
            design.tile = extents("tile_shape");
            design.cluster = extents("cluster_shape");
            design.stages = nb::cast<int>(state["stages"]);
            std::tie(design.warps_m, design.warps_n, design.warps_k) = nb::cast<Extents>(state["warp_count"]);
            design.instruction = extents("instruction_shape");
            design.op_class = read_op_class(text("op_class"));
            design.schedule = plan::parse_schedule(text("schedule")).value();
            design.swaps_operands = nb::cast<bool>(state["swaps_operands"]);
            design.raster = {.width = nb::cast<int>(state["raster_width"]),
                             .along_n = read_along(text("raster_along"))};
            design.split_k = nb::cast<int>(state["split_k"]);
            design.repacks_operands = nb::cast<bool>(state["repacks_operands"]);
            design.repacks_only_b = nb::cast<bool>(state["repacks_only_b"]);
            design.splits_in_turn = nb::cast<bool>(state["splits_in_turn"]);
            if (!state["mix"].is_none()) design.mix = plan::parse_mix(text("mix")).value();
            if (const auto target = parse_target(text("target"))) design.target = *target;
            new (&self) plan::FlatDesign(design);
          },
          nb::sig("def __setstate__(self, state: object, /) -> None"))
      .def("__repr__",
           [](const plan::FlatDesign& self) { return "BLASDesignMetadata(" + plan::to_string(self) + ")"; });
}

const op::Epilogue& read_graph(nb::handle epilogue) {
  if (nb::isinstance<op::Epilogue>(epilogue)) return nb::cast<const op::Epilogue&>(epilogue);
  throw nb::type_error(fmt::format("epilogue must be an Epilogue, got {}", shown(epilogue)).c_str());
}

op::Signature read_signature(nb::handle operands, nb::handle epilogue) {
  if (nb::isinstance<OperationOperands>(operands)) {
    if (!epilogue.is_none())
      throw InvalidArgument("epilogue must be None unless the operands are GemmOperandsMetadata");
    const auto& declared = nb::cast<const OperationOperands&>(operands);
    return {declared.operation, declared.signatures};
  }
  if (!nb::isinstance<GemmOperands>(operands)) {
    throw nb::type_error(
        fmt::format("operands must be GemmOperandsMetadata or OperandsMetadata, got {}", shown(operands)).c_str());
  }
  const auto& gemm = nb::cast<const GemmOperands&>(operands);
  const DType compute = op::default_compute(gemm.accumulator, gemm.d.element);
  return op::GemmSignature{.a = gemm.a,
                           .b = gemm.b,
                           .c = gemm.c,
                           .d = gemm.d,
                           .accumulator = gemm.accumulator,
                           .math = gemm.math,
                           .epilogue = epilogue.is_none() ? op::accumulator_alone(compute) : read_graph(epilogue),
                           .has_c = gemm.has_c};
}

registry::KernelMetadata make_metadata(const std::string& kernel_name, nb::handle kernel_class, nb::handle operands,
                                       const plan::FlatDesign& design, nb::handle epilogue, int min_cc) {
  registry::KernelMetadata metadata;
  metadata.name = kernel_name;
  metadata.family = family_of(kernel_class);
  metadata.signature = read_signature(operands, epilogue);
  metadata.design = design;
  metadata.min_sm = min_cc;
  return metadata;
}

nb::str in_html(nb::handle metadata) {
  return nb::str(nb::module_::import_("tilewright.html").attr("of_metadata")(metadata));
}

}  // namespace

void bind_metadata(nb::module_& module) {
  bind_tensor_attributes(module);
  bind_operands(module);
  bind_operation_operands(module);
  bind_reduce_split_k(module);
  bind_design(module);
  nb::class_<registry::KernelMetadata>(
      module, "KernelMetadata",
      "Describes a kernel: its name, class, operands, design and epilogue. Filters of find_kernels() receive it.")
      .def(
          "__init__",
          [](registry::KernelMetadata* self, const Text& kernel_name, nb::handle kernel_class, nb::handle operands,
             const std::optional<plan::FlatDesign>& design, nb::handle epilogue, int min_cc, bool deterministic,
             bool batch_invariant) {
            new (self) registry::KernelMetadata(make_metadata(kernel_name.read("kernel_name"), kernel_class, operands,
                                                              design.value_or(plan::FlatDesign()), epilogue, min_cc));
            self->promises = {.deterministic = deterministic, .batch_invariant = batch_invariant};
          },
          nb::arg("kernel_name"), nb::arg("kernel_class"), nb::arg("operands"), nb::arg("design") = nb::none(),
          nb::arg("epilogue") = nb::none(), nb::arg("min_cc") = 0, nb::kw_only(), nb::arg("deterministic") = false,
          nb::arg("batch_invariant") = false,
          "`kernel_class` is the class of the kernel or its name. `operands` is a GemmOperandsMetadata or an "
          "OperandsMetadata. Without `epilogue`, the accumulators of a GEMM are stored unchanged. `min_cc` is the "
          "lowest "
          "compute capability that the kernel runs on: 90 for sm_90 and newer. `deterministic` promises equal bits in "
          "every run, `batch_invariant` that the bits of a row of D depend neither on M, nor on the row's place, nor "
          "on "
          "the batch, and are those of your class's other kernels with this promise.")
      .def_prop_ro("kernel_name", [](const registry::KernelMetadata& self) { return registry::kernel_name(self); })
      .def_prop_ro(
          "family", [](const registry::KernelMetadata& self) { return self.family; },
          "\"simt_gemm\", \"sm80_gemm\", \"sm90_gemm\", \"skinny_gemm\", \"stem_conv\", \"stem_wgrad\", "
          "\"group_conv\", \"group_wgrad\", "
          "\"depthwise_conv\", "
          "\"reduce_split_k\", or the name of your class.")
      .def_prop_ro(
          "kernel_class", [](const registry::KernelMetadata& self) { return class_of_family(self.family); },
          "The registered Python class; Kernel for built-in kernels.")
      .def_prop_ro("operands", &operands_of)
      .def_prop_ro(
          "design",
          [](const registry::KernelMetadata& self) { return plan::flatten(self.design, self.signature.gemm()); })
      .def_prop_ro("epilogue",
                   [](const registry::KernelMetadata& self) {
                     if (const auto* const reduction = self.signature.reduce_split_k())
                       return std::optional(reduction->epilogue);
                     const op::GemmSignature* const gemm = self.signature.gemm();
                     return gemm == nullptr ? std::optional<op::Epilogue>() : std::optional(gemm->epilogue);
                   })
      .def_prop_ro(
          "operation", [](const registry::KernelMetadata& self) { return self.signature.operation; },
          "The name of the operation that the kernel computes: \"gemm\", \"reduce_split_k\", or that of an Operation.")
      .def_prop_ro("min_cc", [](const registry::KernelMetadata& self) { return self.min_sm; })
      .def_prop_ro(
          "deterministic", [](const registry::KernelMetadata& self) { return self.promises.deterministic; },
          "Whether the kernel promises equal bits in every run.")
      .def_prop_ro(
          "batch_invariant", [](const registry::KernelMetadata& self) { return self.promises.batch_invariant; },
          "Whether the kernel promises that the bits of a row of D depend neither on M, nor on the row's place, nor on "
          "the batch.")
      .def(
          "to_json", [](const registry::KernelMetadata& self) { return registry::to_json(self); },
          "The metadata as a JSON object, with keys in a fixed order.")
      .def(
          "__reduce__",
          [](nb::handle self) {
            const auto& metadata = nb::cast<const registry::KernelMetadata&>(self);
            const op::GemmSignature* const gemm = metadata.signature.gemm();
            if (gemm == nullptr || !op::is_accumulator(gemm->epilogue) ||
                !std::holds_alternative<plan::FlatDesign>(metadata.design)) {  // built-in, or with an epilogue
              const nb::object type = nb::module_::import_("tilewright.saved").attr("SavedMetadata");
              return nb::make_tuple(type, nb::make_tuple(registry::to_json(metadata), in_html(self)));
            }
            const nb::tuple state =
                nb::make_tuple(self.attr("kernel_name"), metadata.family, self.attr("operands"), self.attr("design"),
                               metadata.min_sm, metadata.promises.deterministic, metadata.promises.batch_invariant);
            return nb::make_tuple(nb::module_::import_("copyreg").attr("__newobj__"), nb::make_tuple(self.type()),
                                  state);
          },
          nb::sig("def __reduce__(self) -> tuple[object, ...]"))
      .def(
          "__setstate__",
          [](registry::KernelMetadata& self, const nb::tuple& state) {
            registry::KernelMetadata metadata =
                make_metadata(nb::cast<std::string>(state[0]), state[1], state[2], nb::cast<plan::FlatDesign>(state[3]),
                              nb::none(), nb::cast<int>(state[4]));
            metadata.promises = {.deterministic = nb::cast<bool>(state[5]),
                                 .batch_invariant = nb::cast<bool>(state[6])};
            new (&self) registry::KernelMetadata(std::move(metadata));
          },
          nb::sig("def __setstate__(self, state: object, /) -> None"))
      .def("_repr_html_", [](nb::handle self) { return in_html(self); })
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const registry::KernelMetadata& self) { return registry::hash_value(self); })
      .def("__repr__",
           [](const registry::KernelMetadata& self) { return "KernelMetadata(" + registry::kernel_name(self) + ")"; });
}

}  // namespace tilewright::python
