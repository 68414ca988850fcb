// Uses cuBLAS and cuBLASLt as programs do, and checks every result. Prints "all right" at the end. With an argument, it
// makes the mistake of that number.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "checks.hpp"

template <class T>
class Device {
 public:
  explicit Device(const std::vector<T>& values) : count_(values.size()) {
    CHECK(cudaMalloc(&data_, count_ * sizeof(T)));
    CHECK(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~Device() { cudaFree(data_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  T* get() const { return data_; }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    CHECK(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

template <class T>
std::vector<T> integers(int count, int seed) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = T((i * 7 + seed * 5) % 11 - 5);
  return values;
}

double number(float value) { return value; }
double number(double value) { return value; }
double number(int value) { return value; }
double number(signed char value) { return value; }
double number(__half value) { return __half2float(value); }
double number(__nv_bfloat16 value) { return __bfloat162float(value); }

/// Element (row, column) of op(stored), which is column-major.
template <class T>
double element(const std::vector<T>& stored, int ld, bool transposed, int row, int column) {
  return number(stored[static_cast<std::size_t>(transposed ? row * ld + column : column * ld + row)]);
}

constexpr int kM = 5, kN = 7, kK = 9, kLda = 11, kLdb = 13, kLdc = 6;

/// Whether c = alpha * op(a) * op(b) + beta * before.
template <class A, class C>
bool is_product(const std::vector<A>& a, bool transposes_a, const std::vector<A>& b, bool transposes_b, double alpha,
                double beta, const std::vector<C>& before, const std::vector<C>& c) {
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      double sum = 0;
      for (int p = 0; p < kK; ++p) sum += element(a, kLda, transposes_a, i, p) * element(b, kLdb, transposes_b, p, j);
      const std::size_t at = static_cast<std::size_t>(j * kLdc + i);
      if (number(c[at]) != alpha * sum + beta * number(before[at])) return false;
    }
  }
  for (int j = 0; j < kN; ++j) {  // the padding is as it was
    const std::size_t at = static_cast<std::size_t>(j * kLdc + kM);
    if (number(c[at]) != number(before[at])) return false;
  }
  return true;
}

template <class A, class C, class Scale>
void multiply_with_types(cublasHandle_t handle, cudaDataType type, cudaDataType type_c, cublasComputeType_t compute) {
  for (const bool transposes_a : {false, true}) {
    for (const bool transposes_b : {false, true}) {
      const auto a = integers<A>(kLda * kLda, 1), b = integers<A>(kLdb * kLdb, 2);
      const auto c = integers<C>(kLdc * kN, 3);
      const Device<A> device_a(a), device_b(b);
      const Device<C> device_c(c);
      const Scale alpha = Scale(2), beta = Scale(3);
      CHECK(cublasGemmEx(handle, transposes_a ? CUBLAS_OP_T : CUBLAS_OP_N, transposes_b ? CUBLAS_OP_T : CUBLAS_OP_N, kM,
                         kN, kK, &alpha, device_a.get(), type, kLda, device_b.get(), type, kLdb, &beta, device_c.get(),
                         type_c, kLdc, compute, CUBLAS_GEMM_DEFAULT));
      EXPECT(is_product(a, transposes_a, b, transposes_b, 2, 3, c, device_c.read()));
    }
  }
}

void multiply_in_batches(cublasHandle_t handle) {
  constexpr int kCount = 3, kStrideA = kLda * kLda, kStrideB = kLdb * kLdb, kStrideC = kLdc * kN;
  const auto a = integers<float>(kCount * kStrideA, 1), b = integers<float>(kCount * kStrideB, 2);
  const auto c = integers<float>(kCount * kStrideC, 3);
  const float alpha = 1, beta = -1;
  const auto check = [&](const std::vector<float>& result) {
    for (int i = 0; i < kCount; ++i) {
      const auto part = [i](const std::vector<float>& all, int stride) {
        return std::vector<float>(all.begin() + i * stride, all.begin() + (i + 1) * stride);
      };
      EXPECT(is_product(part(a, kStrideA), false, part(b, kStrideB), true, 1, -1, part(c, kStrideC),
                        part(result, kStrideC)));
    }
  };
  const Device<float> device_a(a), device_b(b), first(c), second(c);
  CHECK(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_T, kM, kN, kK, &alpha, device_a.get(), kLda, kStrideA,
                                  device_b.get(), kLdb, kStrideB, &beta, first.get(), kLdc, kStrideC, kCount));
  check(first.read());
  std::vector<float*> at_a, at_b, at_c;
  for (int i = 0; i < kCount; ++i) {
    at_a.push_back(device_a.get() + i * kStrideA);
    at_b.push_back(device_b.get() + i * kStrideB);
    at_c.push_back(second.get() + i * kStrideC);
  }
  const Device<float*> pointers_a(at_a), pointers_b(at_b), pointers_c(at_c);
  CHECK(cublasSgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_T, kM, kN, kK, &alpha, pointers_a.get(), kLda,
                           pointers_b.get(), kLdb, &beta, pointers_c.get(), kLdc, kCount));
  check(second.read());
}

void use_vectors(cublasHandle_t handle) {
  const std::vector<float> x{1, -2, 3, -4}, y{10, 20, 30, 40, 50, 60, 70};
  const Device<float> device_x(x), device_y(y);
  const float alpha = 2;
  CHECK(cublasSaxpy(handle, 4, &alpha, device_x.get(), 1, device_y.get(), 2));
  EXPECT((device_y.read() == std::vector<float>{12, 20, 26, 40, 56, 60, 62}));
  CHECK(cublasScopy(handle, 4, device_x.get(), -1, device_y.get(), 1));  // the last element of x comes first
  EXPECT((device_y.read() == std::vector<float>{-4, 3, -2, 1, 56, 60, 62}));
  float result = 0;
  CHECK(cublasSdot(handle, 4, device_x.get(), 1, device_y.get(), 1, &result));
  EXPECT(result == -4 - 6 - 6 - 4);
  CHECK(cublasSasum(handle, 4, device_x.get(), 1, &result));
  EXPECT(result == 10);
  CHECK(cublasSnrm2(handle, 4, device_x.get(), 1, &result));
  EXPECT(result == std::sqrt(30.0F));
  int index = 0;
  CHECK(cublasIsamax(handle, 4, device_x.get(), 1, &index));
  EXPECT(index == 4);
  CHECK(cublasIsamin(handle, 4, device_x.get(), 1, &index));
  EXPECT(index == 1);
  CHECK(cublasSscal(handle, 4, &alpha, device_x.get(), 1));
  EXPECT((device_x.read() == std::vector<float>{2, -4, 6, -8}));
  // With alpha and the result in device memory.
  const Device<float> scalars({3, 0});
  CHECK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
  CHECK(cublasSscal(handle, 4, scalars.get(), device_x.get(), 1));
  CHECK(cublasSasum(handle, 4, device_x.get(), 1, scalars.get() + 1));
  CHECK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
  EXPECT(scalars.read()[1] == 60);
  // A is [[1, 3, 5], [2, 4, 6]].
  const Device<double> a({1, 2, 3, 4, 5, 6}), v({1, 10, 100}), w({1, 1});
  const double one = 1, half = 0.5;
  CHECK(cublasDgemv(handle, CUBLAS_OP_N, 2, 3, &one, a.get(), 2, v.get(), 1, &half, w.get(), 1));
  EXPECT((w.read() == std::vector<double>{531.5, 642.5}));
  CHECK(cublasDger(handle, 2, 3, &one, w.get(), 1, v.get(), 1, a.get(), 2));
  EXPECT((a.read() == std::vector<double>{532.5, 644.5, 5318, 6429, 53155, 64256}));
}

void use_lt() {
  cublasLtHandle_t handle = nullptr;
  CHECK(cublasLtCreate(&handle));
  // D, 2 x 2, is relu(A^T * B + bias) for A of 3 x 2 and B of 3 x 2.
  const Device<__half> a({1, 2, 3, -1, -2, -3}), b({1, 1, 1, 2, 0, 1}), bias({0.5, 100});
  const Device<__half> d({0, 0, 0, 0});
  cublasLtMatmulDesc_t description = nullptr;
  CHECK(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const cublasOperation_t transpose = CUBLAS_OP_T;
  const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
  const void* const bias_pointer = bias.get();
  CHECK(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof(transpose)));
  CHECK(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)));
  CHECK(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias_pointer,
                                       sizeof(bias_pointer)));
  EXPECT(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 1) ==
         CUBLAS_STATUS_INVALID_VALUE);
  cublasLtMatrixLayout_t layout_a = nullptr, layout_b = nullptr, layout_d = nullptr;
  CHECK(cublasLtMatrixLayoutCreate(&layout_a, CUDA_R_16F, 3, 2, 3));
  CHECK(cublasLtMatrixLayoutCreate(&layout_b, CUDA_R_16F, 3, 2, 3));
  CHECK(cublasLtMatrixLayoutCreate(&layout_d, CUDA_R_16F, 2, 2, 2));
  cublasLtMatmulPreference_t preference = nullptr;
  CHECK(cublasLtMatmulPreferenceCreate(&preference));
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  CHECK(cublasLtMatmulAlgoGetHeuristic(handle, description, layout_a, layout_b, layout_d, layout_d, preference, 1,
                                       &found, &count));
  EXPECT(count == 1 && found.state == CUBLAS_STATUS_SUCCESS);
  const float alpha = 1, beta = 0;
  CHECK(cublasLtMatmul(handle, description, &alpha, a.get(), layout_a, b.get(), layout_b, &beta, d.get(), layout_d,
                       d.get(), layout_d, &found.algo, nullptr, 0, nullptr));
  const std::vector<__half> result = d.read();
  EXPECT(number(result[0]) == 6.5 && number(result[1]) == 94 && number(result[2]) == 5.5 && number(result[3]) == 95);
  CHECK(cublasLtMatmulPreferenceDestroy(preference));
  for (const cublasLtMatrixLayout_t layout : {layout_a, layout_b, layout_d}) CHECK(cublasLtMatrixLayoutDestroy(layout));
  CHECK(cublasLtMatmulDescDestroy(description));
  CHECK(cublasLtDestroy(handle));
}

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x)));
}

