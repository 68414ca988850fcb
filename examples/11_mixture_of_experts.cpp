// A mixture-of-experts layer, forward and backward. Each token is computed by two of the experts:
//   y = sum over its experts e of weight * (relu(x * gate[e]) * (x * up[e])) * down[e]
// Each product of all experts is one launch, and everything between two products is in an epilogue. All numbers are
// integers, so that the results must be those of a plain loop, exactly.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "tilewright/engine/engine.hpp"
#include "tilewright/op/epilogue_text.hpp"

using namespace tilewright;

namespace {

constexpr int kTokens = 20, kExperts = 5, kChosen = 2, kWidth = 16, kInner = 24, kRows = kTokens * kChosen;

/// A row-major matrix, or one for each expert.
struct Matrix {
  int rows, columns, experts = 1;
  std::vector<float> values = std::vector<float>(std::size_t(rows) * std::size_t(columns) * std::size_t(experts));

  float& at(int row, int column, int expert = 0) {
    return values[(std::size_t(expert) * std::size_t(rows) + std::size_t(row)) * std::size_t(columns) +
                  std::size_t(column)];
  }
  op::Tensor tensor() const {
    const op::Tensor one = op::matrix(values.data(), DType::f32, rows, columns);
    return experts == 1 ? one : op::batched(one, experts);
  }
};

/// Integers from -2 to 2.
Matrix integers(int rows, int columns, int experts, unsigned seed) {
  Matrix matrix{rows, columns, experts};
  for (float& value : matrix.values) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<float>((seed >> 16U) % 5U) - 2.0F;
  }
  return matrix;
}

/// The tokens that each expert computes. Rows are sorted by expert: row i belongs to token token_of(i).
struct Routing {
  std::vector<int> tokens;
  Matrix weight{kRows, 1};         // of each row
  std::vector<std::int32_t> ends;  // expert e has the rows from ends[e-1] to ends[e]

  int token_of(int row) const { return tokens[static_cast<std::size_t>(row)]; }
};

Routing route(Matrix& scores) {
  std::vector<std::pair<int, int>> rows;  // (expert, token)
  for (int token = 0; token < kTokens; ++token) {
    std::vector<int> experts(kExperts);
    std::iota(experts.begin(), experts.end(), 0);
    std::stable_sort(experts.begin(), experts.end(),
                     [&](int one, int other) { return scores.at(token, one) > scores.at(token, other); });
    for (int choice = 0; choice < kChosen; ++choice)
      rows.emplace_back(experts[static_cast<std::size_t>(choice)], token);
  }
  std::sort(rows.begin(), rows.end());
  Routing routing;
  routing.ends.resize(kExperts);
  for (const auto& [expert, token] : rows) {
    routing.weight.at(static_cast<int>(routing.tokens.size()), 0) = scores.at(token, expert) + 3;
    routing.tokens.push_back(token);
    for (int e = expert; e < kExperts; ++e) ++routing.ends[static_cast<std::size_t>(e)];
  }
  return routing;
}

/// The rows of the tokens that the experts compute. On a GPU, gather() and scatter() are small kernels of the caller.
Matrix gather(Matrix& tokens, const Routing& routing) {
  Matrix rows{kRows, tokens.columns};
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < tokens.columns; ++i) rows.at(row, i) = tokens.at(routing.token_of(row), i);
  }
  return rows;
}
Matrix scatter(Matrix& rows, const Routing& routing) {
  Matrix tokens{kTokens, rows.columns};
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < rows.columns; ++i) tokens.at(routing.token_of(row), i) += rows.at(row, i);
  }
  return tokens;
}

int count_wrong(std::string_view name, Matrix& computed, Matrix& expected) {
  int wrong = 0;
  for (std::size_t i = 0; i < computed.values.size(); ++i) wrong += computed.values[i] != expected.values[i] ? 1 : 0;
  if (wrong > 0) std::printf("%d elements of %s are wrong\n", wrong, std::string(name).c_str());
  return wrong;
}

}  // namespace

