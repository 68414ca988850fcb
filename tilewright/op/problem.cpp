#include "tilewright/op/problem.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tilewright/base/interruption.hpp"
#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/fill.hpp"

namespace tilewright::op {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

// A Custom that was not made by Custom::make() may have too few tensors or scalars.
bool is_complete(const Custom& custom) {
  return custom.operation != nullptr && custom.tensors.size() == custom.operation->operands().size() &&
         custom.scalars.size() == custom.operation->scalars().size();
}

void append_strides(const Tensor& tensor, std::vector<std::int64_t>& to) {
  to.insert(to.end(), {tensor.row_stride(), tensor.column_stride(), tensor.batch_stride()});
}

void append_numbers(const Im2col& im2col, std::vector<std::int64_t>& to) {
  to.insert(to.end(), {im2col.images, im2col.image_stride, im2col.channels, im2col.blocks, im2col.block_stride});
  for (const Im2colAxis& axis : {im2col.h, im2col.w}) {
    to.insert(to.end(), {axis.positions, axis.taps, axis.extent, axis.stride, axis.step, axis.tap_step, axis.offset,
                         axis.divisor});
  }
}

void append_numbers(const Mode& mode, std::vector<std::int64_t>& to) {
  to.push_back(mode.shape.rank());
  for (int i = 0; i < mode.shape.rank(); ++i) to.insert(to.end(), {mode.shape[i], mode.stride[i]});
}

// Nothing for operands that are matrices.
void append_numbers(const OperandView& operand, std::vector<std::int64_t>& to) {
  if (operand.access == OperandAccess::im2col) append_numbers(operand.im2col, to);
  if (operand.access != OperandAccess::folded) return;
  for (const Mode* const mode : {&operand.rows, &operand.columns, &operand.batch}) append_numbers(*mode, to);
}

// Kernels for a matrix of one line may have the layout whose line has all elements, see with_longest_lines(). If the
// signature has the other layout, with lines of one element, it does not have their alignment.
void append_alignments_of_lines(const GemmView& view, std::vector<int>& to) {
  for (const OperandView* const operand : {&view.a, &view.b, &view.c, &view.d}) {
    const Tensor& tensor = operand->tensor;
    if (!operand->is_matrix() || tensor.shape.rank() < 2 || (tensor.rows() > 1 && tensor.columns() > 1)) continue;
    if (operand != &view.c || view.reads_source) to.push_back(shared_alignment(tensor, {}));
  }
}

void set_gemm_key(const GemmView& view, ProblemKey& key) {
  key.reads_source = view.reads_source;
  key.reads_product = view.reads_product;
  key.stores_accumulator = stores_accumulator(view);
  key.a_splits_sectors = splits_sectors(view.a.tensor);
  key.b_splits_sectors = splits_sectors(view.b.tensor);
  append_alignments_of_lines(view, key.alignments);
}

// A null entry of `operands` leaves its strides 0.
void set_extents_and_strides(const GemmView& view, const std::array<const Tensor*, 4>& operands, ProblemKey& key) {
  key.extents_and_strides = {view.m(), view.n(), view.k(), view.batch()};
  auto* to = &key.extents_and_strides[4];
  for (const Tensor* const tensor : operands) {
    if (tensor != nullptr) {
      to[0] = tensor->row_stride();
      to[1] = tensor->column_stride();
      to[2] = tensor->batch_stride();
    }
    to += 3;
  }
  for (const EpilogueTensor& each : epilogue_tensors(*view.epilogue)) append_strides(view.tensor(each.label), key.more);
  for (const OperandView* const operand : {&view.a, &view.b, &view.d}) append_numbers(*operand, key.more);
}

// The key without the numbers of C, which follow all others, so that check_same_extents() knows a call without C.
ProblemKey key_before_source(const GemmView& view) {
  ProblemKey key{.signature = describe(view)};
  set_gemm_key(view, key);
  const Tensor* const c = view.reads_source ? &view.c.tensor : nullptr;
  set_extents_and_strides(view, {&view.a.tensor, &view.b.tensor, c, &view.d.tensor}, key);
  return key;
}

ProblemKey key_of(const GemmView& view) {
  ProblemKey key = key_before_source(view);
  if (view.reads_source) append_numbers(view.c, key.more);
  return key;
}

ProblemKey key_of(const Gemm& gemm) { return key_of(op::view(gemm)); }

ProblemKey key_of(const Conv2d& conv) {
  ProblemKey key = key_of(op::view(conv));
  // In the signature a batch of single channels is aligned to one element, but depthwise kernels move vectors of
  // channels; and a tensor of few channels to these, but repacked_conv copies several pixels at once.
  const auto has_whole_rows = [](const Tensor* tensor) {
    constexpr std::int64_t kVectorBytes = 16;
    return tensor->shape[tensor->shape.rank() - 1] * bytes(tensor->dtype) % kVectorBytes == 0;
  };
  const std::array<const Tensor*, 3> tensors{&conv.x, &conv.w, &conv.y};
  if (conv.groups == 1 && std::ranges::all_of(tensors, has_whole_rows)) return key;
  for (const Tensor* const tensor : tensors) key.alignments.push_back(shared_alignment(*tensor, {}));
  key.alignments.push_back(key.reads_source ? shared_alignment(conv.c, {}) : 0);
  return key;
}

// Two contractions may have the same view, but modes that merge in one of them, or that are a batch, are copied in
// another way in the other: see op::permute(). A folded operand without vectors is aligned to one element in the
// signature, but copies move vectors along other modes, for which the address counts.
ProblemKey key_of(const Contraction& given) {
  const Contraction contraction = with_folded_tensor_as_source(given).value_or(given);
  const GemmView view = op::view(contraction);
  ProblemKey key = key_before_source(view);
  const auto append_source = [&] {
    if (view.reads_source) append_numbers(view.c, key.more);
  };
  const auto is_folded = [](const OperandView& operand) { return operand.access == OperandAccess::folded; };
  if (!is_folded(view.a) && !is_folded(view.b) && !is_folded(view.d)) {
    append_source();
    return key;
  }
  const std::string letters = contraction.modes_a + contraction.modes_b;
  for (const auto& [tensor, modes] : {std::pair{&contraction.a, &contraction.modes_a},
                                      {&contraction.b, &contraction.modes_b},
                                      {&contraction.d, &contraction.modes_d},
                                      {&contraction.c, &contraction.modes_d}}) {
    if (tensor == &contraction.c && !view.reads_source) continue;
    if (tensor == &contraction.c) append_source();
    key.alignments.push_back(shared_alignment(*tensor, {}));
    for (int mode = 0; mode < tensor->shape.rank(); ++mode) {
      const std::size_t number = letters.find((*modes)[static_cast<std::size_t>(mode)]);
      key.more.insert(key.more.end(), {static_cast<std::int64_t>(number), tensor->shape[mode], tensor->stride[mode]});
    }
  }
  return key;
}
ProblemKey key_of(const GroupedGemm& grouped) {
  ProblemKey key = key_of(op::view(grouped));
  key.expected = grouped.expected;
  return key;
}

ProblemKey key_of(const ReduceSplitK& reduction) {
  const GemmView view = outputs_view(reduction);
  ProblemKey key{.signature = describe(reduction)};
  set_gemm_key(view, key);
  const Tensor* const c = view.reads_source ? &reduction.c : nullptr;
  set_extents_and_strides(view, {&reduction.parts, nullptr, c, &reduction.d}, key);
  return key;
}

ProblemKey key_of(const Custom& custom) {
  ProblemKey key;
  if (const Result<GemmView> view = custom.operation->view(custom)) {
    key.signature = describe(*view);
    set_gemm_key(*view, key);
  } else {
    key.signature = {custom.operation->name(), describe(custom)};
  }
  for (const NamedTensor& each : custom.tensors) {
    for (int mode = 0; mode < each.tensor.shape.rank(); ++mode)
      key.more.insert(key.more.end(), {each.tensor.shape[mode], each.tensor.stride[mode]});
  }
  return key;
}

// "(2x7x7)x(3x3x64)" with steps, tap steps, offsets and divisors of height and width; "(2x7x7)x(2x3x3x32)" with two
// blocks of channels.
std::string extents_text(const Im2col& im2col) {
  const auto& [h, w] = std::tie(im2col.h, im2col.w);
  const std::string blocks = im2col.blocks == 1 ? "" : fmt::format("{}x", im2col.blocks);
  return fmt::format("({}x{}x{})x({}{}x{}x{}) of {}x{} steps {},{} {},{} offsets {},{} divisors {},{}", im2col.images,
                     h.positions, w.positions, blocks, h.taps, w.taps, im2col.channels, h.extent, w.extent, h.step,
                     w.step, h.tap_step, w.tap_step, h.offset, w.offset, h.divisor, w.divisor);
}

// "(4,3):(1,20)" for a mode, as a layout.
std::string extents_text(const Mode& mode) { return to_string(mode.shape) + ":" + to_string(mode.stride); }

std::string extents_text(const GemmView& view) {
  std::string batch = view.batch() == 1 ? "" : fmt::format("{} of ", view.batch());
  if (view.groups != GroupedMode::none) batch = fmt::format("{} groups in ", view.batch());
  std::string text =
      fmt::format("{}{}x{}x{}{}", batch, view.m(), view.n(), view.k(), view.reads_source ? " reads_c" : "");
  if (view.expected.is_given()) text += " expects " + to_string(view.expected);
  for (const auto& [role, operand] : {std::pair{"A", &view.a}, {"B", &view.b}, {"C", &view.c}, {"D", &view.d}}) {
    if (operand == &view.c && !view.reads_source) continue;
    if (operand->access == OperandAccess::im2col) text += fmt::format(" {} {}", role, extents_text(operand->im2col));
    if (operand->access == OperandAccess::folded) {
      text += fmt::format(" {} {}x{} batch {}", role, extents_text(operand->rows), extents_text(operand->columns),
                          extents_text(operand->batch));
    }
  }
  return text;
}

std::string extents_text(const ReduceSplitK& reduction) {
  return fmt::format("{} parts of {}x{}{}", reduction.count(), reduction.m(), reduction.n(),
                     reads_source(reduction) ? " reads_c" : "");
}

std::string extents_text(const Custom& custom) {
  std::vector<std::string> shapes;
  for (const NamedTensor& each : custom.tensors) shapes.push_back(each.name + to_string(each.tensor.shape));
  return fmt::format("{}", fmt::join(shapes, " "));
}

// Copies of the outputs, filled by reference(). What an operation only writes is poisoned first, so that a reference
// that writes no outputs confirms no result.
class ExpectedOutputs {
 public:
  explicit ExpectedOutputs(const Custom& custom) : expected_(custom) {
    for (const Operand& operand : operands(expected_)) {
      if (!is_written(operand.access)) continue;
      const auto size = static_cast<std::size_t>(span_bytes(*operand.tensor));
      auto& copy = copies_.emplace_back(std::make_unique_for_overwrite<std::byte[]>(size));
      std::memcpy(copy.get(), reinterpret_cast<const void*>(operand.tensor->address), size);
      operand.tensor->address = reinterpret_cast<std::uint64_t>(copy.get());
      if (operand.access == Access::write) fill_poison(*operand.tensor);
    }
    custom.operation->reference(expected_);
  }
  const Custom& problem() const { return expected_; }

