# Third-party dependencies, all from Debian 12 packages. The dependencies of an installed Tilewright are also listed in
# tilewright-config.cmake.in and tilewright.pc.in.

if(TILEWRIGHT_PYTHON)
  # The shared library is found first, because Debian's libsqlite3.a cannot be linked into the extension module.
  find_package(SQLite3 REQUIRED)
endif()
if(TILEWRIGHT_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(OPENSSL_USE_STATIC_LIBS TRUE)
endif()
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(SQLite3 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)

# Debian has no static libfmt and libspdlog, so a static build uses their header-only variants.
if(TILEWRIGHT_STATIC)
  set(TILEWRIGHT_FMT fmt::fmt-header-only)
  set(TILEWRIGHT_SPDLOG $<BUILD_INTERFACE:spdlog::spdlog_header_only>)
elseif(TILEWRIGHT_MANYLINUX)
  # Debian's libspdlog.so needs a newer C++ runtime than manylinux_2_34 has. spdlog is compiled from its headers, with
  # the flags of the default build, so that both share cached objects. auditwheel copies the other libraries.
  set(TILEWRIGHT_FMT fmt::fmt)
  add_library(tilewright_spdlog STATIC ${CMAKE_CURRENT_LIST_DIR}/spdlog.cpp)
  get_target_property(spdlog_definitions spdlog::spdlog INTERFACE_COMPILE_DEFINITIONS)
  target_compile_definitions(tilewright_spdlog PUBLIC ${spdlog_definitions})
  target_link_libraries(tilewright_spdlog PUBLIC fmt::fmt)
  set(TILEWRIGHT_SPDLOG $<BUILD_INTERFACE:tilewright_spdlog>)
else()
  set(TILEWRIGHT_FMT fmt::fmt)
  set(TILEWRIGHT_SPDLOG spdlog::spdlog)
endif()

# Only .cpp files include this header-only library, so programs that link an installed Tilewright do not need it.
set(TILEWRIGHT_JSON $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)

if(TILEWRIGHT_COMMAND OR TILEWRIGHT_BENCH)
  find_package(CLI11 REQUIRED)
endif()
if(TILEWRIGHT_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
  include(GoogleTest)
endif()
if(TILEWRIGHT_BENCH)
  find_package(benchmark REQUIRED)
endif()
