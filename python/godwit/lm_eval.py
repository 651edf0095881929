"""godwit for lm-evaluation-harness.

    python -m godwit.lm_eval --model godwit --model_args model=MODEL,kv=dense --tasks TASK

The arguments are those of lm_eval. model_args: `model`, and every argument of godwit.Engine.
"""

from __future__ import annotations

import typing

try:
    from lm_eval.api.model import TemplateLM
    from lm_eval.api.registry import register_model
except ImportError as error:
    raise ImportError("godwit.lm_eval needs lm-evaluation-harness: pip install lm-eval") from error

from .engine import Engine

Tokens = typing.List[int]


@register_model("godwit")
class GodwitLM(TemplateLM):
    """A model of lm-evaluation-harness. Requests run one after the other; those that begin alike
    share what was read."""

    def __init__(self, model: str, max_gen_toks: int = 256, batch_size: typing.Any = 1,
                 max_batch_size: typing.Any = None, device: typing.Any = None,
                 **engine: typing.Any) -> None:
        super().__init__()
        self.engine = Engine(model, needs_text=True, **engine)
        self._session = self.engine.session()
        self.max_gen_toks = max_gen_toks
        self.batch_size = 1

    # --- tokens ---

    @property
    def eot_token_id(self) -> int:
        return self.engine.end_tokens[0]

    @property
    def prefix_token_id(self) -> int:
        """The token in front of a text that has no context."""
        framed = self.engine.tokenize("")
        return framed[0] if framed else self.eot_token_id

    @property
    def max_length(self) -> int:
        return min(self._session.limit_tokens, self.engine.max_context)

    def tok_encode(self, string: str, add_special_tokens: bool | None = None,
                   **_: typing.Any) -> Tokens:
        return self.engine.tokenize(string, add_special=bool(add_special_tokens))

    def _encode_pair(self, context: str, continuation: str) -> tuple[Tokens, Tokens]:
        """Blanks at the context's end belong to the continuation. The context is framed as a
        prompt; the continuation's tokens are what it adds."""
        spaces = len(context) - len(context.rstrip())
        if spaces:
            continuation = context[-spaces:] + continuation
            context = context[:-spaces]
        begin = self.engine.tokenize(context)
        return begin, self.engine.tokenize(context + continuation)[len(begin):]

    # --- requests ---

    def _loglikelihood_tokens(self, requests: typing.Any, disable_tqdm: bool = False,
                              **_: typing.Any) -> list[tuple[float, bool]]:
        # Neighbours in the order of their tokens share the longest beginnings.
        order = sorted(range(len(requests)), key=lambda i: (requests[i][1], requests[i][2]))
        answers: list[tuple[float, bool]] = [(0.0, False)] * len(requests)
        for i in self._progress(order, disable_tqdm, "loglikelihood"):
            _, context, continuation = requests[i]
            text = (list(context) + list(continuation))[-self.max_length:]
            first = max(1, len(text) - len(continuation))
            scores = self._session.logprobs(text, first)
            answers[i] = (sum(score for score, _ in scores), all(best for _, best in scores))
        return answers

    def loglikelihood_rolling(self, requests: typing.Any, disable_tqdm: bool = False
                              ) -> list[float]:
        totals = []
        for request in self._progress(requests, disable_tqdm, "loglikelihood_rolling"):
            tokens = self.tok_encode(request.args[0])
            total, most = 0.0, self.max_length - 1
            for begin in range(0, len(tokens), most):
                before = tokens[begin - 1] if begin else self.prefix_token_id
                scores = self._session.logprobs([before, *tokens[begin:begin + most]], 1)
                total += sum(score for score, _ in scores)
            totals.append(total)
        return totals

    def generate_until(self, requests: typing.Any, disable_tqdm: bool = False) -> list[str]:
        answers = []
        for request in self._progress(requests, disable_tqdm, "generate_until"):
            context, wishes = request.args
            wishes = dict(wishes)
            until = wishes.get("until") or []
            stop = [until] if isinstance(until, str) else list(until)
            greedy = not wishes.get("do_sample", False)
            most = int(wishes.get("max_gen_toks", self.max_gen_toks))
            sampler = {name: wishes[name] for name in ("top_p", "top_k") if name in wishes}
            # A text by the chat template has its special tokens already.
            prompt = self.engine.tokenize(context, add_special=not self._chats)
            prompt = prompt[-max(1, self.max_length - most):]
            answers.append(self._session.generate(
                prompt, max_tokens=most, stop=stop[:16], seed=0,
                temperature=0 if greedy else wishes.get("temperature", 1.0), **sampler).text)
        return answers

    def _progress(self, items: typing.Any, silent: bool, what: str) -> typing.Any:
        from tqdm import tqdm
        return tqdm(items, disable=silent, desc=what)

    # --- chats ---

    _chats = False

    @property
    def tokenizer_name(self) -> str:
        """A name for caches of requests."""
        return f"godwit-{self.engine.vocab_size}"

    def chat_template(self, chat_template: typing.Any = False) -> str:
        """The model has one template; lm_eval writes its name down."""
        return "default" if self.engine.has_chat_template else ""

    def apply_chat_template(self, chat_history: typing.Any, add_generation_prompt: bool = True
                            ) -> str:
        self._chats = True
        return self.engine.apply_chat_template(chat_history,
                                               add_generation_prompt=add_generation_prompt)


def main() -> None:
    from lm_eval.__main__ import cli_evaluate
    cli_evaluate()


if __name__ == "__main__":
    main()
