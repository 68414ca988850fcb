// The kernel's text, compilation and launches.
#include "elementwise_pass.hpp"

#include <algorithm>

#include "tilewright/base/rounding.hpp"
#include "tilewright/cache/store.hpp"
#include "tilewright/lower/cuda/epilogue.hpp"
#include "tilewright/plan/gemm_tile.hpp"

namespace tilewright::bench {
namespace {

constexpr int kThreads = 256;
constexpr int kVectorsInFlight = 4;  // per thread
constexpr int kCtasPerSm = 8;
constexpr const char* kSymbol = "elementwise_pass";

/// Elements of a vector, the unit in which threads load and store. The vector of the smaller of the two types has 16
/// bytes.
int vector_elements(DType product, DType d) { return 16 / std::min(bytes(product), bytes(d)); }

Support check_rows(const op::Gemm& gemm, const op::Tensor& product) {
  const int elements = vector_elements(product.dtype, gemm.d.dtype);
  struct Matrix {
    const char* name;
    const op::Tensor& tensor;
    int elements;  // per vector
  };
  std::vector<Matrix> matrices{{"the product", product, elements},
                               {"D", gemm.d, elements / gemm.epilogue.columns_per_element()}};
  if (op::reads_source(gemm)) matrices.push_back({"C", gemm.c, elements});
  for (const auto& [name, tensor, per_vector] : matrices) {
    if (tensor.column_stride() != 1) return refuse("{} must be row-major", name);
    if (tensor.row_stride() % per_vector != 0)
      return refuse("the row stride of {} must be a multiple of {} elements, got {}", name, per_vector,
                    tensor.row_stride());
    if (tensor.address % 32 != 0) return refuse("{} must be aligned to 32 bytes, got {:#x}", name, tensor.address);
  }
  if (gemm.n() % elements != 0) return refuse("n must be a multiple of {}, got {}", elements, gemm.n());
  if (gemm.batch() != 1) return refuse("the elementwise pass takes single matrices, got a batch of {}", gemm.batch());
  constexpr std::int64_t kMaxVectors = std::int64_t{1} << 31;  // indices have 32 bits, and a stride is added to them
  const std::int64_t vectors = gemm.m() * (gemm.n() / elements);
  if (vectors > kMaxVectors) return refuse("the matrix has {} vectors of elements, more than {}", vectors, kMaxVectors);
  return {};
}

bool is_row_result(const op::EpilogueOutput& output) {
  return output.reduction != op::Reduction::none && output.broadcast == op::kColumnVector;
}

/// Whether one CTA processes each row, which row reductions need because CTAs do not combine their results.
bool is_by_rows(const op::Epilogue& epilogue) { return std::ranges::any_of(epilogue.outputs, is_row_result); }

/// Whether the output is the largest magnitude of all elements. The bits of non-negative floats, read as integers, have
/// the same order as the floats, so that an integer atomic computes this maximum.
bool is_largest_magnitude(const op::Epilogue& epilogue, const op::EpilogueOutput& output) {
  return output.reduction == op::Reduction::maximum && output.broadcast == op::kSingle &&
         epilogue.compute == DType::f32 &&
         epilogue.nodes[static_cast<std::size_t>(output.node)].op == op::EpilogueOp::absolute;
}

Support check_reductions(const op::Gemm& gemm) {
  for (const op::EpilogueOutput& output : gemm.epilogue.outputs) {
    if (output.reduction == op::Reduction::none || is_row_result(output)) continue;
    if (!is_largest_magnitude(gemm.epilogue, output))
      return refuse("the reduction \"{}\" must be over rows, or be the largest magnitude of all elements",
                    output.label);
    if (const DType type = gemm.tensor(output.label).dtype; type != DType::f32)
      return refuse("\"{}\" must be f32, got {}", output.label, name(type));
  }
  return {};
}

std::vector<std::uint64_t> maxima_of(const op::Gemm& gemm) {
  std::vector<std::uint64_t> addresses;
  for (const op::EpilogueOutput& output : gemm.epilogue.outputs) {
    if (is_largest_magnitude(gemm.epilogue, output)) addresses.push_back(gemm.tensor(output.label).address);
  }
  return addresses;
}

plan::Launch launch_of(const op::Gemm& gemm, const op::Tensor& product, int sm_count) {
  const std::int64_t vectors = gemm.m() * (gemm.n() / vector_elements(product.dtype, gemm.d.dtype));
  const std::int64_t per_cta = std::int64_t{kThreads} * kVectorsInFlight;
  const bool reads_source = op::reads_source(gemm);
  plan::Launch launch;
  const std::int64_t ctas = std::min<std::int64_t>(ceil_div(vectors, per_cta), kCtasPerSm * sm_count);
  launch.grid[0] = static_cast<std::uint32_t>(is_by_rows(gemm.epilogue) ? gemm.m() : ctas);
  launch.block[0] = kThreads;
  launch.append(product.address);
  launch.append(reads_source ? gemm.c.address : std::uint64_t{0});
  launch.append(gemm.d.address);
  launch.append(product.row_stride());
  launch.append(reads_source ? gemm.c.row_stride() : std::int64_t{0});
  launch.append(gemm.d.row_stride());
  launch.append(static_cast<std::int32_t>(gemm.m()));
  launch.append(static_cast<std::int32_t>(gemm.n()));
  plan::append_epilogue(launch, gemm.epilogue, op::view(gemm), false);
  launch.finish();
  return launch;
}

/// The text that follows the definitions of `Pass` and `Epilogue`. Each round issues all its loads before its first
/// store, because D may be the memory of the product. Rows consist of whole vectors. Reductions are combined in each
/// thread, then across the lanes of a warp, then across the warps of the CTA.
constexpr std::string_view kKernel = R"(struct Parameters {
  const Pass::Product* product;
  const Pass::C* c;
  Pass::D* d;
  tilewright::int64_t ld_product, ldc, ldd;
  int m, n;
  Epilogue::Parameters epilogue;
};

using Compute = Epilogue::Compute;

/// The partial result of a thread, or of the CTA, for every reduction.
struct Parts {
  Compute value[tilewright::maximum(Epilogue::kReductions, 1)];
};

/// The place of adjacent elements of a row. Their reductions go to `parts`.
struct ReducedPlace : tilewright::EpiloguePlace {
  Parts* parts;

