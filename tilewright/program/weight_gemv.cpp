#include "tilewright/program/weight_gemv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/program/instructions.hpp"
#include "tilewright/program/packed_weights.hpp"
#include "tilewright/program/widen.hpp"

namespace tilewright::program {
namespace {

constexpr int kWarp = 32;
/// The shape of mma.sync.m16n8k16, whose fragment of A a warp of wgmma.m64nNk16 has, too.
constexpr int kRows = 16, kTokens = 8, kDepth = 16;
constexpr int kFragmentRegisters = 4, kThreadBytes = 16, kSumBytes = 4;
constexpr int kRowsOfChunk = WeightPacking::kRows / kRows;  // in units of kRows
constexpr int kMaxThreads = 1024;

void check(const WeightGemvDescription& description, int chunk_k) {
  const auto check_number = [](std::string_view what, int number, std::initializer_list<int> known) {
    if (std::find(known.begin(), known.end(), number) == known.end())
      throw InvalidArgument(fmt::format("{} must be one of {}, got {}", what, fmt::join(known, ", "), number));
  };
  check_number("tile_n", description.tile_n, {8, 16});
  check_number("rows", description.rows, {16, 32, 64});
  if (description.unrolled < 1)
    throw InvalidArgument(fmt::format("unrolled must be 1 or more, got {}", description.unrolled));
  const int threads = description.rows / kRows * description.warps_k * kWarp;
  if (description.warps_k < 1 || threads > kMaxThreads) {
    throw InvalidArgument(fmt::format("{} warps along k with {} rows are {} threads, of 32 to {}", description.warps_k,
                                      description.rows, threads, kMaxThreads));
  }
  const int group = description.group;
  if (group != 0 && (group % kDepth != 0 || (group % chunk_k != 0 && chunk_k % group != 0))) {
    throw InvalidArgument(fmt::format("the group must be a multiple of {}, or a multiple of {} that divides it, got {}",
                                      chunk_k, kDepth, group));
  }
}

class WeightGemvAuthor {
 public:
  WeightGemvAuthor(std::string symbol, const WeightGemvDescription& description)
      : description_(description),
        steps_(steps_of_chunk(description.weights)),
        chunk_k_(kDepth * steps_),
        blocks_(description.tile_n / kTokens),
        k_((check(description, chunk_k_), std::move(symbol)), description.target,
           description.rows / kRows * description.warps_k * kWarp) {}

  Program write() {
    k_.set_min_ctas(description_.ctas_per_sm);
    m_ = k_.launch("m", 1, 1);
    n_ = k_.launch("n", 1, 1);
    const int divisor = description_.whole_chunks ? chunk_k_ : 2;
    extent_k_ = k_.launch("k", divisor, divisor);
    ld_activations_ = k_.launch("ld_activations", 2);
    if (description_.group != 0) ld_scales_ = k_.launch("ld_scales");
    const Number ldd = k_.launch("ldd");
    weights_ = k_.address("weights", kThreadBytes);
    activations_ = k_.address("activations", 4);
    scales_ = k_.address("scales", bits(description_.scales) / 8);
    const Value d = k_.address("d", bits(description_.d) / 8);
    k_.set_grid(ceil_div(m_, description_.rows), ceil_div(n_, description_.tile_n));
    const SharedMemory parts = k_.shared(
        std::int64_t{description_.warps_k} * description_.tile_n * description_.rows * kSumBytes, kThreadBytes);
    chunks_ = k_.computed("chunks", ceil_div(extent_k_, chunk_k_));
    k_.wait_for_last_kernel();

    const int warps_m = description_.rows / kRows;
    const Number warp = broadcast(k_, k_.thread() / kWarp), lane = k_.thread() % kWarp;
    const Number part = warp / warps_m, row = warp % warps_m * kRows + lane / 4;  // of the CTA
    for (int block = 0; block < blocks_; ++block) sums_.push_back(zeros());
    const int at_once = description_.warps_k * description_.unrolled;
    k_.loop(ceil_div(chunks_, at_once), [&](const Number& round) {
      add_products((round * description_.warps_k + part) * description_.unrolled,
                   k_.block(0) * warps_m + warp % warps_m, lane);
    });
    launch_dependents(k_);

    const auto place = [&](const Number& of_part, const Number& column, const Number& of_row) {
      return parts.address + ((of_part * description_.tile_n + column) * description_.rows + of_row) * kSumBytes;
    };
    for (int block = 0; block < blocks_; ++block) {
      const Value sum = sums_[static_cast<std::size_t>(block)].get();
      for (int i = 0; i < kFragmentRegisters; ++i)
        store_shared(k_, place(part, block * kTokens + lane % 4 * 2 + i % 2, row + i / 2 * 8), {sum[i]});
    }
    synchronize(k_);
    k_.loop(k_.thread(), description_.rows * description_.tile_n, k_.threads(), [&](const Number& i) {
      const Number of_row = i % description_.rows, column = i / description_.rows;
      Value total = load_shared(k_, place(0, column, of_row), RegisterType::f32);
      for (int each = 1; each < description_.warps_k; ++each)
        total = add(k_, total, load_shared(k_, place(each, column, of_row), RegisterType::f32));
      const Number output = k_.block(0) * description_.rows + of_row,
                   token = k_.block(1) * description_.tile_n + column;
      const Number holds = both(less(output, m_), less(token, n_));
      // The sum of a fma is not -0.
      if (description_.group == 0)
        total =
            fma(k_, total, load_scale(holds, scales_, output * (bits(description_.scales) / 8)), constant(k_, 0.0F));
      store_global_if(k_, holds, d, (token * ldd + output) * (bits(description_.d) / 8),
                      {from_f32(k_, description_.d, total)});
    });
    return k_.build();
  }