 private:
  Custom expected_;
  std::vector<std::unique_ptr<std::byte[]>> copies_;
};

bool is_near(double actual, double expected, double tolerance) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return true;
  return std::fabs(actual - expected) <= tolerance * std::max(1.0, std::fabs(expected));
}

void compare_output(const std::string& name, const Tensor& actual, const Tensor& expected, double tolerance,
                    Comparison& comparison) {
  if (actual.is_empty()) return;
  PeriodicCheck check;
  Dims at = actual.shape;
  for (int mode = 0; mode < at.rank(); ++mode) at[mode] = 0;
  while (true) {
    check();
    std::int64_t offset = 0;
    for (int mode = 0; mode < at.rank(); ++mode) offset += at[mode] * actual.stride[mode];
    const double x = load_at(actual, offset), y = load_at(expected, offset);
    ++comparison.elements;
    ++comparison.checked;
    if (x == y || (std::isnan(x) && std::isnan(y))) ++comparison.equal;
    if (std::isfinite(x - y)) comparison.max_error = std::max(comparison.max_error, std::fabs(x - y));
    if (!is_near(x, y, tolerance) && comparison.outside++ == 0) {
      const int rank = at.rank();
      comparison.worst = {name,
                          rank > 2 ? at[rank - 3] : 0,
                          rank > 1 ? at[rank - 2] : 0,
                          rank > 0 ? at[rank - 1] : 0,
                          x,
                          y,
                          tolerance * std::max(1.0, std::fabs(y))};
    }
    int mode = at.rank() - 1;
    while (mode >= 0 && ++at[mode] == actual.shape[mode]) at[mode--] = 0;
    if (mode < 0) return;
  }
}

}  // namespace

