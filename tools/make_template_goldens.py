#!/usr/bin/env python3
"""Writes transformers' renderings of chat templates into tests/data/templates/expected.

Templates: ours in tests/data/templates/own and the real ones of ../shared/data/tokenizers, which
are not part of this repository. Needs the Python packages `transformers` and `jinja2`.
Run it from the root of the repository:
    TZ=UTC python3 tools/make_template_goldens.py
"""
import datetime
import json
import pathlib

from jinja2.exceptions import TemplateError
from transformers.utils import chat_template_utils

DATA = pathlib.Path("tests/data/templates")
SHARED = pathlib.Path("../shared/data/tokenizers")
# 11:00 UTC on a day is the same day almost everywhere: strftime_now tells local time.
NOW_UNIX_S = 1752577200

TOOL = {"type": "function", "function": {
    "name": "get_tide", "description": "Tells the tide at a place; <b>fast</b>.",
    "parameters": {"type": "object", "properties": {
        "place": {"type": "string", "description": "Where"},
        "days": {"type": "integer", "default": 1, "enum": [1, 2.5, None]}},
        "required": ["place"]}, "return": {"type": "string"}}}
USER = {"role": "user", "content": "  Hello <godwit>, l'oiseau 🐦! "}
CALL = {"role": "assistant", "content": "", "tool_calls": [
    {"id": "abcdefghi", "type": "function",
     "function": {"name": "get_tide", "arguments": {"place": "Zürich & 海", "days": 2}}}]}
CASES = {
    "user": {"messages": [USER], "add_generation_prompt": True},
    "turns": {"messages": [
        {"role": "system", "content": "Be brief.\nBe kind. "}, {"role": "user", "content": "One"},
        {"role": "assistant", "content": "<think>\nwhy\n</think>\n\nTwo"},
        {"role": "user", "content": "Three"}], "add_generation_prompt": True},
    "assistant last": {"messages": [
        {"role": "user", "content": "One"},
        {"role": "assistant", "content": " Two\n", "reasoning_content": "because"}],
        "add_generation_prompt": False},
    "tools": {"messages": [
        {"role": "system", "content": "Use tools."}, {"role": "user", "content": "Tide?"}, CALL,
        {"role": "tool", "content": "{\"tide\": \"high\"}", "name": "get_tide",
         "tool_call_id": "abcdefghi"}],
        "tools": [TOOL], "add_generation_prompt": True},
    "no thinking": {"messages": [USER], "add_generation_prompt": True,
                    "extra": {"enable_thinking": False, "extra_flag": False}},
    "wrong order": {"messages": [
        {"role": "user", "content": "a"}, {"role": "user", "content": "b"},
        {"role": "assistant", "content": "c"}], "add_generation_prompt": False},
    "parts": {"messages": [{"role": "user", "content": [
        {"type": "text", "text": "first"}, {"type": "text", "text": "second"}]}],
        "add_generation_prompt": True},
    "nobody": {"messages": [], "add_generation_prompt": True},
}


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(NOW_UNIX_S, tz)


def render(source, case):
    try:
        rendered, _ = chat_template_utils.render_jinja_template(
            [case["messages"]], tools=case.get("tools"), chat_template=source,
            add_generation_prompt=case["add_generation_prompt"],
            bos_token="<BOS>", eos_token="<EOS>", **case.get("extra", {}))
        return {"text": rendered[0]}
    except TemplateError as error:
        raised = type(error) is TemplateError
        return {"raised": str(error)} if raised else {"error": str(error)}
    except Exception as error:  # whatever Python meets inside the template
        return {"error": str(error)}


def templates():
    for path in sorted((DATA / "own").glob("*.jinja")):
        yield "own." + path.stem, path.read_text(encoding="utf-8")
    for path in sorted(SHARED.glob("chat_templates/*.jinja")):
        yield path.stem, path.read_text(encoding="utf-8")
    for path in sorted(SHARED.glob("*/chat_template.jinja")):
        yield path.parent.name, path.read_text(encoding="utf-8")
    for path in sorted(SHARED.glob("*/tokenizer_config.json")):
        source = json.loads(path.read_text(encoding="utf-8")).get("chat_template")
        if source:
            yield path.parent.name, source


def main():
    chat_template_utils.datetime = Clock
    (DATA / "expected").mkdir(parents=True, exist_ok=True)
    (DATA / "cases.json").write_text(
        json.dumps({"now_unix_s": NOW_UNIX_S, "cases": CASES}, indent=1) + "\n", encoding="utf-8")
    for name, source in templates():
        results = {case: render(source, value) for case, value in CASES.items()}
        (DATA / "expected" / f"{name}.json").write_text(
            json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
