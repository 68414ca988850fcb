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

[[gnu::always_inline]] inline void join_low_halves(const SixteenFloats& low, const SixteenFloats& high,
                                                   SixteenFloats& to) {
  to = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
}
[[gnu::always_inline]] inline void join_high_halves(const SixteenFloats& low, const SixteenFloats& high,
                                                    SixteenFloats& to) {
  to = __builtin_shufflevector(low, high, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
}

/// Eight rows of kWidth numbers, one after the other; or their columns.
template <int kWidth>
using RowBlock = SixteenFloats[kWidth / 2];

/// The columns of a block, in code for AVX-512: those of eight numbers, one after the other.
template <int kWidth>
[[gnu::always_inline]] inline void take_columns(const RowBlock<kWidth>& rows, RowBlock<kWidth>& columns) {
  if constexpr (kWidth == 4) {
    columns[0] = __builtin_shufflevector(rows[0], rows[1], 0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
    columns[1] = __builtin_shufflevector(rows[0], rows[1], 2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31);
  } else if constexpr (kWidth == 8) {
    SixteenFloats quarters[4];
    for (int i = 0; i < 2; ++i) {
      quarters[i] = __builtin_shufflevector(rows[2 * i], rows[2 * i + 1], 0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3,
                                            11, 19, 27);
      quarters[2 + i] = __builtin_shufflevector(rows[2 * i], rows[2 * i + 1], 4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22,
                                                30, 7, 15, 23, 31);
    }
    for (int i = 0; i < 2; ++i) {
      columns[2 * i] = __builtin_shufflevector(quarters[2 * i], quarters[2 * i + 1], 0, 1, 2, 3, 16, 17, 18, 19, 4, 5,
                                               6, 7, 20, 21, 22, 23);
      columns[2 * i + 1] = __builtin_shufflevector(quarters[2 * i], quarters[2 * i + 1], 8, 9, 10, 11, 24, 25, 26, 27,
                                                   12, 13, 14, 15, 28, 29, 30, 31);
    }
  } else {
    static_assert(kWidth == 16);
    RowBlock<8> left, right, columns_of_left, columns_of_right;
    for (int i = 0; i < 4; ++i) {
      join_low_halves(rows[2 * i], rows[2 * i + 1], left[i]);
      join_high_halves(rows[2 * i], rows[2 * i + 1], right[i]);
    }
    take_columns<8>(left, columns_of_left);
    take_columns<8>(right, columns_of_right);
    for (int i = 0; i < 4; ++i) {
      columns[i] = columns_of_left[i];
      columns[4 + i] = columns_of_right[i];
    }
  }
}

/// The rows of a block, which are `stride` numbers apart and have at least eight.
[[gnu::always_inline]] inline void load_rows_of_eight(const float* from, int stride, RowBlock<8>& rows) {
  for (int i = 0; i < 4; ++i) load_halves(from + 2 * i * stride, from + (2 * i + 1) * stride, rows[i]);
}
template <int kWidth>
[[gnu::always_inline]] inline void load_block(const float* from, RowBlock<kWidth>& rows) {
  for (int i = 0; i < kWidth / 2; ++i) load_halves(from + 16 * i, from + 16 * i + 8, rows[i]);
}
template <int kWidth>
[[gnu::always_inline]] inline void store_block_columns(const RowBlock<kWidth>& columns, float* to, int stride) {
  for (int i = 0; i < kWidth / 2; ++i) store_halves(columns[i], to + 2 * i * stride, to + (2 * i + 1) * stride);
}

/// Row r of `to` is column r of `from`; both have eight rows of eight numbers, with strides.
template <Shuffles kShuffles, class Number>
[[gnu::always_inline]] inline void transpose_eight(const Number* from, int from_stride, Number* to, int to_stride) {
  if constexpr (kShuffles == Shuffles::avx512 && sizeof(Number) == 4) {
    RowBlock<8> rows, columns;
    load_rows_of_eight(from, from_stride, rows);
    take_columns<8>(rows, columns);
    store_block_columns<8>(columns, to, to_stride);
  } else {
    for (int row = 0; row < 8; ++row) {
      for (int column = 0; column < 8; ++column) to[row * to_stride + column] = from[column * from_stride + row];
    }
  }
}

/// Stores eight rows of kWidth numbers, which are next to each other, as columns of eight with a stride.
template <Shuffles kShuffles, int kWidth, class Number>
[[gnu::always_inline]] inline void store_columns(const Number* rows, Number* to, int stride) {
  if constexpr (kShuffles == Shuffles::avx512 && sizeof(Number) == 4) {
    RowBlock<kWidth> block, columns;
    load_block<kWidth>(rows, block);
    take_columns<kWidth>(block, columns);
    store_block_columns<kWidth>(columns, to, stride);
  } else if constexpr (kWidth % 8 == 0) {
    for (int first = 0; first < kWidth; first += 8)
      transpose_eight<kShuffles>(rows + first, kWidth, to + first * stride, stride);
  } else {
    for (int column = 0; column < kWidth; ++column) {
      for (int row = 0; row < 8; ++row) to[column * stride + row] = rows[row * kWidth + column];
    }
  }
}

/// Stores sixteen rows, of which `low` has the first eight, as columns of sixteen with a stride. A vector that was
/// stored as two halves could not be loaded before both have left the store buffer.
template <int kWidth>
[[gnu::always_inline]] inline void store_whole_columns(const RowBlock<kWidth>& low, const RowBlock<kWidth>& high,
                                                       float* to, int stride) {
  RowBlock<kWidth> of_low, of_high;
  take_columns<kWidth>(low, of_low);
  take_columns<kWidth>(high, of_high);
  for (int i = 0; i < kWidth / 2; ++i) {
    SixteenFloats even, odd;
    join_low_halves(of_low[i], of_high[i], even);
    join_high_halves(of_low[i], of_high[i], odd);
    std::memcpy(to + 2 * i * stride, &even, sizeof(even));
    std::memcpy(to + (2 * i + 1) * stride, &odd, sizeof(odd));
  }
}

/// The inverse of take_columns().
template <int kWidth>
[[gnu::always_inline]] inline void take_rows(const RowBlock<kWidth>& columns, RowBlock<kWidth>& rows) {
  if constexpr (kWidth == 4) {
    rows[0] = __builtin_shufflevector(columns[0], columns[1], 0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27);
    rows[1] =
        __builtin_shufflevector(columns[0], columns[1], 4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31);
  } else {
    static_assert(kWidth == 8);
    take_columns<8>(columns, rows);  // as many rows as columns
  }
}

/// The inverse of store_whole_columns().
template <int kWidth>
[[gnu::always_inline]] inline void load_whole_columns(const float* from, int stride, RowBlock<kWidth>& low,
                                                      RowBlock<kWidth>& high) {
  RowBlock<kWidth> of_low, of_high;
  for (int i = 0; i < kWidth / 2; ++i) {
    SixteenFloats even, odd;
    std::memcpy(&even, from + 2 * i * stride, sizeof(even));
    std::memcpy(&odd, from + (2 * i + 1) * stride, sizeof(odd));
    join_low_halves(even, odd, of_low[i]);
    join_high_halves(even, odd, of_high[i]);
  }
  take_rows<kWidth>(of_low, low);
  take_rows<kWidth>(of_high, high);
}

/// The inverse of store_columns().
template <Shuffles kShuffles, int kWidth, class Number>
[[gnu::always_inline]] inline void load_columns(const Number* from, int stride, Number* rows) {
  if constexpr (kShuffles == Shuffles::avx512 && sizeof(Number) == 4) {
    RowBlock<kWidth> columns, block;
    for (int i = 0; i < kWidth / 2; ++i) load_halves(from + 2 * i * stride, from + (2 * i + 1) * stride, columns[i]);
    take_rows<kWidth>(columns, block);
    std::memcpy(rows, &block, sizeof(block));
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