std::string_view operation_name(const Problem& problem) {
  return std::visit(Overloaded{
                        [](const Gemm&) -> std::string_view { return "gemm"; },
                        [](const GroupedGemm&) -> std::string_view { return "grouped_gemm"; },
                        [](const Conv2d&) -> std::string_view { return "conv2d"; },
                        [](const Contraction&) -> std::string_view { return "contraction"; },
                        [](const ReduceSplitK&) -> std::string_view { return "reduce_split_k"; },
                        [](const Custom& custom) -> std::string_view { return custom.operation->name(); },
                    },
                    problem);
}

std::vector<Operand> operands(Problem& problem) {
  return std::visit([](auto& each) { return operands(each); }, problem);
}

std::vector<ConstOperand> operands(const Problem& problem) {
  return std::visit([](const auto& each) { return operands(each); }, problem);
}

Support validate(const Problem& problem) {
  return std::visit(Overloaded{
                        [](const Gemm& gemm) { return validate(gemm); },
                        [](const GroupedGemm& grouped) { return validate(grouped); },
                        [](const Conv2d& conv) { return validate(conv); },
                        [](const Contraction& contraction) { return validate(contraction); },
                        [](const ReduceSplitK& reduction) { return validate(reduction); },
                        [](const Custom& custom) {
                          if (!is_complete(custom))
                            return Support(refuse("a user-defined problem must be made by Custom::make()"));
                          return validate(custom);
                        },
                    },
                    problem);
}

