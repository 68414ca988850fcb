// The language of emitted sources.
#pragma once

#include <string_view>

namespace tilewright::compile {

/// The language option of every compile, for NVRTC and nvcc. It is part of the compiler's identity.
inline constexpr std::string_view kLanguage = "-std=c++20";

}  // namespace tilewright::compile