  template <class Reduction, int kCount>
  __device__ __forceinline__ void reduce(const Compute (&values)[kCount]) const {
    Compute& part = parts->value[Reduction::kNumber];
#pragma unroll
    for (int i = 0; i < kCount; ++i) part = Reduction::Fold::combine(part, values[i]);
  }
};

struct Clear {
  Parts& parts;

  template <class Reduction, class Tensor>
  __device__ __forceinline__ void visit(const Tensor& /*tensor*/) const {
    parts.value[Reduction::kNumber] = Reduction::Fold::identity();
  }
};

/// Combines the partial results of the CTA and stores the result; all threads call it. `warps` is in shared memory, with
/// one element per warp.
struct Finish {
  const Parts& parts;
  Compute* warps;

  template <class Reduction, class Tensor>
  __device__ __forceinline__ void visit(const Tensor& tensor) const {
    using Fold = typename Reduction::Fold;
    Compute all = tilewright::fold_lanes<Fold>(parts.value[Reduction::kNumber]);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = all;
    __syncthreads();
    if (threadIdx.x == 0) {
#pragma unroll
      for (int warp = 1; warp < Pass::kThreads / 32; ++warp) all = Fold::combine(all, warps[warp]);
      if constexpr (Reduction::kResults == tilewright::Results::rows) {
        tensor.store_one(all, static_cast<int>(blockIdx.x), 0, 0);
      } else {
        atomicMax(static_cast<unsigned*>(const_cast<void*>(tensor.address)), __builtin_bit_cast(unsigned, all));
      }
    }
    __syncthreads();
  }
};

__device__ __forceinline__ void store(const Compute (&values)[Pass::kElements], Pass::D* to) {
  using namespace tilewright;
  constexpr int kColumns = Epilogue::kColumnsPerElement;
  using Stored = Vector<Pass::D, Pass::kElements / kColumns>;
  Stored d;
#pragma unroll
  for (int j = 0; j < Pass::kElements / kColumns; j += 2) {
    const Vector<Pass::D, 2> pair = convert_pair<Pass::D>(values[j * kColumns], values[(j + 1) * kColumns]);
    d.element[j] = pair.element[0];
    d.element[j + 1] = pair.element[1];
  }
  *reinterpret_cast<Stored*>(to) = d;
}

/// Processes the vectors first, first + step, ... below `end`. The vectors are numbered row by row.
__device__ __forceinline__ void sweep(const Parameters& parameters, tilewright::uint32_t first,
                                      tilewright::uint32_t end, tilewright::uint32_t step, Parts& parts) {
  using namespace tilewright;
  constexpr int kElements = Pass::kElements;
  const uint32_t vectors_of_row = static_cast<uint32_t>(parameters.n) / kElements;
  const bool reads_source = Epilogue::kReadsSource && Epilogue::reads_source(parameters.epilogue);
  for (; first < end; first += Pass::kVectors * step) {
    Vector<Pass::Product, kElements> product[Pass::kVectors] = {};
    Vector<Pass::C, kElements> c[Pass::kVectors] = {};
#pragma unroll
    for (int i = 0; i < Pass::kVectors; ++i) {
      const uint32_t vector = first + i * step;
      if (vector >= end) continue;
      const int row = static_cast<int>(vector / vectors_of_row);
      const int column = static_cast<int>(vector % vectors_of_row) * kElements;
      product[i] = *reinterpret_cast<const Vector<Pass::Product, kElements>*>(
          parameters.product + row * parameters.ld_product + column);
      if (reads_source) {
        c[i] = *reinterpret_cast<const Vector<Pass::C, kElements>*>(parameters.c + row * parameters.ldc + column);
      }
    }
#pragma unroll
    for (int i = 0; i < Pass::kVectors; ++i) {
      const uint32_t vector = first + i * step;
      if (vector >= end) continue;
      const int row = static_cast<int>(vector / vectors_of_row);
      const int column = static_cast<int>(vector % vectors_of_row) * kElements;
      __builtin_assume(row < parameters.m && column + kElements <= parameters.n);
      Compute values[kElements], source[kElements];
#pragma unroll
      for (int j = 0; j < kElements; ++j) {
        values[j] = convert<Compute>(product[i].element[j]);
        source[j] = convert<Compute>(c[i].element[j]);
      }
      Epilogue::apply(values, source, parameters.epilogue,
                      ReducedPlace{{row, column, 0, parameters.m, parameters.n}, &parts});
      if constexpr (Pass::kStoresD)
        store(values, parameters.d + row * parameters.ldd + column / Epilogue::kColumnsPerElement);
    }
  }
}

extern "C" __global__ void __launch_bounds__(Pass::kThreads)
elementwise_pass(const __grid_constant__ Parameters parameters) {
  using tilewright::uint32_t;
  __shared__ Compute warps[Pass::kThreads / 32];
  const uint32_t vectors_of_row = static_cast<uint32_t>(parameters.n) / Pass::kElements;
  Parts parts;
  Epilogue::for_each_reduction(parameters.epilogue, Clear{parts});
  if constexpr (Pass::kIsByRows) {
    const uint32_t row = blockIdx.x * vectors_of_row;
    sweep(parameters, row + threadIdx.x, row + vectors_of_row, Pass::kThreads, parts);
  } else {
    sweep(parameters, blockIdx.x * Pass::kThreads + threadIdx.x,
          vectors_of_row * static_cast<uint32_t>(parameters.m), gridDim.x * Pass::kThreads, parts);
  }
  Epilogue::for_each_reduction(parameters.epilogue, Finish{parts, warps});
}
)";

