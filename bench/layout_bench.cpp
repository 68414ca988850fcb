// The cost of operations of the layout algebra on layouts of four modes. The target is at most 2 us each, so that plans
// can use them freely.
#include <benchmark/benchmark.h>

#include "tilewright/layout/algebra.hpp"

namespace {

using tilewright::layout::Layout;
using tilewright::layout::make_tiler;

const Layout kRows({8, 16, 4, 8}, {64, 512, 1, 8192});
const Layout kTile({4, 2, 8, 4}, {1, 128, 8, 1024});
const Layout kSparse({4, 8, 2, 4}, {2, 64, 8, 1024});

void composition_of_4_modes(benchmark::State& state) {
  for (auto unused : state) benchmark::DoNotOptimize(composition(kRows, kTile));
}

void complement_of_4_modes(benchmark::State& state) {
  for (auto unused : state) benchmark::DoNotOptimize(complement(kSparse, 1 << 16));
}

void logical_divide_of_4_modes(benchmark::State& state) {
  for (auto unused : state) benchmark::DoNotOptimize(logical_divide(kRows, kTile));
}

void logical_divide_of_4_modes_by_mode(benchmark::State& state) {
  const auto tiler = make_tiler({4, 8, 2, 4});
  for (auto unused : state) benchmark::DoNotOptimize(logical_divide(kRows, tiler));
}

void right_inverse_of_4_modes(benchmark::State& state) {
  const Layout layout({8, 16, 4, 8}, {4, 32, 1, 512});
  for (auto unused : state) benchmark::DoNotOptimize(right_inverse(layout));
}

void offset_of_an_index_of_4_modes(benchmark::State& state) {
  std::int64_t index = 0;
  for (auto unused : state) benchmark::DoNotOptimize(kRows(index++ & 4095));
}

BENCHMARK(composition_of_4_modes);
BENCHMARK(complement_of_4_modes);
BENCHMARK(logical_divide_of_4_modes);
BENCHMARK(logical_divide_of_4_modes_by_mode);
BENCHMARK(right_inverse_of_4_modes);
BENCHMARK(offset_of_an_index_of_4_modes);

}  // namespace
