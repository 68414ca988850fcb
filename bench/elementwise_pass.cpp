// The kernel's text, its compile and its launches.
#include "elementwise_pass.hpp"

#include <algorithm>

#include "tilewright/cache/store.hpp"
#include "tilewright/lower/cuda/epilogue.hpp"
#include "tilewright/plan/gemm_tile.hpp"

namespace tilewright::bench {
namespace {

constexpr int kThreads = 256;
constexpr int kVectorsInFlight = 4;  // of a thread
constexpr int kCtasPerSm = 8;
constexpr const char* kSymbol = "elementwise_pass";

/// Elements of a thread's vector: both the product's and D's are at least 16 bytes.
int vector_elements(DType product, DType d) { return 16 / std::min(bytes(product), bytes(d)); }

Support check_rows(const op::Gemm& gemm, const op::Tensor& product) {
  const int elements = vector_elements(product.dtype, gemm.d.dtype);
  struct Matrix {
    const char* name;
    const op::Tensor& tensor;
  };
  std::vector<Matrix> matrices{{"the product", product}, {"D", gemm.d}};
  if (op::reads_source(gemm)) matrices.push_back({"C", gemm.c});
  for (const auto& [name, tensor] : matrices) {
    if (tensor.column_stride() != 1) return refuse("{} must be row-major", name);
    if (tensor.row_stride() % elements != 0)
      return refuse("rows of {} must be a multiple of {} elements apart, got {}", name, elements, tensor.row_stride());
    if (tensor.address % 32 != 0) return refuse("{} must be aligned to 32 bytes, got {:#x}", name, tensor.address);
  }
  if (gemm.n() % elements != 0) return refuse("n must be a multiple of {}, got {}", elements, gemm.n());
  if (gemm.batch() != 1) return refuse("takes single matrices, got a batch of {}", gemm.batch());
  constexpr std::int64_t kMostVectors = std::int64_t{1} << 31;  // indices of 32 bits, with room for a stride
  const std::int64_t vectors = gemm.m() * (gemm.n() / elements);
  if (vectors > kMostVectors) return refuse("{} vectors, more than {}", vectors, kMostVectors);
  return {};
}

plan::Launch launch_of(const op::Gemm& gemm, const op::Tensor& product, int sm_count) {
  const std::int64_t vectors = gemm.m() * (gemm.n() / vector_elements(product.dtype, gemm.d.dtype));
  const std::int64_t of_cta = std::int64_t{kThreads} * kVectorsInFlight;
  const bool reads_source = op::reads_source(gemm);
  plan::Launch launch;
  launch.grid[0] =
      static_cast<std::uint32_t>(std::min<std::int64_t>((vectors + of_cta - 1) / of_cta, kCtasPerSm * sm_count));
  launch.block[0] = kThreads;
  launch.append(product.address);
  launch.append(reads_source ? gemm.c.address : std::uint64_t{0});
  launch.append(gemm.d.address);
  launch.append(product.row_stride());
  launch.append(reads_source ? gemm.c.row_stride() : std::int64_t{0});
  launch.append(gemm.d.row_stride());
  launch.append(static_cast<std::int32_t>(gemm.m()));
  launch.append(static_cast<std::int32_t>(gemm.n()));
  plan::append_epilogue(launch, gemm, false);
  launch.finish();
  return launch;
}

/// After `Pass` and `Epilogue`. All loads of a round are started before its first store, which may be to the same
/// memory. No row has a part of a vector.
constexpr std::string_view kKernel = R"(struct Parameters {
  const Pass::Product* product;
  const Pass::C* c;
  Pass::D* d;
  tilewright::int64_t ld_product, ldc, ldd;
  int m, n;
  Epilogue::Parameters epilogue;
};

extern "C" __global__ void __launch_bounds__(Pass::kThreads)
elementwise_pass(const __grid_constant__ Parameters parameters) {
  using namespace tilewright;
  using Compute = Epilogue::Compute;
  constexpr int kElements = Pass::kElements;
  const uint32_t vectors_of_row = static_cast<uint32_t>(parameters.n) / kElements;
  const uint32_t vectors = vectors_of_row * static_cast<uint32_t>(parameters.m);
  const uint32_t step = gridDim.x * Pass::kThreads;
  const bool reads_source = Epilogue::kReadsSource && Epilogue::reads_source(parameters.epilogue);
  for (uint32_t first = blockIdx.x * Pass::kThreads + threadIdx.x; first < vectors; first += Pass::kVectors * step) {
    Vector<Pass::Product, kElements> product[Pass::kVectors] = {};
    Vector<Pass::C, kElements> c[Pass::kVectors] = {};
#pragma unroll
    for (int i = 0; i < Pass::kVectors; ++i) {
      const uint32_t vector = first + i * step;
      if (vector >= vectors) continue;
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
      if (vector >= vectors) continue;
      const int row = static_cast<int>(vector / vectors_of_row);
      const int column = static_cast<int>(vector % vectors_of_row) * kElements;
      __builtin_assume(row < parameters.m && column + kElements <= parameters.n);
      Compute values[kElements], source[kElements];
#pragma unroll
      for (int j = 0; j < kElements; ++j) {
        values[j] = convert<Compute>(product[i].element[j]);
        source[j] = convert<Compute>(c[i].element[j]);
      }
      Epilogue::apply(values, source, parameters.epilogue, EpiloguePlace{row, column, 0, parameters.m, parameters.n});
      Vector<Pass::D, kElements> d;
#pragma unroll
      for (int j = 0; j < kElements; j += 2) {
        const Vector<Pass::D, 2> pair = convert_pair<Pass::D>(values[j], values[j + 1]);
        d.element[j] = pair.element[0];
        d.element[j + 1] = pair.element[1];
      }
      *reinterpret_cast<Vector<Pass::D, kElements>*>(parameters.d + row * parameters.ldd + column) = d;
    }
  }
}
)";

}  // namespace

