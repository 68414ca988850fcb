#include "tilewright/gemm/sm90_gemm.cuh"
#include "tilewright/numeric/functions.cuh"

struct Plan {
  struct OperandA {  // shared memory, (mn, k) -> element offset: Sw<3,4,3> o 0 o ((8,16),(128,1)):((128,1024),(1,16384))
    using Source = tilewright::RepackedMatrix;
    static constexpr bool kIsKMajor = true, kIsPointerArray = false;
    static constexpr int kTileBytes = 16384;
    static constexpr int kElementBytes = 1, kAlignmentBytes = 1;
    static constexpr bool kTransposes = true;
    static constexpr int kBoxes = 1, kShares = 1;
    static constexpr int kBoxContiguous = 0, kBoxStrided = 0, kBoxBytes = 0;
    static constexpr int kShareContiguous = 0, kShareStrided = 0, kShareBytes = 0;
    // wgmma descriptor: start 0x0, leading 16, stride 1024, 128-byte swizzle
    static constexpr tilewright::uint64_t kDescriptor = 0x4000004000010000;
    // (mn, k) instruction -> descriptor offset in 16-byte units: (2,4):(512,2)
    static __device__ constexpr tilewright::uint32_t descriptor_offset([[maybe_unused]] int mn, int k) {
      return mn * 512 + k * 2;
    }
  };
  struct OperandB {  // shared memory, (mn, k) -> element offset: Sw<3,4,3> o 0 o ((8,8),(128,1)):((128,1024),(1,8192))
    using Source = tilewright::RepackedMatrix;
    static constexpr bool kIsKMajor = true, kIsPointerArray = false;
    static constexpr int kTileBytes = 8192;
    static constexpr int kElementBytes = 1, kAlignmentBytes = 1;
    static constexpr bool kTransposes = false;
    static constexpr int kBoxes = 1, kShares = 2;
    static constexpr int kBoxContiguous = 0, kBoxStrided = 0, kBoxBytes = 0;
    static constexpr int kShareContiguous = 0, kShareStrided = 32, kShareBytes = 4096;
    // wgmma descriptor: start 0x0, leading 16, stride 1024, 128-byte swizzle
    static constexpr tilewright::uint64_t kDescriptor = 0x4000004000010000;
    // (mn, k) instruction -> descriptor offset in 16-byte units: (1,4):(0,2)
    static __device__ constexpr tilewright::uint32_t descriptor_offset([[maybe_unused]] int mn, int k) {
      return k * 2;
    }
  };
  struct Wgmma {
    using Accumulator = tilewright::int32_t;
    static constexpr int kK = 32, kRegisters = 32;
    static __device__ __forceinline__ void fma(tilewright::int32_t (&d)[32], tilewright::uint64_t a, tilewright::uint64_t b,
                                               int accumulate) {
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31"
        "}, %32, %33, p;\n}"
        :
        "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7]),
        "+r"(d[8]), "+r"(d[9]), "+r"(d[10]), "+r"(d[11]), "+r"(d[12]), "+r"(d[13]), "+r"(d[14]), "+r"(d[15]),
        "+r"(d[16]), "+r"(d[17]), "+r"(d[18]), "+r"(d[19]), "+r"(d[20]), "+r"(d[21]), "+r"(d[22]), "+r"(d[23]),
        "+r"(d[24]), "+r"(d[25]), "+r"(d[26]), "+r"(d[27]), "+r"(d[28]), "+r"(d[29]), "+r"(d[30]), "+r"(d[31])
        : "l"(a), "l"(b), "r"(accumulate));
    }
  };
  using ElementC = tilewright::int32_t;
  using ElementD = tilewright::int32_t;
  using Source = tilewright::GlobalMatrix;
  using Output = tilewright::GlobalMatrix;
  static constexpr bool kCIsRowMajor = true, kDIsRowMajor = true;
  static constexpr bool kCIsPointerArray = false, kDIsPointerArray = false;
  static constexpr bool kAccumulatesInHalf = false;
  static constexpr int kTileM = 128, kTileN = 64, kTileK = 128;
  static constexpr int kConsumers = 2, kStages = 4, kConsumerArrivals = 1;
  static constexpr int kSharedTaps = 1, kSharedStep = 0;
  static constexpr bool kIsPingPong = false;
  static constexpr int kClusterM = 2, kClusterN = 1;
  using Raster = tilewright::Raster<1, false>;
  using Scheduler = tilewright::PersistentTiles<Plan>;
  using Groups = tilewright::NoGroups;
  static constexpr int kSplitK = 1, kCounterBytes = 286720, kReductionCounters = 32768;
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232, kPlainLoadWords = 0;
  static constexpr int kPanelColumns = 32, kSubtilePanels = 2, kOutputBuffers = 2;
  static constexpr int kTensorMapSlots = 5;
  static constexpr int kTmaOutputs = 0, kTmaOutputBytes = 0;
  static constexpr int kSourceBytes = 4, kStoreBytes = 4;
  struct AccumulatorTile {  // (thread, value) -> coordinate: (((4,8),4),(2,2,8)):(((2@1,1@0),16@0),(1@1,8@0,8@1))
    static constexpr int kLaneRows = 1, kOtherRow = 8;
    static __device__ constexpr int row(int thread) {
      [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
      return lane / 4 + warp * 16;
    }
    static __device__ constexpr int column(int thread) {
      [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
      return lane % 4 * 2;
    }
  };
  struct Panel32 {  // shared memory, (row, column) -> byte offset: Sw<3,4,3> o 0 o ((8,8),(32,1)):((128,1024),(4,8192))
    static constexpr int kLine = 32, kLines = 64, kBoxes = 1;
    static __device__ constexpr tilewright::uint32_t place(tilewright::uint32_t row,
                                                           tilewright::uint32_t column) {
      return row * 128 + (column * 4 ^ row % 8 * 16);
    }
  };
  using PanelOfC = Panel32;
  using PanelOfD = Panel32;
  struct SharedMemory {
    static constexpr int kStageBytes = 24576;
    static constexpr int kOutputs = 98304, kOutputBytes = 32768;
    static constexpr int kStaging = 163840, kStagingBytes = 0;
    static constexpr int kOutputBarriers = 163840, kOutputBarrierBytes = 16;
    static constexpr int kRepackingBytes = 8704;  // per warp
    static constexpr int kRingBarriers = 163872, kTensorMaps = 163936, kBytes = 163936;
  };
  template <int kAtoms>
  using Mainloop = tilewright::WarpgroupMainloop<Plan, kAtoms>;
};

// linear_combination s32 add(mul($alpha,acc),mul($beta,c))
struct Epilogue {
  using Compute = tilewright::int32_t;
  static constexpr int kColumnsPerElement = 1;
  struct Parameters {
    Compute alpha_;
    Compute beta_;
  };
  static constexpr bool kReadsSource = true;
  static constexpr bool kHasTensors = false;
  static __device__ __forceinline__ bool reads_source([[maybe_unused]] const Parameters& parameters) {
    return parameters.beta_ != Compute(0);
  }
  template <class Visitor>
  static __device__ __forceinline__ void for_each_vector([[maybe_unused]] const Parameters& parameters,
                                                         [[maybe_unused]] const Visitor& visitor) {
  }
  static constexpr int kRowVectors = 0, kColumnVectors = 0;
  template <class Visitor>
  static __device__ __forceinline__ void for_each_reduction([[maybe_unused]] const Parameters& parameters,
                                                            [[maybe_unused]] const Visitor& visitor) {
  }
  static constexpr int kReductions = 0, kColumnResults = 0, kRowResults = 0, kSingleResults = 0;
  template <int kCount, class Place>
  static __device__ __forceinline__ void apply(Compute (&values)[kCount],
                                               [[maybe_unused]] const Compute (&source)[kCount],
                                               [[maybe_unused]] const Parameters& parameters,
                                               [[maybe_unused]] const Place& place) {
    #pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const Compute x0 = parameters.alpha_;
      const Compute x1 = values[i];
      const Compute x2 = tilewright::numeric::mul(x0, x1);
      const Compute x3 = parameters.beta_;
      const Compute x4 = source[i];
      const Compute x5 = tilewright::numeric::mul(x3, x4);
      const Compute x6 = tilewright::numeric::add(x2, x5);
      values[i] = x6;
    }
  }
};

