// Writes the kernels. Each form is a block of its own: it loads its sources, executes, and stores its destinations.
#include "form_kernel.hpp"

#include <fmt/format.h>

namespace tilewright::differential {
namespace {

constexpr std::size_t kAlignment = 256;

int bytes(const OperandKind& kind) { return kind.register_bits / 8; }

void place(const std::vector<OperandKind>& registers, std::size_t samples, std::vector<std::size_t>& offsets,
           std::size_t& total) {
  for (const OperandKind& kind : registers) {
    offsets.push_back(total);
    const std::size_t size = samples * static_cast<std::size_t>(bytes(kind));
    total += (size + kAlignment - 1) / kAlignment * kAlignment;
  }
}

bool is_predicate(const OperandKind& kind) { return kind.format == NumberFormat::predicate; }

void declare(std::string& text, char prefix, const std::vector<OperandKind>& registers) {
  for (std::size_t i = 0; i < registers.size(); ++i) {
    const std::string type = is_predicate(registers[i]) ? "pred" : fmt::format("b{}", registers[i].register_bits);
    text += fmt::format(".reg .{} %{}{};\n", type, prefix, i);
  }
}

/// "%s0", "{%s1, %s2}", ... for the groups of operands from `first` on.
std::vector<std::string> operand_texts(char prefix, const std::vector<OperandGroup>& groups) {
  std::vector<std::string> texts;
  int next = 0;
  for (const OperandGroup& group : groups) {
    std::string text;
    for (int i = 0; i < group.registers; ++i) text += fmt::format("{}%{}{}", i == 0 ? "" : ", ", prefix, next++);
    texts.push_back(group.is_vector ? "{" + text + "}" : text);
  }
  return texts;
}

/// wgmma.mma_async with its B in shared memory, K-major without swizzle: the 8 columns of B have 32 bytes of K each, as
/// two core matrices of 8 x 16 bytes, and twice as many if A is sparse. Each warpgroup has its own B. Sources: a word
/// of B, the registers of A, the metadata of a sparse A, C. The text of a sparse form ends in its selector.
std::string wgmma(const InstructionForm& form) {
  const bool is_sparse = form.sources.size() == 4;
  const int b_words = is_sparse ? 128 : 64;
  std::string text = fmt::format(
      "mov.u32 %t0, %tid.x;\nand.b32 %t1, %t0, 127;\nmov.u32 %t3, tile;\nshr.u32 %t2, %t0, 7;\n"
      "mad.lo.u32 %t2, %t2, {}, %t3;\nshl.b32 %t3, %t1, 2;\nadd.u32 %t3, %t3, %t2;\n"
      "setp.lt.u32 %p, %t1, {};\n@%p st.shared.b32 [%t3], %s0;\nfence.proxy.async;\nbar.sync 0;\n"
      "and.b32 %t2, %t2, 0x3ffff;\nshr.u32 %t2, %t2, 4;\ncvt.u64.u32 %w0, %t2;\n"
      "or.b64 %w0, %w0, 0x80000;\n"       // core matrices are 128 bytes apart along K
      "or.b64 %w0, %w0, 0x2000000000;\n"  // the distance along N, where there is only one, is not used
      "setp.eq.u32 %p, 0, 0;\n",
      4 * b_words, b_words);
  const int d_registers = form.destinations[0].registers;
  const int first_of_c = is_sparse ? 6 : 5;
  for (int i = 0; i < d_registers; ++i) text += fmt::format("mov.b32 %d{}, %s{};\n", i, i + first_of_c);
  const NumberFormat a = form.sources[1].kind.format;
  std::string scales;
  if (is_float(a)) scales = ", 1, 1";
  if (a == NumberFormat::f16 || a == NumberFormat::bf16) scales += ", 0";
  const std::size_t selector = form.text.find(' ');
  const std::string metadata =
      is_sparse ? fmt::format(", %s{},{}", first_of_c - 1, form.text.substr(selector)) : std::string();
  text += fmt::format("wgmma.fence.sync.aligned;\n{} {}, {}, %w0{}, %p{};\n", form.text.substr(0, selector),
                      operand_texts('d', form.destinations)[0], operand_texts('s', form.sources)[1], metadata, scales);
  return text + "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nbar.sync 0;\n";
}

bool is_wgmma(const InstructionForm& form) { return form.text.starts_with("wgmma"); }

std::string body(const InstructionForm& form) {
  if (is_wgmma(form)) return wgmma(form);
  if (form.text.find('%') != std::string::npos) return form.text + ";\n";
  std::string text = form.text;
  std::string_view separator = " ";
  for (const char prefix : {'d', 's'}) {
    for (const std::string& operand : operand_texts(prefix, prefix == 'd' ? form.destinations : form.sources)) {
      text += fmt::format("{}{}", separator, operand);
      separator = ", ";
    }
  }
  return text + ";\n";
}

std::string block(const InstructionForm& form, const std::vector<std::size_t>& source_offsets,
                  const std::vector<std::size_t>& destination_offsets) {
  std::string text = "{\n";
  const std::vector<OperandKind> sources = form.source_registers();
  const std::vector<OperandKind> destinations = form.destination_registers();
  declare(text, 's', sources);
  declare(text, 'd', destinations);
  text += ".reg .b32 %t<4>;\n.reg .b64 %w<4>;\n.reg .b64 %out1;\n.reg .b128 %q;\n.reg .b16 %h<4>;\n.reg .pred %p;\n";
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::string name = is_predicate(sources[i]) ? "%t0" : fmt::format("%s{}", i);
    text += fmt::format("ld.global.b{} {}, [%in{}+{}];\n", sources[i].register_bits, name, bytes(sources[i]),
                        source_offsets[i]);
    if (is_predicate(sources[i])) text += fmt::format("setp.ne.b32 %s{}, %t0, 0;\n", i);
  }
  if (form.text.find("%out1") != std::string::npos) {
    text += fmt::format("add.u64 %out1, %to{}, {};\n", bytes(destinations[1]), destination_offsets[1]);
  }
  text += body(form);
  for (std::size_t i = 0; i < destinations.size(); ++i) {
    std::string name = fmt::format("%d{}", i);
    if (is_predicate(destinations[i])) {
      text += fmt::format("selp.b32 %t0, 1, 0, {};\n", name);
      name = "%t0";
    }
    text += fmt::format("st.global.b{} [%to{}+{}], {};\n", destinations[i].register_bits, bytes(destinations[i]),
                        destination_offsets[i], name);
  }
  return text + "}\n";
}

}  // namespace