std::string elementwise_text(const op::Gemm& gemm, DType product) {
  const op::GemmDescription operands = op::describe(gemm);
  SourceWriter out;
  out.line("#include \"tilewright/epilogue/epilogue_tensor.cuh\"");
  out.line("#include \"tilewright/numeric/convert.cuh\"");
  out.line("#include \"tilewright/numeric/functions.cuh\"");
  out.blank();
  out.line("struct Pass {{").indent();
  out.line("using Product = {};", cuda_name(product));
  out.line("using C = {};", cuda_name(operands.c.element));
  out.line("using D = {};", cuda_name(operands.d.element));
  out.line("static constexpr int kElements = {}, kVectors = {}, kThreads = {};",
           vector_elements(product, operands.d.element), kVectorsInFlight, kThreads);
  out.dedent().line("}};").blank();
  lower::cuda::write_epilogue(out, operands);
  out.blank();
  return std::move(out).take() + std::string(kKernel);
}

Result<ElementwisePass> ElementwisePass::make(engine::Engine& engine, const std::vector<op::Gemm>& calls,
                                              const std::vector<op::Tensor>& products) {
  TILEWRIGHT_CHECK(!calls.empty() && calls.size() == products.size(), "{} calls and {} products", calls.size(),
                   products.size());
  const runtime::DeviceProperties& device = engine.device()->properties();
  Step step;
  for (std::size_t set = 0; set < calls.size(); ++set) {
    if (const Support rows = check_rows(calls[set], products[set]); !rows) return refuse("{}", rows.reason());
    step.launches.push_back(launch_of(calls[set], products[set], device.sm_count));
  }
  compile::Source source;
  source.name = source.symbol = kSymbol;
  source.text = elementwise_text(calls.front(), products.front().dtype);
  source.target = device.target;
  const cache::ArtifactPtr artifact = engine.cache().get_or_compile(source, engine.compiler());
  step.kernel = engine.device()->load({artifact->cubin, artifact->ptx}, artifact->symbol, 0);
  ElementwisePass pass;
  pass.steps_.push_back(std::move(step));
  return pass;
}

void ElementwisePass::run(int set, runtime::StreamHandle stream) const {
  for (const Step& step : steps_) {
    const plan::Launch& launch = step.launches[static_cast<std::size_t>(set)];
    runtime::LaunchConfig config;
    config.grid = {launch.grid[0], 1, 1};
    config.block = {launch.block[0], 1, 1};
    config.stream = stream;
    step.kernel->launch(config, launch.parameters());
  }
}

}  // namespace tilewright::bench
