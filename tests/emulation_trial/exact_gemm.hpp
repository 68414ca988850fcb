// Integers as the elements of matrices, so that every order of a sum has the same result, and the comparison with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

/// Elements of -2 to 2.
inline std::vector<int> integers(std::size_t count, std::uint32_t seed) {
  std::vector<int> values(count);
  for (int& value : values) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<int>(seed >> 24) % 5 - 2;
  }
  return values;
}

/// A matrix whose element (row, column) is at row * row_step + column * column_step.
struct IntegerMatrix {
  std::vector<int> elements;
  std::size_t row_step, column_step;
  int at(std::size_t row, std::size_t column) const { return elements[row * row_step + column * column_step]; }
};

/// Prints "exact", and returns 0, if result(row, column) is the element of a * b for all elements of an m x n result.
/// `b` has a row for each column of the result.
template <class Result>
int compare(std::size_t m, std::size_t n, std::size_t k, const IntegerMatrix& a, const IntegerMatrix& b,
            Result result) {
  std::vector<int> row(k);
  std::vector<int> columns(n * k);
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t p = 0; p < k; ++p) columns[j * k + p] = b.at(j, p);
  }
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t p = 0; p < k; ++p) row[p] = a.at(i, p);
    for (std::size_t j = 0; j < n; ++j) {
      int sum = 0;
      for (std::size_t p = 0; p < k; ++p) sum += row[p] * columns[j * k + p];
      if (result(i, j, sum)) continue;
      std::printf("element (%zu, %zu) is not %d\n", i, j, sum);
      return 1;
    }
  }
  std::printf("exact\n");
  return 0;
}
