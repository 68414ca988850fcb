// Declares the part of cublasLt.h that a GEMM with an epilogue needs. The values are the library's ABI.
#include "cublaslt.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "tilewright/base/float_format.hpp"
#include "tilewright/compile/shared_library.hpp"
#include "tilewright/compile/toolchain.hpp"

namespace tilewright::bench {
namespace {

using Status = int;  // cublasStatus_t
using Handle = void*;
using Descriptor = void*;
using MatrixLayout = void*;
using Preference = void*;

enum class DataType : int { f32 = 0, f64 = 1, f16 = 2, s8 = 3, u8 = 8, s32 = 10, bf16 = 14, e4m3 = 28, e5m2 = 29 };
enum class ComputeType : int { f16 = 64, f32 = 68, f64 = 70, s32 = 72, fast_f16 = 74, fast_bf16 = 75, fast_tf32 = 77 };
enum class DescriptorAttribute : int {
  transpose_a = 3,
  transpose_b = 4,
  epilogue = 7,
  bias_pointer = 8,
  aux_pointer = 11,
  aux_ld = 12,
  scale_of_d_pointer = 20,
  amax_of_d_pointer = 21,
  aux_type = 22,
  fast_accumulate = 25,
  bias_type = 26,
};
enum class LayoutAttribute : int { batch_count = 5, batch_stride = 6 };
enum class PreferenceAttribute : int {
  workspace_bytes = 1,
  alignment_of_a = 5,
  alignment_of_b = 6,
  alignment_of_c = 7,
  alignment_of_d = 8,
};
enum class AlgorithmAttribute : int { id = 0, tile = 1, split_k = 2, reduction = 3, stages = 6 };
constexpr std::int32_t kNoTranspose = 0;
constexpr std::int32_t kTranspose = 1;

/// How the partial sums of split-K are added (cublasLtReductionScheme_t): in place in D and of its type, in the compute
/// type in the workspace, or of D's type in the workspace.
enum class Reduction : std::uint32_t { none = 0, in_place = 1, compute_type = 2, output_type = 4 };

std::string_view name(Reduction reduction) {
  switch (reduction) {
    case Reduction::none:
      return "none";
    case Reduction::in_place:
      return "in place";
    case Reduction::compute_type:
      return "in the compute type";
    case Reduction::output_type:
      return "in the type of D";
  }
  return "unknown";
}

struct Algorithm {
  std::uint64_t data[8];
};

struct HeuristicResult {
  Algorithm algorithm;
  std::size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96);

}  // namespace

struct CublasLtFunctions {
  std::size_t (*version)();
  Status (*create)(Handle*);
  Status (*destroy)(Handle);
  Status (*descriptor_create)(Descriptor*, ComputeType, DataType scale);
  Status (*descriptor_destroy)(Descriptor);
  Status (*descriptor_set)(Descriptor, DescriptorAttribute, const void*, std::size_t);
  Status (*layout_create)(MatrixLayout*, DataType, std::uint64_t rows, std::uint64_t columns, std::int64_t ld);
  Status (*layout_set)(MatrixLayout, LayoutAttribute, const void*, std::size_t);
  Status (*layout_destroy)(MatrixLayout);
  Status (*preference_create)(Preference*);
  Status (*preference_destroy)(Preference);
  Status (*preference_set)(Preference, PreferenceAttribute, const void*, std::size_t);
  Status (*algorithm_get)(const Algorithm*, AlgorithmAttribute, void*, std::size_t, std::size_t* written);
  Status (*heuristic)(Handle, Descriptor, MatrixLayout a, MatrixLayout b, MatrixLayout c, MatrixLayout d, Preference,
                      int requested, HeuristicResult*, int* returned);
  Status (*matmul)(Handle, Descriptor, const void* alpha, const void* a, MatrixLayout, const void* b, MatrixLayout,
                   const void* beta, const void* c, MatrixLayout, void* d, MatrixLayout, const Algorithm*,
                   void* workspace, std::size_t workspace_bytes, runtime::StreamHandle);
};

namespace {

void check(Status status, const char* call) {
  if (status != 0) throw DriverError(status, fmt::format("{} failed with cublasStatus_t {}", call, status));
}

std::unique_ptr<const CublasLtFunctions> load(const std::string& path) {
  std::string error;
  const auto library = compile::SharedLibrary::open(path, compile::SharedLibrary::Load::now, &error);
  if (!library) throw ToolchainNotFound(fmt::format("cannot open {}: {}", path, error));
  auto functions = std::make_unique<CublasLtFunctions>();
  const auto resolve = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library->symbol(symbol));
    if (function == nullptr) throw ToolchainNotFound(fmt::format("{} has no {}", path, symbol));
  };
  resolve(functions->version, "cublasLtGetVersion");
  resolve(functions->create, "cublasLtCreate");
  resolve(functions->destroy, "cublasLtDestroy");
  resolve(functions->descriptor_create, "cublasLtMatmulDescCreate");
  resolve(functions->descriptor_destroy, "cublasLtMatmulDescDestroy");
  resolve(functions->descriptor_set, "cublasLtMatmulDescSetAttribute");
  resolve(functions->layout_create, "cublasLtMatrixLayoutCreate");
  resolve(functions->layout_set, "cublasLtMatrixLayoutSetAttribute");
  resolve(functions->layout_destroy, "cublasLtMatrixLayoutDestroy");
  resolve(functions->preference_create, "cublasLtMatmulPreferenceCreate");
  resolve(functions->preference_destroy, "cublasLtMatmulPreferenceDestroy");
  resolve(functions->preference_set, "cublasLtMatmulPreferenceSetAttribute");
  resolve(functions->algorithm_get, "cublasLtMatmulAlgoConfigGetAttribute");
  resolve(functions->heuristic, "cublasLtMatmulAlgoGetHeuristic");
  resolve(functions->matmul, "cublasLtMatmul");
  return functions;
}

