// The struct that the kernels of filter gradients take by value, and how they store an element of D.
#pragma once

#include "tilewright/epilogue/epilogue_tensor.cuh"
#include "tilewright/numeric/convert.cuh"
#include "tilewright/operand/im2col_matrix.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// plan/wgrad_parameters writes these fields; the emitted text asserts their offsets.
template <class EpilogueParameters>
struct WgradParameters {
  Im2colMatrix<false> matrix;  // of the images
  const void* gradient;        // of the output
  const void* images;
  const void* c;
  void* d;
  char* workspace;
  int64_t pitch;                           // from a pixel of the gradient to the next, elements
  int64_t ldc, ldd;                        // from a filter to the next, elements
  int64_t batch_stride_c, batch_stride_d;  // from the filters of a group to those of the next, elements
  int filters;                             // of a group
  int tiles;                               // of D, which CTAs compute together
  int blocks;                              // of output pixels; 0 if the product is not needed
  EpilogueParameters epilogue;
};

/// Applies the epilogue to an element of the sum, and stores it. Plan: ElementC, ElementD. `columns` is the number of
/// columns of D.
template <class Plan, class Epilogue>
__device__ __forceinline__ void store_gradient(const WgradParameters<typename Epilogue::Parameters>& parameters,
                                               float sum, int group, int filter, int column, int columns) {
  using C = typename Plan::ElementC;
  using D = typename Plan::ElementD;
  using Compute = typename Epilogue::Compute;
  C source{};
  if (Epilogue::kReadsSource && Epilogue::reads_source(parameters.epilogue)) {
    source = static_cast<const C*>(parameters.c)[group * parameters.batch_stride_c + filter * parameters.ldc + column];
  }
  Compute value[1] = {convert<Compute>(sum)}, of_c[1] = {convert<Compute>(source)};
  Epilogue::apply(value, of_c, parameters.epilogue, EpiloguePlace{filter, column, group, parameters.filters, columns});
  static_cast<D*>(parameters.d)[group * parameters.batch_stride_d + filter * parameters.ldd + column] =
      convert<D>(value[0]);
}

}  // namespace tilewright
