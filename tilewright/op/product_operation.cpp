#include "tilewright/op/product_operation.hpp"

#include <algorithm>
#include <utility>

#include "tilewright/op/gemm.hpp"

namespace tilewright::op {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

std::size_t find_operand(const std::vector<OperandDeclaration>& operands, const std::string& name) {
  const auto found = std::ranges::find(operands, name, &OperandDeclaration::name);
  if (found == operands.end()) throw InvalidArgument(fmt::format("the product has no operand '{}'", name));
  return static_cast<std::size_t>(found - operands.begin());
}

void check_extents(const OperandDeclaration& operand) {
  for (const std::string& extent : operand.shape) {
    if (extent[0] >= '0' && extent[0] <= '9')
      throw InvalidArgument(
          fmt::format("the extents of '{}' in a product must be names, got {}", operand.name, extent));
    if (std::ranges::count(operand.shape, extent) > 1)
      throw InvalidArgument(fmt::format("'{}' has the extent '{}' twice", operand.name, extent));
  }
}

}  // namespace

ProductOperation::ProductOperation(std::string name, std::vector<OperandDeclaration> operands,
                                   const std::array<std::string, 3>& product, std::vector<NamedScalar> scalars)
    : Operation(std::move(name), std::move(operands), std::move(scalars)),
      epilogues_{linear_combination(DType::f32), linear_combination(DType::f64), linear_combination(DType::s32)} {
  if (this->operands().size() != product.size())
    throw InvalidArgument(
        fmt::format("a product has 3 operands, but {} has {}", this->name(), this->operands().size()));
  if (this->scalars().size() > 1 || (!this->scalars().empty() && this->scalars()[0].name != "alpha"))
    throw InvalidArgument("the only scalar of a product is 'alpha'");
  for (std::size_t i = 0; i < product.size(); ++i) {
    product_[i] = find_operand(this->operands(), product[i]);
    check_extents(this->operands()[product_[i]]);
    const bool is_d = i == 2;
    if ((this->operands()[product_[i]].access == Access::write) != is_d ||
        this->operands()[product_[i]].access == Access::update)
      throw InvalidArgument(
          fmt::format("a product must read its first two operands and write the third: see '{}'", product[i]));
  }
  const auto& a = this->operands()[product_[0]].shape;
  const auto& b = this->operands()[product_[1]].shape;
  const auto& d = this->operands()[product_[2]].shape;
  for (const std::string& extent : d) {
    const bool in_a = contains(a, extent), in_b = contains(b, extent);
    if (!in_a && !in_b)
      throw InvalidArgument(fmt::format("the output has the extent '{}', which no input has", extent));
    (in_a && in_b ? modes_.batch : in_a ? modes_.m : modes_.n).push_back(extent);
  }
  for (const auto& [input, other] : {std::pair{&a, &b}, {&b, &a}}) {
    for (const std::string& extent : *input) {
      if (contains(d, extent)) continue;
      if (!contains(*other, extent)) throw InvalidArgument(fmt::format("only one operand has the extent '{}'", extent));
      if (input == &a) modes_.k.push_back(extent);
    }
  }
  // A Mode lists its fastest coordinate first; in most tensors the last mode is the fastest.
  for (std::vector<std::string>* mode : {&modes_.m, &modes_.n, &modes_.k, &modes_.batch}) std::ranges::reverse(*mode);
}

OperandView ProductOperation::operand(const Custom& problem, std::size_t index, const std::vector<std::string>& rows,
                                      const std::vector<std::string>& columns) const {
  const Tensor& tensor = problem.tensors[index].tensor;
  const std::vector<std::string>& shape = operands()[index].shape;
  const auto number = [&](const std::string& extent) {
    return static_cast<int>(std::ranges::find(shape, extent) - shape.begin());
  };
  const auto mode = [&](const std::vector<std::string>& extents) {
    Mode folded;
    for (const std::string& extent : extents) {
      folded.shape.append(tensor.shape[number(extent)]);
      folded.stride.append(tensor.stride[number(extent)]);
    }
    return folded;
  };
  return OperandView::folded(tensor, mode(rows), mode(columns), mode(modes_.batch));
}

Result<GemmView> ProductOperation::view(const Custom& problem) const {
  GemmView view{.a = operand(problem, product_[0], modes_.m, modes_.k),
                .b = operand(problem, product_[1], modes_.k, modes_.n),
                .c = {},
                .d = operand(problem, product_[2], modes_.m, modes_.n)};
  view.c = view.d;
  view.c.tensor.address = 0;
  view.alpha = scalars().empty() ? 1.0 : problem.scalar("alpha");
  view.accumulator = default_accumulator(view.a.tensor.dtype);
  const DType compute = default_compute(view.accumulator, view.d.tensor.dtype);
  view.epilogue = &*std::ranges::find(epilogues_, compute, &Epilogue::compute);
  view.reads_product = view.k() != 0 && view.alpha != 0.0;
  return view;
}

Support ProductOperation::check(const Custom& problem) const {
  const Result<GemmView> view = this->view(problem);
  if (!view) return view.refusal();
  Gemm gemm;
  gemm.a = view->a.tensor;
  gemm.b = view->b.tensor;
  gemm.c = gemm.d = view->d.tensor;
  gemm.alpha = view->alpha;
  gemm.accumulator = view->accumulator;
  gemm.epilogue = *view->epilogue;
  return check_types(gemm);
}

}  // namespace tilewright::op
