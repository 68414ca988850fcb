// cuBLASLt: descriptors, one algorithm, and matrix products with epilogues.
#include <cublasLt.h>

#include <cmath>
#include <cstring>
#include <new>
#include <span>

#include "tools/cuda_runtime/blas/product.hpp"

namespace tilewright::cuda_runtime::blas {
namespace {

// Descriptors lie in memory of the program's that cuBLASLt's headers declare as opaque.

struct Layout {
  std::int32_t type = CUDA_R_32F;
  std::int32_t order = CUBLASLT_ORDER_COL;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::int64_t ld = 0;
  std::int32_t batch_count = 1;
  std::uint32_t batch_mode = 0;
  std::int64_t batch_stride = 0;

  std::span<std::byte> attribute(int number) {
    switch (number) {
      case CUBLASLT_MATRIX_LAYOUT_TYPE:
        return as_bytes(type);
      case CUBLASLT_MATRIX_LAYOUT_ORDER:
        return as_bytes(order);
      case CUBLASLT_MATRIX_LAYOUT_ROWS:
        return as_bytes(rows);
      case CUBLASLT_MATRIX_LAYOUT_COLS:
        return as_bytes(columns);
      case CUBLASLT_MATRIX_LAYOUT_LD:
        return as_bytes(ld);
      case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return as_bytes(batch_count);
      case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return as_bytes(batch_stride);
      case CUBLASLT_MATRIX_LAYOUT_BATCH_MODE:
        return as_bytes(batch_mode);
      default:
        return {};
    }
  }
  template <class T>
  static std::span<std::byte> as_bytes(T& member) {
    return {reinterpret_cast<std::byte*>(&member), sizeof(T)};
  }
};
static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t));

struct MatmulDescription {
  std::int32_t compute = CUBLAS_COMPUTE_32F;
  std::int32_t scale = CUDA_R_32F;
  std::int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  std::int32_t operation_a = CUBLAS_OP_N;
  std::int32_t operation_b = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::int32_t bias_type = -1;  // -1: chosen by the type of D
  std::int32_t aux_type = -1;
  CUdeviceptr bias = 0;
  std::int64_t bias_stride = 0;  // from one product of a batch to the next
  CUdeviceptr aux = 0;
  std::int64_t aux_ld = 0;
  std::int64_t aux_stride = 0;
  CUdeviceptr scale_a = 0, scale_b = 0, scale_c = 0, scale_d = 0, largest_d = 0;
  std::int32_t multiprocessors = 0;
  std::int8_t fast_accumulation = 0;

  std::span<std::byte> attribute(int number) {
    switch (number) {
      case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
        return Layout::as_bytes(compute);
      case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
        return Layout::as_bytes(scale);
      case CUBLASLT_MATMUL_DESC_POINTER_MODE:
        return Layout::as_bytes(pointer_mode);
      case CUBLASLT_MATMUL_DESC_TRANSA:
        return Layout::as_bytes(operation_a);
      case CUBLASLT_MATMUL_DESC_TRANSB:
        return Layout::as_bytes(operation_b);
      case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return Layout::as_bytes(epilogue);
      case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return Layout::as_bytes(bias);
      case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
        return Layout::as_bytes(bias_stride);
      case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        return Layout::as_bytes(bias_type);
      case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        return Layout::as_bytes(aux);
      case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
        return Layout::as_bytes(aux_ld);
      case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
        return Layout::as_bytes(aux_stride);
      case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
        return Layout::as_bytes(aux_type);
      case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
        return Layout::as_bytes(scale_a);
      case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
        return Layout::as_bytes(scale_b);
      case CUBLASLT_MATMUL_DESC_C_SCALE_POINTER:
        return Layout::as_bytes(scale_c);
      case CUBLASLT_MATMUL_DESC_D_SCALE_POINTER:
        return Layout::as_bytes(scale_d);
      case CUBLASLT_MATMUL_DESC_AMAX_D_POINTER:
        return Layout::as_bytes(largest_d);
      case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
        return Layout::as_bytes(multiprocessors);
      case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
        return Layout::as_bytes(fast_accumulation);
      default:
        return {};
    }
  }
};
static_assert(sizeof(MatmulDescription) <= sizeof(cublasLtMatmulDescOpaque_t));