std::string find_cublaslt() {
  static constexpr std::array<std::string_view, 2> kSonames = {"libcublasLt.so.13", "libcublasLt.so.12"};
  const compile::Search search = compile::find_library(kSonames, compile::capture_environment());
  if (!search.path) compile::throw_not_found("cuBLASLt", search, "pip install \"cuda-toolkit[cublas]==13.*\"");
  return *search.path;
}

DataType data_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return DataType::f64;
    case DType::f16:
      return DataType::f16;
    case DType::bf16:
      return DataType::bf16;
    case DType::s32:
      return DataType::s32;
    case DType::s8:
      return DataType::s8;
    case DType::u8:
      return DataType::u8;
    case DType::e4m3:
      return DataType::e4m3;
    case DType::e5m2:
      return DataType::e5m2;
    case DType::f32:
    case DType::tf32:
      return DataType::f32;
    default:
      throw InternalError("the benchmark has no cuBLASLt data type for elements of this type");
  }
}

ComputeType compute_type(const Problem& problem) {
  switch (problem.math) {
    case op::MathOperation::multiply_add_tf32:
      return ComputeType::fast_tf32;
    case op::MathOperation::multiply_add_fast_f16:
      return ComputeType::fast_f16;
    case op::MathOperation::multiply_add_fast_bf16:
      return ComputeType::fast_bf16;
    default:  // multiply_add_fast_f32 is compared with f32, whose accuracy it approaches
      break;
  }
  switch (problem.accumulator) {
    case DType::f64:
      return ComputeType::f64;
    case DType::f16:
      return ComputeType::f16;
    case DType::s32:
      return ComputeType::s32;
    default:
      return ComputeType::f32;
  }
}

/// alpha or beta, in the scale type.
using Scalar = std::array<std::byte, 8>;

template <class T>
Scalar bytes_of(T value) {
  Scalar scalar{};
  std::memcpy(scalar.data(), &value, sizeof value);
  return scalar;
}

Scalar make_scalar(DataType type, int value) {
  switch (type) {
    case DataType::f64:
      return bytes_of(static_cast<double>(value));
    case DataType::f16:
      return bytes_of(f32_to_f16(static_cast<float>(value)));
    case DataType::s32:
      return bytes_of(static_cast<std::int32_t>(value));
    default:
      return bytes_of(static_cast<float>(value));
  }
}

DataType scale_type(const Problem& problem) {
  if (problem.accumulator == DType::s32) return problem.out == DType::s32 ? DataType::s32 : DataType::f32;
  return data_type(problem.accumulator);
}