Result<GemmView> view(const Problem& problem) {
  return std::visit(
      Overloaded{
          [](const Gemm& gemm) { return Result<GemmView>(view(gemm)); },
          [](const GroupedGemm& grouped) { return Result<GemmView>(view(grouped)); },
          [](const Conv2d& conv) { return Result<GemmView>(view(conv)); },
          [](const Contraction& contraction) { return Result<GemmView>(view(contraction)); },
          [](const ReduceSplitK&) {
            return Result<GemmView>(refuse("reduce_split_k is not computed as a GEMM").as(RefusalCode::operation));
          },
          [](const Custom& custom) { return custom.operation->view(custom); },
      },
      problem);
}

Signature describe(const Problem& problem) {
  return std::visit(Overloaded{
                        [](const ReduceSplitK& reduction) -> Signature { return describe(reduction); },
                        [](const Custom& custom) -> Signature {
                          const Result<GemmView> gemm = custom.operation->view(custom);
                          if (gemm) return describe(with_longest_lines(*gemm));
                          return {custom.operation->name(), describe(custom)};
                        },
                        [](const auto& each) -> Signature { return describe(with_longest_lines(view(each))); },
                    },
                    problem);
}

bool is_empty(const Problem& problem) {
  return std::visit([](const auto& each) { return each.is_empty(); }, problem);
}

MemoryDevice device(const Problem& problem) {
  if (const auto* const gemm = std::get_if<Gemm>(&problem)) return gemm->d.device;
  if (const auto* const grouped = std::get_if<GroupedGemm>(&problem)) return grouped->gemm.d.device;
  for (const ConstOperand& operand : operands(problem)) {
    if (is_written(operand.access)) return operand.tensor->device;
  }
  return {};
}