FormMemory lay_out(std::span<const InstructionForm> forms, std::size_t samples) {
  FormMemory memory;
  memory.samples = samples;
  for (const InstructionForm& form : forms) {
    place(form.source_registers(), samples, memory.sources.emplace_back(), memory.source_bytes);
    place(form.destination_registers(), samples, memory.destinations.emplace_back(), memory.destination_bytes);
  }
  return memory;
}

std::string form_kernel(std::span<const InstructionForm> forms, const FormMemory& memory, const Target& target) {
  std::string text = fmt::format(
      ".version 8.7\n.target {}\n.address_size 64\n"
      ".visible .entry {}(.param .align 8 .b8 arguments[16])\n{{\n"
      ".shared .align 1024 .b8 tile[{}];\n"
      ".reg .b32 %thread, %block, %scratch;\n.reg .b64 %index, %in, %to, %in2, %in4, %in8, %to2, %to4, %to8;\n"
      "mov.u32 %thread, %tid.x;\nmov.u32 %block, %ctaid.x;\nmad.lo.u32 %block, %block, {}, %thread;\n"
      "cvt.u64.u32 %index, %block;\nmov.u32 %scratch, tile;\nmad.lo.u32 %scratch, %thread, 16, %scratch;\n"
      "ld.param.u64 %in, [arguments];\nld.param.u64 %to, [arguments+8];\n",
      target.name(), kFormKernelName, kBlockThreads * 16, kBlockThreads);
  for (const int width : {2, 4, 8}) {
    text += fmt::format("mad.lo.u64 %in{0}, %index, {0}, %in;\nmad.lo.u64 %to{0}, %index, {0}, %to;\n", width);
  }
  for (std::size_t i = 0; i < forms.size(); ++i) {
    text += fmt::format("// {}\n", forms[i].text) + block(forms[i], memory.sources[i], memory.destinations[i]);
  }
  return text + "ret;\n}\n";
}

}  // namespace tilewright::differential
