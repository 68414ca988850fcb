# How this project's own code is compiled. Options of this folder and those below it: no consumer inherits them.

add_compile_options(-Wall -Wextra -Wconversion -Wshadow -fvisibility=hidden)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bug 105651: std::string operations with literals give false warnings.
  add_compile_options(-Wno-restrict)
endif()
if(TILEWRIGHT_WERROR)
  add_compile_options(-Werror)
endif()
if(TILEWRIGHT_SANITIZE STREQUAL thread)
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(TILEWRIGHT_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
if(TILEWRIGHT_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -g)
  add_link_options(-fsanitize=address,undefined)
endif()
if(TILEWRIGHT_STATIC)
  # Debian's header-only target of spdlog names the shared libfmt; nothing refers to it.
  add_link_options(LINKER:--as-needed)
  # Not into a module: its exceptions cross to those who load it, which have a C++ library of their own.
  set(is_program $<NOT:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY>>)
  add_link_options($<${is_program}:-static-libstdc++> $<${is_program}:-static-libgcc>)
endif()
