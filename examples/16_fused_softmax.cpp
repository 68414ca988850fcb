// A kernel of one's own: softmax over the rows of A x B in one launch, D[m, :] = softmax(A[m, :] x B), for n <= 256. A
// CTA computes 64 rows. One warpgroup loads tiles of A and B by TMA, the other multiplies them by wgmma and keeps all
// columns of its rows in registers, so that A x B is never stored.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numbers>
#include <utility>
#include <vector>

#include "examples/run_program.hpp"
#include "tilewright/program/ring.hpp"
#include "tilewright/program/roles.hpp"
#include "tilewright/program/tiled_copy.hpp"
#include "tilewright/program/tiled_mma.hpp"

namespace {

using namespace tilewright::program;
using tilewright::DType;
namespace arch = tilewright::arch;

constexpr int kRows = 64, kColumns = 256, kDepth = 64, kStages = 4;

SharedTile k_major_tile(int mn) {
  return {arch::smem_tile({.element_bits = 16, .mn = mn, .k = kDepth}).value_or_throw(), DType::f16};
}

using Element = std::pair<Number, Value>;  // a column of D and its value

/// Appends the softmax of one row, of which four adjacent lanes have the elements, and its stores.
void store_softmax(KernelBuilder& k, std::vector<Element> elements, const Number& row, const Number& m, const Number& n,
                   const Value& d, const Number& ldd) {
  const Value nothing = constant(k, -INFINITY);
  for (auto& [column, value] : elements) value = choose(k, less(column, n), value, nothing);
  Value largest = elements[0].second;
  for (const Element& element : elements) largest = maximum(k, largest, element.second);
  for (const int mask : {1, 2}) largest = maximum(k, largest, shuffle_xor(k, largest, mask));

  // e^(x - largest) = 2^(x log2(e) - largest log2(e))
  const Value log2_e = constant(k, std::numbers::log2e_v<float>);
  const Value shift = multiply(k, largest, constant(k, -std::numbers::log2e_v<float>));
  Value total = constant(k, 0.0F);
  for (auto& [column, value] : elements) {
    value = exp2(k, fma(k, value, log2_e, shift));
    total = add(k, total, value);
  }
  for (const int mask : {1, 2}) total = add(k, total, shuffle_xor(k, total, mask));

  const Value scale = reciprocal(k, total);
  for (const auto& [column, power] : elements)
    store_global_if(k, both(less(row, m), less(column, n)), d, (row * ldd + column) * 4, {multiply(k, power, scale)});
}

Program fused_softmax() {
  KernelBuilder k("fused_softmax", tilewright::kSm90a, 256);
  const Number m = k.launch("m", 1, 1), n = k.launch("n", 1, 1, kColumns), depth = k.launch("k", 1, 1);
  const Number lda = k.launch("lda", 8), ldb = k.launch("ldb", 8), ldd = k.launch("ldd");
  const SharedTile tile_a = k_major_tile(kRows), tile_b = k_major_tile(kColumns);
  const TiledCopyBuilder load_a(k, CopyAtom::tma, {"a", DType::f16, {m, depth}, {lda, 1}}, tile_a);
  const TiledCopyBuilder load_b(k, CopyAtom::tma, {"b", DType::f16, {n, depth}, {ldb, 1}}, tile_b);
  const arch::WgmmaAtom* const atom =
      arch::find_wgmma_atom(DType::f16, DType::f16, DType::f32, arch::OperandSource::shared_memory);
  const TiledMmaBuilder mma(k, {.atom = WgmmaChoice{atom, kColumns}, .a = {.tile = tile_a}, .b = {.tile = tile_b}});
  const Value d = k.address("d", 4);
  k.set_grid(ceil_div(m, kRows));

  const Ring ring(k, {.stages = kStages,
                      .stage_bytes = tile_a.bytes() + tile_b.bytes(),
                      .transaction_bytes = load_a.transaction_bytes() + load_b.transaction_bytes(),
                      .reader_arrivals = mma.threads()});
  k.branch(equal(k.thread(), 0), [&] { ring.initialise(); });
  synchronize(k);

  const Roles roles(k, {{"producer"}, {"consumer"}});
  const Number steps = ceil_div(depth, kDepth);
  const auto produce = [&] {
    const RingWriter writer(k, ring);
    k.loop(steps, [&](const Number& step) {
      writer.write([&](const Number& stage) {
        load_a.copy({k.block() * kRows, step * kDepth}, ring.stage(stage), {.barrier = ring.full(stage)});
        load_b.copy({0, step * kDepth}, ring.stage(stage) + tile_a.bytes(), {.barrier = ring.full(stage)});
      });
    });
  };
  roles.play("producer",
             [&](const RoleThread& me) { k.branch(less(me.thread, 32), [&] { by_one_thread(k, produce); }); });
  roles.play("consumer", [&](const RoleThread& me) {
    const Number warp = broadcast(k, me.thread / 32);
    const RingReader reader(k, ring);
    const Accumulators products = mma.zeros();
    k.loop(steps, [&](const Number&) {
      reader.read_by_wgmma(products.cells, [&](const Number& stage) {
        mma.fma(products, ring.stage(stage), ring.stage(stage) + tile_a.bytes(), warp);
      });
    });
    reader.drain(products.cells);
    std::vector<Element> of_rows[2];  // a thread has the accumulators of two rows, in turn
    Number rows[2];
    int turn = 0;
    mma.for_each_pair(products, warp, [&](const AccumulatorPair& pair) {
      rows[turn] = pair.row;
      of_rows[turn].insert(of_rows[turn].end(), {{pair.column, pair.low}, {pair.column + 1, pair.high}});
      turn = 1 - turn;
    });
    for (const int i : {0, 1}) store_softmax(k, of_rows[i], k.block() * kRows + rows[i], m, n, d, ldd);
  });
  return k.build();
}

}  // namespace

int main() {
  constexpr int m = 100, n = 200, depth = 136;
  std::vector<_Float16> a(m * depth), b(n * depth);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<_Float16>(0.3 * std::sin(static_cast<double>(i)));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<_Float16>(std::cos(0.3 * static_cast<double>(i)));

  tilewright::engine::Engine engine;
  const auto on_device_a = examples::upload(engine, a), on_device_b = examples::upload(engine, b);
  const auto on_device_d = examples::upload(engine, std::vector<float>(m * n, NAN));
  examples::run(engine, fused_softmax(),
                LaunchArguments()
                    .integer("m", m)
                    .integer("n", n)
                    .integer("k", depth)
                    .integer("lda", depth)
                    .integer("ldb", depth)
                    .integer("ldd", n)
                    .address("a", on_device_a.address())
                    .address("b", on_device_b.address())
                    .address("d", on_device_d.address()));
  const std::vector<float> d = examples::download<float>(engine, on_device_d);

  double error = 0;
  for (std::size_t row = 0; row < m; ++row) {
    std::vector<double> powers(n);
    double total = 0;
    for (std::size_t column = 0; column < n; ++column) {
      double product = 0;
      for (std::size_t i = 0; i < depth; ++i)
        product += static_cast<double>(a[row * depth + i]) * static_cast<double>(b[column * depth + i]);
      total += powers[column] = std::exp(product);
    }
    for (std::size_t column = 0; column < n; ++column)
      error = std::fmax(error, std::fabs(d[row * n + column] - powers[column] / total));
  }
  std::printf("largest error: %.1e\n", error);
  return error < 1e-5 ? 0 : 1;
}
