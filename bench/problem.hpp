// One line of a problem file: a GEMM to run, without memory.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "epilogue_case.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/op/gemm.hpp"

namespace tilewright::bench {

struct Problem {
  std::string line;           // as written, without its comment
  std::string id;             // names the case in reports; empty when it has no name
  std::string problem_class;  // by which it is judged, a name of problem_class.hpp; empty: by none
  DType dtype = DType::f32;   // of A and B
  DType out = DType::f32;     // of D
  DType accumulator = DType::f32;
  op::MathOperation math = op::MathOperation::multiply_add;
  std::int64_t batch = 1;
  std::int64_t m = 0, n = 0, k = 0;
  op::MatrixLayout a = op::MatrixLayout::row_major;
  op::MatrixLayout b = op::MatrixLayout::row_major;
  op::MatrixLayout d = op::MatrixLayout::row_major;
  std::int64_t lda = 0, ldb = 0, ldd = 0;  // leading dimensions in elements; 0: packed
  std::string kernel;                      // only kernels whose name contains this
  const EpilogueCase* epilogue = nullptr;  // what is done to the product; null: nothing

  bool operator==(const Problem&) const = default;
};

/// "id=G03-TN class=large dtype=f16 batch=1 m=128 n=128 k=64 a=row b=col d=row lda=72 ldb=64 ldd=128 out=f16 acc=f32
/// math=multiply_add kernel=sm80". dtype, m, n and k are required; layouts are row unless told, leading dimensions
/// packed, out is dtype (s32 for integers), acc as op::default_accumulator. dtype=tf32 is f32 with
/// math=multiply_add_tf32. epilogue=bias is a name of epilogue_case.hpp: it takes single products with a row-major D of
/// floats up to 32 bits, and no class. n is of A*B: D has half as many columns where the epilogue pairs them.
Result<Problem> parse_problem(std::string_view line);

/// Every problem of a file; '#' begins a comment. @throws InvalidArgument with the number of the line that is wrong, or
/// whose id an earlier line has
std::vector<Problem> read_problems(std::istream& file, const std::string& file_name);

/// "bf16 8x 1024x1024x1024 row col row, ld 1032 1024 1024", "bf16 4096x6144x4096 row col row, bias"
std::string title(const Problem& problem);

/// Of its epilogue; without one, of alpha * product + beta * C.
op::Epilogue graph(const Problem& problem);

/// The problem without its epilogue: D is the product, packed where it has more columns than D with the epilogue.
Problem plain(const Problem& problem);

/// Floating-point or integer operations of one call: 2 * batch * m * n * k.
double operations(const Problem& problem);

/// One operand as it lies in memory: `batch` matrices, each right after the other.
struct StoredMatrix {
  DType dtype = DType::f32;
  std::int64_t batch = 1;
  std::int64_t rows = 0, columns = 0;
  op::MatrixLayout layout = op::MatrixLayout::row_major;
  std::int64_t ld = 0;  // elements from one row (column) to the next

  std::int64_t batch_stride() const;  // elements from one matrix to the next
  std::size_t bytes() const;          // of all, the gaps that `ld` leaves included
  /// Elements from the first of all. Counted from 0.
  std::int64_t index(std::int64_t matrix, std::int64_t row, std::int64_t column) const;
};

StoredMatrix stored_a(const Problem& problem);
StoredMatrix stored_b(const Problem& problem);
StoredMatrix stored_d(const Problem& problem);

// Of a problem with an epilogue.

/// C, packed.
StoredMatrix stored_c(const Problem& problem);
/// The product where a kernel of its own applies the epilogue to it: in D's place and type, but packed in memory of its
/// own where D has fewer columns or is an 8-bit float, in bf16 beside such.
StoredMatrix stored_product(const Problem& problem);
bool is_product_in_d(const Problem& problem);
/// Whether D of plain(problem) fits D's place; else it is no larger than stored_product().
bool is_plain_in_d(const Problem& problem);

/// A tensor that the epilogue reads or writes beside C and D.
struct StoredTensor {
  CaseTensor row;
  StoredMatrix stored;  // packed
  bool is_written;
  bool is_reduced;  // written, of fewer elements than D
};
/// In the order of EpilogueCase::tensors; none without an epilogue.
std::vector<StoredTensor> stored_tensors(const Problem& problem);

}  // namespace tilewright::bench