/// A program's preferences. They have no effect, because there is one algorithm, and it needs no workspace.
struct Preference {};

template <class Description, class Opaque>
Description& description_of(Opaque* opaque) {
  require_argument(opaque != nullptr, "a descriptor is null");
  return *std::launder(reinterpret_cast<Description*>(opaque));
}

template <class Description, class Opaque>
cublasStatus_t create(Opaque** opaque, const Description& value, const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Machine&) {
        require_argument(opaque != nullptr, "the pointer to the descriptor is null");
        *opaque = new Opaque{};
        new (*opaque) Description(value);
      },
      function);
}
template <class Opaque>
cublasStatus_t destroy(Opaque* opaque, const char* function = __builtin_FUNCTION()) {
  return call([&](Machine&) { delete opaque; }, function);
}
template <class Description, class Opaque>
cublasStatus_t initialise(Opaque* opaque, std::size_t size, const Description& value,
                          const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Machine&) {
        require_argument(opaque != nullptr && size >= sizeof(Description), "the descriptor is null or too small");
        new (opaque) Description(value);
      },
      function);
}

template <class Description, class Opaque>
cublasStatus_t set_attribute(Opaque* opaque, int number, const void* from, std::size_t size,
                             const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Machine&) {
        const std::span<std::byte> member = description_of<Description>(opaque).attribute(number);
        if (member.empty()) refuse(CUBLAS_STATUS_NOT_SUPPORTED, fmt::format("attribute {}", number));
        if (from == nullptr || size != member.size()) {
          refuse(CUBLAS_STATUS_INVALID_VALUE,
                 fmt::format("attribute {} has {} bytes, not {}", number, member.size(), size));
        }
        std::memcpy(member.data(), from, size);
      },
      function);
}
template <class Description, class Opaque>
cublasStatus_t get_attribute(Opaque* opaque, int number, void* to, std::size_t size, std::size_t* written,
                             const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Machine&) {
        const std::span<std::byte> member = description_of<Description>(opaque).attribute(number);
        if (member.empty()) refuse(CUBLAS_STATUS_NOT_SUPPORTED, fmt::format("attribute {}", number));
        if (written != nullptr) *written = member.size();
        if (size == 0 && written != nullptr) return;
        require_argument(to != nullptr && size >= member.size(), "the buffer is null or too small");
        std::memcpy(to, member.data(), member.size());
      },
      function);
}

Matrix matrix_of(const Layout& layout, const void* data) {
  if (layout.order != CUBLASLT_ORDER_COL && layout.order != CUBLASLT_ORDER_ROW) {
    refuse(CUBLAS_STATUS_NOT_SUPPORTED, fmt::format("memory order {}", layout.order));
  }
  if (layout.batch_mode != 0) refuse(CUBLAS_STATUS_NOT_SUPPORTED, "batches by pointers");
  return {address(data),
          static_cast<cudaDataType>(layout.type),
          static_cast<std::int64_t>(layout.rows),
          static_cast<std::int64_t>(layout.columns),
          layout.ld,
          layout.order == CUBLASLT_ORDER_ROW};
}

// Epilogues ----------------------------------------------------------------------------------------------------------

bool has(std::uint32_t epilogue, std::uint32_t bits) { return (epilogue & bits) == bits; }

// Bits of the epilogues that have no names of their own.
constexpr std::uint32_t kGradientOfBias = 16;  // of CUBLASLT_EPILOGUE_DGELU_BGRAD
constexpr std::uint32_t kUsesAux = 128;        // of CUBLASLT_EPILOGUE_GELU_AUX and CUBLASLT_EPILOGUE_DGELU