bool is_shape_only(const Problem& problem) { return device(problem).kind == MemoryDevice::Kind::shape; }

ProblemKey key(const Problem& problem) {
  return std::visit([](const auto& each) { return key_of(each); }, problem);
}

std::size_t ProblemKeyHash::operator()(const ProblemKey& key) const {
  std::size_t hash = hash_value(key.signature) * 2 + (key.reads_source ? 1 : 0);
  const auto mix = [&](std::int64_t number) {
    hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x100000001b3ULL;
    hash ^= hash >> 32;
  };
  mix((key.a_splits_sectors ? 1 : 0) + (key.b_splits_sectors ? 2 : 0));
  for (const std::int64_t number : key.extents_and_strides) mix(number);
  for (const std::int64_t number : key.more) mix(number);
  for (const int number : key.alignments) mix(number);
  for (const std::int64_t number : {key.expected.groups, key.expected.m, key.expected.n, key.expected.k}) mix(number);
  return hash;
}

namespace {

/// check_same_extents() of problems that are computed as no GEMM.
Support check_same_operands(const ProblemKey& prepared, const ProblemKey& given) {
  std::size_t at = 0;
  for (const OperandSignature& operand : std::get<std::vector<OperandSignature>>(prepared.signature.operands)) {
    for (int mode = 0; mode < operand.rank; ++mode, at += 2) {
      for (const auto& [what, number] : {std::pair{"extent", at}, std::pair{"stride", at + 1}}) {
        const std::int64_t had = prepared.more[number], has = given.more[number];
        if (had != has) {
          return refuse("prepared for {} {} of mode {} of {}, got {}", what, had, mode, operand.name, has)
              .as(number == at ? RefusalCode::shape : RefusalCode::strides);
        }
      }
    }
  }
  return {};
}

}  // namespace

Support check_same_extents(const ProblemKey& prepared, const ProblemKey& given) {
  if (std::holds_alternative<std::vector<OperandSignature>>(prepared.signature.operands))
    return check_same_operands(prepared, given);
  const bool is_gemm = prepared.signature.reduce_split_k() == nullptr;
  const std::array<std::string_view, 4> extents{"m", "n", is_gemm ? "k" : "the number of parts", "batch"};
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::int64_t had = prepared.extents_and_strides[i], has = given.extents_and_strides[i];
    if (had != has) return refuse("prepared for {} = {}, got {}", extents[i], had, has).as(RefusalCode::shape);
  }
  if (!prepared.reads_source && given.reads_source)
    return refuse("prepared with beta = 0, for a kernel that may not read C: prepare the call with another beta")
        .as(RefusalCode::epilogue);
  std::array<std::int64_t, 12> strides{}, given_strides{};
  std::ranges::copy(std::span(prepared.extents_and_strides).subspan(4), strides.begin());
  std::ranges::copy(std::span(given.extents_and_strides).subspan(4), given_strides.begin());
  constexpr std::ptrdiff_t kStridesOfC = 6;
  if (!given.reads_source) std::fill_n(strides.begin() + kStridesOfC, 3, 0);  // the kernel runs without C
  if (strides != given_strides) {
    return refuse("prepared for strides {}, got {}", fmt::join(strides, ","), fmt::join(given_strides, ","))
        .as(RefusalCode::strides);
  }
  const bool drops_source = prepared.reads_source && !given.reads_source;  // whose numbers are the last
  const std::size_t count = drops_source ? std::min(prepared.more.size(), given.more.size()) : prepared.more.size();
  if (!std::ranges::equal(std::span(prepared.more).first(count), given.more)) {
    return refuse(
               "prepared for tensors with other modes or strides: prepare a call for these (the strides of the "
               "epilogue's tensors and the modes of the operands were {}, and are {})",
               fmt::join(prepared.more, ","), fmt::join(given.more, ","))
        .as(RefusalCode::strides);
  }
  return {};
}

