# cmake --install: headers, library, find_package(skua), pkg-config skua and skua_pthreadpool.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(skua PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}  # before 1.0 a minor step may break the interface
)

set(skua_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/skua)
set(skua_installed skua)
if(TARGET skua_pthreadpool)
  list(APPEND skua_installed skua_pthreadpool)
endif()
install(TARGETS ${skua_installed} EXPORT skuaTargets)
install(EXPORT skuaTargets NAMESPACE skua:: DESTINATION ${skua_cmake_dir})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/skua DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/skuaConfig.cmake.in ${PROJECT_BINARY_DIR}/skuaConfig.cmake
  INSTALL_DESTINATION ${skua_cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/skuaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/skuaConfig.cmake ${PROJECT_BINARY_DIR}/skuaConfigVersion.cmake DESTINATION ${skua_cmake_dir})

# What a static libskua.a needs beside itself; a shared one brings it along.
set(skua_pc_requires "")
if(SKUA_CPUINFO)
  set(skua_pc_requires libcpuinfo)
endif()
if(BUILD_SHARED_LIBS)
  set(skua_pc_public_requires "")
else()
  set(skua_pc_public_requires ${skua_pc_requires})
endif()
set(skua_pc_libs "")
if(NOT BUILD_SHARED_LIBS AND SKUA_GPU AND CMAKE_DL_LIBS)  # where dlopen() is no part of the C library
  set(skua_pc_libs " -l${CMAKE_DL_LIBS}")
endif()
file(RELATIVE_PATH skua_pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/skua.pc.in ${PROJECT_BINARY_DIR}/skua.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/skua.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET skua_pthreadpool)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/skua_pthreadpool.pc.in ${PROJECT_BINARY_DIR}/skua_pthreadpool.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/skua_pthreadpool.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