/// One product of 2 x 2 matrices by cublasLtMatmul, with attributes of its description.
class LtProduct {
 public:
  explicit LtProduct(cudaDataType type_ab, cudaDataType type_c, cudaDataType type_d) {
    CHECK(cublasLtCreate(&handle_));
    CHECK(cublasLtMatmulDescCreate(&description_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    for (cublasLtMatrixLayout_t* const layout : {&a_, &b_}) CHECK(cublasLtMatrixLayoutCreate(layout, type_ab, 2, 2, 2));
    CHECK(cublasLtMatrixLayoutCreate(&c_, type_c, 2, 2, 2));
    CHECK(cublasLtMatrixLayoutCreate(&d_, type_d, 2, 2, 2));
  }
  ~LtProduct() {
    for (const cublasLtMatrixLayout_t layout : {a_, b_, c_, d_}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(description_);
    cublasLtDestroy(handle_);
  }
  LtProduct(const LtProduct&) = delete;
  LtProduct& operator=(const LtProduct&) = delete;

  template <class T>
  LtProduct& set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    CHECK(cublasLtMatmulDescSetAttribute(description_, attribute, &value, sizeof(value)));
    return *this;
  }
  void a_is_row_major() {
    const cublasLtOrder_t order = CUBLASLT_ORDER_ROW;
    CHECK(cublasLtMatrixLayoutSetAttribute(a_, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof(order)));
  }
  /// Two products, whose matrices follow each other.
  void make_batch() {
    for (const cublasLtMatrixLayout_t layout : {a_, b_, c_, d_}) {
      const std::int32_t count = 2;
      const std::int64_t stride = 4;
      CHECK(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)));
      CHECK(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                             sizeof(stride)));
    }
  }
  void run(const void* a, const void* b, const void* c, void* d) {
    const float alpha = 1, beta = 0;
    CHECK(
        cublasLtMatmul(handle_, description_, &alpha, a, a_, b, b_, &beta, c, c_, d, d_, nullptr, nullptr, 0, nullptr));
  }

 private:
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr, d_ = nullptr;
};