void check_epilogue(std::uint32_t epilogue) {
  switch (epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB:
      return;
    default:
      refuse(CUBLAS_STATUS_NOT_SUPPORTED, fmt::format("epilogue {}", epilogue));
  }
}

constexpr double kGeluFactor = 0.7978845608028654;  // sqrt(2 / pi)
constexpr double kGeluCubic = 0.044715;
double gelu(double x) { return 0.5 * x * (1 + std::tanh(kGeluFactor * (x + kGeluCubic * x * x * x))); }
double gelu_slope(double x) {
  const double t = std::tanh(kGeluFactor * (x + kGeluCubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kGeluFactor * (1 + 3 * kGeluCubic * x * x);
}

/// The epilogue of a product, with the types that its attributes leave open.
class Epilogue {
 public:
  Epilogue(const MatmulDescription& description, const Matrix& c, const Matrix& d) : at_(description), d_(d) {
    check_epilogue(at_.epilogue);
    const bool uses_bias = (at_.epilogue & (CUBLASLT_EPILOGUE_BIAS | kGradientOfBias | CUBLASLT_EPILOGUE_BGRADA |
                                            CUBLASLT_EPILOGUE_BGRADB)) != 0;
    require_argument(!uses_bias || at_.bias != 0,
                     "the epilogue has a bias, and CUBLASLT_MATMUL_DESC_BIAS_POINTER is null");
    const bool uses_aux = (at_.epilogue & kUsesAux) != 0;
    require_argument(
        !uses_aux || (at_.aux != 0 && at_.aux_ld >= d.rows),
        "the epilogue needs CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, and an _AUX_LD of at least the rows of D");
    if (at_.bias_type < 0) {
      const cudaDataType of_float8 = c.type == CUDA_R_16F ? CUDA_R_16F : CUDA_R_16BF;
      at_.bias_type = d.type == CUDA_R_8I ? CUDA_R_32F : element_bytes(d.type) == 1 ? of_float8 : d.type;
    }
    if (at_.aux_type < 0) at_.aux_type = element_bytes(d.type) == 1 ? CUDA_R_16BF : d.type;
  }

  bool operator()(LibraryMemory& memory, std::int64_t number, const std::vector<double>& a,
                  const std::vector<double>& b, std::vector<double>& result) const {
    const auto rows = static_cast<std::size_t>(d_.rows);
    const Vector bias = vector_of_bias(number);
    if (has(at_.epilogue, CUBLASLT_EPILOGUE_BIAS)) {
      if (!memory.reads("the bias", bias.bytes())) return false;
      const std::vector<double> of_rows = read(bias);
      for (std::size_t i = 0; i < result.size(); ++i) result[i] += of_rows[i % rows];
    }
    if (has(at_.epilogue, CUBLASLT_EPILOGUE_RELU)) {
      for (double& each : result) each = each < 0 ? 0 : each;
    }
    const Matrix aux{at_.aux + static_cast<CUdeviceptr>(number * at_.aux_stride) *
                                   element_bytes(static_cast<cudaDataType>(at_.aux_type)),
                     static_cast<cudaDataType>(at_.aux_type),
                     d_.rows,
                     d_.columns,
                     at_.aux_ld,
                     false};
    if (has(at_.epilogue, CUBLASLT_EPILOGUE_GELU)) {
      if (has(at_.epilogue, CUBLASLT_EPILOGUE_GELU_AUX)) {
        if (!memory.writes("the auxiliary output", aux.bytes())) return false;
        write(aux, result);
      }
      for (double& each : result) each = gelu(each);
    }
    if (has(at_.epilogue, CUBLASLT_EPILOGUE_DGELU)) {
      if (!memory.reads("the auxiliary input", aux.bytes())) return false;
      const std::vector<double> before = read(aux);
      for (std::size_t i = 0; i < result.size(); ++i) result[i] *= gelu_slope(before[i]);
    }
    if (has(at_.epilogue, kGradientOfBias) && !write_sums(memory, bias, result, rows, true)) return false;
    if (has(at_.epilogue, CUBLASLT_EPILOGUE_BGRADA) && !write_sums(memory, bias, a, rows, true)) return false;
    if (has(at_.epilogue, CUBLASLT_EPILOGUE_BGRADB)) {
      const std::size_t k = d_.columns == 0 ? 1 : b.size() / static_cast<std::size_t>(d_.columns);
      if (!write_sums(memory, bias, b, k, false)) return false;
    }
    return true;
  }

 private:
  /// One element for each row of D or, for the sums of B, for each column.
  Vector vector_of_bias(std::int64_t number) const {
    const auto type = static_cast<cudaDataType>(at_.bias_type);
    const std::int64_t n = has(at_.epilogue, CUBLASLT_EPILOGUE_BGRADB) ? d_.columns : d_.rows;
    return {at_.bias + static_cast<CUdeviceptr>(number * at_.bias_stride) * element_bytes(type), type, n, 1};
  }
  static bool write_sums(LibraryMemory& memory, const Vector& to, const std::vector<double>& elements, std::size_t rows,
                         bool of_rows) {
    std::vector<double> sums(static_cast<std::size_t>(to.n));
    for (std::size_t i = 0; i < elements.size(); ++i) sums[of_rows ? i % rows : i / rows] += elements[i];
    if (!memory.writes("the gradient of the bias", to.bytes())) return false;
    write(to, sums);
    return true;
  }

  MatmulDescription at_;
  Matrix d_;
};

/// The factors of 8-bit floats: those of A, B and C scale what is multiplied, and that of D the result.
class Scales {
 public:
  explicit Scales(const MatmulDescription& description) : at_(description) {}
  bool any() const { return (at_.scale_a | at_.scale_b | at_.scale_c | at_.scale_d | at_.largest_d) != 0; }

  bool apply_to(LibraryMemory& memory, Product& product) {
    double a = 1, b = 1, c = 1;
    if (!read_factor(memory, "the scale of A", at_.scale_a, a) ||
        !read_factor(memory, "the scale of B", at_.scale_b, b) ||
        !read_factor(memory, "the scale of C", at_.scale_c, c) ||
        !read_factor(memory, "the scale of D", at_.scale_d, d_)) {
      return false;
    }
    product.alpha.value *= a * b;
    product.beta.value *= c;
    return true;
  }
  bool finish(LibraryMemory& memory, std::vector<double>& result) const {
    double largest = 0;
    for (double& each : result) {
      largest = std::max(largest, std::fabs(each));
      each *= d_;
    }
    if (at_.largest_d == 0) return true;
    const Vector to{at_.largest_d, CUDA_R_32F, 1, 1};
    if (!memory.writes("the largest magnitude of D", to.bytes())) return false;
    write(to, {largest});
    return true;
  }

 private:
  static bool read_factor(LibraryMemory& memory, const char* what, CUdeviceptr from, double& factor) {
    if (from == 0) return true;
    const Vector scalar{from, CUDA_R_32F, 1, 1};
    if (!memory.reads(what, scalar.bytes())) return false;
    factor = read(scalar).front();
    return true;
  }

  MatmulDescription at_;
  double d_ = 1;
};

/// The product that descriptors describe, without alpha and beta. @throws BlasError
Product product_of(const MatmulDescription& description, const Matrix& a, const Layout& of_a, const Matrix& b,
                   const Layout& of_b, const Matrix& c, const Layout& of_c, const Matrix& d, const Layout& of_d) {
  const auto compute = static_cast<cublasComputeType_t>(description.compute);
  // The result may have the type of 8-bit floats, whose C has another one.
  const bool narrow = element_bytes(d.type) == 1;
  check_types(compute, a.type, b.type, narrow ? c.type : d.type);
  if (!narrow && c.type != d.type) refuse(CUBLAS_STATUS_NOT_SUPPORTED, "C and D of different types");
  if (description.scale != scale_type(compute)) refuse(CUBLAS_STATUS_NOT_SUPPORTED, "this scale type");
  Product product;
  product.a = apply(static_cast<cublasOperation_t>(description.operation_a), a);
  product.b = apply(static_cast<cublasOperation_t>(description.operation_b), b);
  product.c = c;
  product.d = d;
  product.batch = {of_d.batch_count, of_a.batch_stride, of_b.batch_stride, of_c.batch_stride, of_d.batch_stride, false};
  check(product);
  return product;
}

}  // namespace

TILEWRIGHT_EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return call([&](Machine&) {
    require_argument(handle != nullptr, "the pointer to the handle is null");
    *handle = reinterpret_cast<cublasLtHandle_t>(new Handle);
  });
}
TILEWRIGHT_EXPORT cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return call([&](Machine&) { delete reinterpret_cast<Handle*>(handle); });
}
TILEWRIGHT_EXPORT size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
TILEWRIGHT_EXPORT size_t cublasLtGetCudartVersion() { return CUDART_VERSION; }
TILEWRIGHT_EXPORT const char* cublasLtGetStatusName(cublasStatus_t status) { return cublasGetStatusName(status); }
TILEWRIGHT_EXPORT const char* cublasLtGetStatusString(cublasStatus_t status) { return cublasGetStatusString(status); }

