# Installation rules. `cmake --install build --prefix P` creates these files below P, which may be moved afterwards:
#   bin/tilewright                   the command
#   include/tilewright/              every header; tilewright/tilewright.hpp includes what a program needs
#   lib/libtilewright_<room>.a       one library per room
#   lib/libtilewright_mlir.so        compiles kernels in MLIR, if it was built; programs open it at run time
#   lib/cmake/tilewright/            find_package(tilewright): the target tilewright::tilewright
#   lib/pkgconfig/tilewright.pc      pkg-config --cflags --libs tilewright
#   share/doc/tilewright/LICENSE

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

list(TRANSFORM TILEWRIGHT_ROOMS PREPEND tilewright_ OUTPUT_VARIABLE libraries)
install(TARGETS tilewright ${libraries} EXPORT tilewright INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY tilewright DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.hpp)
if(TILEWRIGHT_COMMAND)
  install(TARGETS tilewright_cli)
endif()

if(TARGET tilewright_mlir)
  install(TARGETS tilewright_mlir LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tilewright)
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/tilewright-config.cmake.in ${PROJECT_BINARY_DIR}/package/tilewright-config.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/package/tilewright-config-version.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT tilewright NAMESPACE tilewright:: FILE tilewright-targets.cmake DESTINATION ${package_folder})
install(
  FILES ${PROJECT_BINARY_DIR}/package/tilewright-config.cmake
        ${PROJECT_BINARY_DIR}/package/tilewright-config-version.cmake
  DESTINATION ${package_folder})

# Linkers search static libraries from left to right, so each room must precede the rooms that it depends on.
list(REVERSE libraries)
list(TRANSFORM libraries PREPEND -l)
list(JOIN libraries " " PC_LIBRARIES)
if(TILEWRIGHT_STATIC)
  set(PC_REQUIRES "libcrypto sqlite3")
  set(PC_FLAGS "-DFMT_HEADER_ONLY=1")
else()
  set(PC_REQUIRES "fmt spdlog libcrypto sqlite3")
endif()
# A program finds the shim by its run path.
set(PC_RUN_PATH "")
if(TARGET tilewright_mlir)
  set(PC_RUN_PATH " -Wl,-rpath,\${libdir}")
endif()
file(RELATIVE_PATH PC_PREFIX_FROM_HERE ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" PC_PREFIX_FROM_HERE ${PC_PREFIX_FROM_HERE})
configure_file(${PROJECT_SOURCE_DIR}/cmake/tilewright.pc.in ${PROJECT_BINARY_DIR}/package/tilewright.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/tilewright.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