/// The transposition to pass to cuBLASLt so that the product uses the operand, or its transpose if `wanted`. cuBLASLt
/// takes all matrices as column-major, so a row-major matrix is passed as its transpose.
std::int32_t transpose(op::MatrixLayout layout, bool wanted) {
  return (layout == op::MatrixLayout::row_major) == wanted ? kNoTranspose : kTranspose;
}

/// The matrix that this form of the call writes.
StoredMatrix result_matrix(const Problem& problem, MatmulForm form) {
  if (form == MatmulForm::product) return stored_product(problem);
  return stored_d(form == MatmulForm::plain ? plain(problem) : problem);
}

std::uint64_t result_address(MatmulForm form, const Addresses& operands) {
  if (form == MatmulForm::product) return operands.product;
  return form == MatmulForm::plain ? operands.plain : operands.d;
}

bool reads_c(const Problem& problem, MatmulForm form) {
  return form == MatmulForm::fused && problem.epilogue->beta != 0.0;
}

/// cuBLASLt needs a type for C even if beta is 0 and C is not read. It is the type of D; if D is an 8-bit float, which
/// cuBLASLt does not support for C, it is CaseType::wide.
StoredMatrix c_matrix(const Problem& problem, MatmulForm form) {
  StoredMatrix c = result_matrix(problem, form);
  c.dtype = case_type(CaseType::wide, c.dtype);
  return reads_c(problem, form) ? stored_c(problem) : c;
}

/// If C is not read, the address of the result, or 0 if their types differ.
std::uint64_t c_address(const Problem& problem, MatmulForm form, const Addresses& operands) {
  if (reads_c(problem, form)) return operands.c;
  const bool is_result = c_matrix(problem, form).dtype == result_matrix(problem, form).dtype;
  return is_result ? result_address(form, operands) : 0;
}

/// The attributes that the library reports for an algorithm. An attribute that it does not report is 0.
struct AlgorithmChoice {
  std::int32_t id = 0, split_k = 0;
  std::uint32_t tile = 0, stages = 0;
  Reduction reduction = Reduction::none;

  /// How many partial sums are rounded to the type of D before they are added; 1 if none are.
  int rounded_parts() const {
    return split_k > 1 && (reduction == Reduction::in_place || reduction == Reduction::output_type) ? split_k : 1;
  }
};

AlgorithmChoice choice(const CublasLtFunctions& functions, const Algorithm& algorithm) {
  AlgorithmChoice choice;
  const auto get = [&](AlgorithmAttribute attribute, auto& value) {
    std::size_t written = 0;
    functions.algorithm_get(&algorithm, attribute, &value, sizeof value, &written);
  };
  get(AlgorithmAttribute::id, choice.id);
  get(AlgorithmAttribute::split_k, choice.split_k);
  get(AlgorithmAttribute::tile, choice.tile);
  get(AlgorithmAttribute::stages, choice.stages);
  get(AlgorithmAttribute::reduction, choice.reduction);
  return choice;
}

/// The cuBLASLt objects of one call. A row-major D is computed as its transpose, D' = B' A'.
class Matmul {
 public:
  Matmul(const CublasLtFunctions& functions, const Problem& problem, MatmulForm form, const Addresses& operands)
      : functions_(functions),
        swapped_(problem.d == op::MatrixLayout::row_major),
        operands_(operands),
        result_(result_address(form, operands)),
        c_address_(c_address(problem, form, operands)),
        alpha_(make_scalar(scale_type(problem), 1)),
        beta_(make_scalar(scale_type(problem), reads_c(problem, form) ? 1 : 0)) {
    StoredMatrix first = stored_a(problem);
    StoredMatrix second = stored_b(problem);
    if (swapped_) std::swap(first, second);
    check(functions_.descriptor_create(&descriptor_, compute_type(problem), scale_type(problem)),
          "cublasLtMatmulDescCreate");
    set(DescriptorAttribute::transpose_a, transpose(first.layout, swapped_));
    set(DescriptorAttribute::transpose_b, transpose(second.layout, swapped_));
    // The scale pointers of 8-bit floats stay null, which means a scale of 1.
    if (problem.math == op::MathOperation::multiply_add_fast_accumulate)
      set(DescriptorAttribute::fast_accumulate, std::int8_t{1});
    if (form == MatmulForm::fused) set_epilogue(problem);
    create_layout(first_, first);
    create_layout(second_, second);
    create_layout(d_, result_matrix(problem, form));
    create_layout(c_, c_matrix(problem, form));
  }
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;
  ~Matmul() {
    for (MatrixLayout layout : {first_, second_, c_, d_}) {
      if (layout != nullptr) functions_.layout_destroy(layout);
    }
    if (descriptor_ != nullptr) functions_.descriptor_destroy(descriptor_);
  }

