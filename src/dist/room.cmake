# Ranks on several hosts, if there is an MPI (./setup --mpi). Otherwise a request for them is
# refused.
find_package(MPI QUIET COMPONENTS CXX)
if(MPI_CXX_FOUND)
  set_property(GLOBAL PROPERTY GODWIT_HAS_MPI 1)
  set_source_files_properties(src/dist/mpi.cc PROPERTIES COMPILE_DEFINITIONS "GODWIT_MPI;OMPI_SKIP_MPICXX")
  target_link_libraries(godwit_dist PRIVATE MPI::MPI_CXX)
endif()
