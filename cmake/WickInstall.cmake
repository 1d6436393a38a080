# cmake --install installs the library, its public headers, a CMake package and the wick command.
include(CMakePackageConfigHelpers)

install(TARGETS wick EXPORT wickTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET wick_cli)
  file(RELATIVE_PATH WICK_LIB_FROM_BIN
    ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR} ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR})
  set_target_properties(wick_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${WICK_LIB_FROM_BIN}")
  install(TARGETS wick_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# Headers are in the same folders as sources. Headers that only sources need aren't installed.
install(DIRECTORY wick DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def"
  PATTERN "backend/cpu" EXCLUDE
  PATTERN "backend/gpu" EXCLUDE
  PATTERN "text/vocab" EXCLUDE PATTERN "text/split" EXCLUDE PATTERN "text/normalize" EXCLUDE
  PATTERN "text/model" EXCLUDE PATTERN "text/pipeline" EXCLUDE PATTERN "text/json" EXCLUDE
  REGEX "/text/tokenizer_impl\\.h$" EXCLUDE
  REGEX "/models/(decoder_config|decoder_lm|decoder_step|metadata|registry)\\.h$" EXCLUDE
  PATTERN "models/hf" EXCLUDE PATTERN "models/families" EXCLUDE PATTERN "models/layers" EXCLUDE
  REGEX "/io/json\\.h$" EXCLUDE
  REGEX "/graph/(fuse|uses)\\.h$" EXCLUDE
  REGEX "/tensor/fused\\.h$" EXCLUDE
  REGEX "/(checks|weights)\\.h$" EXCLUDE)
install(FILES wick/backend/cpu/cpu.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/wick/backend/cpu)
install(FILES ${CMAKE_BINARY_DIR}/include/wick/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/wick)

set(WICK_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/wick)
install(EXPORT wickTargets NAMESPACE wick:: DESTINATION ${WICK_PACKAGE_DIR})
configure_package_config_file(cmake/wickConfig.cmake.in ${CMAKE_BINARY_DIR}/wickConfig.cmake
  INSTALL_DESTINATION ${WICK_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/wickConfigVersion.cmake
  COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/wickConfig.cmake ${CMAKE_BINARY_DIR}/wickConfigVersion.cmake
  DESTINATION ${WICK_PACKAGE_DIR})
