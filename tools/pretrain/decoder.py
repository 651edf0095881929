"""A Llama decoder in PyTorch, small enough to read, with parameter names as Hugging Face has them.

Three variants of one model (thesis, section 4.3):
  vanilla     softmax attention
  zero-sink   SoftMax_1: the denominator has one more term, exp(0), which no value belongs to
  sink-token  a learnable token stands before every sample
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

VARIANTS = ("vanilla", "zero-sink", "sink-token")


@dataclass
class Shape:
    vocabulary: int = 4096
    hidden: int = 192
    layers: int = 6
    heads: int = 6
    kv_heads: int = 2
    intermediate: int = 512
    positions: int = 512
    rope_theta: float = 10000.0
    norm_eps: float = 1e-5
    rotary_dims: int = 0  # of a head; 0: all. Fewer make a GLM, with biases

    @property
    def head_dim(self):
        return self.hidden // self.heads

    def huggingface(self):
        """The fields of a Llama's or GLM's config.json."""
        fields = self.llama()
        if self.rotary_dims:
            fields.update(architectures=["GlmForCausalLM"], model_type="glm", attention_bias=True,
                          partial_rotary_factor=self.rotary_dims / self.head_dim, pad_token_id=None)
            del fields["mlp_bias"]
        return fields

    def llama(self):
        return {
            "architectures": ["LlamaForCausalLM"], "model_type": "llama",
            "vocab_size": self.vocabulary, "hidden_size": self.hidden,
            "num_hidden_layers": self.layers, "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads, "head_dim": self.head_dim,
            "intermediate_size": self.intermediate, "max_position_embeddings": self.positions,
            "rope_theta": self.rope_theta, "rms_norm_eps": self.norm_eps, "hidden_act": "silu",
            "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": True,
        }


def rotary(length, dims, theta, device):
    """cos and sin, each [length, dims], halves repeated as Llama pairs them."""
    frequency = theta ** (-torch.arange(0, dims, 2, device=device, dtype=torch.float64) / dims)
    angle = torch.arange(length, device=device, dtype=torch.float64)[:, None] * frequency
    angle = torch.cat((angle, angle), -1)
    return angle.cos().float(), angle.sin().float()


def rotate(x, cos, sin):
    """Rotates the first elements of x, as many as cos has."""
    x, rest = x.split((cos.shape[-1], x.shape[-1] - cos.shape[-1]), -1)
    first, second = x.chunk(2, -1)
    rotated = (x * cos + torch.cat((-second, first), -1) * sin).to(x.dtype)
    return torch.cat((rotated, rest), -1)


class Attention(nn.Module):
    def __init__(self, shape, zero_sink):
        super().__init__()
        self.shape, self.zero_sink = shape, zero_sink
        kv_width = shape.kv_heads * shape.head_dim
        has_bias = shape.rotary_dims > 0
        self.q_proj = nn.Linear(shape.hidden, shape.hidden, bias=has_bias)
        self.k_proj = nn.Linear(shape.hidden, kv_width, bias=has_bias)
        self.v_proj = nn.Linear(shape.hidden, kv_width, bias=has_bias)
        self.o_proj = nn.Linear(shape.hidden, shape.hidden, bias=False)

    def forward(self, x, rope, maps):
        """x [batch, tokens, hidden]; appends [batch, heads, tokens, tokens] to `maps` unless None."""
        batch, tokens, _ = x.shape
        heads = lambda y: y.view(batch, tokens, -1, self.shape.head_dim).transpose(1, 2)
        q, k, v = heads(self.q_proj(x)), heads(self.k_proj(x)), heads(self.v_proj(x))
        q, k = rotate(q, *rope), rotate(k, *rope)
        group = self.shape.heads // self.shape.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        if self.zero_sink:
            # SoftMax_1 is one more token in front with a zero key and a zero value. Its own query
            # keeps the causal mask square and its output is dropped.
            q, k, v = (F.pad(y, (0, 0, 1, 0)) for y in (q, k, v))
        if maps is None:
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q.float() @ k.float().transpose(-1, -2) / self.shape.head_dim ** 0.5
            past = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).tril()
            probabilities = scores.masked_fill(~past, -torch.inf).softmax(-1)
            out = probabilities.to(v.dtype) @ v
            maps.append(probabilities[..., -tokens:, -tokens:])
        out = out[:, :, -tokens:].transpose(1, 2).reshape(batch, tokens, self.shape.hidden)
        return self.o_proj(out)


class Mlp(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.down_proj = nn.Linear(shape.intermediate, shape.hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, shape, zero_sink):
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.hidden, shape.norm_eps)
        self.self_attn = Attention(shape, zero_sink)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden, shape.norm_eps)
        self.mlp = Mlp(shape)

    def forward(self, x, rope, maps):
        x = x + self.self_attn(self.input_layernorm(x), rope, maps)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, shape, zero_sink):
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape, zero_sink) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden, shape.norm_eps)


class Decoder(nn.Module):
    def __init__(self, shape, variant, sink):
        """`sink`: the id put before every sample by the variant sink-token."""
        super().__init__()
        self.shape, self.variant, self.sink = shape, variant, sink
        self.model = Body(shape, variant == "zero-sink")
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                residual = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(weight, std=0.02 / (2 * shape.layers) ** (0.5 * residual))
            elif name.endswith(".bias"):
                nn.init.zeros_(weight)

    def forward(self, ids, maps=None):
        """ids [batch, tokens] -> hidden states of these tokens [batch, tokens, hidden].

        The maps have one more row and column, the sink's, where the variant has a sink token.
        """
        tokens = ids.shape[1]
        if self.variant == "sink-token":
            ids = F.pad(ids, (1, 0), value=self.sink)
        dims = self.shape.rotary_dims or self.shape.head_dim
        rope = rotary(ids.shape[1], dims, self.shape.rope_theta, ids.device)
        x = self.model.embed_tokens(ids)
        for layer in self.model.layers:
            x = layer(x, rope, maps)
        return self.model.norm(x)[:, -tokens:]

    def loss(self, ids, maps=None):
        """Mean nats of ids [batch, tokens + 1], each token given those before it in its sample."""
        hidden = self(ids[:, :-1], maps)
        logits = F.linear(hidden, self.model.embed_tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())
