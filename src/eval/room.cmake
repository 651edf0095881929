# Each suite has a Score, an Open and the like of its own, by the same names as the others.
file(GLOB suites CONFIGURE_DEPENDS ${dir}/suites/*.cc)
list(FILTER suites EXCLUDE REGEX "_test\\.cc$")
set_source_files_properties(${suites} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
