// Ranks that mpirun has started, on one host or many.
#pragma once

#include <memory>

#include "dist/communicator.h"

namespace godwit {

// Of this process and those that mpirun started with it, as it says in the environment; 0 of 1
// where nobody did.
int MpiRank();
int MpiSize();

// Joins the others, once in a process. A rank of which nothing was heard for silence_s is lost; it
// tells that it lives from a thread of its own, whatever it computes. Who is given up by an
// exception leaves; otherwise all ranks give theirs up together. Throws Error(kUnsupported) where
// this program was built without MPI.
std::shared_ptr<Communicator> JoinMpi(double silence_s);

}  // namespace godwit
