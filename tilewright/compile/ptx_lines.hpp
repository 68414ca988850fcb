// Leads from lines of PTX, which messages of ptxas name, to the lines of the source.
#pragma once

#include <string>
#include <string_view>

namespace tilewright::compile {

/// The log of ptxas, with a line after each message that names a line of the PTX: the place in the source that the .loc
/// before it names, and its instruction. Without .loc lines, the log itself.
std::string with_source_lines(std::string_view log, std::string_view ptx);

}  // namespace tilewright::compile
