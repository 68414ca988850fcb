# Each room of the tree is one library: tilewright_room(layout DEPENDS base) builds every .cpp below the current folder.
# LIBRARIES are third-party libraries that only .cpp files include; every room links fmt. EXCLUDE names subfolders whose
# sources belong to another target.
# Each room has one test program: tilewright_room_test(layout) builds tests/unit/layout/*.cpp. COMPILING is a
# googletest filter: the tests that it matches compile many kernels, and have the label `compiling` instead of `unit`.

function(tilewright_room room)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES;EXCLUDE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  foreach(folder IN LISTS ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ^${CMAKE_CURRENT_SOURCE_DIR}/${folder}/)
  endforeach()
  add_library(tilewright_${room} STATIC ${sources})
  add_library(tilewright::${room} ALIAS tilewright_${room})
  set_target_properties(tilewright_${room} PROPERTIES EXPORT_NAME ${room})
  target_compile_features(tilewright_${room} PUBLIC cxx_std_20)
  target_include_directories(tilewright_${room} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  list(TRANSFORM ARG_DEPENDS PREPEND tilewright_)
  target_link_libraries(tilewright_${room} PUBLIC ${TILEWRIGHT_FMT} ${ARG_DEPENDS} PRIVATE ${ARG_LIBRARIES})
endfunction()

function(tilewright_room_test room)
  cmake_parse_arguments(ARG "" "COMPILING" "LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${room}/*.cpp)
  add_executable(test_${room} ${sources})
  target_link_libraries(test_${room} PRIVATE tilewright_${room} GTest::gtest_main ${ARG_LIBRARIES})
  target_compile_definitions(test_${room} PRIVATE TILEWRIGHT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set(is_unit *)
  if(ARG_COMPILING)
    set(is_unit -${ARG_COMPILING})
    gtest_discover_tests(test_${room} TEST_PREFIX "${room}/" TEST_FILTER ${ARG_COMPILING} TEST_LIST test_${room}_compiling
      PROPERTIES LABELS compiling COST 60 DISCOVERY_TIMEOUT 60)
  endif()
  gtest_discover_tests(test_${room} TEST_PREFIX "${room}/" TEST_FILTER ${is_unit}
    PROPERTIES LABELS unit DISCOVERY_TIMEOUT 60)
endfunction()