TILEWRIGHT_EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                                            uint64_t rows, uint64_t columns, int64_t ld) {
  return create(layout, Layout{type, CUBLASLT_ORDER_COL, rows, columns, ld, 1, 0, 0});
}
TILEWRIGHT_EXPORT cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size,
                                                                   cudaDataType type, uint64_t rows, uint64_t columns,
                                                                   int64_t ld) {
  return initialise(layout, size, Layout{type, CUBLASLT_ORDER_COL, rows, columns, ld, 1, 0, 0});
}
TILEWRIGHT_EXPORT cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return destroy(layout); }
TILEWRIGHT_EXPORT cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                                  cublasLtMatrixLayoutAttribute_t number,
                                                                  const void* from, size_t size) {
  return set_attribute<Layout>(layout, number, from, size);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                                  cublasLtMatrixLayoutAttribute_t number, void* to,
                                                                  size_t size, size_t* written) {
  return get_attribute<Layout>(layout, number, to, size, written);
}

TILEWRIGHT_EXPORT cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description,
                                                          cublasComputeType_t compute, cudaDataType scale) {
  return create(description, MatmulDescription{compute, scale});
}
TILEWRIGHT_EXPORT cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t description, size_t size,
                                                                 cublasComputeType_t compute, cudaDataType scale) {
  return initialise(description, size, MatmulDescription{compute, scale});
}
TILEWRIGHT_EXPORT cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  return destroy(description);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                                                cublasLtMatmulDescAttributes_t number, const void* from,
                                                                size_t size) {
  return set_attribute<MatmulDescription>(description, number, from, size);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t description,
                                                                cublasLtMatmulDescAttributes_t number, void* to,
                                                                size_t size, size_t* written) {
  return get_attribute<MatmulDescription>(description, number, to, size, written);
}

