#!/usr/bin/env python3
"""Writes python/godwit/_declarations.py from include/godwit/godwit.h.

    python/make_declarations.py            write the file
    python/make_declarations.py --check    fail if the file is not what would be written
    python/make_declarations.py --layout   print a C program that prints sizes and offsets

The header is regular C11 without conditions inside, so a small reader is enough. What it does not
understand is an error.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
HEADER = ROOT / "include" / "godwit" / "godwit.h"
OUT = ROOT / "python" / "godwit" / "_declarations.py"

SIMPLE = {"bool": "c_bool", "int32_t": "c_int32", "int64_t": "c_int64", "uint64_t": "c_uint64",
          "size_t": "c_size_t", "float": "c_float", "double": "c_double", "void": "None",
          "char*": "c_char_p", "char**": "POINTER(c_char_p)", "void*": "c_void_p"}


def ctype(text, bytes_follow=False):
    """The ctypes expression of a C type. bytes_follow: a text with a length, which may hold zeros."""
    name = re.sub(r"\bconst\b", " ", text).replace(" ", "")
    if name == "char*" and bytes_follow:
        return "c_void_p"
    if name in SIMPLE:
        return SIMPLE[name]
    base = name.rstrip("*")
    stars = len(name) - len(base)
    if base in SIMPLE:
        inner = SIMPLE[base]
    elif re.fullmatch(r"godwit_\w+", base):
        inner = base
    else:
        raise SystemExit(f"make_declarations: cannot read the type {text!r}")
    for _ in range(stars):
        inner = f"POINTER({inner})"
    return inner


def split(text):
    """(type, name) of a declarator."""
    found = re.fullmatch(r"(.*?[\s*])(\w+)", text.strip())
    if not found:
        raise SystemExit(f"make_declarations: cannot read {text!r}")
    return found.group(1), found.group(2)


def function_type(result, arguments):
    types = [ctype(kind, bytes_follow) for kind, _, bytes_follow in parameters(arguments)]
    return f"CFUNCTYPE({', '.join([ctype(result), *types])})"


def commas(text):
    """Parts between the commas that stand outside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def has_bytes(name, behind):
    return behind in (f"{name}_bytes", "bytes" if name == "data" else None)


def parameters(text):
    """(type, name, whether its length in bytes follows) of each parameter."""
    if text.strip() in ("", "void"):
        return []
    pairs = [split(part) for part in commas(text)]
    names = [name for _, name in pairs] + [""]
    return [(kind, name, has_bytes(name, names[i + 1])) for i, (kind, name) in enumerate(pairs)]


FUNCTION_POINTER = re.compile(r"(.+?)\(\s*\*\s*(\w+)\s*\)\s*\((.*)\)", re.DOTALL)


def read(header):
    """(enums, structs, opaque, functions) of the header's text."""
    text = re.sub(r"//[^\n]*", "", header)
    text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    enums = [pair for body in re.findall(r"\benum \{(.*?)\};", text, re.DOTALL)
             for pair in re.findall(r"(\w+) = (\d+)", body)]
    structs = {}
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", text, re.DOTALL):
        members = []
        for member in filter(None, (part.strip() for part in body.split(";"))):
            pointer = FUNCTION_POINTER.fullmatch(member)
            members.append((pointer.group(2), pointer.groups()) if pointer else
                           (split(member)[1], split(member)[0]))
        structs[name] = members
    opaque = re.findall(r"typedef struct (\w+) \1;", text)
    functions = []
    for declaration in re.findall(r"GODWIT_EXPORT\s+([^;]*);", text):
        found = re.fullmatch(r"(.*?[\s*])(godwit_\w+)\((.*)\)", " ".join(declaration.split()))
        if not found:
            raise SystemExit(f"make_declarations: cannot read {declaration!r}")
        functions.append(found.groups())
    return enums, structs, opaque, functions


def member_types(members):
    names = [name for name, _ in members] + [""]
    for i, (name, kind) in enumerate(members):
        if isinstance(kind, tuple):
            yield name, function_type(kind[0], kind[2])
        else:
            yield name, ctype(kind, has_bytes(name, names[i + 1]))




def declarations(header):
    enums, structs, opaque, functions = read(header)
    lines = ['"""The C API as ctypes knows it, from godwit.h by make_declarations.py."""', "",
             "# fmt: off", "from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char_p, c_double, c_float,",
             "                    c_int32, c_int64, c_size_t, c_uint64, c_void_p)", ""]
    lines += [f"{name} = {value}" for name, value in enums]
    for name in [*opaque, *structs]:
        lines += ["", "", f"class {name}(Structure):", "    pass"]
    lines += ["", ""]
    for name, members in structs.items():
        lines.append(f"{name}._fields_ = [")
        lines += [f'    ("{member}", {kind}),' for member, kind in member_types(members)]
        lines.append("]")
    lines += ["", "# name: (result, arguments)", "FUNCTIONS = {"]
    for result, name, arguments in functions:
        types = []
        for part in commas(arguments) if arguments != "void" else []:
            pointer = FUNCTION_POINTER.fullmatch(part.strip())
            types.append(function_type(pointer.group(1), pointer.group(3)) if pointer else
                         ctype(split(part)[0]))
        lines.append(f'    "{name}": ({ctype(result)}, [{", ".join(types)}]),')
    return "\n".join([*lines, "}", ""])


def layout(header):
    """A C program that prints `struct member offset` and `struct size` lines."""
    structs = read(header)[1]
    lines = ["#include <stddef.h>", "#include <stdio.h>", '#include "godwit/godwit.h"',
             "int main(void) {"]
    for name, members in structs.items():
        lines.append(f'  printf("{name} size %zu\\n", sizeof({name}));')
        lines += [f'  printf("{name} {member} %zu\\n", offsetof({name}, {member}));'
                  for member, _ in members]
    return "\n".join([*lines, "  return 0;", "}", ""])


def main():
    header = HEADER.read_text()
    if sys.argv[1:] == ["--layout"]:
        print(layout(header), end="")
        return 0
    wanted = declarations(header)
    if sys.argv[1:] == ["--check"]:
        if OUT.read_text() == wanted:
            return 0
        print(f"{OUT.relative_to(ROOT)} is not what godwit.h says: run python/make_declarations.py")
        return 1
    OUT.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
