# MariaDB's client library, which the packaged Connector/C++ links, with its headers: the target MariaDB::Client.
find_path(MariaDBClient_INCLUDE_DIR mariadb_rpl.h PATH_SUFFIXES mariadb)
find_library(MariaDBClient_LIBRARY mariadb)
mark_as_advanced(MariaDBClient_INCLUDE_DIR MariaDBClient_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MariaDBClient REQUIRED_VARS MariaDBClient_LIBRARY MariaDBClient_INCLUDE_DIR)

if(MariaDBClient_FOUND AND NOT TARGET MariaDB::Client)
  add_library(MariaDB::Client UNKNOWN IMPORTED)
  set_target_properties(MariaDB::Client PROPERTIES
    IMPORTED_LOCATION ${MariaDBClient_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${MariaDBClient_INCLUDE_DIR})
endif()
