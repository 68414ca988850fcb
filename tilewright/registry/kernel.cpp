#include "tilewright/registry/kernel.hpp"

#include <utility>

#include "tilewright/base/fork.hpp"

namespace tilewright::registry {
namespace {

Support accepts(const op::TensorDescription& made_for, const op::TensorDescription& given, char role) {
  if (given.element != made_for.element)
    return refuse("{} is {}, the kernel takes {}", role, name(given.element), name(made_for.element))
        .as(RefusalCode::types)
        .of(role);
  if (given.layout != made_for.layout)
    return refuse("{} is {}-major, the kernel takes {}-major", role, op::name(given.layout), op::name(made_for.layout))
        .as(RefusalCode::strides)
        .of(role);
  if (given.alignment < made_for.alignment) {
    return refuse("{} is aligned to {} elements, the kernel needs {}", role, given.alignment, made_for.alignment)
        .as(RefusalCode::alignment)
        .of(role);
  }
  return {};
}

Support accepts(const op::EpilogueTensorDescription& made_for, const op::EpilogueTensorDescription& given,
                std::size_t index) {
  const bool lies_alike = made_for.neighbours == op::Neighbours::none || made_for.neighbours == given.neighbours;
  if (given.element == made_for.element && lies_alike && given.alignment >= made_for.alignment) return {};
  return refuse("tensor {} of the epilogue is {}, the kernel takes {}", index, op::to_string(given),
                op::to_string(made_for))
      .as(RefusalCode::epilogue);
}

/// One for all kernels: there may be very many, and a fork locks each mutex. Never destroyed.
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

Support Kernel::supports(const op::Gemm& arguments) const {
  if (const Support valid = op::validate(arguments); !valid) return valid;
  const op::GemmDescription given = op::describe(arguments);
  const op::GemmDescription& made_for = metadata_.operands;
  if (given.accumulator != made_for.accumulator) {
    return refuse("the problem accumulates in {}, the kernel in {}", tilewright::name(given.accumulator),
                  tilewright::name(made_for.accumulator))
        .as(RefusalCode::types);
  }
  if (given.math != made_for.math)
    return refuse("the problem asks for {}, the kernel does {}", op::name(given.math), op::name(made_for.math))
        .as(RefusalCode::math);
  const bool stores_sums = op::is_accumulator(made_for.epilogue) && op::stores_sums(arguments);
  if (!stores_sums && !op::same_code(given.epilogue, made_for.epilogue)) {
    return refuse("the problem's epilogue is {}, the kernel's {}", op::signature(given.epilogue),
                  op::signature(made_for.epilogue))
        .as(RefusalCode::epilogue);
  }
  if (op::reads_source(arguments) && !made_for.has_c)
    return refuse("the problem reads C, the kernel has none").as(RefusalCode::epilogue).of("C");
  struct Operand {
    char role;
    const op::TensorDescription& made_for;
    const op::TensorDescription& given;
    bool used;
  };
  for (const Operand& operand :
       {Operand{'A', made_for.a, given.a, true}, Operand{'B', made_for.b, given.b, true},
        Operand{'C', made_for.c, given.c, op::reads_source(arguments)}, Operand{'D', made_for.d, given.d, true}}) {
    if (!operand.used) continue;
    if (const Support support = accepts(operand.made_for, operand.given, operand.role); !support) return support;
  }
  if (made_for.tensors.size() != given.tensors.size()) {
    return refuse("the epilogue has {} tensors, the kernel is made for {}", given.tensors.size(),
                  made_for.tensors.size())
        .as(RefusalCode::epilogue);
  }
  for (std::size_t i = 0; i < given.tensors.size(); ++i) {
    if (const Support support = accepts(made_for.tensors[i], given.tensors[i], i); !support) return support;
  }
  return do_supports(arguments);
}

compile::Source Kernel::source() const {
  compile::Source source = do_source();
  source.name = name();
  if (source.symbol.empty()) source.symbol = name();
  source.target = metadata_.design.target;
  source.description = to_json(metadata_);
  return source;
}

// Not under the lock: an author's source may wait for what another thread holds.
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

Support Kernel::do_supports(const op::Gemm& arguments) const {
  if (arguments.batch() > 1)
    return refuse("takes single matrices, got a batch of {}", arguments.batch()).as(RefusalCode::shape);
  return {};
}

}  // namespace tilewright::registry
