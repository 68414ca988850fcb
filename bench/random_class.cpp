#include "random_class.hpp"

#include <algorithm>
#include <array>

#include "tilewright/base/rounding.hpp"

namespace tilewright::bench {
namespace {

using Rule = bool (*)(const Problem&);

struct RuledClass {
  RandomClass value;
  Rule has;
};

constexpr std::int64_t kVectorBytes = 16;
constexpr std::int64_t kTile = 128;     // of M and of N
constexpr std::int64_t kOneWave = 132;  // SMs of an H100 or H200

std::int64_t row_bytes(const StoredMatrix& stored) { return stored.ld * tilewright::bytes(stored.dtype); }

bool is_odd(const StoredMatrix& stored) { return row_bytes(stored) % (2 * kVectorBytes) == kVectorBytes; }

std::int64_t tiles(const Problem& problem) { return ceil_div(problem.m, kTile) * ceil_div(problem.n, kTile); }

constexpr std::array<RuledClass, 13> kClasses{{
    {{"epilogue", "with an epilogue"}, [](const Problem& one) { return one.epilogue != nullptr; }},
    {{"fp8", "fp8"}, [](const Problem& one) { return is_fp8(one.dtype); }},
    {{"s8", "s8"}, [](const Problem& one) { return is_integer(one.dtype); }},
    {{"f64", "f64"}, [](const Problem& one) { return one.dtype == DType::f64; }},
    {{"tf32", "tf32"}, [](const Problem& one) { return one.math == op::MathOperation::multiply_add_tf32; }},
    {{"f32", "f32"}, [](const Problem& one) { return one.dtype == DType::f32; }},
    {{"batched", "batched"}, [](const Problem& one) { return one.batch != 1; }},
    {{"unaligned", "rows not at multiples of 16 bytes"}, [](const Problem& one) { return !has_aligned_rows(one); }},
    {{"odd_rows", "K-major rows at odd multiples of 16 bytes"}, has_odd_rows},
    {{"decode", "M or N of at most 128"}, [](const Problem& one) { return std::min(one.m, one.n) <= 128; }},
    {{"short_k", "K of at most 512"}, [](const Problem& one) { return one.k <= 512; }},
    {{"few_tiles", "at most 132 tiles of 128x128"}, [](const Problem& one) { return tiles(one) <= kOneWave; }},
    {{"large", "all others"}, [](const Problem&) { return true; }},
}};

constexpr std::array<RandomClass, kClasses.size()> kNamed = [] {
  std::array<RandomClass, kClasses.size()> named{};
  for (std::size_t i = 0; i < kClasses.size(); ++i) named[i] = kClasses[i].value;
  return named;
}();

}  // namespace

std::span<const RandomClass> random_classes() { return kNamed; }

const RandomClass& random_class(const Problem& problem) {
  return std::ranges::find_if(kClasses, [&](const RuledClass& one) { return one.has(problem); })->value;
}

const RandomClass* find_random_class(std::string_view name) {
  const auto found = std::ranges::find(kNamed, name, &RandomClass::name);
  return found == kNamed.end() ? nullptr : &*found;
}

bool has_aligned_rows(const Problem& problem) {
  return std::ranges::all_of(std::array{stored_a(problem), stored_b(problem), stored_d(problem)},
                             [](const StoredMatrix& stored) { return row_bytes(stored) % kVectorBytes == 0; });
}

bool has_odd_rows(const Problem& problem) {
  return (problem.a == op::MatrixLayout::row_major && is_odd(stored_a(problem))) ||
         (problem.b == op::MatrixLayout::column_major && is_odd(stored_b(problem)));
}

}  // namespace tilewright::bench