int main() {
  Matrix x = integers(kTokens, kWidth, 1, 1), dy = integers(kTokens, kWidth, 1, 2);
  Matrix gate = integers(kWidth, kInner, kExperts, 3), up = integers(kWidth, kInner, kExperts, 4);
  Matrix down = integers(kInner, kWidth, kExperts, 5);
  Matrix scores = integers(kTokens, kExperts, 1, 6);
  for (int token = 0; token < kTokens; ++token) scores.at(token, 1) = -3;  // nobody chooses expert 1
  Routing routing = route(scores);

  // On a GPU the router computes the ends there, and the host does not read them.
  engine::Engine engine;
  const op::Tensor ends = op::group_ends(reinterpret_cast<std::uint64_t>(routing.ends.data()), kExperts);
  /// D = epilogue(A * B) of each expert.
  const auto product = [&](const op::Tensor& a, const op::Tensor& b, const Matrix& d,
                           op::GroupedMode mode = op::GroupedMode::ragged_m, std::string_view epilogue = "D = acc",
                           std::vector<op::NamedTensor> tensors = {}) {
    op::GroupedGemm grouped;
    grouped.mode = mode;
    grouped.ends = ends;
    grouped.gemm.a = a;
    grouped.gemm.b = b;
    grouped.gemm.d = d.tensor();
    grouped.gemm.epilogue = op::parse_epilogue(epilogue, DType::f32).value_or_throw();
    grouped.gemm.tensors = std::move(tensors);
    engine.run(grouped);
  };
  constexpr auto kRagged = op::GroupedMode::ragged_m;

  // Forward: rows of A and D are stacked.
  const Matrix rows = gather(x, routing);
  Matrix gated{kRows, kInner}, raised{kRows, kInner}, hidden{kRows, kInner}, weighted{kRows, kWidth};
  product(rows.tensor(), gate.tensor(), gated);
  product(rows.tensor(), up.tensor(), hidden, kRagged, "raised = acc; D = relu(gated) * acc",
          {{"gated", gated.tensor()}, {"raised", raised.tensor()}});
  product(hidden.tensor(), down.tensor(), weighted, kRagged, "D = acc * column(weight)",
          {{"weight", routing.weight.tensor()}});
  Matrix y = scatter(weighted, routing);

  // Gradients of rows: the same with the experts' matrices transposed. One product has the gradients of both
  // projections and, as sums of rows, those of the router's weights.
  const Matrix dy_rows = gather(dy, routing);
  Matrix d_gated{kRows, kInner}, d_raised{kRows, kInner}, d_weight{kRows, 1}, d_rows{kRows, kWidth};
  product(dy_rows.tensor(), op::transposed(down.tensor()), d_gated, kRagged,
          "let d = acc * column(weight); D = d * raised * relu_gradient(gated); d_raised = d * relu(gated); "
          "column(d_weight) = sum(acc * hidden)",
          {{"weight", routing.weight.tensor()},
           {"raised", raised.tensor()},
           {"gated", gated.tensor()},
           {"hidden", hidden.tensor()},
           {"d_raised", d_raised.tensor()},
           {"d_weight", d_weight.tensor()}});
  Matrix of_gate{kRows, kWidth};
  product(d_gated.tensor(), op::transposed(gate.tensor()), of_gate);
  product(d_raised.tensor(), op::transposed(up.tensor()), d_rows, kRagged, "D = acc + of_gate",
          {{"of_gate", of_gate.tensor()}});
  Matrix dx = scatter(d_rows, routing);

  // Gradients of experts: k is stacked.
  constexpr auto kRaggedK = op::GroupedMode::ragged_k;
  Matrix d_gate{kWidth, kInner, kExperts}, d_up{kWidth, kInner, kExperts}, d_down{kInner, kWidth, kExperts};
  Matrix d_weighted{kRows, kWidth};
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < kWidth; ++i)
      d_weighted.at(row, i) = dy.at(routing.token_of(row), i) * routing.weight.at(row, 0);
  }
  product(op::transposed(rows.tensor()), d_gated.tensor(), d_gate, kRaggedK);
  product(op::transposed(rows.tensor()), d_raised.tensor(), d_up, kRaggedK);
  product(op::transposed(hidden.tensor()), d_weighted.tensor(), d_down, kRaggedK);

  // The same by a plain loop over rows.
  Matrix loop_y{kTokens, kWidth}, loop_dx{kTokens, kWidth}, loop_weight{kRows, 1};
  Matrix loop_gate{kWidth, kInner, kExperts}, loop_up{kWidth, kInner, kExperts}, loop_down{kInner, kWidth, kExperts};
  for (int row = 0, e = 0; row < kRows; ++row) {
    while (row >= routing.ends[static_cast<std::size_t>(e)]) ++e;
    const int token = routing.token_of(row);
    const float weight = routing.weight.at(row, 0);
    for (int j = 0; j < kInner; ++j) {
      float g = 0, u = 0, d = 0;
      for (int i = 0; i < kWidth; ++i) {
        g += x.at(token, i) * gate.at(i, j, e);
        u += x.at(token, i) * up.at(i, j, e);
        d += dy.at(token, i) * down.at(j, i, e);
      }
      const float h = std::max(g, 0.0F) * u, of_g = g > 0 ? weight * d * u : 0, of_u = weight * d * std::max(g, 0.0F);
      loop_weight.at(row, 0) += d * h;
      for (int i = 0; i < kWidth; ++i) {
        loop_y.at(token, i) += weight * h * down.at(j, i, e);
        loop_dx.at(token, i) += of_g * gate.at(i, j, e) + of_u * up.at(i, j, e);
        loop_gate.at(i, j, e) += x.at(token, i) * of_g;
        loop_up.at(i, j, e) += x.at(token, i) * of_u;
        loop_down.at(j, i, e) += h * weight * dy.at(token, i);
      }
    }
  }
  const int wrong = count_wrong("y", y, loop_y) + count_wrong("dx", dx, loop_dx) +
                    count_wrong("d_weight", d_weight, loop_weight) + count_wrong("d_gate", d_gate, loop_gate) +
                    count_wrong("d_up", d_up, loop_up) + count_wrong("d_down", d_down, loop_down);
  std::printf("%s: %d tokens, experts with rows up to", engine.device()->properties().name.c_str(), kTokens);
  for (const std::int32_t end : routing.ends) std::printf(" %d", end);
  std::printf(": %s\n", wrong == 0 ? "results and gradients as by a plain loop" : "wrong");
  return wrong == 0 ? 0 : 1;
}
