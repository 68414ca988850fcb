#include "tilewright/registry/kernel.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "tilewright/base/fork.hpp"

namespace tilewright::registry {
namespace {

// "row-major", "column_interleaved_32"
std::string text_of(op::MatrixLayout layout) {
  return fmt::format("{}{}", op::name(layout), op::is_interleaved(layout) ? "" : "-major");
}

// In these functions, `made_for` is the kernel's signature and `given` the problem's.
Support accepts(const op::TensorSignature& made_for, const op::TensorSignature& given, std::string_view role) {
  if (given.element != made_for.element)
    return refuse("{} is {}, but the kernel needs {}", op::quoted(role), name(given.element), name(made_for.element))
        .as(RefusalCode::types)
        .of(role);
  // A kernel that moves single elements of a folded operand takes its modes in any order.
  const bool takes_any_layout =
      made_for.folded_modes != 0 && made_for.alignment == 1 && !op::is_interleaved(given.layout);
  if (given.layout != made_for.layout && !takes_any_layout)
    return refuse("{} is {}, but the kernel needs {}", op::quoted(role), text_of(given.layout),
                  text_of(made_for.layout))
        .as(RefusalCode::strides)
        .of(role);
  if (given.im2col != made_for.im2col) {
    constexpr auto described = [](const op::TensorSignature& tensor) {
      return tensor.im2col == op::Im2colAccess::none ? std::string_view("strided") : op::name(tensor.im2col);
    };
    return refuse("{} is {}, but the kernel needs {}", op::quoted(role), described(given), described(made_for))
        .as(RefusalCode::strides)
        .of(role);
  }
  if (given.has_padded_taps != made_for.has_padded_taps) {
    return refuse("the taps of {} are {}, but the kernel needs taps {}", op::quoted(role),
                  given.has_padded_taps ? "padded" : "not padded",
                  made_for.has_padded_taps ? "with padding" : "without")
        .as(RefusalCode::shape)
        .of(role);
  }
  if (given.shared_taps != made_for.shared_taps || given.shared_step != made_for.shared_step) {
    return refuse(
               "the taps of a row of the window share pixels {} positions apart in {} of {}, but the kernel needs {} "
               "taps {} positions apart",
               given.shared_step, given.shared_taps, op::quoted(role), made_for.shared_taps, made_for.shared_step)
        .as(RefusalCode::shape)
        .of(role);
  }
  if (given.tap_row % std::max(made_for.tap_row, 1) != 0) {
    return refuse("the channels of a tap of {} are a multiple of {}, but the kernel needs one of {}", op::quoted(role),
                  given.tap_row, made_for.tap_row)
        .as(RefusalCode::shape)
        .of(role);
  }
  if (given.folded_modes > made_for.folded_modes) {
    constexpr auto described = [](const op::TensorSignature& tensor) {
      return tensor.folded_modes == 0 ? std::string("one stride a mode")
                                      : fmt::format("up to {} coordinates a mode", tensor.folded_modes);
    };
    return refuse("{} has {}, but the kernel needs {}", op::quoted(role), described(given), described(made_for))
        .as(RefusalCode::strides)
        .of(role);
  }
  if (given.is_pointer_array != made_for.is_pointer_array) {
    constexpr auto described = [](const op::TensorSignature& tensor) {
      return tensor.is_pointer_array ? "an array of pointers" : "a matrix or a strided batch";
    };
    return refuse("{} is {}, but the kernel needs {}", op::quoted(role), described(given), described(made_for))
        .as(RefusalCode::strides)
        .of(role);
  }
  if (given.alignment < made_for.alignment) {
    return refuse("{} is aligned to {} elements, but the kernel needs {}", op::quoted(role), given.alignment,
                  made_for.alignment)
        .as(RefusalCode::alignment)
        .of(role);
  }
  return {};
}

Support accepts(const op::EpilogueTensorSignature& made_for, const op::EpilogueTensorSignature& given,
                std::size_t index) {
  const bool is_contiguous = made_for.contiguous == op::ContiguousMode::none || made_for.contiguous == given.contiguous;
  if (given.element == made_for.element && is_contiguous && given.alignment >= made_for.alignment) return {};
  return refuse("tensor {} of the epilogue is {}, but the kernel needs {}", index, op::to_string(given),
                op::to_string(made_for))
      .as(RefusalCode::epilogue);
}

struct Operand {
  std::string_view role;
  const op::TensorSignature& made_for;
  const op::TensorSignature& given;
  bool used = true;
};

// Compares the accumulator, the epilogue and its tensors, C, and `operands`. `Signature` is a GemmSignature or a
// ReduceSplitKSignature; `outputs` has the problem's C, D and epilogue.
template <class Signature>
Support accepts_outputs(const Signature& made_for, const Signature& given, const op::GemmView& outputs,
                        std::initializer_list<Operand> operands) {
  if (given.accumulator != made_for.accumulator) {
    return refuse("the problem accumulates in {}, but the kernel in {}", tilewright::name(given.accumulator),
                  tilewright::name(made_for.accumulator))
        .as(RefusalCode::types);
  }
  const bool stores_accumulator = op::is_accumulator(made_for.epilogue) && op::stores_accumulator(outputs);
  if (!stores_accumulator && !op::same_code(given.epilogue, made_for.epilogue)) {
    return refuse("the problem's epilogue is {}, but the kernel's is {}", op::signature(given.epilogue),
                  op::signature(made_for.epilogue))
        .as(RefusalCode::epilogue);
  }
  if (outputs.reads_source && !made_for.has_c)
    return refuse("the problem reads C, but the kernel does not").as(RefusalCode::epilogue).of("C");
  for (const Operand& operand : operands) {
    if (!operand.used) continue;
    if (const Support support = accepts(operand.made_for, operand.given, operand.role); !support) return support;
  }
  if (made_for.tensors.size() != given.tensors.size()) {
    return refuse("the epilogue has {} tensors, but the kernel needs {}", given.tensors.size(), made_for.tensors.size())
        .as(RefusalCode::epilogue);
  }
  for (std::size_t i = 0; i < given.tensors.size(); ++i) {
    if (const Support support = accepts(made_for.tensors[i], given.tensors[i], i); !support) return support;
  }
  return {};
}

Support accepts_gemm(const op::GemmSignature& made_for, const op::Problem& problem, bool takes_lines_of_any_layout) {
  const Result<op::GemmView> view = op::view(problem);
  if (!view) return refuse("the kernel computes a GEMM: {}", view.reason()).as(RefusalCode::operation);
  const op::GemmSignature given = op::describe(takes_lines_of_any_layout ? op::with_layouts(*view, made_for) : *view);
  if (given.math != made_for.math)
    return refuse("the problem needs {}, but the kernel does {}", op::name(given.math), op::name(made_for.math))
        .as(RefusalCode::math);
  if (given.groups != made_for.groups) {
    return refuse("the problem's groups are {}, but the kernel's are {}", op::name(given.groups),
                  op::name(made_for.groups))
        .as(RefusalCode::operation);
  }
  return accepts_outputs(made_for, given, *view,
                         {{"A", made_for.a, given.a},
                          {"B", made_for.b, given.b},
                          {"C", made_for.c, given.c, view->reads_source},
                          {"D", made_for.d, given.d}});
}

Support accepts_reduction(const op::ReduceSplitKSignature& made_for, const op::Problem& problem) {
  const auto* const reduction = std::get_if<op::ReduceSplitK>(&problem);
  if (reduction == nullptr) {
    return refuse("the kernel computes reduce_split_k, but the problem is a {}", op::operation_name(problem))
        .as(RefusalCode::operation);
  }
  const op::ReduceSplitKSignature given = op::describe(*reduction);
  const op::GemmView outputs = op::outputs_view(*reduction);
  return accepts_outputs(made_for, given, outputs,
                         {{"parts", made_for.parts, given.parts},
                          {"C", made_for.c, given.c, outputs.reads_source},
                          {"D", made_for.d, given.d}});
}

Support accepts(const op::OperandSignature& made_for, const op::OperandSignature& given) {
  const bool is_contiguous = made_for.contiguous < 0 || made_for.contiguous == given.contiguous;
  if (given.name == made_for.name && given.element == made_for.element && given.rank == made_for.rank &&
      is_contiguous && given.alignment >= made_for.alignment) {
    return {};
  }
  return refuse("the operand is {}, but the kernel needs {}", op::to_string(given), op::to_string(made_for))
      .as(RefusalCode::types)
      .of(given.name);
}

Support accepts_operation(const op::Signature& made_for, const op::Problem& problem) {
  const auto* const custom = std::get_if<op::Custom>(&problem);
  if (custom == nullptr || custom->operation->name() != made_for.operation) {
    return refuse("the kernel computes {}, but the problem is a {}", made_for.operation, op::operation_name(problem))
        .as(RefusalCode::operation);
  }
  const auto& wanted = std::get<std::vector<op::OperandSignature>>(made_for.operands);
  const std::vector<op::OperandSignature> given = op::describe(*custom);
  if (wanted.size() != given.size()) {
    return refuse("the kernel has {} operands, but {} has {}", wanted.size(), made_for.operation, given.size())
        .as(RefusalCode::operation);
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (const Support support = accepts(wanted[i], given[i]); !support) return support;
  }
  return {};
}

/// One mutex for all kernels, since there may be very many and a fork locks every ForkSafeMutex. Never destroyed.
ForkSafeMutex& digests_mutex() {
  static auto* const mutex = new ForkSafeMutex;
  return *mutex;
}

}  // namespace

Kernel::Kernel(KernelMetadata metadata) : metadata_(std::move(metadata)) {}

const std::string& Kernel::name() const {
  std::call_once(named_, [this] { name_ = kernel_name(metadata_); });
  return name_;
}

Support Kernel::supports(const op::Problem& problem) const {
  if (const Support valid = op::validate(problem); !valid) return valid;
  const op::Signature& made_for = metadata_.signature;
  const Support accepted =
      made_for.gemm() != nullptr             ? accepts_gemm(*made_for.gemm(), problem, takes_lines_of_any_layout())
      : made_for.reduce_split_k() != nullptr ? accepts_reduction(*made_for.reduce_split_k(), problem)
                                             : accepts_operation(made_for, problem);
  return accepted ? do_supports(problem) : accepted;
}

compile::Source Kernel::source() const {
  compile::Source source = do_source();
  source.name = name();
  if (source.symbol.empty()) source.symbol = name();
  source.target = plan::tiling(metadata_.design).target;
  source.description = to_json(metadata_);
  return source;
}

// The digest is computed without the lock: user code in do_source() may wait for a lock that another thread holds.
Digest Kernel::source_digest() const {
  {
    const std::scoped_lock lock(digests_mutex());
    if (digest_) return *digest_;
  }
  const Digest digest = compile::source_digest(source());
  const std::scoped_lock lock(digests_mutex());
  digest_ = digest;
  return digest;
}

Support Kernel::do_supports(const op::Problem& problem) const {
  if (metadata_.signature.gemm() == nullptr) return {};
  const op::GemmView view = op::view(problem).value_or_throw();
  if (view.batch() > 1)
    return refuse("the kernel needs single matrices, got a batch of {}", view.batch()).as(RefusalCode::shape);
  return view.check_strided(metadata_.family);
}

}  // namespace tilewright::registry
