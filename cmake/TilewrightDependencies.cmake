# Third parties, all from Debian 12 packages. What an installed Tilewright needs of them is said once more in
# tilewright-config.cmake.in and tilewright.pc.in.

if(TILEWRIGHT_PYTHON)
  find_package(SQLite3 REQUIRED)  # the shared one: Debian's libsqlite3.a is not for shared objects, such as an extension
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

# Debian ships libfmt and libspdlog as shared libraries only; a static build compiles them in from their headers.
if(TILEWRIGHT_STATIC)
  set(TILEWRIGHT_FMT fmt::fmt-header-only)
  set(TILEWRIGHT_SPDLOG $<BUILD_INTERFACE:spdlog::spdlog_header_only>)
else()
  set(TILEWRIGHT_FMT fmt::fmt)
  set(TILEWRIGHT_SPDLOG spdlog::spdlog)
endif()

# Where headers of a third party are included by .cpp alone, nothing of it is left for who links an installed library.
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
