# skua_add_kernels(family SOURCES a.cc ... [ISAS b ...]): compiles the sources once per instruction set of this architecture (dispatch/isa.def) and adds the
# objects to the target skua. Without ISAS: every set of type f32; with ISAS: these, where this build has them. A family may call it again for other sets.
# skua_write_kernel_tables(), after all: skua_tables_<family>.cc, the family's list of kernel tables, highest instruction set first.
# SKUA_UNIT_OPTIONS: further compiler options for every unit but the scalar one, the same source under a sanitizer's every check.

file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../dispatch/isa.def skua_isa_lines REGEX "^SKUA_ISA_ENTRY")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  set(SKUA_ARCH x86_64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64|ARM64")
  set(SKUA_ARCH arm64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^arm")
  set(SKUA_ARCH arm32)
else()
  set(SKUA_ARCH other)
endif()

set(skua_isas "")
foreach(line IN LISTS skua_isa_lines)
  string(REGEX MATCH "\\(([a-z0-9_]+), ([a-z0-9_]+), [0-9]+, ([a-z0-9]+), \"([^\"]*)\"\\)" _ "${line}")
  set(isa ${CMAKE_MATCH_1})
  if((CMAKE_MATCH_2 STREQUAL "any" OR CMAKE_MATCH_2 STREQUAL SKUA_ARCH) AND CMAKE_MATCH_3 IN_LIST SKUA_TYPES)
    if(isa STREQUAL "scalar" OR NOT SKUA_ISAS OR isa IN_LIST SKUA_ISAS)
      list(APPEND skua_isas ${isa})
      set(skua_type_${isa} ${CMAKE_MATCH_3})
      separate_arguments(skua_flags_${isa} UNIX_COMMAND "${CMAKE_MATCH_4}")
    endif()
  endif()
endforeach()
set(text "")
foreach(isa IN LISTS skua_isas)
  string(APPEND text "SKUA_COMPILED_ISA(${isa})\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/skua_compiled_isas.inc CONTENT "${text}" @ONLY)
message(STATUS "Skua: ${SKUA_ARCH}, instruction sets: ${skua_isas}")

function(skua_add_kernels family)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;ISAS")
  foreach(isa IN LISTS skua_isas)
    if(arg_ISAS)
      if(NOT isa IN_LIST arg_ISAS)
        continue()
      endif()
    elseif(NOT skua_type_${isa} STREQUAL "f32")
      continue()
    endif()
    set(objects skua_${family}_${isa})
    add_library(${objects} OBJECT ${arg_SOURCES})
    target_include_directories(${objects} PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_options(${objects} PRIVATE ${SKUA_COMPILE_OPTIONS} ${skua_flags_${isa}})
    if(NOT isa STREQUAL "scalar")
      target_compile_options(${objects} PRIVATE ${SKUA_UNIT_OPTIONS})
    endif()
    target_compile_definitions(${objects} PRIVATE SKUA_ISA=${isa} SKUA_ISA_${isa}=1 ${SKUA_DEFINITIONS})
    set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    target_sources(skua PRIVATE $<TARGET_OBJECTS:${objects}>)
    set_property(GLOBAL APPEND PROPERTY SKUA_UNITS_${family} ${isa})
  endforeach()
  get_property(families GLOBAL PROPERTY SKUA_FAMILIES)
  if(NOT family IN_LIST families)
    set_property(GLOBAL APPEND PROPERTY SKUA_FAMILIES ${family})
  endif()
endfunction()

function(skua_write_kernel_tables)
  get_property(families GLOBAL PROPERTY SKUA_FAMILIES)
  foreach(family IN LISTS families)
    get_property(units GLOBAL PROPERTY SKUA_UNITS_${family})
    set(declarations "")
    set(list "")
    foreach(isa IN LISTS skua_isas)
      if(isa IN_LIST units)
        string(APPEND declarations "extern const KernelTable ${family}_${isa};\n")
        string(PREPEND list "    &${family}_${isa},\n")
      endif()
    endforeach()
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/skua_tables_${family}.cc CONTENT
"#include \"dispatch/kernel.h\"
namespace skua {
${declarations}
extern const KernelTable* const ${family}_tables[];
const KernelTable* const ${family}_tables[] = {
${list}    nullptr,
};
}  // namespace skua
" @ONLY)
    target_sources(skua PRIVATE ${PROJECT_BINARY_DIR}/generated/skua_tables_${family}.cc)
  endforeach()
endfunction()