  /// `alignment` has the common alignment of the operands of all calls that will use the algorithms.
  std::vector<HeuristicResult> algorithms(Handle handle, std::size_t workspace_bytes, int most,
                                          const OperandAlignment& alignment) const {
    Preference preference = nullptr;
    check(functions_.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
    const auto set_preference = [&](PreferenceAttribute attribute, auto value) {
      functions_.preference_set(preference, attribute, &value, sizeof value);
    };
    set_preference(PreferenceAttribute::workspace_bytes, std::uint64_t{workspace_bytes});
    set_preference(PreferenceAttribute::alignment_of_a, swapped_ ? alignment.b : alignment.a);
    set_preference(PreferenceAttribute::alignment_of_b, swapped_ ? alignment.a : alignment.b);
    set_preference(PreferenceAttribute::alignment_of_c, alignment.c);
    set_preference(PreferenceAttribute::alignment_of_d, alignment.d);
    std::vector<HeuristicResult> results(static_cast<std::size_t>(most));
    int count = 0;
    const Status status =
        functions_.heuristic(handle, descriptor_, first_, second_, c_, d_, preference, most, results.data(), &count);
    functions_.preference_destroy(preference);
    results.resize(status == 0 ? static_cast<std::size_t>(count) : 0);
    std::erase_if(results, [](const HeuristicResult& result) { return result.state != 0; });
    return results;
  }

  /// The addresses of A, B, C and D that the call passes.
  OperandAddresses addresses() const { return {operands_.a, operands_.b, c_address_, result_}; }

  void run(Handle handle, const Algorithm& algorithm, std::uint64_t workspace, std::size_t workspace_bytes,
           runtime::StreamHandle stream) const {
    const auto pointer = [](std::uint64_t address) { return reinterpret_cast<void*>(address); };
    const void* first = pointer(swapped_ ? operands_.b : operands_.a);
    const void* second = pointer(swapped_ ? operands_.a : operands_.b);
    const void* c = pointer(c_address_);
    check(functions_.matmul(handle, descriptor_, alpha_.data(), first, first_, second, second_, beta_.data(), c, c_,
                            pointer(result_), d_, &algorithm, pointer(workspace), workspace_bytes, stream),
          "cublasLtMatmul");
  }

 private:
  template <class T>
  void set(DescriptorAttribute attribute, T value) {
    check(functions_.descriptor_set(descriptor_, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  }

  template <class T>
  void set(MatrixLayout layout, LayoutAttribute attribute, T value) {
    check(functions_.layout_set(layout, attribute, &value, sizeof value), "cublasLtMatrixLayoutSetAttribute");
  }

  /// Sets the addresses of one call in the descriptor. The heuristic takes their alignment from there.
  void set_epilogue(const Problem& problem) {
    set(DescriptorAttribute::epilogue, static_cast<std::uint32_t>(problem.epilogue->cublaslt));
    std::size_t index = 0;
    for (const StoredTensor& tensor : stored_tensors(problem)) {
      const std::uint64_t address = operands_.tensors[index++];
      switch (tensor.row.role) {
        case CublasLtRole::bias:
          set(DescriptorAttribute::bias_pointer, address);
          set_type(DescriptorAttribute::bias_type, tensor, problem);
          break;
        case CublasLtRole::aux:
          set(DescriptorAttribute::aux_pointer, address);
          set(DescriptorAttribute::aux_ld, tensor.stored.ld);
          set_type(DescriptorAttribute::aux_type, tensor, problem);
          break;
        case CublasLtRole::scale_of_d:
          set(DescriptorAttribute::scale_of_d_pointer, address);
          break;
        case CublasLtRole::amax_of_d:  // cuBLASLt overwrites the value ("will be set", cublasLt.h), so nothing clears
                                       // it before the call
          set(DescriptorAttribute::amax_of_d_pointer, address);
          break;
        case CublasLtRole::none:
          break;
      }
    }
  }

  /// cuBLASLt assumes the type of D if the attribute is not set.
  void set_type(DescriptorAttribute attribute, const StoredTensor& tensor, const Problem& problem) {
    if (tensor.stored.dtype != problem.out) set(attribute, data_type(tensor.stored.dtype));
  }

  void create_layout(MatrixLayout& layout, const StoredMatrix& stored) {
    const bool is_row_major = stored.layout == op::MatrixLayout::row_major;
    check(functions_.layout_create(&layout, data_type(stored.dtype),
                                   static_cast<std::uint64_t>(is_row_major ? stored.columns : stored.rows),
                                   static_cast<std::uint64_t>(is_row_major ? stored.rows : stored.columns), stored.ld),
          "cublasLtMatrixLayoutCreate");
    if (stored.batch == 1) return;
    set(layout, LayoutAttribute::batch_count, static_cast<std::int32_t>(stored.batch));
    set(layout, LayoutAttribute::batch_stride, stored.batch_stride());
  }

  const CublasLtFunctions& functions_;
  bool swapped_;
  Addresses operands_;
  std::uint64_t result_, c_address_;
  Scalar alpha_, beta_;
  Descriptor descriptor_ = nullptr;
  MatrixLayout first_ = nullptr, second_ = nullptr, c_ = nullptr, d_ = nullptr;
};

}  // namespace

CublasLt::CublasLt(std::shared_ptr<runtime::CudaDevice> device, const std::string& path, std::size_t workspace_bytes)
    : device_(std::move(device)),
      path_(path.empty() ? find_cublaslt() : path),
      functions_(load(path_)),
      workspace_(device_, workspace_bytes) {
  const runtime::ContextScope scope(*device_->context());
  check(functions_->create(&handle_), "cublasLtCreate");
}

CublasLt::~CublasLt() { functions_->destroy(handle_); }

std::string CublasLt::version() const {
  const std::size_t version = functions_->version();  // 10000 * major + 100 * minor + patch
  return fmt::format("{}.{}.{} ({})", version / 10000, version / 100 % 100, version % 100, path_);
}

std::vector<Contender> CublasLt::contenders(const Problem& problem, const OperandSets& sets, int most, MatmulForm form,
                                            std::size_t most_workspace_bytes) {
  const runtime::ContextScope scope(*device_->context());
  const std::size_t workspace_bytes = std::min(workspace_.bytes(), most_workspace_bytes);
  const std::uint64_t workspace = workspace_bytes == 0 ? 0 : workspace_.address();
  std::vector<std::shared_ptr<const Matmul>> matmuls;  // one per operand set
  std::vector<OperandAddresses> addresses;
  for (int set = 0; set < sets.count(); ++set) {
    matmuls.push_back(std::make_shared<const Matmul>(*functions_, problem, form, sets.addresses(set)));
    addresses.push_back(matmuls.back()->addresses());
  }
  const bool is_fused = form == MatmulForm::fused;
  std::vector<Contender> contenders;
  for (const HeuristicResult& result :
       matmuls.front()->algorithms(handle_, workspace_bytes, most, common_alignment(addresses))) {
    const auto run = [this, matmuls, workspace, workspace_bytes, algorithm = result.algorithm](
                         int set, runtime::StreamHandle stream) {
      matmuls[static_cast<std::size_t>(set)]->run(handle_, algorithm, workspace, workspace_bytes, stream);
    };
    const AlgorithmChoice chosen = choice(*functions_, result.algorithm);
    std::string detail = fmt::format("algorithm {} of the heuristic: id {}, tile {}, stages {}, workspace {} bytes",
                                     contenders.size(), chosen.id, chosen.tile, chosen.stages, result.workspace_bytes);
    if (chosen.split_k > 1) detail += fmt::format(", split-K {} added {}", chosen.split_k, name(chosen.reduction));
    contenders.push_back({.name = "cublaslt",
                          .detail = detail,
                          .run = run,
                          .applies_epilogue = is_fused,
                          .rounding = is_fused ? problem.epilogue->approximation : 0.0,
                          .rounded_parts = chosen.rounded_parts()});
  }
  return contenders;
}

}  // namespace tilewright::bench
