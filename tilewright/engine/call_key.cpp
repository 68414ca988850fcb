#include "tilewright/engine/call_key.hpp"

#include <algorithm>
#include <iterator>

#include "tilewright/op/epilogue_tensors.hpp"

namespace tilewright::engine {
namespace {

// FNV-1a over 64-bit words, with a final fold: a table index, not an identity; equality decides.
class WordHash {
 public:
  void mix(std::uint64_t word) { state_ = (state_ ^ word) * 0x100000001b3ULL; }
  std::size_t finish() const { return state_ ^ (state_ >> 32); }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

std::uint64_t pack(const op::TensorDescription& tensor) {
  return static_cast<std::uint64_t>(tensor.element) | static_cast<std::uint64_t>(tensor.layout) << 8 |
         static_cast<std::uint64_t>(tensor.alignment) << 16;
}

}  // namespace

bool CallKey::operator==(const CallKey& other) const {
  const op::GemmDescription& x = description;
  const op::GemmDescription& y = other.description;
  return extents == other.extents && reads_source == other.reads_source && reads_product == other.reads_product &&
         stores_sums == other.stores_sums && strides == other.strides && tensor_strides == other.tensor_strides &&
         x.a == y.a && x.b == y.b && x.c == y.c && x.d == y.d && x.has_c == y.has_c && x.tensors == y.tensors &&
         x.accumulator == y.accumulator && x.math == y.math && op::same_code(x.epilogue, y.epilogue);
}

CallKey make_call_key(const op::Gemm& arguments) {
  CallKey key{.description = op::describe(arguments),
              .extents = {arguments.m(), arguments.n(), arguments.k(), arguments.batch()},
              .reads_source = op::reads_source(arguments),
              .reads_product = op::reads_product(arguments),
              .stores_sums = op::stores_sums(arguments)};
  const auto strides = [](const op::Tensor& tensor) {
    return std::array{tensor.row_stride(), tensor.column_stride(), tensor.batch_stride()};
  };
  std::size_t at = 0;
  for (const op::Tensor* tensor : {&arguments.a, &arguments.b, &arguments.c, &arguments.d}) {
    if (tensor != &arguments.c || key.reads_source)
      std::ranges::copy(strides(*tensor), key.strides.begin() + static_cast<std::ptrdiff_t>(at));
    at += 3;
  }
  for (const op::EpilogueTensor& each : op::epilogue_tensors(arguments.epilogue))
    std::ranges::copy(strides(arguments.tensor(each.label)), std::back_inserter(key.tensor_strides));
  return key;
}

std::size_t CallKeyHash::operator()(const CallKey& key) const {
  WordHash hash;
  for (const std::int64_t extent : key.extents) hash.mix(static_cast<std::uint64_t>(extent));
  for (const std::int64_t stride : key.strides) hash.mix(static_cast<std::uint64_t>(stride));
  const op::GemmDescription& description = key.description;
  for (const op::TensorDescription* tensor : {&description.a, &description.b, &description.c, &description.d}) {
    hash.mix(pack(*tensor));
  }
  hash.mix(static_cast<std::uint64_t>(description.accumulator) | static_cast<std::uint64_t>(description.math) << 8 |
           static_cast<std::uint64_t>(key.reads_source) << 16 | static_cast<std::uint64_t>(description.has_c) << 17);
  for (const op::EpilogueNode& node : description.epilogue.nodes) hash.mix(static_cast<std::uint64_t>(node.op));
  return hash.finish();
}

}  // namespace tilewright::engine
