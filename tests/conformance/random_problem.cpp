#include "tests/conformance/random_problem.hpp"

#include <random>

#include "tests/unit/plan/gemm_cases.hpp"

namespace tilewright::conformance {
namespace {

constexpr int kVector = 16;  // elements, at least 16 bytes, the alignment that TMA needs

/// Random choices. The distributions of the standard library are not used because they differ between implementations.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t number() { return engine_(); }
  /// A number from 0 to count - 1.
  int below(std::int64_t count) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(count)); }
  bool one_in(int count) { return below(count) == 0; }
  template <class Value, std::size_t kCount>
  Value of(const Value (&values)[kCount]) {
    return values[below(kCount)];
  }

 private:
  std::mt19937_64 engine_;
};

/// An extent that is small, or close to a multiple of 64 (a tile's extent), or arbitrary up to `largest`.
std::int64_t draw_extent(Draw& draw, std::int64_t largest) {
  switch (draw.below(4)) {
    case 0:
      return std::min<std::int64_t>(1 + draw.below(24), largest);
    case 1:
      return std::clamp<std::int64_t>(64 * (1 + draw.below(largest / 64 + 1)) + draw.below(3) - 1, 1, largest);
    default:
      return 1 + draw.below(largest);
  }
}

std::int64_t whole_vectors(std::int64_t extent) { return (extent + kVector - 1) / kVector * kVector; }

plan::Layouts draw_layouts(Draw& draw) {
  const auto layout = [&] { return draw.one_in(2) ? plan::kRow : plan::kColumn; };
  return {layout(), layout(), layout(), layout()};
}

/// A placement with any alignment, or with the alignment of TMA if `aligned`.
Placement draw_placement(Draw& draw, bool aligned) {
  const int unit = aligned ? kVector : 1;
  return {.padding = unit * draw.of({0, 0, 1, 2, 3, 4, 8, 13}),
          .batch_padding = unit * draw.of({0, 0, 1, 6}),
          .offset_elements = unit * draw.of({0, 0, 0, 1, 2, 4, 8})};
}

op::Tensor draw_batch(Draw& draw, const op::Tensor& matrix, std::int64_t batch, bool may_be_one) {
  return op::batched(matrix, batch, may_be_one && draw.one_in(4) ? std::optional<std::int64_t>(0) : std::nullopt);
}

/// Some operands of a batch become pointer arrays, which declare the alignment that their placement gives.
void draw_pointer_arrays(Draw& draw, op::Gemm& gemm, const Placements& at) {
  if (gemm.d.shape.rank() != 3) return;
  for (const auto& [tensor, placement] :
       {std::pair{&gemm.a, &at.a}, {&gemm.b, &at.b}, {&gemm.c, &at.c}, {&gemm.d, &at.d}}) {
    if (!draw.one_in(3)) continue;
    int alignment = op::kPointerAlignment;
    while (placement->offset_elements * bytes(tensor->dtype) % alignment != 0) alignment /= 2;
    *tensor = op::pointer_array(op::matrix_at(*tensor, 0), tensor->address, gemm.batch(), alignment);
  }
}

op::Epilogue draw_epilogue(Draw& draw, const op::Gemm& gemm) {
  const DType compute = op::default_compute(gemm.accumulator, gemm.d.dtype);
  if (compute == DType::s32 || !draw.one_in(5)) return op::linear_combination(compute);
  return *op::named_epilogue(draw.of({"relu", "clamp", "gelu", "silu"}), gemm.d.dtype, compute);
}

}  // namespace

RandomProblem draw_problem(std::uint64_t seed, std::int64_t largest) {
  Draw draw(seed);
  RandomProblem problem;
  problem.seed = seed;
  const std::vector<plan::TypeCase>& types = plan::type_cases();
  const op::GemmSignature description =
      plan::describe(types[static_cast<std::size_t>(draw.below(std::ssize(types)))], draw_layouts(draw));
  const bool aligned = draw.one_in(2);
  const auto extent = [&](std::int64_t up_to) {
    return aligned ? whole_vectors(draw_extent(draw, up_to - kVector)) : draw_extent(draw, up_to);
  };
  const std::int64_t m = extent(largest), n = extent(largest);
  const std::int64_t k = extent(draw.one_in(3) ? 4 * largest : largest);  // large enough for split-K
  op::Gemm& gemm = problem.shape;
  gemm = plan::problem_of(description, m, n, k);
  if (is_fp8(gemm.c.dtype)) gemm.c.dtype = DType::bf16;
  if (draw.one_in(3)) {
    const std::int64_t batch = 1 + draw.below(4);
    gemm.a = draw_batch(draw, gemm.a, batch, true);
    gemm.b = draw_batch(draw, gemm.b, batch, true);
    gemm.c = draw_batch(draw, gemm.c, batch, true);
    gemm.d = draw_batch(draw, gemm.d, batch, false);
  }
  gemm.epilogue = draw_epilogue(draw, gemm);
  gemm.alpha = draw.of({1.0, 1.0, 1.0, -1.0, 2.0, 0.0});
  gemm.beta = draw.of({0.0, 0.0, 1.0, -2.0, 3.0});
  if (gemm.beta == 0.0 && draw.one_in(2)) gemm.c.address = 0;
  for (Placement* each : {&problem.placements.a, &problem.placements.b, &problem.placements.c, &problem.placements.d}) {
    *each = draw_placement(draw, aligned || draw.one_in(3));
  }
  problem.tries_another = draw.one_in(2);
  problem.which = draw.number();
  draw_pointer_arrays(draw, gemm, problem.placements);
  return problem;
}

std::string to_string(const RandomProblem& problem) {
  const op::Gemm& gemm = problem.shape;
  const Placements& at = problem.placements;
  std::string text = fmt::format("{}x{}x{}, {}, alpha {} beta {}", gemm.m(), gemm.n(), gemm.k(),
                                 plan::to_string(op::describe(gemm)), gemm.alpha, gemm.beta);
  struct Operand {
    char role;
    const op::Tensor& tensor;
    const Placement& placement;
  };
  for (const auto& [role, tensor, placement] :
       {Operand{'A', gemm.a, at.a}, {'B', gemm.b, at.b}, {'C', gemm.c, at.c}, {'D', gemm.d, at.d}}) {
    if (tensor.address == 0) {
      text += fmt::format(", no {}", role);
      continue;
    }
    text += fmt::format(", {} ld + {} from element {}", role, placement.padding, placement.offset_elements);
    if (tensor.shape.rank() == 3) {
      const std::string_view how = tensor.is_pointer_array()         ? "pointers to each"
                                   : tensor.distinct_matrices() == 1 ? "one"
                                                                     : "each";
      text += fmt::format(" {} of {}", how, tensor.batch());
    }
  }
  return text;
}

}  // namespace tilewright::conformance