void use_epilogues() {
  using Floats = std::vector<float>;
  // A is [[1, 3], [2, 4]], B is [[1, 0], [0, 2]], and A * B is [[1, 6], [2, 8]].
  const Device<float> a({1, 2, 3, 4}), b({1, 0, 0, 2}), d({0, 0, 0, 0}), aux({0, 0, 0, 0}), sums({0, 0});
  const auto product = [&](cublasLtEpilogue_t epilogue) {
    LtProduct made(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F);
    made.set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue).set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, sums.get());
    made.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux.get());
    made.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{2});
    made.run(a.get(), b.get(), d.get(), d.get());
    return d.read();
  };
  EXPECT((product(CUBLASLT_EPILOGUE_DGELU_BGRAD) == Floats{0.5, 1, 3, 4}));  // the slope at 0 is 1/2
  EXPECT((sums.read() == Floats{3.5, 5}));
  EXPECT((product(CUBLASLT_EPILOGUE_BGRADA) == Floats{1, 2, 6, 8}));
  EXPECT((sums.read() == Floats{4, 6}));
  EXPECT((product(CUBLASLT_EPILOGUE_BGRADB) == Floats{1, 2, 6, 8}));
  EXPECT((sums.read() == Floats{1, 2}));
  const Floats of_gelu = product(CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
  EXPECT((aux.read() == Floats{2, 4, 7, 10}));
  for (int i = 0; i < 4; ++i) EXPECT(std::fabs(of_gelu[i] - gelu(aux.read()[i])) < 1e-6);
  const Floats with_slope = product(CUBLASLT_EPILOGUE_DGELU);
  for (int i = 0; i < 4; ++i) {
    const double x = aux.read()[i], slope = (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5;
    EXPECT(std::fabs(with_slope[i] - slope * Floats{1, 2, 6, 8}[i]) < 1e-5);
  }

  const Device<float> rows({1, 3, 2, 4}), twice_a({1, 2, 3, 4, 2, 4, 6, 8}), twice_b({1, 0, 0, 2, 1, 0, 0, 2});
  LtProduct of_rows(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F);
  of_rows.a_is_row_major();
  of_rows.run(rows.get(), b.get(), d.get(), d.get());
  EXPECT((d.read() == Floats{1, 2, 6, 8}));
  const Device<float> both(Floats(8, 0));
  LtProduct batch(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F);
  batch.make_batch();
  batch.run(twice_a.get(), twice_b.get(), both.get(), both.get());
  EXPECT((both.read() == Floats{1, 2, 6, 8, 2, 4, 12, 16}));

  // 8-bit floats: the scales of A and B multiply the product, and that of D the result.
  using Bytes = std::vector<unsigned char>;
  const Device<unsigned char> a8({0x38, 0x40, 0x44, 0x48}), b8({0x38, 0, 0, 0x40}), d8({0, 0, 0, 0});
  const Device<__nv_bfloat16> c16(std::vector<__nv_bfloat16>(4));
  const Device<float> scales({2, 3, 0.5}), largest({0});
  LtProduct narrow(CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_8F_E4M3);
  narrow.set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scales.get())
      .set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scales.get() + 1);
  narrow.set(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, scales.get() + 2)
      .set(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, largest.get());
  narrow.run(a8.get(), b8.get(), c16.get(), d8.get());
  EXPECT((d8.read() == Bytes{0x44, 0x4c, 0x59, 0x5c}));  // 3, 6, 18 and 24
  EXPECT(largest.read()[0] == 48);
}