 private:
  ValueCell zeros() {
    std::string text;
    for (int i = 0; i < kFragmentRegisters; ++i) text += fmt::format("mov.f32 $0.{}, 0f00000000;\n", i);
    return k_.cell(k_.instruction(text, {output(RegisterType::f32, kFragmentRegisters)}, Effect::pure).front());
  }

  /// The scale at this address, as f32; 0 unless `holds`.
  Value load_scale(const Number& holds, const Value& base, const Number& offset) {
    const RegisterType type = description_.scales == DType::f32 ? RegisterType::f32 : RegisterType::b16;
    return to_f32(k_, load_global_if(k_, holds, base, offset, type), description_.scales);
  }

  /// The addresses of a thread in a chunk. Those in other chunks follow by constants.
  struct Addresses {
    Value weights;
    std::vector<Value> activations;  // of the first k of the thread, for each 8 tokens
    Value scales;                    // of its first row in group 0
  };

  /// Adds the products of consecutive chunks from `first` on. `band` is the number of the 16 rows in the matrix.
  void add_products(const Number& first, const Number& band, const Number& lane) {
    const Number is_inside = less(band / kRowsOfChunk, ceil_div(m_, WeightPacking::kRows));
    const Number thread = band % kRowsOfChunk * kWarp + lane, row = band * kRows + lane / 4;
    Addresses at;
    at.weights = global_address(
        k_, weights_, (band / kRowsOfChunk * chunks_ + first) * WeightPacking::kBytes + thread * kThreadBytes);
    for (int block = 0; block < blocks_; ++block) {
      at.activations.push_back(global_address(k_, activations_,
                                              (token(block, lane) * ld_activations_ + first * chunk_k_ + lane % 4 * 2) *
                                                  (bits(description_.activations) / 8)));
    }
    if (description_.group != 0) at.scales = global_address(k_, scales_, row * (bits(description_.scales) / 8));
    std::vector<Value> words;  // of all chunks, so that all loads are in flight
    for (int i = 0; i < description_.unrolled; ++i) {
      words.push_back(load_global_if(k_, both(is_inside, less(first + i, chunks_)), at.weights,
                                     i * WeightPacking::kBytes, RegisterType::b32, kFragmentRegisters));
    }
    for (int i = 0; i < description_.unrolled; ++i)
      add_chunk(words[static_cast<std::size_t>(i)], at, first, i, row, lane);
  }