/// Whether D is the product itself, so that it need not be stored again.
bool is_product(const op::Gemm& gemm, const op::Tensor& product) {
  const op::EpilogueNode& d = gemm.epilogue.nodes[static_cast<std::size_t>(gemm.epilogue.node_of_d())];
  return d.op == op::EpilogueOp::accumulator && product == gemm.d;
}

}  // namespace

std::string elementwise_text(const op::Gemm& gemm, const op::Tensor& product) {
  const op::GemmSignature operands = op::describe(gemm);
  SourceWriter out;
  out.line("#include \"tilewright/epilogue/epilogue_tensor.cuh\"");
  out.line("#include \"tilewright/epilogue/reduction.cuh\"");
  out.line("#include \"tilewright/numeric/convert.cuh\"");
  out.line("#include \"tilewright/numeric/functions.cuh\"");
  out.blank();
  out.line("struct Pass {{").indent();
  out.line("using Product = {};", cuda_name(product.dtype));
  out.line("using C = {};", cuda_name(operands.c.element));
  out.line("using D = {};", cuda_name(operands.d.element));
  out.line("static constexpr int kElements = {}, kVectors = {}, kThreads = {};",
           vector_elements(product.dtype, operands.d.element), kVectorsInFlight, kThreads);
  out.line("static constexpr bool kIsByRows = {}, kStoresD = {};", is_by_rows(gemm.epilogue),
           !is_product(gemm, product));
  out.dedent().line("}};").blank();
  lower::cuda::write_epilogue(out, operands);
  out.blank();
  return std::move(out).take() + std::string(kKernel);
}

Result<ElementwisePass> ElementwisePass::make(engine::Engine& engine, const std::vector<op::Gemm>& calls,
                                              const std::vector<op::Tensor>& products) {
  TILEWRIGHT_CHECK(!calls.empty() && calls.size() == products.size(), "{} calls and {} products", calls.size(),
                   products.size());
  if (const Support reductions = check_reductions(calls.front()); !reductions) return reductions.refusal();
  const runtime::DeviceProperties& device = engine.device()->properties();
  ElementwisePass pass;
  pass.device_ = engine.device();
  for (std::size_t set = 0; set < calls.size(); ++set) {
    if (const Support rows = check_rows(calls[set], products[set]); !rows) return rows.refusal();
    pass.calls_.push_back({launch_of(calls[set], products[set], device.sm_count), maxima_of(calls[set])});
  }
  compile::Source source;
  source.name = source.symbol = kSymbol;
  source.text = elementwise_text(calls.front(), products.front());
  source.target = device.target;
  const cache::ArtifactPtr artifact = engine.cache().get_or_compile(source, engine.compiler());
  pass.kernel_ = engine.device()->load({artifact->cubin, artifact->ptx}, artifact->symbol, 0);
  return pass;
}

void ElementwisePass::run(int set, runtime::StreamHandle stream) const {
  const auto& [launch, maxima] = calls_[static_cast<std::size_t>(set)];
  for (const std::uint64_t address : maxima) device_->fill(address, 0, sizeof(float), stream);
  runtime::LaunchConfig config;
  config.grid = {launch.grid[0], 1, 1};
  config.block = {launch.block[0], 1, 1};
  config.stream = stream;
  kernel_->launch(config, launch.parameters());
}

}  // namespace tilewright::bench
