#include "tilewright/compile/source.hpp"

#include <nlohmann/json.hpp>

#include "tilewright/base/text.hpp"

namespace tilewright::compile {

Support validate(const Source& source) {
  constexpr std::size_t kMaxTextBytes = std::size_t{4} << 20;
  constexpr std::size_t kMaxDescriptionBytes = std::size_t{1} << 20;
  constexpr int kMaxRegisters = 255;  // PTX ISA: of one thread
  if (!is_identifier(source.name)) return refuse("name must be an identifier, got '{}'", printable(source.name));
  if (!is_identifier(source.symbol)) return refuse("symbol must be an identifier, got '{}'", printable(source.symbol));
  if (source.text.size() > kMaxTextBytes) {
    return refuse("source text must have at most {} bytes, got {}", kMaxTextBytes, source.text.size());
  }
  if (const std::size_t at = source.text.find('\0'); at != std::string::npos) {
    return refuse("source text must not contain NUL, got one at byte {}", at);
  }
  if (!source.outputs.cubin && !source.outputs.ptx) return refuse("no output is asked for: neither cubin nor PTX");
  if (source.max_registers < 0 || source.max_registers > kMaxRegisters) {
    return refuse("max_registers must be 0..{}, got {}", kMaxRegisters, source.max_registers);
  }
  if (source.description.size() > kMaxDescriptionBytes) {
    return refuse("description must have at most {} bytes, got {}", kMaxDescriptionBytes, source.description.size());
  }
  if (!source.description.empty() && !nlohmann::json::accept(source.description)) {
    return refuse("description must be JSON, got '{}'", printable(source.description, 80));
  }
  return {};
}

}  // namespace tilewright::compile