  /// Adds the products of chunk first + i. `row` is the first of the two rows of the thread in the matrix.
  void add_chunk(const Value& words, const Addresses& at, const Number& first, int i, const Number& row,
                 const Number& lane) {
    const int segment = description_.group == 0 ? chunk_k_ : std::min(description_.group, chunk_k_);
    const int words_of_step = kFragmentRegisters / steps_;
    const Number at_k = (first + i) * chunk_k_;
    for (int begin = 0; begin < chunk_k_; begin += segment) {
      std::vector<Value> products(static_cast<std::size_t>(blocks_));
      for (int step = begin / kDepth; step < (begin + segment) / kDepth; ++step) {
        std::vector<Value> packed;
        for (int word = 0; word < words_of_step; ++word) packed.push_back(words[step * words_of_step + word]);
        const Value fragment = widen(k_, description_.weights, description_.activations, packed);
        for (int block = 0; block < blocks_; ++block) {
          Value& product = products[static_cast<std::size_t>(block)];
          product = multiply_add(fragment, load_activations(at, first, block, i * steps_ + step, lane), product, block);
        }
      }
      if (description_.group == 0) {
        for (int block = 0; block < blocks_; ++block)
          sums_[static_cast<std::size_t>(block)].set(products[static_cast<std::size_t>(block)]);
        continue;
      }
      const int bytes = bits(description_.scales) / 8;
      const Value of_group = global_address(k_, at.scales, (at_k + begin) / description_.group * ld_scales_ * bytes);
      std::array<Value, 2> scales;
      for (const int below : {0, 1}) {
        scales[static_cast<std::size_t>(below)] =
            load_scale(both(less(row + below * 8, m_), less(at_k + begin, extent_k_)), of_group, below * 8 * bytes);
      }
      for (int block = 0; block < blocks_; ++block) {
        const ValueCell& sum = sums_[static_cast<std::size_t>(block)];
        const Value& product = products[static_cast<std::size_t>(block)];
        std::vector<Value> scaled;
        for (int j = 0; j < kFragmentRegisters; ++j)
          scaled.push_back(fma(k_, product[j], scales[static_cast<std::size_t>(j / 2)], sum.get()[j]));
        sum.set(join_registers(k_, scaled));
      }
    }
  }

  Number token(int block, const Number& lane) { return k_.block(1) * description_.tile_n + block * kTokens + lane / 4; }

  /// The fragment of B of a step, counted from the first chunk on: two pairs of consecutive k of the thread's token.
  std::array<Value, 2> load_activations(const Addresses& at, const Number& first, int block, int step,
                                        const Number& lane) {
    std::array<Value, 2> pairs;
    for (const int half : {0, 1}) {
      const int offset = step * kDepth + half * 8;
      const Number is_inside = description_.whole_chunks ? less(first + step / steps_, chunks_)
                                                         : less(first * chunk_k_ + lane % 4 * 2 + offset, extent_k_);
      pairs[static_cast<std::size_t>(half)] = load_global_if(
          k_, both(less(token(block, lane), n_), is_inside), at.activations[static_cast<std::size_t>(block)],
          offset * (bits(description_.activations) / 8), RegisterType::b32);
    }
    return pairs;
  }

  /// fragment * pairs + product; if there is no product yet, + the sum of the rows' weights without groups, else + 0.
  Value multiply_add(const Value& fragment, const std::array<Value, 2>& pairs, const Value& product, int block) {
    const std::string_view type = name(description_.activations);
    std::string text = fmt::format("mma.sync.aligned.m16n8k16.row.col.f32.{0}.{0}.f32 $0, $1, $2, ", type);
    std::vector<Operand> operands{output(RegisterType::f32, kFragmentRegisters), input(fragment),
                                  input(std::vector<Value>{pairs[0], pairs[1]})};
    if (product.id < 0 && description_.group != 0) {
      text += "{0f00000000, 0f00000000, 0f00000000, 0f00000000};";
    } else {
      text += "$3;";
      operands.push_back(input(product.id < 0 ? sums_[static_cast<std::size_t>(block)].get() : product));
    }
    return k_.instruction(text, std::move(operands), Effect::pure).front();
  }

  WeightGemvDescription description_;
  int steps_, chunk_k_, blocks_;
  KernelBuilder k_;
  Number m_, n_, extent_k_, ld_activations_, ld_scales_, chunks_;
  Value weights_, activations_, scales_;
  ValueCells sums_;  // of each 8 tokens
};

}  // namespace

Result<Program> weight_gemv(std::string symbol, const WeightGemvDescription& description) {
  try {
    return WeightGemvAuthor(std::move(symbol), description).write();
  } catch (const InvalidArgument& error) {
    return refuse("{}", error.what()).as(RefusalCode::design);
  }
}

}  // namespace tilewright::program