using Parameters = tilewright::Sm90GemmParameters<Plan, Epilogue::Parameters>;
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, a.copy) == 0);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, a.from.address) == 128);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, a.from.ld) == 136);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, a.from.batch_stride) == 144);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, a.offset) == 152);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, a.pitch) == 160);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, a.pieces) == 168);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, b.copy) == 192);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, b.from.address) == 320);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, b.from.ld) == 328);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, b.from.batch_stride) == 336);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, b.offset) == 344);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, b.pitch) == 352);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, b.pieces) == 360);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, d.address) == 384);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, d.ld) == 392);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, d.batch_stride) == 400);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, m) == 408);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, n) == 412);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, k) == 416);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batches) == 420);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_step_a) == 424);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_step_b) == 428);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_step_c) == 432);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.tiles_m) == 436);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.tiles_n) == 440);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.groups) == 444);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.matrix.multiplier) == 448);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.matrix.shift) == 452);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.group.multiplier) == 456);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.group.shift) == 460);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.narrow.multiplier) == 464);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.narrow.shift) == 468);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, c.address) == 472);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, c.ld) == 480);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, c.batch_stride) == 488);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, policy_a) == 496);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, policy_b) == 504);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, workspace) == 512);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, reduction_parts) == 520);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.alpha_) == 528);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.beta_) == 532);
static_assert(sizeof(Parameters) == 576);

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(384, 1)
wgmma_s8_repacked(const __grid_constant__ Parameters parameters) {
  tilewright::Sm90Gemm<Plan, Epilogue>(parameters).run();
}
