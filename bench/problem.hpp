// One line of a problem file: the description of a GEMM, without memory.
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
  std::string id;             // names the case in reports; may be empty
  std::string problem_class;  // a name of problem_class.hpp; empty: belongs to no class
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
  std::string kernel;                      // measure only kernels whose name contains this
  const EpilogueCase* epilogue = nullptr;  // null: none

  bool operator==(const Problem&) const = default;
};

/// "id=G03-TN class=large dtype=f16 batch=1 m=128 n=128 k=64 a=row b=col d=row lda=72 ldb=64 ldd=128 out=f16 acc=f32
/// math=multiply_add kernel=sm80". dtype, m, n and k are required. Defaults: layouts are row, leading dimensions
/// packed, out is dtype (s32 for integers), acc is op::default_accumulator(). dtype=tf32 is f32 with
/// math=multiply_add_tf32. epilogue is a name of epilogue_case.hpp; it needs a single product, a row-major D of a
/// floating-point type of at most 32 bits, and no class. n is the number of columns of A*B; D has half as many if the
/// epilogue is gated.
Result<Problem> parse_problem(std::string_view line);

/// All problems of a file; '#' begins a comment. @throws InvalidArgument, naming the line that is malformed or repeats
/// an id
std::vector<Problem> read_problems(std::istream& file, const std::string& file_name);

/// "bf16 8x 1024x1024x1024 row col row, ld 1032 1024 1024", "bf16 4096x6144x4096 row col row, bias"
std::string title(const Problem& problem);

/// The graph of the problem's epilogue, or alpha * product + beta * C if it has none.
op::Epilogue graph(const Problem& problem);

/// The problem without its epilogue. D is then the product, packed if it has more columns than the epilogue's D.
Problem plain(const Problem& problem);

/// Floating-point or integer operations of one call: 2 * batch * m * n * k.
double operations(const Problem& problem);

/// The memory layout of an operand: `batch` matrices, one after another.
struct StoredMatrix {
  DType dtype = DType::f32;
  std::int64_t batch = 1;
  std::int64_t rows = 0, columns = 0;
  op::MatrixLayout layout = op::MatrixLayout::row_major;
  std::int64_t ld = 0;  // elements from one row (column) to the next

  std::int64_t batch_stride() const;  // elements from one matrix to the next
  std::size_t bytes() const;          // of all matrices, including the gaps that `ld` leaves
  /// Offset in elements from the first element of all matrices. All arguments count from 0.
  std::int64_t index(std::int64_t matrix, std::int64_t row, std::int64_t column) const;
};

StoredMatrix stored_a(const Problem& problem);
StoredMatrix stored_b(const Problem& problem);
StoredMatrix stored_d(const Problem& problem);

// For a problem with an epilogue:

/// C; it is packed.
StoredMatrix stored_c(const Problem& problem);
/// The product to which a separate kernel applies the epilogue. It has D's memory and type. If D has fewer columns or
/// is an 8-bit float, it is packed in a separate buffer instead, in bf16 for an 8-bit float.
StoredMatrix stored_product(const Problem& problem);
bool is_product_in_d(const Problem& problem);
/// Whether D of plain(problem) can use D's memory; otherwise it uses that of stored_product(), which is large enough.
bool is_plain_in_d(const Problem& problem);

/// A tensor that the epilogue reads or writes, other than C and D.
struct StoredTensor {
  CaseTensor row;
  StoredMatrix stored;  // packed
  bool is_written;
  bool is_reduced;  // the result of a reduction
};
/// In the order of EpilogueCase::tensors; empty without an epilogue.
std::vector<StoredTensor> stored_tensors(const Problem& problem);

}  // namespace tilewright::bench
