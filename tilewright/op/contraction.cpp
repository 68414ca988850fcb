#include "tilewright/op/contraction.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "tilewright/op/epilogue_tensors.hpp"

namespace tilewright::op {
namespace {

// The tensors of a contraction in the order of Coordinate::strides; the auxiliary tensors follow.
enum Role : std::size_t { kA, kB, kC, kD, kTensors };

/// A mode, or several that are merged, with its stride in each tensor: 0 in those that lack it.
struct Coordinate {
  std::string modes;
  std::int64_t extent = 1;
  std::vector<std::int64_t> strides = {};
};
/// The modes of one class, fastest first.
using ModeClass = std::vector<Coordinate>;

struct Classes {
  ModeClass m, n, k, batch;
};

bool reads_c(const Contraction& contraction) {
  if (!contraction.epilogue.reads_source()) return false;
  const std::optional<std::string> gate = contraction.epilogue.gate(EpilogueOp::source);
  return !gate || scalar_value(contraction.epilogue, *gate, contraction.alpha, contraction.beta) != 0.0;
}

bool reads_inputs(const Contraction& contraction) {
  if (contraction.a.is_empty() || contraction.b.is_empty()) return false;
  const std::optional<std::string> gate = contraction.epilogue.gate(EpilogueOp::accumulator);
  return !gate || scalar_value(contraction.epilogue, *gate, contraction.alpha, contraction.beta) != 0.0;
}

bool has(std::string_view modes, char mode) { return modes.find(mode) != std::string_view::npos; }

bool is_letter(char mode) { return (mode >= 'a' && mode <= 'z') || (mode >= 'A' && mode <= 'Z'); }

/// The stride of a mode: 0 if the tensor lacks it or is broadcast along it.
std::int64_t stride_of(const Tensor& tensor, std::string_view modes, char mode) {
  const std::size_t at = modes.find(mode);
  if (at == std::string_view::npos) return 0;
  const int number = static_cast<int>(at);
  return number < tensor.shape.rank() && tensor.shape[number] != 1 ? tensor.stride[number] : 0;
}

std::int64_t extent_of(const Contraction& contraction, char mode) {
  const std::size_t in_a = contraction.modes_a.find(mode);
  if (in_a != std::string::npos) return contraction.a.shape[static_cast<int>(in_a)];
  return contraction.b.shape[static_cast<int>(contraction.modes_b.find(mode))];
}

Coordinate coordinate_of(const Contraction& contraction, char mode) {
  Coordinate coordinate{.modes = std::string(1, mode), .extent = extent_of(contraction, mode)};
  const auto add = [&](const Tensor& tensor, std::string_view modes) {
    coordinate.strides.push_back(stride_of(tensor, modes, mode));
  };
  add(contraction.a, contraction.modes_a);
  add(contraction.b, contraction.modes_b);
  add(reads_c(contraction) ? contraction.c : contraction.d, contraction.modes_d);
  add(contraction.d, contraction.modes_d);
  for (const NamedTensor& each : contraction.tensors) add(each.tensor, contraction.modes_d);
  return coordinate;
}

bool follows(const Coordinate& slow, const Coordinate& fast) {
  for (std::size_t i = 0; i < slow.strides.size(); ++i) {
    if (slow.strides[i] != fast.extent * fast.strides[i]) return false;
  }
  return true;
}

/// Sorts by the strides of `primary` and merges the modes that follow each other in every tensor.
ModeClass merged(ModeClass modes, Role primary) {
  std::erase_if(modes, [](const Coordinate& each) { return each.extent == 1; });
  std::ranges::stable_sort(modes, {}, [&](const Coordinate& each) {
    return std::pair{each.strides[primary], each.strides[primary == kA ? kB : kA]};
  });
  ModeClass result;
  for (Coordinate& each : modes) {
    if (!result.empty() && follows(each, result.back())) {
      result.back().extent *= each.extent;
      result.back().modes += each.modes;
    } else {
      result.push_back(std::move(each));
    }
  }
  return result;
}

/// Moves the mode that is contiguous in the first of `roles` that has one to the front.
void begin_with_contiguous(ModeClass& modes, std::initializer_list<Role> roles) {
  for (const Role role : roles) {
    const auto found = std::ranges::find(modes, 1, [&](const Coordinate& each) { return each.strides[role]; });
    if (found == modes.end()) continue;
    std::rotate(modes.begin(), found, found + 1);
    return;
  }
}

/// The classes as the names of the modes tell.
Classes named_classes(const Contraction& contraction) {
  Classes classes;
  for (const char mode : contraction.modes_d) {
    const bool in_a = has(contraction.modes_a, mode), in_b = has(contraction.modes_b, mode);
    (in_a && in_b ? classes.batch : in_a ? classes.m : classes.n).push_back(coordinate_of(contraction, mode));
  }
  for (const char mode : contraction.modes_a + contraction.modes_b) {
    if (has(contraction.modes_d, mode)) continue;
    const bool is_new = std::ranges::none_of(classes.k, [&](const Coordinate& each) { return each.modes[0] == mode; });
    if (is_new) classes.k.push_back(coordinate_of(contraction, mode));
  }
  for (ModeClass* const modes : {&classes.m, &classes.n, &classes.batch}) *modes = merged(std::move(*modes), kD);
  classes.k = merged(std::move(classes.k), kA);
  return classes;
}

Mode mode_of(const ModeClass& modes, std::size_t role) {
  Mode mode;
  for (const Coordinate& each : modes) {
    mode.shape.append(each.extent);
    mode.stride.append(each.strides[role]);
  }
  return mode;
}

std::int64_t size_of(const ModeClass& modes) { return mode_of(modes, kA).size(); }

/// Puts a contiguous mode of each class first.
void order(Classes& classes, DType type) {
  // Vectors of A and B matter more than those of D for elements of less than 4 bytes, which are copied through
  // registers without them, unless D is so large that storing it takes most of the time: with K of 24, single stores of
  // bf16 took 3.5 ms for 184 MB (H200, 2026-11-24).
  constexpr std::int64_t kLargeD = 8;
  const std::int64_t k = size_of(classes.k);
  const auto begin = [&](ModeClass& modes, Role operand, std::int64_t others) {
    const bool d_is_large = bytes(type) >= 4 || others > kLargeD * k;
    const auto [first, second] = d_is_large ? std::pair{kD, operand} : std::pair{operand, kD};
    begin_with_contiguous(modes, {first, second});
  };
  const std::int64_t m = size_of(classes.m), n = size_of(classes.n);
  begin(classes.m, kA, n);
  begin(classes.n, kB, m);
  begin_with_contiguous(classes.k, {kA, kB});
}

struct OperandViews {
  OperandView a, b, c, d;

