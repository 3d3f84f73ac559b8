# What `cmake --install` puts where. Plugin authors find the headers and millrace_add_plugin by find_package(millrace):
# the component `development`, which needs no built program.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/millrace)

set_target_properties(millrace_api PROPERTIES EXPORT_NAME handler)
install(TARGETS millrace_api EXPORT millrace_targets)
install(EXPORT millrace_targets NAMESPACE millrace:: FILE millrace_targets.cmake
  DESTINATION ${package_folder} COMPONENT development)
install(DIRECTORY framework/include/millrace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
configure_package_config_file(framework/cmake/millrace-config.cmake.in ${PROJECT_BINARY_DIR}/millrace-config.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/millrace-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/millrace-config.cmake ${PROJECT_BINARY_DIR}/millrace-config-version.cmake
              framework/cmake/millrace_plugin.cmake
        DESTINATION ${package_folder} COMPONENT development)

# What authors' tests are linked with, apart from the headers, since it has to be built: the component `testing`.
install(TARGETS millrace_handler_testing EXPORT millrace_testing_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT testing)
install(EXPORT millrace_testing_targets NAMESPACE millrace:: FILE millrace_testing_targets.cmake
  DESTINATION ${package_folder} COMPONENT testing)

# What programs that add tasks are linked with: the component `producer`.
install(TARGETS millrace_producer millrace_producer_connected EXPORT millrace_producer_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT producer)
install(EXPORT millrace_producer_targets NAMESPACE millrace:: FILE millrace_producer_targets.cmake
  DESTINATION ${package_folder} COMPONENT producer)

# The shipped plugins; nobody but the owner may write them, or the loader refuses them.
install(TARGETS award_points exec http_call noop send_mail
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/millrace/plugins
  PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
install(DIRECTORY conf/samples DESTINATION ${CMAKE_INSTALL_DATADIR}/millrace)
install(FILES conf/grants.sql DESTINATION ${CMAKE_INSTALL_DATADIR}/millrace)
