# One CMake target per source folder. A folder says what it is made of and what it may include:
#   hearth_library(text SOURCES bpe.cpp ... DEPENDS base)        makes hearth_text, include root src/
#   hearth_test(text SOURCES bpe_test.cpp ... DEPENDS text)      makes the program test_text and its ctest entries
configure_file(${PROJECT_SOURCE_DIR}/include/hearth/version.h.in ${PROJECT_BINARY_DIR}/include/hearth/version.h @ONLY)

add_library(hearth_flags INTERFACE)
target_compile_options(hearth_flags INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers -fno-math-errno -fno-trapping-math)
target_include_directories(hearth_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
if(HEARTH_SANITIZE)
  target_compile_options(hearth_flags INTERFACE -fsanitize=${HEARTH_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(hearth_flags INTERFACE -fsanitize=${HEARTH_SANITIZE})
endif()

function(hearth_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;PACKAGES" ${ARGN})
  add_library(hearth_${name} STATIC ${arg_SOURCES})
  list(TRANSFORM arg_DEPENDS PREPEND hearth_)
  target_link_libraries(hearth_${name} PUBLIC ${arg_DEPENDS} PRIVATE hearth_flags ${arg_PACKAGES})
endfunction()

function(hearth_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;PACKAGES" ${ARGN})
  add_executable(test_${name} ${arg_SOURCES})
  list(TRANSFORM arg_DEPENDS PREPEND hearth_)
  target_link_libraries(test_${name} PRIVATE ${arg_DEPENDS} hearth_flags ${arg_PACKAGES} GTest::gtest_main)
  target_compile_definitions(test_${name} PRIVATE
    HEARTH_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data" HEARTH_SHARED_DATA="${PROJECT_SOURCE_DIR}/../shared/data")
  # Tests whose name ends in _slow run only in `./dev test --slow`.
  gtest_discover_tests(test_${name} TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES TEST_FILTER -*_slow)
  gtest_discover_tests(test_${name} TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES TEST_FILTER *_slow
    TEST_LIST ${name}_slow_tests PROPERTIES LABELS slow)
endfunction()
