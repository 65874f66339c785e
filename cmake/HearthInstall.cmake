# cmake --install: the command, one shared library with the public API, its headers and find_package(Hearth).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/hearth_api.cpp CONTENT "// The library consists of the engine's objects; CMake wants a source of its own.\n")
add_library(hearth_api SHARED ${PROJECT_BINARY_DIR}/hearth_api.cpp)
set_target_properties(hearth_api PROPERTIES OUTPUT_NAME hearth EXPORT_NAME hearth LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
target_link_libraries(hearth_api PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,hearth_engine>)
target_include_directories(hearth_api INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(hearth_api INTERFACE cxx_std_20)

install(TARGETS hearth RUNTIME)
install(TARGETS hearth_api EXPORT HearthTargets LIBRARY)
install(FILES ${PROJECT_SOURCE_DIR}/models/pocket-dense.gguf ${PROJECT_SOURCE_DIR}/models/README.md
  DESTINATION ${CMAKE_INSTALL_DATADIR}/hearth/models)
configure_file(${PROJECT_SOURCE_DIR}/packaging/hearth.service.in ${PROJECT_BINARY_DIR}/hearth.service @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hearth.service DESTINATION lib/systemd/system)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/hearth ${PROJECT_BINARY_DIR}/include/hearth
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT HearthTargets NAMESPACE Hearth:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Hearth)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/HearthConfig.cmake.in
  ${PROJECT_BINARY_DIR}/HearthConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Hearth)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/HearthConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/HearthConfig.cmake ${PROJECT_BINARY_DIR}/HearthConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Hearth)
