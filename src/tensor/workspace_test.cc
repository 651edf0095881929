#include "tensor/workspace.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace godwit::workspace_test {
namespace {

TEST(Workspace, KeepsOneBlockOnceTheLargestStepIsKnown) {
  Workspace workspace;
  float* first = nullptr;
  for (int step = 0; step < 3; ++step) {
    Workspace::Scope scope(workspace);
    const auto a = workspace.Matrix<float>(3, 5);
    const auto b = workspace.Matrix<float>(7, 100);
    EXPECT_EQ(a.stride, 16);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.Row(1)) % 64, 0u);
    a.Row(2)[15] = 1;
    b.Row(6)[99] = 2;
    EXPECT_EQ(a.Row(2)[15], 1);
    if (step == 1) first = a.data;
    if (step == 2) {
      EXPECT_EQ(a.data, first);
    }
  }
  EXPECT_EQ(workspace.capacity_bytes(), (3 * 16 + 7 * 112) * 4);
}

TEST(Workspace, InnerScopesReuseTheirMemory) {
  Workspace workspace;
  Workspace::Scope outer(workspace);
  const auto kept = workspace.Matrix<float>(1, 16);
  kept.Row(0)[0] = 42;
  for (int i = 0; i < 2; ++i) {
    Workspace::Scope inner(workspace);
    workspace.Matrix<float>(1, 1024).Row(0)[0] = 7;
  }
  EXPECT_EQ(kept.Row(0)[0], 42);
}

// The first step of a model finds no block, and its layers take turns.
TEST(Workspace, HoldsTheMemoryOfOneInnerScopeAtATime) {
  Workspace workspace;
  {
    Workspace::Scope outer(workspace);
    const auto kept = workspace.Matrix<float>(1, 16);
    kept.Row(0)[0] = 42;
    for (int layer = 0; layer < 3; ++layer) {
      Workspace::Scope inner(workspace);
      workspace.Matrix<float>(1, 1024).Row(0)[1023] = 7;
      workspace.Matrix<float>(1, 512).Row(0)[511] = 7;
      EXPECT_EQ(workspace.held_bytes(), (16 + 1024 + 512) * 4);
    }
    EXPECT_EQ(workspace.held_bytes(), 16 * 4);
    EXPECT_EQ(kept.Row(0)[0], 42);
  }
  EXPECT_EQ(workspace.held_bytes(), (16 + 1024 + 512) * 4);
  EXPECT_EQ(workspace.capacity_bytes(), (16 + 1024 + 512) * 4);
}

TEST(Workspace, ForgetsASizeThatWasRefused) {
  Workspace workspace;
  {
    Workspace::Scope scope(workspace);
    workspace.Matrix<float>(1, 16);
    EXPECT_THROW(workspace.Matrix<float>(1, int64_t{1} << 58), Error);
  }
  EXPECT_EQ(workspace.capacity_bytes(), 64);
  Workspace::Scope scope(workspace);
  workspace.Matrix<float>(1, 16).Row(0)[15] = 1;
}

}  // namespace
}  // namespace godwit::workspace_test
