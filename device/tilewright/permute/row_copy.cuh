// Copies rows of bytes to rows of another length that begin at multiples of 16 bytes, with zeros behind them. The rows
// of the source may begin anywhere, overlap, and lie partly outside their line.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// plan/conv_copy writes these fields. Sizes are in bytes; see op::RowCopy.
struct RowCopyParameters {
  const uint8_t* from;
  uint8_t* to;
  int64_t line_pitch, span;  // span: of all lines, from the first byte to the last
  int line_bytes, lines, rows, step, offset, row_bytes;
  int vectors, vectors_of_row;  // of 16 bytes, of the copy
  Divisor by_vectors_of_row, by_rows;
  int parts;
  Divisor by_lines_of_part, by_parts;
};

/// Plan: kThreads of a CTA, and kUnits vectors of a thread. The values come from plan/conv_copy.
template <class Plan>
class RowCopy {
  static constexpr int kWords = 4;
  using Stored = Vector<uint32_t, kWords>;

 public:
  __device__ __forceinline__ explicit RowCopy(const RowCopyParameters& parameters) : parameters_(parameters) {}

  __device__ __forceinline__ void run() const {
    const int first = static_cast<int>(blockIdx.x) * Plan::kThreads * Plan::kUnits + static_cast<int>(threadIdx.x);
    Stored stored[Plan::kUnits];
#pragma unroll
    for (int i = 0; i < Plan::kUnits; ++i) {
      const int vector = first + i * Plan::kThreads;
      if (vector < parameters_.vectors) load(stored[i], vector);
    }
#pragma unroll
    for (int i = 0; i < Plan::kUnits; ++i) {
      const int vector = first + i * Plan::kThreads;
      if (vector < parameters_.vectors) reinterpret_cast<Stored*>(parameters_.to)[vector] = stored[i];
    }
  }

 private:
  __device__ __forceinline__ void load(Stored& stored, int vector) const {
    const int row_of_all = parameters_.by_vectors_of_row.quotient(vector);
    const int line = parameters_.by_rows.quotient(row_of_all);
    const int begin = (row_of_all - line * parameters_.rows) * parameters_.step + parameters_.offset;
    const int part = parameters_.by_lines_of_part.quotient(line);
    const int lead = (part - parameters_.by_parts.quotient(part) * parameters_.parts) * parameters_.row_bytes;
    // Positions are bytes from the beginning of the line.
    const int at = begin - lead + (vector - row_of_all * parameters_.vectors_of_row) * 16;
    const int low = maximum(begin, 0), high = minimum(begin + parameters_.row_bytes, parameters_.line_bytes);
    const int64_t to_line = line * parameters_.line_pitch;
    // The vector is shifted out of the aligned words that contain it.
    const int shift = static_cast<int>(reinterpret_cast<uint64_t>(parameters_.from + to_line + at) & 3);
    const int64_t first = to_line + at - shift;
    const bool is_inside = first >= 0 && first + 4 * (kWords + 1) <= parameters_.span;
    uint32_t words[kWords + 1] = {};
    const auto is_needed = [&](int i) {
      const int word = at - shift + 4 * i;
      return line < parameters_.lines && word < high && word + 4 > low && (i < kWords || shift != 0);
    };
    if (is_inside) {
#pragma unroll
      for (int i = 0; i <= kWords; ++i) {
        if (is_needed(i)) words[i] = *reinterpret_cast<const uint32_t*>(parameters_.from + first + 4 * i);
      }
    } else {
#pragma unroll
      for (int i = 0; i <= kWords; ++i) {
        if (is_needed(i)) words[i] = load_bytes(first + 4 * i);
      }
    }
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const uint64_t both = static_cast<uint64_t>(words[i + 1]) << 32 | words[i];
      const auto word = static_cast<uint32_t>(both >> (8 * shift));
      stored.element[i] = word & bytes_below(high - at - 4 * i) & ~bytes_below(low - at - 4 * i);
    }
  }

  /// A word at a position from the beginning of the source, of which the bytes outside the source are not read.
  __device__ __forceinline__ uint32_t load_bytes(int64_t position) const {
    uint32_t word = 0;
    for (int i = 0; i < 4; ++i) {
      if (position + i >= 0 && position + i < parameters_.span)
        word |= static_cast<uint32_t>(parameters_.from[position + i]) << (8 * i);
    }
    return word;
  }

  /// Ones in the lowest bytes of a word: none if `count` is negative, all if it is above 4.
  static __device__ __forceinline__ uint32_t bytes_below(int count) {
    const int bits = 8 * minimum(maximum(count, 0), 4);
    return static_cast<uint32_t>((uint64_t{1} << bits) - 1);
  }

  const RowCopyParameters& parameters_;
};

}  // namespace tilewright