std::string problem_class(const Problem& problem) {
  const std::string signature = to_string(describe(problem));
  if (const auto* const reduction = std::get_if<ReduceSplitK>(&problem))
    return extents_text(*reduction) + ' ' + signature;
  const Result<GemmView> gemm = view(problem);
  return (gemm ? extents_text(*gemm) : extents_text(std::get<Custom>(problem))) + ' ' + signature;
}

Result<Problem> measurable(const Problem& problem) {
  Problem measured = problem;
  if (auto* const gemm = std::get_if<Gemm>(&measured); gemm != nullptr && gemm->alpha == 0.0) gemm->alpha = 1.0;
  if (auto* const conv = std::get_if<Conv2d>(&measured); conv != nullptr && conv->alpha == 0.0) conv->alpha = 1.0;
  if (auto* const sums = std::get_if<Contraction>(&measured); sums != nullptr && sums->alpha == 0.0) sums->alpha = 1.0;
  if (auto* const grouped = std::get_if<GroupedGemm>(&measured); grouped != nullptr && grouped->gemm.alpha == 0.0)
    grouped->gemm.alpha = 1.0;
  if (auto* const reduction = std::get_if<ReduceSplitK>(&measured)) {
    if (reduction->alpha == 0.0) reduction->alpha = 1.0;
    if (reduction->is_empty() || !reads_parts(*reduction))
      return refuse("there is nothing to measure in a reduction of {}", extents_text(*reduction));
    return measured;
  }
  const Result<GemmView> gemm = view(measured);
  const std::string of_gemm =
      gemm ? fmt::format(" in a GEMM of {}x{}x{}, batch {}", gemm->m(), gemm->n(), gemm->k(), gemm->batch()) : "";
  if (is_empty(measured)) return refuse("there is nothing to measure{}: all outputs are empty", of_gemm);
  if (gemm && !gemm->reads_product) {
    return refuse("there is nothing to measure{}: {}", of_gemm,
                  gemm->k() == 0 ? "K is 0" : "its product is multiplied by 0");
  }
  return measured;
}

double operations(const Problem& problem) {
  if (const auto* const reduction = std::get_if<ReduceSplitK>(&problem)) return operations(*reduction);
  const Result<GemmView> gemm = view(problem);
  return gemm ? operations(*gemm) : 0.0;
}

std::int64_t largest_exact_input(const Problem& problem) {
  constexpr std::int64_t kForOtherOperations = 3;
  if (const auto* const reduction = std::get_if<ReduceSplitK>(&problem))
    return exact_integer_limit(reduction->parts.dtype, reduction->accumulator, reduction->count());
  const Result<GemmView> gemm = view(problem);
  return gemm ? exact_integer_limit(gemm->a.tensor.dtype, gemm->accumulator, gemm->k()) : kForOtherOperations;
}

bool has_reference(const Problem& problem) {
  const auto* const custom = std::get_if<Custom>(&problem);
  return std::holds_alternative<ReduceSplitK>(problem) || view(problem) ||
         (custom != nullptr && custom->operation->has_reference());
}

void reference(const Problem& problem) {
  const auto* const custom = std::get_if<Custom>(&problem);
  if (custom != nullptr && custom->operation->has_reference()) return custom->operation->reference(*custom);
  if (const auto* const reduction = std::get_if<ReduceSplitK>(&problem)) return reference(*reduction);
  reference(view(problem).value_or_throw());
}

Comparison compare(const Problem& problem, std::uint64_t seed) {
  if (const auto* const reduction = std::get_if<ReduceSplitK>(&problem)) return compare(*reduction, seed);
  const auto* const custom = std::get_if<Custom>(&problem);
  if (custom == nullptr || !custom->operation->has_reference()) return compare(view(problem).value_or_throw(), seed);
  Comparison comparison;
  const ExpectedOutputs expected(*custom);
  for (std::size_t i = 0; i < custom->tensors.size(); ++i) {
    if (!is_written(custom->operation->operands()[i].access)) continue;
    compare_output(custom->tensors[i].name, custom->tensors[i].tensor, expected.problem().tensors[i].tensor,
                   custom->operation->tolerance(), comparison);
  }
  return comparison;
}

}  // namespace tilewright::op
