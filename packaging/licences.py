#!/usr/bin/env python3
"""Writes packaging/copyright: the licences of godwit and of everything that is linked into it.

    packaging/build fetch && packaging/licences.py [build/package]

Crates come from src/text/worker/Cargo.lock, as cargo has unpacked them; the rest from the folder that
packaging/build has filled. A crate that may be used under Apache-2.0 is used under it, and its text
stands once. tests/tools/packaging_test.py holds the list of crates to Cargo.lock.
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

HEAD = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: godwit
Comment: Names below third-party/ are not files of godwit's sources. They stand for the code of
 others that is linked into its programs, or that its compilation runs.

Files: *
Copyright: 2026 the authors of godwit
License: Apache-2.0

License: Apache-2.0
 The text is in the file LICENSE of the sources and beside this file; on Debian systems in
 /usr/share/common-licenses/Apache-2.0.
"""


def indented(text):
    """The text of a License field: each line behind a blank, empty ones as a dot."""
    lines = [line.rstrip() for line in text.replace("\t", "  ").strip("\n").splitlines()]
    return "\n".join(f" {line}" if line else " ." for line in lines)


def copyrights(text):
    lines = [re.sub(r"\s+", " ", line).strip(" #*/.")
             for line in re.findall(r"^.*Copyright[ :](?:.*\d{4}|\(c\)|©).*$", text,
                                    re.MULTILINE | re.IGNORECASE)]
    return list(dict.fromkeys(re.sub(r"^Copyright:? *(\([cC]\)|©)? *", "", line) for line in lines))


def stanza(files, holders, name, text=None):
    lines = [f"Files: {files[0]}", *(f" {file}" for file in files[1:]),
             f"Copyright: {holders[0]}", *(f" {holder}" for holder in holders[1:]),
             f"License: {name}"]
    return "\n".join(lines) + ("\n" + indented(text) if text else "") + "\n"


def top_comment(file):
    """The first comment of a header, without its stars."""
    text = file.read_text(errors="replace")
    comment = re.match(r"\s*/\*(.*?)\*/", text, re.DOTALL)[1]
    return "\n".join(re.sub(r"^ *\* ?| *\*$", "", line) for line in comment.splitlines())


def licence_file(folder, *names):
    for name in (*names, "LICENSE-MIT", "LICENSE", "LICENSE.md", "LICENSE.txt", "COPYING"):
        if (folder / name).exists():
            return (folder / name).read_text(errors="replace")
    raise SystemExit(f"{folder}: no file with a licence")


MIT = """\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the "Software"), to deal in the Software without restriction,
including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense,
and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so,
subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial
portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT
LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN
NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY,
WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."""


def crates():
    found = subprocess.run(
        ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path",
         ROOT / "src/text/worker/Cargo.toml"], check=True, capture_output=True, text=True)
    packages = sorted(json.loads(found.stdout)["packages"], key=lambda p: (p["name"], p["version"]))
    apache, others = [], []
    for package in packages:
        if package["name"] == "godwit-text":
            continue
        folder = pathlib.Path(package["manifest_path"]).parent
        file = f"third-party/{package['name']}-{package['version']}"
        licence = package["license"]
        authors = [re.sub(r" *<.*>", "", author) for author in package["authors"]]
        authors = authors or [f"the authors of {package['name']}"]
        if "Apache-2.0" in licence:
            apache.append((file, authors))
            if "AND Unicode-3.0" in licence:
                text = (folder / "LICENSE-UNICODE").read_text()
                others.append(stanza([f"{file}/data"], copyrights(text) or ["Unicode, Inc."],
                                     "Unicode-3.0", text))
            continue
        text = licence_file(folder)
        if "MIT" in licence and "Permission is hereby granted" in text:
            others.append(stanza([file], copyrights(text) or authors, "Expat"))
            continue
        name = "Zlib" if licence == "Zlib" else f"licence-of-{package['name']}"
        others.append(stanza([file], copyrights(text) or authors, name, text))
    onig = next(pathlib.Path(p["manifest_path"]).parent for p in packages if p["name"] == "onig_sys")
    text = (onig / "oniguruma" / "COPYING").read_text(errors="replace")
    others.append(stanza(["third-party/oniguruma"], copyrights(text), "BSD-2-clause-oniguruma", text))
    boost = next(pathlib.Path(p["manifest_path"]).parent for p in packages if p["name"] == "ryu")
    holders = list(dict.fromkeys(holder for _, names in apache for holder in names))
    return [stanza([file for file, _ in apache], holders, "Apache-2.0"), *others,
            stanza(["third-party/boost/asio", "third-party/boost/beast", "third-party/boost"],
                   ["Christopher M. Kohlhoff", "Vinnie Falco", "the authors of Boost"], "BSL-1.0",
                   (boost / "LICENSE-BOOST").read_text()),
            f"License: Expat\n{indented(MIT)}\n"]


def libraries(package):
    include, docs = package / "deps/include", package / "deps/share/doc"
    zig = package / "zig/ziglang"
    parts = []
    for name, header in (("fmt", "fmt/format.h"), ("xxhash", "xxhash.h"), ("ncurses", "curses.h")):
        text = top_comment(include / header)
        parts.append(stanza([f"third-party/{name}"], copyrights(text), f"licence-of-{name}", text))
    for name in ("libedit-dev", "libbsd-dev", "libmd-dev", "nlohmann-json3-dev"):
        text = (docs / name / "copyright").read_text(errors="replace")
        short = name.removesuffix("-dev")
        parts.append(stanza([f"third-party/{short}"], copyrights(text) or [f"the authors of {short}"],
                            f"licence-of-{short}", text))
    text = (zig / "LICENSE").read_text()
    parts.append(stanza(["third-party/zig/compiler_rt"], copyrights(text), "licence-of-zig", text))
    # Behind the text of Apache-2.0, which stands in one place.
    text = (zig / "lib/libcxx/LICENSE.TXT").read_text()
    text = "Apache-2.0, and:\n\n" + text[text.index("---- LLVM Exceptions"):]
    parts.append(stanza(["third-party/llvm/libcxx", "third-party/llvm/libcxxabi",
                         "third-party/llvm/libunwind"], ["the LLVM project and its contributors"],
                        "Apache-2.0-with-LLVM-exception", text))
    parts.append(stanza(["third-party/rust/std"], ["The Rust Project contributors"], "Apache-2.0"))
    parts.append(stanza(["third-party/glibc/csu"], ["Free Software Foundation, Inc."],
                        "LGPL-2.1+-with-exception", """\
Start files of the GNU C Library are linked in, under the GNU Lesser General Public License, version
2.1 or later, with this exception: the Free Software Foundation gives unlimited permission to link the
compiled version of these files with other programs, and to distribute those programs without any
restriction coming from the use of these files. The library itself is the system's. On Debian systems
the text of the licence is in /usr/share/common-licenses/LGPL-2.1."""))
    return parts


def main():
    package = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/package")
    (ROOT / "packaging/copyright").write_text("\n".join([HEAD, *libraries(package), *crates()]))


if __name__ == "__main__":
    main()
