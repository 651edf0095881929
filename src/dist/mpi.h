// Ranks that mpirun has started, on one host or many.
#pragma once

#include <memory>

#include "dist/communicator.h"

namespace godwit {

// The rank of this process and the number of processes that mpirun started, by the environment; 0
// of 1 without mpirun.
int MpiRank();
int MpiSize();

// Whether this program was built with MPI.
bool HasMpi();

// Joins the other ranks, once in a process. A rank of which nothing was heard for silence_s is
// lost. A thread of each rank reports that it lives, whatever it computes. A communicator that is
// destroyed by an exception leaves; otherwise all ranks destroy theirs together. Throws
// Error(kUnsupported) where this program was built without MPI.
std::shared_ptr<Communicator> JoinMpi(double silence_s);

}  // namespace godwit