  bool are_strided() const {
    return std::ranges::all_of(std::array{&a, &b, &c, &d},
                               [](const OperandView* each) { return each->access == OperandAccess::strided; });
  }
};
/// C is D if the call does not read it.
OperandViews operand_views(const Contraction& contraction, const Classes& classes) {
  const auto operand = [&](const Tensor& tensor, Role role, const ModeClass& rows, const ModeClass& columns) {
    return OperandView::folded(tensor, mode_of(rows, role), mode_of(columns, role), mode_of(classes.batch, role));
  };
  return {operand(contraction.a, kA, classes.m, classes.k), operand(contraction.b, kB, classes.k, classes.n),
          operand(reads_c(contraction) ? contraction.c : contraction.d, kC, classes.m, classes.n),
          operand(contraction.d, kD, classes.m, classes.n)};
}

/// The classes with one mode of m or n as a mode of the batch, if all operands are strided then.
std::optional<Classes> with_repeating_batch(const Contraction& contraction, const Classes& classes) {
  constexpr std::int64_t kMinExtent = 32;  // of the modes that stay, so that they fill tiles
  std::optional<Classes> best;
  std::int64_t fewest = 0;  // matrices
  for (const bool from_m : {true, false}) {
    const std::size_t count = (from_m ? classes.m : classes.n).size();
    for (std::size_t i = 0; count > 1 && i < count; ++i) {
      Classes changed = classes;
      ModeClass& modes = from_m ? changed.m : changed.n;
      const auto moved = modes.begin() + static_cast<std::ptrdiff_t>(i);
      changed.batch.push_back(std::move(*moved));
      modes.erase(moved);
      changed.batch = merged(std::move(changed.batch), kD);
      if (size_of(modes) < kMinExtent) continue;
      order(changed, contraction.a.dtype);
      const std::int64_t matrices = size_of(changed.batch);
      if ((best && matrices >= fewest) || !operand_views(contraction, changed).are_strided()) continue;
      fewest = matrices;
      best = std::move(changed);
    }
  }
  return best;
}

Classes classes_of(const Contraction& contraction) {
  Classes classes = named_classes(contraction);
  order(classes, contraction.a.dtype);
  if (contraction.is_empty() || operand_views(contraction, classes).are_strided()) return classes;
  if (std::optional<Classes> repeating = with_repeating_batch(contraction, classes)) return *std::move(repeating);
  return classes;
}

/// An auxiliary tensor as a matrix or a strided batch, or the reason why it is none.
Result<Tensor> matrix_of_tensor(const Classes& classes, const NamedTensor& tensor, std::size_t role) {
  Tensor matrix = tensor.tensor;
  Dims shape, stride;
  for (const auto& [name, modes] : {std::pair{"batch", &classes.batch}, {"m", &classes.m}, {"n", &classes.n}}) {
    const Mode mode = mode_of(*modes, role).coalesced();
    const bool is_broadcast = mode.shape.rank() == 1 && mode.stride[0] == 0;
    if (mode.shape.rank() > 1) {
      return refuse("'{}' must be broadcast along all modes of {} or none, and these must have one stride, got {}:{}",
                    tensor.name, name, to_string(tensor.tensor.shape), to_string(tensor.tensor.stride))
          .as(RefusalCode::strides)
          .of(tensor.name);
    }
    const std::int64_t extent = is_broadcast ? 1 : mode.size();
    if (modes == &classes.batch && extent == 1) continue;
    shape.append(extent);
    stride.append(mode.shape.rank() == 0 ? 0 : mode.stride[0]);
  }
  matrix.shape = shape;
  matrix.stride = stride;
  return matrix;
}

bool is_in_batch(const Contraction& contraction, char mode) {
  return has(contraction.modes_a, mode) && has(contraction.modes_b, mode);
}

/// The tensor with the extents of D, repeated along modes of the batch that it lacks; nothing if it lacks another mode.
std::optional<Tensor> with_extents_of_d(const Contraction& contraction, const Tensor& tensor) {
  Tensor full = tensor;
  for (int mode = 0; mode < tensor.shape.rank(); ++mode) {
    const std::int64_t extent = contraction.d.shape[mode];
    if (tensor.shape[mode] == extent) continue;
    if (!is_in_batch(contraction, contraction.modes_d[static_cast<std::size_t>(mode)])) return std::nullopt;
    full.shape[mode] = extent;
    full.stride[mode] = 0;
  }
  return full;
}

/// The epilogue with C in place of a tensor. @pre it does not read C
Epilogue with_source_in_place_of(Epilogue epilogue, std::string_view tensor) {
  for (EpilogueNode& node : epilogue.nodes) {
    if (node.op == EpilogueOp::tensor && node.label == tensor) node = {.op = EpilogueOp::source};
  }
  return epilogue;
}

/// The types, scalars and epilogue, with operands that have only types.
Gemm scalars_and_types(const Contraction& contraction) {
  const auto typed = [](DType type) { return matrix(std::uint64_t{0}, type, 0, 0); };
  return {.a = typed(contraction.a.dtype),
          .b = typed(contraction.b.dtype),
          .c = typed(contraction.c.dtype),
          .d = typed(contraction.d.dtype),
          .alpha = contraction.alpha,
          .beta = contraction.beta,
          .accumulator = contraction.accumulator,
          .math = contraction.math,
          .epilogue = contraction.epilogue};
}

Support check_names(const Contraction& contraction) {
  for (const auto& [role, tensor, modes] : {std::tuple{"A", &contraction.a, &contraction.modes_a},
                                            {"B", &contraction.b, &contraction.modes_b},
                                            {"D", &contraction.d, &contraction.modes_d}}) {
    if (tensor->is_pointer_array() || tensor->interleaved != InterleavedMode::none)
      return refuse("{} must be a strided tensor", role).as(RefusalCode::strides).of(role);
    if (tensor->shape.rank() != static_cast<int>(modes->size()) || tensor->stride.rank() != tensor->shape.rank()) {
      return refuse("{} has {} modes '{}', but its shape is {}", role, modes->size(), *modes, to_string(tensor->shape))
          .as(RefusalCode::shape)
          .of(role);
    }
    for (const char mode : *modes) {
      if (!is_letter(mode))
        return refuse("a mode must be a letter, got '{}' in '{}'", mode, *modes).as(RefusalCode::shape).of(role);
      if (std::ranges::count(*modes, mode) > 1) {
        return refuse("{} has the mode '{}' twice in '{}': give a view of its diagonal instead", role, mode, *modes)
            .as(RefusalCode::shape)
            .of(role);
      }
    }
    if (const Support valid = check_modes(*tensor, role); !valid) return valid;
  }
  for (const char mode : contraction.modes_d) {
    if (has(contraction.modes_a, mode) || has(contraction.modes_b, mode)) continue;
    return refuse("D has the mode '{}', but neither A nor B has it", mode).as(RefusalCode::shape).of("D");
  }
  return {};
}

Support check_extents(const Contraction& contraction) {
  const auto compare = [&](const auto& of_x, const auto& of_y) -> Support {
    const auto& [role_x, x, modes_x] = of_x;
    const auto& [role_y, y, modes_y] = of_y;
    for (std::size_t i = 0; i < modes_x->size(); ++i) {
      const std::size_t j = modes_y->find((*modes_x)[i]);
      if (j == std::string::npos) continue;
      const std::int64_t extent_x = x->shape[static_cast<int>(i)], extent_y = y->shape[static_cast<int>(j)];
      if (extent_x == extent_y) continue;
      return refuse("mode '{}' has extent {} in {}, but {} in {}", (*modes_x)[i], extent_x, role_x, extent_y, role_y)
          .as(RefusalCode::shape)
          .of(role_y);
    }
    return {};
  };
  const std::tuple a{"A", &contraction.a, &contraction.modes_a}, b{"B", &contraction.b, &contraction.modes_b},
      d{"D", &contraction.d, &contraction.modes_d};
  for (const Support& same : {compare(a, b), compare(a, d), compare(b, d)}) {
    if (!same) return same;
  }
  return {};
}

Support check_types(const Contraction& contraction) {
  for (const auto& [role, tensor] : {std::pair{"A", &contraction.a}, {"B", &contraction.b}, {"D", &contraction.d}}) {
    if (tensor->dtype != DType::tf32) continue;
    return refuse("{} is tf32, which is only a math type: use f32 elements and multiply_add_tf32", role)
        .as(RefusalCode::math)
        .of(role);
  }
  return check_matrices(scalars_and_types(contraction));
}

/// Refuses a tensor of which elements may overlap: in the order of strides, each must exceed what all before reach.
Support check_elements_are_distinct(const Tensor& tensor, std::string_view role) {
  if (tensor.is_empty()) return {};
  std::vector<std::pair<std::int64_t, std::int64_t>> modes;  // stride, extent
  for (int mode = 0; mode < tensor.shape.rank(); ++mode) {
    if (tensor.shape[mode] > 1) modes.emplace_back(tensor.stride[mode], tensor.shape[mode]);
  }
  std::ranges::sort(modes);
  std::int64_t reach = 0;
  for (const auto& [stride, extent] : modes) {
    if (stride <= reach) {
      return refuse("elements of {} of shape {} overlap: the stride {} must exceed {}, which the modes before it reach",
                    role, to_string(tensor.shape), stride, reach)
          .as(RefusalCode::overlap)
          .of(role);
    }
    reach += (extent - 1) * stride;
  }
  return {};
}

Support check_outputs(const Contraction& contraction) {
  if (const Support distinct = check_elements_are_distinct(contraction.d, "D"); !distinct) return distinct;
  if (!reads_c(contraction)) return {};
  const Tensor& c = contraction.c;
  if (c.shape != contraction.d.shape || c.stride.rank() != c.shape.rank()) {
    return refuse("C must have the shape {} of D, got {}", to_string(contraction.d.shape), to_string(c.shape))
        .as(RefusalCode::shape)
        .of("C");
  }
  if (c.is_pointer_array() || c.interleaved != InterleavedMode::none)
    return refuse("C must be a strided tensor").as(RefusalCode::strides).of("C");
  return check_modes(c, "C");
}

Support check_epilogue(const Contraction& contraction) {
  if (contraction.epilogue.is_gated() || contraction.epilogue.columns_per_element() != 1) {
    return refuse("the epilogue pairs columns of A*B, which a contraction does not have: its modes are in any order")
        .as(RefusalCode::epilogue);
  }
  for (const EpilogueNode& node : contraction.epilogue.nodes) {
    if (node.op == EpilogueOp::row_index || node.op == EpilogueOp::column_index) {
      return refuse(
                 "the epilogue uses the index of a {}, which a contraction does not have: its modes are in any order",
                 node.op == EpilogueOp::row_index ? "row" : "column")
          .as(RefusalCode::epilogue);
    }
  }
  return {};
}

Support check_tensors(const Contraction& contraction) {
  if (contraction.tensors.empty() && epilogue_tensors(contraction.epilogue).empty()) return {};
  for (const auto& [role, tensor] : contraction.tensors) {
    if (tensor.shape.rank() != contraction.d.shape.rank() || tensor.stride.rank() != tensor.shape.rank()) {
      return refuse("'{}' must have the {} modes of D, got {}", role, contraction.d.shape.rank(),
                    to_string(tensor.shape))
          .as(RefusalCode::shape)
          .of(role);
    }
    if (tensor.is_pointer_array() || tensor.interleaved != InterleavedMode::none)
      return refuse("'{}' must be a strided tensor", role).as(RefusalCode::strides).of(role);
    if (const Support valid = check_modes(tensor, role); !valid) return valid;
    for (int mode = 0; mode < tensor.shape.rank(); ++mode) {
      if (tensor.shape[mode] == 1 || tensor.shape[mode] == contraction.d.shape[mode]) continue;
      return refuse("'{}' must have extent {} or 1 in mode '{}', got {}", role, contraction.d.shape[mode],
                    contraction.modes_d[static_cast<std::size_t>(mode)], tensor.shape[mode])
          .as(RefusalCode::shape)
          .of(role);
    }
  }
  const Contraction computed = with_folded_tensor_as_source(contraction).value_or(contraction);
  const Classes classes = classes_of(computed);
  Gemm gemm = scalars_and_types(computed);
  for (std::size_t i = 0; i < computed.tensors.size(); ++i) {
    Result<Tensor> matrix = matrix_of_tensor(classes, computed.tensors[i], kTensors + i);
    if (!matrix) return matrix.refusal();
    gemm.tensors.push_back({computed.tensors[i].name, *std::move(matrix)});
  }
  // The extents of A, B and D give m, n and the batch; the strides have no meaning here.
  const std::int64_t m = size_of(classes.m), n = size_of(classes.n), k = size_of(classes.k);
  gemm.a = matrix(std::uint64_t{0}, gemm.a.dtype, m, k);
  gemm.b = matrix(std::uint64_t{0}, gemm.b.dtype, k, n);
  gemm.d = matrix(std::uint64_t{0}, gemm.d.dtype, m, n);
  gemm.d = batched(gemm.d, size_of(classes.batch));
  return check_epilogue_tensors(gemm);
}

// `Problem` is Contraction or const Contraction.
template <class TensorPointer, class Problem>
std::vector<BasicOperand<TensorPointer>> operands_of(Problem& contraction) {
  const bool reads = reads_inputs(contraction);
  std::vector<BasicOperand<TensorPointer>> operands{{"A", &contraction.a, Access::read, reads},
                                                    {"B", &contraction.b, Access::read, reads},
                                                    {"C", &contraction.c, Access::read, reads_c(contraction), true},
                                                    {"D", &contraction.d, Access::write}};
  for (auto& [name, tensor] : contraction.tensors)
    operands.push_back(tensor_operand(contraction.epilogue, name, &tensor));
  return operands;
}

std::string text_of(const ModeClass& modes) {
  if (modes.empty()) return "1";
  std::string text;
  for (const Coordinate& each : modes) {
    const std::string merged = each.modes.size() == 1 ? each.modes : "(" + each.modes + ")";
    text += (text.empty() ? "" : "*") + merged;
  }
  return text;
}

}  // namespace

Result<std::array<std::string, 3>> parse_contraction(std::string_view expression) {
  std::string text(expression);
  std::erase(text, ' ');
  const auto malformed = [&](std::string_view reason) {
    return refuse("'{}' is no contraction of two tensors, such as \"ab,bc->ac\": {}", expression, reason)
        .as(RefusalCode::shape);
  };
  const std::size_t arrow = text.find("->");
  const std::string inputs = text.substr(0, arrow);
  const std::size_t comma = inputs.find(',');
  if (comma == std::string::npos) return malformed("it has no comma");
  std::array<std::string, 3> modes{inputs.substr(0, comma), inputs.substr(comma + 1), ""};
  if (has(modes[1], ',')) return malformed("it has more than two operands");
  for (const char mode : modes[0] + modes[1]) {
    if (arrow == std::string::npos && std::ranges::count(inputs, mode) == 1) modes[2] += mode;
  }
  std::ranges::sort(modes[2]);
  if (arrow != std::string::npos) modes[2] = text.substr(arrow + 2);
  for (const char mode : modes[0] + modes[1] + modes[2]) {
    if (is_letter(mode)) continue;
    const bool is_ascii = static_cast<unsigned char>(mode) < 0x80;
    return malformed(is_ascii ? fmt::format("'{}' is not a letter", mode)
                              : std::string("it has a character that is not a letter from a to z or A to Z"));
  }
  return modes;
}

Support validate(const Contraction& contraction) {
  for (const auto& check : {check_names, check_extents, check_types, check_outputs, check_epilogue, check_tensors}) {
    if (const Support valid = check(contraction); !valid) return valid;
  }
  return contraction.is_empty() ? Support() : check_memory(operands(contraction));
}

std::vector<Operand> operands(Contraction& contraction) { return operands_of<Tensor*>(contraction); }
std::vector<ConstOperand> operands(const Contraction& contraction) { return operands_of<const Tensor*>(contraction); }

std::optional<Contraction> with_folded_tensor_as_source(const Contraction& contraction) {
  if (contraction.epilogue.reads_source()) return std::nullopt;
  std::optional<Classes> classes;
  for (std::size_t i = 0; i < contraction.tensors.size(); ++i) {
    const NamedTensor& tensor = contraction.tensors[i];
    if (!is_full_input(contraction.epilogue, tensor.name)) continue;
    if (!classes) classes = classes_of(contraction);
    if (matrix_of_tensor(*classes, tensor, kTensors + i)) continue;
    const std::optional<Tensor> source = with_extents_of_d(contraction, tensor.tensor);
    if (!source) continue;
    Contraction changed = contraction;
    changed.c = *source;
    changed.epilogue = with_source_in_place_of(contraction.epilogue, tensor.name);
    changed.tensors.erase(changed.tensors.begin() + static_cast<std::ptrdiff_t>(i));
    if (check_types(changed)) return changed;
  }
  return std::nullopt;
}

namespace {

/// The view of a contraction of which no tensor takes the place of C.
GemmView view_as_given(const Contraction& contraction) {
  const Classes classes = classes_of(contraction);
  const auto [a, b, c, d] = operand_views(contraction, classes);
  const bool is_shape = contraction.d.device.kind == MemoryDevice::Kind::shape;
  const bool has_c =
      contraction.c.address != 0 || (is_shape && contraction.c.shape.rank() == contraction.d.shape.rank());
  const bool reads = reads_c(contraction);
  GemmView view{.a = a,
                .b = b,
                .c = c,
                .d = d,
                .alpha = contraction.alpha,
                .beta = contraction.beta,
                .accumulator = contraction.accumulator,
                .math = contraction.math,
                .epilogue = &contraction.epilogue,
                .has_source = contraction.epilogue.reads_source() && has_c,
                .reads_source = reads,
                .reads_product = reads_inputs(contraction)};
  if (!contraction.tensors.empty()) {
    auto tensors = std::make_shared<std::vector<NamedTensor>>();
    for (std::size_t i = 0; i < contraction.tensors.size(); ++i) {
      const NamedTensor& each = contraction.tensors[i];
      tensors->push_back({each.name, matrix_of_tensor(classes, each, kTensors + i).value_or_throw()});
    }
    view.tensors = *tensors;
    view.keeps = std::move(tensors);
  }
  return view;
}

}  // namespace

GemmView view(const Contraction& contraction) {
  std::optional<Contraction> changed = with_folded_tensor_as_source(contraction);
  if (!changed) return view_as_given(contraction);
  struct Kept {
    Contraction contraction;
    std::shared_ptr<const void> of_view;
  };
  const auto kept = std::make_shared<Kept>(Kept{*std::move(changed), nullptr});
  GemmView view = view_as_given(kept->contraction);
  kept->of_view = std::exchange(view.keeps, kept);
  return view;
}

std::string classes_text(const Contraction& contraction) {
  const Classes classes = classes_of(contraction);
  return fmt::format("m = {}, n = {}, k = {}, batch = {}", text_of(classes.m), text_of(classes.n), text_of(classes.k),
                     text_of(classes.batch));
}

}  // namespace tilewright::op
