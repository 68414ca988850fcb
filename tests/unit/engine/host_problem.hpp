// A GEMM that owns its host memory, filled with small integers, so that every correct kernel gives the same bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "tilewright/engine/engine.hpp"
#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/op/problem.hpp"

namespace tilewright::engine {

struct HostProblemOptions {
  DType type = DType::f32;
  DType d_type = DType::f32;
  op::MatrixLayout a = op::MatrixLayout::row_major;
  op::MatrixLayout b = op::MatrixLayout::row_major;
  op::MatrixLayout c = op::MatrixLayout::row_major;
  op::MatrixLayout d = op::MatrixLayout::row_major;
  int padding = 0;                                   // elements between rows or columns of every matrix
  std::int64_t batch = 0;                            // number of matrices; 0: no batch mode
  int batch_padding = 0;                             // elements between matrices
  bool one_a = false, one_b = false, one_c = false;  // broadcast over the batch
};

class HostProblem {
 public:
  HostProblem(std::int64_t m, std::int64_t n, std::int64_t k, const HostProblemOptions& options = {})
      : options_(options) {
    gemm.a = allocate(options.type, m, k, options.a, options, options.one_a);
    gemm.b = allocate(options.type, k, n, options.b, options, options.one_b);
    gemm.c = allocate(options.d_type, m, n, options.c, options, options.one_c);
    gemm.d = allocate(options.d_type, m, n, options.d, options, false);
    gemm.accumulator = op::default_accumulator(options.type);
    gemm.epilogue = op::linear_combination(op::default_compute(gemm.accumulator, options.d_type));
    std::uint64_t seed = 1;
    for (const op::Tensor* input : {&gemm.a, &gemm.b, &gemm.c}) {
      op::fill_integers(*input, input->dtype == DType::u8 ? 0 : -3, 3, seed++);
    }
  }

  /// Sets the epilogue and adds its auxiliary tensors, which have the compute type and D's layout. Tensors that are
  /// read are filled and broadcast over the batch.
  void set_epilogue(const op::Epilogue& epilogue) {
    gemm.epilogue = epilogue;
    std::uint64_t seed = 4;
    for (const op::EpilogueTensor& each : op::epilogue_tensors(gemm.epilogue)) {
      const std::int64_t rows = each.broadcast.along_m ? gemm.m() : 1, columns = each.broadcast.along_n ? gemm.n() : 1;
      const op::Tensor tensor = allocate(gemm.epilogue.compute, rows, columns, options_.d, options_, !each.is_written);
      if (!each.is_written) op::fill_integers(tensor, -3, 3, seed++);
      gemm.tensors.push_back({std::string(each.label), tensor});
    }
  }

  /// Makes A, B, C and D pointer arrays, whose matrices are those of the batches in the opposite order.
  void use_pointer_arrays() {
    for (op::Tensor* tensor : {&gemm.a, &gemm.b, &gemm.c, &gemm.d}) {
      std::vector<std::uint64_t>& addresses = pointers_.emplace_back();
      for (std::int64_t i = tensor->batch() - 1; i >= 0; --i) addresses.push_back(op::slice(*tensor, i).address);
      *tensor = op::pointer_array(op::matrix_at(*tensor, 0), reinterpret_cast<std::uint64_t>(addresses.data()),
                                  tensor->batch(), bytes(tensor->dtype));
    }
  }

  op::Comparison compare() const { return op::compare(gemm); }

  op::Gemm gemm;

 private:
  op::Tensor allocate(DType type, std::int64_t rows, std::int64_t columns, op::MatrixLayout layout,
                      const HostProblemOptions& options, bool is_one) {
    const std::int64_t contiguous = layout == op::MatrixLayout::row_major ? columns : rows;
    const std::int64_t lines = layout == op::MatrixLayout::row_major ? rows : columns;
    const std::int64_t ld = contiguous + options.padding;
    const std::int64_t step = is_one ? 0 : lines * ld + options.batch_padding;
    const std::int64_t elements = lines * ld + std::max<std::int64_t>(0, options.batch - 1) * step;
    memory_.emplace_back(static_cast<std::size_t>(std::max<std::int64_t>(1, elements * bytes(type))), kPoison);
    const op::Tensor one = op::matrix(memory_.back().data(), type, rows, columns, layout, ld);
    return options.batch == 0 ? one : op::batched(one, options.batch, step);
  }

  static constexpr std::byte kPoison{0xff};  // NaN in every float type

  HostProblemOptions options_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<std::vector<std::uint64_t>> pointers_;  // the arrays of pointer arrays
};

/// The same problem in device memory.
class DeviceProblem {
 public:
  DeviceProblem(const HostProblem& host, const std::shared_ptr<runtime::Device>& device)
      : gemm(host.gemm), device_(device) {
    for (op::Tensor* tensor : {&gemm.a, &gemm.b, &gemm.c, &gemm.d}) {
      const auto size = static_cast<std::size_t>(op::span_bytes(*tensor));
      buffers_.emplace_back(device, size);
      device->copy_in(buffers_.back().address(), reinterpret_cast<const void*>(tensor->address), size, nullptr);
      tensor->address = buffers_.back().address();
      tensor->device = {op::MemoryDevice::Kind::emulator, device->properties().ordinal};
    }
  }

  void copy_d_to(const HostProblem& host) const {
    device_->copy_out(reinterpret_cast<void*>(host.gemm.d.address), gemm.d.address,
                      static_cast<std::size_t>(op::span_bytes(host.gemm.d)), nullptr);
    device_->synchronize(nullptr);
  }

  op::Gemm gemm;

 private:
  std::shared_ptr<runtime::Device> device_;
  std::vector<runtime::DeviceBuffer> buffers_;
};

inline Options emulator_options() {
  Options options;
  options.device = "emulator:sm_80";
  options.cache_on_disk = false;
  return options;
}

}  // namespace tilewright::engine
