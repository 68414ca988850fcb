// Blocks of eight rows, as the registers of mma and wgmma fragments hold them, to and from column-major tiles.
#pragma once

#include <cstring>

namespace tilewright::emulator {

/// The loops of a block are shuffles of vectors of 64 bytes in code for CPUs that have these.
enum class Shuffles : bool { none, avx512 };

using EightFloats = float __attribute__((vector_size(32)));
using SixteenFloats = float __attribute__((vector_size(64)));

[[gnu::always_inline]] inline void load_halves(const void* low, const void* high, SixteenFloats& to) {
  EightFloats first, second;
  std::memcpy(&first, low, sizeof(first));
  std::memcpy(&second, high, sizeof(second));
  to = __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

[[gnu::always_inline]] inline void store_halves(const SixteenFloats& from, void* low, void* high) {
  const EightFloats first = __builtin_shufflevector(from, from, 0, 1, 2, 3, 4, 5, 6, 7);
  const EightFloats second = __builtin_shufflevector(from, from, 8, 9, 10, 11, 12, 13, 14, 15);
  std::memcpy(low, &first, sizeof(first));
  std::memcpy(high, &second, sizeof(second));
}

/// Row r of `to` is column r of `from`; both have eight rows of eight numbers, with strides.
template <Shuffles kShuffles, class Number>
[[gnu::always_inline]] inline void transpose_eight(const Number* from, int from_stride, Number* to, int to_stride) {
  if constexpr (kShuffles == Shuffles::avx512 && sizeof(Number) == 4) {
    SixteenFloats rows[4], quarters[4];
    for (int i = 0; i < 4; ++i) {
      load_halves(from + 2 * i * from_stride, from + (2 * i + 1) * from_stride, rows[i]);
    }
    for (int i = 0; i < 2; ++i) {
      quarters[i] = __builtin_shufflevector(rows[2 * i], rows[2 * i + 1], 0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3,
                                            11, 19, 27);
      quarters[2 + i] = __builtin_shufflevector(rows[2 * i], rows[2 * i + 1], 4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22,
                                                30, 7, 15, 23, 31);
    }
    for (int i = 0; i < 2; ++i) {
      const SixteenFloats first = __builtin_shufflevector(quarters[2 * i], quarters[2 * i + 1], 0, 1, 2, 3, 16, 17, 18,
                                                          19, 4, 5, 6, 7, 20, 21, 22, 23);
      const SixteenFloats second = __builtin_shufflevector(quarters[2 * i], quarters[2 * i + 1], 8, 9, 10, 11, 24, 25,
                                                           26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
      Number* const at = to + 4 * i * to_stride;
      store_halves(first, at, at + to_stride);
      store_halves(second, at + 2 * to_stride, at + 3 * to_stride);
    }
  } else {
    for (int row = 0; row < 8; ++row) {
      for (int column = 0; column < 8; ++column) to[row * to_stride + column] = from[column * from_stride + row];
    }
  }
}

/// Stores eight rows of kWidth numbers, which are next to each other, as columns of eight with a stride.
template <Shuffles kShuffles, int kWidth, class Number>
[[gnu::always_inline]] inline void store_columns(const Number* rows, Number* to, int stride) {
  if constexpr (kShuffles == Shuffles::avx512 && kWidth == 4 && sizeof(Number) == 4) {
    SixteenFloats low, high;
    load_halves(rows, rows + 8, low);
    load_halves(rows + 16, rows + 24, high);
    const SixteenFloats first =
        __builtin_shufflevector(low, high, 0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
    const SixteenFloats second =
        __builtin_shufflevector(low, high, 2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31);
    store_halves(first, to, to + stride);
    store_halves(second, to + 2 * stride, to + 3 * stride);
  } else if constexpr (kWidth % 8 == 0) {
    for (int first = 0; first < kWidth; first += 8)
      transpose_eight<kShuffles>(rows + first, kWidth, to + first * stride, stride);
  } else {
    for (int column = 0; column < kWidth; ++column) {
      for (int row = 0; row < 8; ++row) to[column * stride + row] = rows[row * kWidth + column];
    }
  }
}

/// The inverse of store_columns().
template <Shuffles kShuffles, int kWidth, class Number>
[[gnu::always_inline]] inline void load_columns(const Number* from, int stride, Number* rows) {
  if constexpr (kShuffles == Shuffles::avx512 && kWidth == 4 && sizeof(Number) == 4) {
    SixteenFloats low, high;
    load_halves(from, from + stride, low);
    load_halves(from + 2 * stride, from + 3 * stride, high);
    const SixteenFloats first =
        __builtin_shufflevector(low, high, 0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27);
    const SixteenFloats second =
        __builtin_shufflevector(low, high, 4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31);
    std::memcpy(rows, &first, sizeof(first));
    std::memcpy(rows + 16, &second, sizeof(second));
  } else if constexpr (kWidth % 8 == 0) {
    for (int first = 0; first < kWidth; first += 8)
      transpose_eight<kShuffles>(from + first * stride, stride, rows + first, kWidth);
  } else {
    for (int column = 0; column < kWidth; ++column) {
      for (int row = 0; row < 8; ++row) rows[row * kWidth + column] = from[column * stride + row];
    }
  }
}

}  // namespace tilewright::emulator