void use_matrices(cublasHandle_t handle) {
  using Floats = std::vector<float>;
  const Device<float> a({1, 2, 3, 4}), b({1, 0, 0, 2}), x({1, 10}), c({0, 0, 0, 0});
  const float one = 1, ten = 10, zero = 0;
  CHECK(cublasSgeam(handle, CUBLAS_OP_T, CUBLAS_OP_N, 2, 2, &one, a.get(), 2, &ten, b.get(), 2, c.get(), 2));
  EXPECT((c.read() == Floats{11, 3, 2, 24}));
  CHECK(cublasSdgmm(handle, CUBLAS_SIDE_LEFT, 2, 2, a.get(), 2, x.get(), 1, c.get(), 2));
  EXPECT((c.read() == Floats{1, 20, 3, 40}));
  CHECK(cublasSdgmm(handle, CUBLAS_SIDE_RIGHT, 2, 2, a.get(), 2, x.get(), 1, c.get(), 2));
  EXPECT((c.read() == Floats{1, 2, 30, 40}));
  CHECK(cublasSgemv(handle, CUBLAS_OP_T, 2, 2, &one, a.get(), 2, x.get(), 1, &zero, c.get(), 2));
  EXPECT((c.read() == Floats{21, 2, 43, 40}));
  const Floats padded{5, 6, 0, 7, 8, 0};
  Floats back(6, -1);
  CHECK(cublasSetMatrix(2, 2, sizeof(float), padded.data(), 3, c.get(), 2));
  EXPECT((c.read() == Floats{5, 6, 7, 8}));
  CHECK(cublasGetMatrix(2, 2, sizeof(float), c.get(), 2, back.data(), 3));
  EXPECT((back == Floats{5, 6, -1, 7, 8, -1}));
}

