#include "tilewright/base/error.hpp"

namespace tilewright::detail {

void fail_check(const char* condition, const std::string& message, std::source_location where) {
  throw InternalError(fmt::format("{}:{}: check '{}' failed: {}", where.file_name(), where.line(), condition, message));
}

}  // namespace tilewright::detail
