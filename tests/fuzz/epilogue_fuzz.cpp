// The text of an epilogue is refused or yields a valid graph that can be printed and evaluated.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tilewright/op/epilogue_text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace op = tilewright::op;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const tilewright::Result<op::Epilogue> epilogue = op::parse_epilogue(text, tilewright::DType::f32, {{"slope", 0.25}});
  if (!epilogue) return 0;
  if (!op::validate(*epilogue) || op::signature(*epilogue).empty()) std::abort();
  op::EpilogueElement element{.accumulator = 1.5, .source = -2.0};
  element.tensors.assign(epilogue->tensors().size(), 0.5);
  if (op::evaluate_nodes(*epilogue, element).size() != epilogue->nodes.size()) std::abort();
  return 0;
}