__global__ void fill(float* x) { x[threadIdx.x] = static_cast<float>(threadIdx.x); }

void use_streams_and_graphs(cublasHandle_t handle) {
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cublasSetStream(handle, stream));
  const Device<float> x({0, 0, 0, 0});
  const float alpha = 2;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  fill<<<1, 4, 0, stream>>>(x.get());
  CHECK(cublasSscal(handle, 4, &alpha, x.get(), 1));
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable = nullptr;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 2; ++i) CHECK(cudaGraphLaunch(executable, stream));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT((x.read() == std::vector<float>{0, 2, 4, 6}));
  CHECK(cublasSetStream(handle, nullptr));
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(stream));
}

void make_mistake(cublasHandle_t handle, int number) {
  const Device<float> a(integers<float>(64, 1)), b(integers<float>(64, 2));
  float* c = nullptr;
  CHECK(cudaMalloc(&c, 64 * sizeof(float)));
  const float one = 1, zero = 0;
  const auto multiply = [&](int m, int ldc, const float& beta) {
    return cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, 8, 8, &one, a.get(), 8, b.get(), 8, &beta, c, ldc);
  };
  if (number == 1) CHECK(multiply(8, 9, zero));                                  // past the end of C
  if (number == 2) CHECK(multiply(8, 8, one));                                   // C is uninitialised
  if (number == 3) EXPECT(multiply(8, 7, zero) == CUBLAS_STATUS_INVALID_VALUE);  // ldc is less than m
  if (number == 4) {
    EXPECT(cublasStrsv(handle, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, 8, a.get(), 8, c, 1) ==
           CUBLAS_STATUS_NOT_SUPPORTED);
  }
  if (number == 5) {  // two streams write C
    cudaStream_t streams[2];
    for (cudaStream_t& stream : streams) {
      CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      CHECK(cublasSetStream(handle, stream));
      CHECK(multiply(8, 8, zero));
    }
  }
  CHECK(cudaDeviceSynchronize());
}

int main(int argc, char** argv) {
  cublasHandle_t handle = nullptr;
  CHECK(cublasCreate(&handle));
  if (argc > 1) {
    make_mistake(handle, std::atoi(argv[1]));
    return 0;
  }
  int version = 0;
  CHECK(cublasGetVersion(handle, &version));
  EXPECT(version / 10000 == 13);
  multiply_with_types<float, float, float>(handle, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F);
  multiply_with_types<float, float, float>(handle, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32);
  multiply_with_types<double, double, double>(handle, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F);
  multiply_with_types<__half, __half, float>(handle, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F);
  multiply_with_types<__half, __half, __half>(handle, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F);
  multiply_with_types<__nv_bfloat16, float, float>(handle, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F);
  multiply_with_types<signed char, int, int>(handle, CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I);
  multiply_in_batches(handle);
  use_vectors(handle);
  use_matrices(handle);
  use_lt();
  use_epilogues();
  use_streams_and_graphs(handle);
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cublasSetStream(handle, stream));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cublasDestroy(handle));  // waits for the device, and needs no stream
  EXPECT(cublasDestroy(handle) == CUBLAS_STATUS_NOT_INITIALIZED);
  std::printf("all right\n");
  return 0;
}
