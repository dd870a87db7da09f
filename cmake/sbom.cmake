# The bill of materials of the wheel, as CycloneDX: what was compiled into the extension, with its versions. PEP 770 says
# where it lies: fairlead-X.dist-info/sboms/.

# fairlead_version_in(<variable> <file> <regular expression>): what its first group matches, or "unknown".
function(fairlead_version_in variable file pattern)
  set(found unknown)
  if(EXISTS "${file}")
    file(STRINGS "${file}" lines REGEX "${pattern}" LIMIT_COUNT 1)
    if(lines MATCHES "${pattern}")
      set(found ${CMAKE_MATCH_1})
    endif()
  endif()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

get_target_property(fairlead_protozero_headers fairlead_protozero INTERFACE_INCLUDE_DIRECTORIES)
fairlead_version_in(fairlead_protozero_version "${fairlead_protozero_headers}/protozero/version.hpp"
                    "PROTOZERO_VERSION_STRING +\"([0-9.]+)\"")
if(fairlead_simdjson_on_system)
  set(fairlead_simdjson_version ${simdjson_VERSION})
else()
  set(fairlead_simdjson_version 3.0.1)
endif()

# fairlead_sbom_component(<name> <version> <license> <purl>) adds a row.
set(fairlead_sbom_components "")
macro(fairlead_sbom_component name version license purl)
  if(fairlead_sbom_components)
    string(APPEND fairlead_sbom_components ",\n")
  endif()
  string(APPEND fairlead_sbom_components
    "    {\"type\": \"library\", \"bom-ref\": \"${purl}@${version}\", \"name\": \"${name}\", \"version\": \"${version}\", "
    "\"licenses\": [{\"license\": {\"id\": \"${license}\"}}], \"purl\": \"${purl}@${version}\"}")
endmacro()
fairlead_sbom_component(nanobind "${nanobind_VERSION}" BSD-3-Clause pkg:pypi/nanobind)
fairlead_sbom_component(protozero "${fairlead_protozero_version}" BSD-2-Clause pkg:github/mapbox/protozero)
fairlead_sbom_component(simdjson "${fairlead_simdjson_version}" Apache-2.0 pkg:github/simdjson/simdjson)

file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/fairlead.cdx.json @ONLY CONTENT [[
{
  "bomFormat": "CycloneDX",
  "specVersion": "1.6",
  "version": 1,
  "metadata": {
    "component": {"type": "library", "bom-ref": "fairlead", "name": "fairlead", "version": "@PROJECT_VERSION@",
                  "licenses": [{"license": {"id": "Apache-2.0"}}], "purl": "pkg:pypi/fairlead@@PROJECT_VERSION@"}
  },
  "components": [
@fairlead_sbom_components@
  ]
}
]])
if(DEFINED SKBUILD_METADATA_DIR)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fairlead.cdx.json DESTINATION ${SKBUILD_METADATA_DIR}/sboms
          COMPONENT python)
endif()
