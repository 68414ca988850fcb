# Compile and link options of this project. They are set per directory, so targets that link Tilewright do not inherit
# them.

add_compile_options(-Wall -Wextra -Wconversion -Wshadow -fvisibility=hidden)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bug 105651: false warnings about std::string operations with literals.
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
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # GCC bugs 105562 and 105616: false warnings about std::regex under AddressSanitizer.
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()
if(TILEWRIGHT_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -g)
  add_link_options(-fsanitize=address,undefined)
endif()
if(TILEWRIGHT_STATIC)
  # Drops the shared libfmt, which Debian's header-only target of spdlog links although nothing uses it.
  add_link_options(LINKER:--as-needed)
  # The C++ runtime is linked statically into programs only: exceptions of a module must be caught by its host program,
  # which has a C++ runtime of its own.
  set(is_program $<NOT:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY>>)
  add_link_options($<${is_program}:-static-libstdc++> $<${is_program}:-static-libgcc>)
endif()
