#include "tilewright/registry/kernel.hpp"

#include <utility>

namespace tilewright::registry {
namespace {

Support accepts(const op::TensorDescription& made_for, const op::TensorDescription& given, char role) {
  if (given.element != made_for.element)
    return refuse("{} is {}, the kernel takes {}", role, name(given.element), name(made_for.element));
  if (given.layout != made_for.layout)
    return refuse("{} is {}-major, the kernel takes {}-major", role, op::name(given.layout), op::name(made_for.layout));
  if (given.alignment < made_for.alignment) {
    return refuse("{} is aligned to {} elements, the kernel needs {}", role, given.alignment, made_for.alignment);
  }
  return {};
}

Support accepts(const op::EpilogueTensorDescription& made_for, const op::EpilogueTensorDescription& given,
                std::size_t index) {
  const bool lies_alike = made_for.neighbours == op::Neighbours::none || made_for.neighbours == given.neighbours;
  if (given.element == made_for.element && lies_alike && given.alignment >= made_for.alignment) return {};
  return refuse("tensor {} of the epilogue is {}, the kernel takes {}", index, op::to_string(given),
                op::to_string(made_for));
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
                  tilewright::name(made_for.accumulator));
  }
  if (given.math != made_for.math)
    return refuse("the problem asks for {}, the kernel does {}", op::name(given.math), op::name(made_for.math));
  if (!op::same_code(given.epilogue, made_for.epilogue)) {
    return refuse("the problem's epilogue is {}, the kernel's {}", op::signature(given.epilogue),
                  op::signature(made_for.epilogue));
  }
  if (op::reads_source(arguments) && !made_for.has_c) return refuse("the problem reads C, the kernel has none");
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
                  made_for.tensors.size());
  }
  for (std::size_t i = 0; i < given.tensors.size(); ++i) {
    if (const Support support = accepts(made_for.tensors[i], given.tensors[i], i); !support) return support;
  }
  return do_supports(arguments);
}

compile::Source Kernel::source() const {
  compile::Source source;
  source.name = name();
  source.symbol = name();
  source.text = do_source_text();
  source.target = metadata_.design.target;
  source.description = to_json(metadata_);
  return source;
}

Digest Kernel::source_digest() const {
  const std::scoped_lock lock(mutex_);
  if (!digest_) digest_ = FieldHasher().field("name", name()).field("text", do_source_text()).finish();
  return *digest_;
}

Support Kernel::do_supports(const op::Gemm& arguments) const {
  if (arguments.batch() > 1) return refuse("takes single matrices, got a batch of {}", arguments.batch());
  return {};
}

}  // namespace tilewright::registry
