#include "tests/unit/op/direct_contraction.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <random>

#include "tests/unit/op/tensor_elements.hpp"
#include "tilewright/op/fill.hpp"

namespace tilewright::op {
namespace {

constexpr std::uint64_t kApart = std::uint64_t{1} << 40;

/// The strides of the letters in a tensor, 0 where it lacks them.
std::int64_t stride_of(const Tensor& tensor, std::string_view modes, char letter) {
  const std::size_t at = modes.find(letter);
  return at == std::string_view::npos ? 0 : tensor.stride[static_cast<int>(at)];
}

/// A tensor whose modes have the strides of a packed one in the order `fastest_first`, with `gap` elements after each
/// line of the mode at its beginning.
Tensor tensor_of(std::uint64_t number, DType type, const std::string& modes, const std::string& fastest_first,
                 const std::map<char, std::int64_t>& extents, std::int64_t gap) {
  Tensor tensor;
  tensor.address = number * kApart;
  tensor.dtype = type;
  std::map<char, std::int64_t> strides;
  std::int64_t stride = 1;
  for (const char mode : fastest_first) {
    strides[mode] = stride;
    stride *= std::max<std::int64_t>(extents.at(mode), 1);
    if (mode == fastest_first.front()) stride += gap;
  }
  for (const char mode : modes) {
    tensor.shape.append(extents.at(mode));
    tensor.stride.append(strides.at(mode));
  }
  return tensor;
}

void finish(Contraction& contraction, DType type) {
  contraction.accumulator = default_accumulator(type);
  contraction.d.dtype = default_output(type);
  contraction.epilogue = linear_combination(default_compute(contraction.accumulator, contraction.d.dtype));
  contraction.c = contraction.d;
  contraction.c.address = 4 * kApart;
}

}  // namespace

std::vector<double> direct_sums(const Contraction& contraction) {
  std::string letters = contraction.modes_d;
  std::map<char, std::int64_t> extents;
  for (const auto& [tensor, modes] :
       {std::pair{&contraction.a, &contraction.modes_a}, {&contraction.b, &contraction.modes_b}}) {
    for (std::size_t i = 0; i < modes->size(); ++i) {
      if (letters.find((*modes)[i]) == std::string::npos) letters += (*modes)[i];
      extents[(*modes)[i]] = tensor->shape[static_cast<int>(i)];
    }
  }
  // The modes of D come first, so that the elements of a sum follow each other.
  const auto size_of = [&](std::string_view of) {
    std::size_t size = 1;
    for (const char letter : of) size *= static_cast<std::size_t>(extents.at(letter));
    return size;
  };
  const std::size_t count = size_of(contraction.modes_d);
  const std::size_t sum_length = size_of(letters.substr(contraction.modes_d.size()));
  std::vector<double> sums(count);
  const auto offset = [&](const Tensor& tensor, std::string_view modes, std::size_t index) {
    std::int64_t sum = 0;
    for (std::size_t i = letters.size(); i-- > 0;) {
      const auto extent = static_cast<std::size_t>(extents.at(letters[i]));
      sum += static_cast<std::int64_t>(index % extent) * stride_of(tensor, modes, letters[i]);
      index /= extent;
    }
    return sum;
  };
  for (std::size_t i = 0; i < count * sum_length; ++i) {
    sums[i / sum_length] += load_at(contraction.a, offset(contraction.a, contraction.modes_a, i)) *
                            load_at(contraction.b, offset(contraction.b, contraction.modes_b, i));
  }
  return sums;
}

const std::vector<std::string_view>& tccg_contractions() {
  static const std::vector<std::string_view> kAll{
      // tensor times matrix
      "abj-bka-kj", "ajb-kba-jk", "abjc-cbka-kj", "ajbc-ckba-jk", "abjc-kbac-jk", "abjcd-dkbac-jk", "adbjc-cbdka-kj",
      "ajbdc-ckbad-jk",
      // change of basis
      "aqrs-pa-pqrs", "abrs-qb-aqrs", "abcs-rc-abrs",
      // CCSD
      "ij-ik-kj", "ij-ikl-ljk", "ij-kil-lkj", "ijk-ikl-lj", "ijk-il-jlk", "ijk-ilk-jl", "ijk-ilk-lj", "ijk-ilmk-mjl",
      "ijkl-imjn-lnkm", "ijkl-imkn-jnlm", "ijkl-imln-jnkm", "ijkl-imjn-nlmk", "ijkl-imkn-njml", "ijkl-imln-njmk",
      "ijkl-imnj-nlkm", "ijkl-imnk-njml", "ijkl-minj-nlmk", "ijkl-minl-njmk", "ijkl-mink-jnlm",
      // CCSD(T)
      "abcijk-ijma-mkbc", "abcijk-ikma-mjbc", "abcijk-jkma-mibc", "abcijk-ijmb-mkac", "abcijk-ijmc-mkab",
      "abcijk-ikmb-mjac", "abcijk-ikmc-mjab", "abcijk-jkmb-miac", "abcijk-jkmc-miab", "abcijk-eiab-jkec",
      "abcijk-eiac-jkeb", "abcijk-ejab-ikec", "abcijk-ejac-ikeb", "abcijk-ekab-ijec", "abcijk-ekac-ijeb",
      "abcijk-eibc-jkea", "abcijk-ejbc-ikea", "abcijk-ekbc-ijea"};
  return kAll;
}

Contraction tccg_contraction(std::string_view text, DType type) {
  const std::size_t first = text.find('-'), second = text.rfind('-');
  Contraction contraction;
  contraction.modes_d = text.substr(0, first);
  contraction.modes_a = text.substr(first + 1, second - first - 1);
  contraction.modes_b = text.substr(second + 1);
  std::map<char, std::int64_t> extents{{'a', 4}, {'b', 3}, {'c', 5}, {'d', 2}, {'e', 7}, {'i', 8}, {'j', 3}, {'k', 4},
                                       {'l', 5}, {'m', 8}, {'n', 3}, {'p', 6}, {'q', 4}, {'r', 3}, {'s', 2}};
  const auto make = [&](std::uint64_t number, const std::string& modes) {
    return tensor_of(number, type, modes, modes, extents, 0);
  };
  contraction.a = make(1, contraction.modes_a);
  contraction.b = make(2, contraction.modes_b);
  contraction.d = make(3, contraction.modes_d);
  finish(contraction, type);
  return contraction;
}

Contraction random_contraction(std::uint64_t seed, DType type) {
  std::mt19937_64 random(seed);
  const auto from = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  const auto rarely = [&](int one_of) { return from(1, one_of) == 1; };
  const auto shuffled = [&](std::string modes) {
    for (std::size_t i = modes.size(); i > 1; --i)
      std::swap(modes[i - 1], modes[static_cast<std::size_t>(from(0, static_cast<std::int64_t>(i) - 1))]);
    return modes;
  };
  Contraction contraction;
  std::string letters;
  std::map<char, std::int64_t> extents;
  std::int64_t elements = 1;
  // Modes of m, n, k and the batch, then rarely one that only A, or only B, is summed over.
  const std::array<std::int64_t, 4> most{3, 3, 3, rarely(3) ? 3 : 0};
  for (std::size_t of_class = 0; of_class < 4; ++of_class) {
    for (std::int64_t i = from(of_class == 3 ? 0 : rarely(6) ? 0 : 1, most[of_class]); i > 0; --i) {
      const char letter = static_cast<char>((rarely(4) ? 'A' : 'a') + static_cast<char>(letters.size()));
      std::int64_t extent = rarely(10) ? 1 : from(2, 8);
      if (elements * extent > 20000) extent = 2;
      if (rarely(60)) extent = 0;
      const bool in_a = of_class != 1, in_b = of_class != 0, in_d = of_class != 2;
      if (contraction.modes_a.size() + (in_a ? 1 : 0) > 6 || contraction.modes_b.size() + (in_b ? 1 : 0) > 6) break;
      letters += letter;
      extents[letter] = extent;
      elements *= std::max<std::int64_t>(extent, 1);
      if (in_a) contraction.modes_a += letter;
      if (in_b) contraction.modes_b += letter;
      if (in_d) contraction.modes_d += letter;
    }
  }
  if (rarely(8)) {
    extents['z'] = from(2, 4);
    (rarely(2) ? contraction.modes_a : contraction.modes_b) += 'z';
  }
  const auto make = [&](std::uint64_t number, std::string& modes) {
    modes = shuffled(modes);
    const std::int64_t gap = rarely(4) ? from(1, 9) : 0;
    return tensor_of(number, type, modes, rarely(2) ? shuffled(modes) : modes, extents, gap);
  };
  contraction.a = make(1, contraction.modes_a);
  contraction.b = make(2, contraction.modes_b);
  contraction.d = make(3, contraction.modes_d);
  for (Tensor* const input : {&contraction.a, &contraction.b}) {
    if (input->shape.rank() > 0 && rarely(8))
      input->stride[static_cast<int>(from(0, input->shape.rank() - 1))] = 0;  // broadcast
  }
  finish(contraction, type);
  contraction.alpha = rarely(3) ? 2.0 : 1.0;
  contraction.beta = rarely(2) ? 0.0 : 1.0;
  return contraction;
}

std::string to_string(const Contraction& contraction) {
  const auto text = [](const Tensor& tensor) { return to_string(tensor.shape) + ":" + to_string(tensor.stride); };
  return fmt::format("{},{}->{} A{} B{} D{}", contraction.modes_a, contraction.modes_b, contraction.modes_d,
                     text(contraction.a), text(contraction.b), text(contraction.d));
}

}  // namespace tilewright::op
