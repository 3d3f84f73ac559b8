# MySQL Connector/C++ with its JDBC interface: the target MySQL::ConnectorCpp.
find_path(MySQLConnectorCpp_INCLUDE_DIR mysql_driver.h)
find_library(MySQLConnectorCpp_LIBRARY mysqlcppconn)
mark_as_advanced(MySQLConnectorCpp_INCLUDE_DIR MySQLConnectorCpp_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MySQLConnectorCpp
  REQUIRED_VARS MySQLConnectorCpp_LIBRARY MySQLConnectorCpp_INCLUDE_DIR)

if(MySQLConnectorCpp_FOUND AND NOT TARGET MySQL::ConnectorCpp)
  add_library(MySQL::ConnectorCpp UNKNOWN IMPORTED)
  set_target_properties(MySQL::ConnectorCpp PROPERTIES
    IMPORTED_LOCATION ${MySQLConnectorCpp_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${MySQLConnectorCpp_INCLUDE_DIR})
endif()
