// Random operands. A block per type is generated on the host and copied repeatedly into the device buffers.
#include "operand_sets.hpp"

#include <algorithm>
#include <cstring>

#include "tilewright/base/float_format.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/runtime/cuda_device.hpp"

namespace tilewright::bench {
namespace {

/// Elements of a random block. It is a prime, so that rows of a matrix do not repeat each other.
constexpr std::size_t kRandomElements = 4194301;

/// Bytes behind D that no call may write.
constexpr std::size_t kRedZoneBytes = 512;

/// A byte of which floats are NaN and integers are -1.
constexpr std::uint8_t kPoison = 0xff;

template <class T, class Draw>
std::vector<std::byte> draw_block(const Draw& draw) {
  std::vector<std::byte> block(kRandomElements * sizeof(T));
  for (std::size_t i = 0; i < kRandomElements; ++i) {
    const T value = draw();
    std::memcpy(block.data() + i * sizeof(T), &value, sizeof(T));
  }
  return block;
}

std::vector<std::byte> random_block(DType dtype, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  const auto float32 = [&] { return static_cast<float>(normal(generator)); };
  switch (dtype) {
    case DType::f64:
      return draw_block<double>([&] { return normal(generator); });
    case DType::f32:
      return draw_block<float>(float32);
    case DType::f16:
      return draw_block<std::uint16_t>([&] { return f32_to_f16(float32()); });
    case DType::bf16:
      return draw_block<std::uint16_t>([&] { return f32_to_bf16(float32()); });
    case DType::e4m3:
      return draw_block<std::uint8_t>([&] { return f64_to_e4m3(normal(generator)); });
    case DType::e5m2:
      return draw_block<std::uint8_t>([&] { return f64_to_e5m2(normal(generator)); });
    case DType::s8:
    case DType::u8:
      return draw_block<std::uint8_t>([&] { return static_cast<std::uint8_t>(generator() >> 56); });
    default:
      throw InvalidArgument(fmt::format("{} is not supported as the type of an operand", name(dtype)));
  }
}

bool reads_c(const Problem& problem) { return problem.epilogue != nullptr && problem.epilogue->beta != 0.0; }

/// Whether the product that the separate epilogue kernel reads needs a buffer other than D's.
bool has_product(const Problem& problem) { return problem.epilogue != nullptr && !is_product_in_d(problem); }

std::size_t bytes_of_set(const Problem& problem) {
  std::size_t bytes = stored_a(problem).bytes() + stored_b(problem).bytes() + stored_d(problem).bytes();
  if (reads_c(problem)) bytes += stored_c(problem).bytes();
  if (has_product(problem)) bytes += stored_product(problem).bytes();
  for (const StoredTensor& tensor : stored_tensors(problem)) bytes += tensor.stored.bytes();
  return bytes;
}

}  // namespace

RandomBlocks::RandomBlocks(std::shared_ptr<runtime::Device> device, std::uint64_t seed)
    : device_(std::move(device)), seed_(seed) {}

const RandomBlocks::Block& RandomBlocks::block(DType dtype, Source source) {
  const std::pair key(dtype, source);
  if (const auto made = blocks_.find(key); made != blocks_.end()) return made->second;
  constexpr std::uint64_t kOtherSeed = 0x9e3779b97f4a7c15;
  Block block{.host = random_block(dtype, source == Source::first ? seed_ : seed_ ^ kOtherSeed), .device = {}};
  block.device = runtime::DeviceBuffer(device_, block.host.size());
  device_->copy_in(block.device.address(), block.host.data(), block.host.size(), nullptr);
  return blocks_.emplace(key, std::move(block)).first->second;
}

void RandomBlocks::copy(std::uint64_t to, const Block& from, std::size_t offset, std::size_t bytes) const {
  if (const auto* gpu = dynamic_cast<const runtime::CudaDevice*>(device_.get())) {
    const runtime::ContextScope scope(*gpu->context());
    gpu->context()->driver().copy_device_to_device(to, from.device.address() + offset, bytes, nullptr);
  } else {
    device_->copy_in(to, from.host.data() + offset, bytes, nullptr);
  }
}

void RandomBlocks::fill(const runtime::DeviceBuffer& buffer, DType dtype, Source source, std::mt19937_64& offsets) {
  const Block& random = block(dtype, source);
  std::size_t offset = offsets() % kRandomElements * static_cast<std::size_t>(bytes(dtype));
  for (std::size_t done = 0; done < buffer.bytes(); offset = 0) {
    const std::size_t piece = std::min(buffer.bytes() - done, random.host.size() - offset);
    copy(buffer.address() + done, random, offset, piece);
    done += piece;
  }
}

OperandSets::OperandSets(std::shared_ptr<runtime::Device> device, const Problem& problem, RandomBlocks& random,
                         std::uint64_t seed, int most)
    : device_(std::move(device)),
      tensors_(stored_tensors(problem)),
      bytes_of_set_(bytes_of_set(problem)),
      bytes_of_d_(stored_d(problem).bytes()) {
  const auto enough = 2 * static_cast<std::size_t>(device_->properties().l2_bytes);
  const std::size_t count = std::min(1 + ceil_div(enough, bytes_of_set_), static_cast<std::size_t>(most));
  std::mt19937_64 offsets(seed + 1);
  const Fill fill = [&](const runtime::DeviceBuffer& buffer, DType dtype, RandomBlocks::Source source) {
    random.fill(buffer, dtype, source, offsets);
  };
  for (std::size_t i = 0; i < count; ++i) {
    sets_.push_back(make_set(problem, fill));
    poison_output(static_cast<int>(i));
  }
  device_->synchronize(nullptr);
}

OperandSets::Set OperandSets::make_set(const Problem& problem, const Fill& fill) const {
  using enum RandomBlocks::Source;
  const auto make_random = [&](const StoredMatrix& stored, RandomBlocks::Source source) {
    runtime::DeviceBuffer buffer(device_, stored.bytes());
    fill(buffer, stored.dtype, source);
    return buffer;
  };
  Set set;
  set.a = make_random(stored_a(problem), first);
  set.b = make_random(stored_b(problem), second);
  set.d = runtime::DeviceBuffer(device_, bytes_of_d_ + kRedZoneBytes);
  set.addresses = {.a = set.a.address(),
                   .b = set.b.address(),
                   .d = set.d.address(),
                   .plain = set.d.address(),
                   .product = set.d.address()};
  if (reads_c(problem)) {
    set.c = make_random(stored_c(problem), first);
    set.addresses.c = set.c.address();
  }
  if (has_product(problem)) {
    set.product = runtime::DeviceBuffer(device_, stored_product(problem).bytes());
    set.addresses.product = set.product.address();
    if (!is_plain_in_d(problem)) set.addresses.plain = set.product.address();
  }
  TILEWRIGHT_CHECK(tensors_.size() <= kMaxCaseTensors, "an epilogue of {} tensors, {} at most", tensors_.size(),
                   kMaxCaseTensors);
  for (const StoredTensor& tensor : tensors_) {
    const std::size_t number = set.tensors.size();
    set.addresses.tensors[number] = set.tensors.emplace_back(make_tensor(tensor, fill)).address();
  }
  return set;
}

runtime::DeviceBuffer OperandSets::make_tensor(const StoredTensor& tensor, const Fill& fill) const {
  runtime::DeviceBuffer buffer(device_, tensor.stored.bytes());
  if (tensor.is_written) return buffer;
  if (!tensor.row.value) {
    fill(buffer, tensor.stored.dtype, RandomBlocks::Source::first);
    return buffer;
  }
  std::vector<std::byte> elements(buffer.bytes());
  const op::Tensor host = op::matrix(elements.data(), tensor.stored.dtype, tensor.stored.rows, tensor.stored.columns);
  for (std::int64_t row = 0; row < host.rows(); ++row) {
    for (std::int64_t column = 0; column < host.columns(); ++column) op::store(host, row, column, *tensor.row.value);
  }
  device_->copy_in(buffer.address(), elements.data(), elements.size(), nullptr);
  return buffer;
}

std::vector<std::byte> OperandSets::read(const runtime::DeviceBuffer& buffer) const {
  return read(buffer, 0, buffer.bytes());
}

std::vector<std::byte> OperandSets::read(const runtime::DeviceBuffer& buffer, std::size_t begin,
                                         std::size_t bytes) const {
  std::vector<std::byte> host(bytes);
  if (host.empty()) return host;
  device_->copy_out(host.data(), buffer.address() + begin, host.size(), nullptr);
  device_->synchronize(nullptr);
  return host;
}

Sources OperandSets::read_sources(int set) const {
  const Set& memory = sets_[static_cast<std::size_t>(set)];
  Sources sources{.a = read(memory.a), .b = read(memory.b), .c = read(memory.c), .tensors = {}};
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    sources.tensors.push_back(tensors_[i].is_written ? std::vector<std::byte>() : read(memory.tensors[i]));
  return sources;
}

Output OperandSets::read_output(int set) const {
  const Set& memory = sets_[static_cast<std::size_t>(set)];
  Output output{.bytes = read(memory.d, 0, bytes_of_d_), .tensors = {}};
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    output.tensors.push_back(tensors_[i].is_written ? read(memory.tensors[i]) : std::vector<std::byte>());
  return output;
}

Output OperandSets::read_plain(int set) const {
  const Set& memory = sets_[static_cast<std::size_t>(set)];
  const bool is_in_d = memory.addresses.plain == memory.d.address();
  return {.bytes = is_in_d ? read(memory.d, 0, bytes_of_d_) : read(memory.product), .tensors = {}};
}

void OperandSets::poison(const runtime::DeviceBuffer& buffer, std::uint8_t byte) const {
  device_->fill(buffer.address(), byte, buffer.bytes(), nullptr);
}

void OperandSets::poison_output(int set) const {
  const Set& memory = sets_[static_cast<std::size_t>(set)];
  poison(memory.d, kPoison);
  if (memory.product.bytes() != 0) poison(memory.product, kPoison);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].is_written) poison(memory.tensors[i], tensors_[i].is_reduced ? 0x7f : kPoison);
  }
}

bool OperandSets::has_overrun(int set) const {
  const std::vector<std::byte> zone = read(sets_[static_cast<std::size_t>(set)].d, bytes_of_d_, kRedZoneBytes);
  return !std::ranges::all_of(zone, [](std::byte one) { return one == std::byte{kPoison}; });
}

}  // namespace tilewright::bench