TILEWRIGHT_EXPORT cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return create(preference, Preference());
}
TILEWRIGHT_EXPORT cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference,
                                                                       size_t size) {
  return initialise(preference, size, Preference());
}
TILEWRIGHT_EXPORT cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy(preference);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                                      cublasLtMatmulPreferenceAttributes_t, const void*,
                                                                      size_t) {
  return call([&](Machine&) { require_argument(preference != nullptr, "the preference is null"); });
}

TILEWRIGHT_EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                                                cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                                cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                                cublasLtMatmulPreference_t, int requested,
                                                                cublasLtMatmulHeuristicResult_t results[], int* count) {
  return call([&](Machine&) {
    require_argument(requested > 0 && results != nullptr && count != nullptr, "no results are asked for");
    *count = 0;
    const auto& of_a = description_of<Layout>(a);
    const auto& of_b = description_of<Layout>(b);
    const auto& of_c = description_of<Layout>(c);
    const auto& of_d = description_of<Layout>(d);
    const auto& matmul = description_of<MatmulDescription>(description);
    static_cast<void>(product_of(matmul, matrix_of(of_a, nullptr), of_a, matrix_of(of_b, nullptr), of_b,
                                 matrix_of(of_c, nullptr), of_c, matrix_of(of_d, nullptr), of_d));
    check_epilogue(matmul.epilogue);
    results[0] = {};
    results[0].state = CUBLAS_STATUS_SUCCESS;
    results[0].wavesCount = 1;
    *count = 1;
  });
}

