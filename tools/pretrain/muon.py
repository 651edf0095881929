"""Muon: momentum whose matrix updates are orthogonalised (Jordan et al., 2024).

torch.optim.Muon does the same, but always multiplies in bfloat16, which takes most CPUs three times
as long as the rest of the step; this one multiplies in the type it is given.
"""

import torch

# The quintic that pulls all singular values towards 1 within five rounds.
QUINTIC = (3.4445, -4.7750, 2.0315)


def orthogonal(matrix, rounds=5):
    """About the nearest matrix whose singular values are all equal."""
    x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / (x.norm() + 1e-7)
    a, b, c = QUINTIC
    for _ in range(rounds):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if matrix.shape[0] > matrix.shape[1] else x


class Muon(torch.optim.Optimizer):
    """For matrices only. The step has the same size in every direction, whatever the gradient's."""

    def __init__(self, parameters, lr, momentum=0.95, weight_decay=0.1, dtype=torch.float32):
        super().__init__(parameters, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))
        self.dtype = dtype

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                state = self.state[weight]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(weight)
                momentum = state["momentum"]
                momentum.lerp_(weight.grad, 1 - group["momentum"])
                ahead = weight.grad.lerp(momentum, group["momentum"])  # Nesterov
                update = orthogonal(ahead.to(self.dtype)).to(weight.dtype)
                scale = max(1, weight.shape[0] / weight.shape[1]) ** 0.5
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.add_(update, alpha=-group["lr"] * scale)