TILEWRIGHT_EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                                const void* alpha, const void* a, cublasLtMatrixLayout_t layout_a,
                                                const void* b, cublasLtMatrixLayout_t layout_b, const void* beta,
                                                const void* c, cublasLtMatrixLayout_t layout_c, void* d,
                                                cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t*, void*,
                                                size_t, cudaStream_t stream) {
  return call([&](Machine& machine) {
    if (handle == nullptr) refuse(CUBLAS_STATUS_NOT_INITIALIZED, "the handle is null");
    const auto& matmul = description_of<MatmulDescription>(description);
    const auto& of_a = description_of<Layout>(layout_a);
    const auto& of_b = description_of<Layout>(layout_b);
    const auto& of_c = description_of<Layout>(layout_c);
    const auto& of_d = description_of<Layout>(layout_d);
    if (matmul.pointer_mode != CUBLASLT_POINTER_MODE_HOST && matmul.pointer_mode != CUBLASLT_POINTER_MODE_DEVICE) {
      refuse(CUBLAS_STATUS_NOT_SUPPORTED, fmt::format("pointer mode {}", matmul.pointer_mode));
    }
    const cublasPointerMode_t mode =
        matmul.pointer_mode == CUBLASLT_POINTER_MODE_HOST ? CUBLAS_POINTER_MODE_HOST : CUBLAS_POINTER_MODE_DEVICE;
    Product product = product_of(matmul, matrix_of(of_a, a), of_a, matrix_of(of_b, b), of_b, matrix_of(of_c, c), of_c,
                                 matrix_of(of_d, d), of_d);
    const auto scale = static_cast<cudaDataType>(matmul.scale);
    product.alpha = scalar_of(mode, scale, alpha, "alpha");
    product.beta = scalar_of(mode, scale, beta, "beta");
    const Epilogue epilogue(matmul, product.c, product.d);
    Scales scales(matmul);
    const std::string key = fmt::format("{} {} {:x} {:x}", key_of(product), matmul.epilogue, matmul.bias, matmul.aux);
    const auto compute = [=](LibraryMemory& memory) mutable {
      if (!product.alpha.resolve(memory, "alpha") || !product.beta.resolve(memory, "beta")) return;
      product.alpha.device.n = product.beta.device.n = 0;  // they are resolved
      if (scales.any() && !scales.apply_to(memory, product)) return;
      product.finish = [&](LibraryMemory& of, std::int64_t number, const std::vector<double>& of_op_a,
                           const std::vector<double>& of_op_b, std::vector<double>& result) {
        return epilogue(of, number, of_op_a, of_op_b, result) && (!scales.any() || scales.finish(of, result));
      };
      run(memory, product);
    };
    enqueue(machine, stream, "cublasLtMatmul", compute, key);
  });
}

}  // namespace tilewright::cuda_runtime::blas
