"""Code and formulas in answers, whole and while they are written. See page_support.py."""

import unittest

from fake_server import FakeServer
from page_support import PageTest

# The formula of a source, as short as a test can read it: "frac(mi a, mi b)".
FORMULA = r"""async ([source, isDisplay]) => {
    const { formulaNode } = await import('/page/math.js');
    const short = node => node.childElementCount === 0
        ? node.localName.slice(1) + (node.textContent && ` ${node.textContent}`)
        : `${node.localName.slice(1)}(${[...node.children].map(short).join(', ')})`;
    const node = formulaNode(source, isDisplay);
    return node.localName === 'math' ? short(node.firstChild) : `source ${node.textContent}`;
}"""

# [kind, text] of what has a color, of a block of code that comes in pieces of so many characters.
COLORS = """async ([language, text, pieces]) => {
    const { CodeBlock } = await import('/page/code_block.js');
    const block = new CodeBlock({ language, text: text.slice(0, pieces) });
    for (let end = pieces; end < text.length; end += pieces) {
        block.grow({ language, text: text.slice(0, end + pieces) });
    }
    const code = block.element.querySelector('code');
    return [code.textContent, code.innerHTML,
            [...code.querySelectorAll('[class]')].map(it => [it.className.slice(5),
                                                            it.textContent])];
}"""

# The HTML of a Markdown text that comes letter by letter, after each of them.
GROWING = """async text => {
    const { LiveMarkdown } = await import('/page/live_markdown.js');
    const element = document.createElement('div');
    const live = new LiveMarkdown(element);
    const states = [];
    for (let end = 1; end <= text.length; end += 1) {
        live.showNow(text.slice(0, end));
        states.push(element.innerHTML);
    }
    return states;
}"""


# One page for all: nothing here changes it.
class ContentTest(PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.faults = []
        cls.server = FakeServer()
        cls.addClassCleanup(cls.server.close)
        cls.page = cls.browser.new_page()
        cls.page.on("pageerror", lambda error: cls.faults.append(str(error)))
        cls.page.on("console", lambda message: cls.note_console(cls, message))
        cls.page.goto(cls.server.url)

    def setUp(self):
        pass


class FormulaTest(ContentTest):
    def test_formulas(self):
        for source, formula in {
                r"x^2_i": "subsup(i x, i i, n 2)",
                r"\frac{a}{b}": "frac(i a, i b)",
                r"\frac12": "frac(n 1, n 2)",
                r"x^12": "row(sup(i x, n 1), n 2)",
                r"\sqrt[3]{x+1}": "root(row(i x, o +, n 1), n 3)",
                r"\alpha \le \Omega": "row(i α, o ≤, i Ω)",
                r"\sum_{i=0}^n i": "row(underover(o ∑, row(i i, o =, n 0), i n), i i)",
                r"\int_0^1": "subsup(o ∫, n 0, n 1)",
                r"\lim_{x\to 0} f": "row(under(i lim, row(i x, o →, n 0)), space, i f)",
                r"n\log n": "row(i n, space, i log, space, i n)",
                r"\mathbb{R}^n": "sup(i ℝ, i n)",
                r"\mathbf{x}\cdot\mathcal{L}": "row(i 𝐱, o ⋅, i ℒ)",
                r"\text{if } x": "row(text if\u00a0, i x)",
                r"f'": "sup(i f, o ′)",
                r"\left( x \right.": "row(o (, i x)",
                r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}":
                    "row(o (, table(tr(td(i a), td(i b)), tr(td(i c), td(i d))), o ))",
                r"\begin{cases} 1 & x \\ 0 \end{cases}":
                    "row(o {, table(tr(td(n 1), td(i x)), tr(td(n 0))))",
                r"a &= b \\ c": "table(tr(td(i a), td(row(o =, i b))), tr(td(i c)))",
                r"\hat{y}, \vec v": "row(over(i y, o ^), o ,, over(i v, o →))",
                r"\binom n k": "row(o (, frac(i n, i k), o ))",
                r"\operatorname{rank} A": "row(i rank, space, i A)",
                r"\nosuch{x}": r"row(text \nosuch, i x)",
                r"50\%": "row(n 50, i %)",
                "": "row"}.items():
            with self.subTest(source):
                self.assertEqual(self.page.evaluate(FORMULA, [source, True]), formula)
        self.assertEqual(self.page.evaluate(FORMULA, [r"\sum_i^n", False]),
                         "subsup(o ∑, i i, i n)")

    def test_an_invalid_formula_is_shown_as_its_source(self):
        for source in (r"\frac{a", "{" * 3000, r"\sqrt" * 800, "x" * 5000, r"a}", r"\left( x",
                       r"\begin{nosuch}x\end{nosuch}", r"\begin{matrix}x", r"\right)", "x^",
                       r"\begin{__proto__}x\end{__proto__}"):
            with self.subTest(source[:40]):
                self.assertEqual(self.page.evaluate(FORMULA, [source, True]), f"source {source}")

    def test_where_formulas_are(self):
        for text, formulas in {
                "a $x$ and $y_1$.": ["x", "y_1"], "$5 and $6": [], "from $5-$6, US$5 or US$6": [],
                "`$a$` $HOME/$PATH \\$x": [], "$a `b$`": [], "the $n$-th, ($k$)": ["n", "k"],
                r"\(a\) \[b\] $$c$$": ["a", "b", "c"], "$a*b$ and *c*": ["a*b"],
                "$$\na\n$$\nb": ["a"], "text\n\\[\n- a\n+ b\n\\]\nc": ["- a\n+ b"],
                "1. a\n   $$\n   x\n   $$": ["x"], "$$a\n\nb$$": [],
                "\\begin{align}\na &= b\n\\end{align}": ["\\begin{align}\na &= b\n\\end{align}"],
                "$$x$$ is": ["x"], "| $a$ | b |\n|--|--|\n| 1 | $c$ |": ["a", "c"]}.items():
            with self.subTest(text):
                found = self.page.evaluate("""async text => {
                    const { markdownNodes } = await import('/page/markdown.js');
                    const div = document.createElement('div');
                    div.append(...markdownNodes(text));
                    return [...div.querySelectorAll('math')].map(it => it.getAttribute('alttext'));
                }""", text)
                self.assertEqual(found, formulas)

    def test_half_a_formula_is_its_source_and_then_the_formula(self):
        for text in ("so \\(a_1 *b* c_2\\) it is", "$$\na_1 *b* c_2\n$$\n\nend",
                     "\\[ a_1 *b*\n- c_2 \\]\nend"):
            with self.subTest(text):
                states = self.page.evaluate(GROWING, text)
                self.assertFalse([it for it in states if "<em>" in it or "<ul>" in it])
                shown = ["<math" in it for it in states]
                self.assertEqual(shown, sorted(shown), "it came and went")
                self.assertTrue(shown[-1])

    def test_nothing_is_too_much(self):
        for text in ("'$a'.repeat(1e5)", "'$a$'.repeat(3e4)", "'\\\\\\\\('.repeat(1e5)",
                     "'\\\\\\\\['.repeat(1e5) + 'a\\\\\\\\]'", "'$$a'.repeat(1e5)",
                     "'$$a\\n'.repeat(1e5)", "'$a `'.repeat(1e5) + '$'",
                     "'\\\\\\\\begin{align}\\n'.repeat(3e4)"):
            with self.subTest(text):
                self.assertGreater(self.page.evaluate(f"""async () => {{
                    const {{ markdownNodes }} = await import('/page/markdown.js');
                    return markdownNodes({text}).length;
                }}"""), 0)

    def test_hostile(self):
        harm = "<img src=x onerror=window.harmed=1>"
        nodes = self.page.evaluate("""async harm => {
            const { markdownNodes } = await import('/page/markdown.js');
            document.body.append(...markdownNodes(
                ['$' + harm + '$', '$\\\\text{' + harm + '}$', '$$\\n' + harm + '\\n$$',
                 '$\\\\href{javascript:window.harmed=2}{x}$',
                 '```html\\n' + harm + '<script>window.harmed=3</scr' + 'ipt>\\n```',
                 '```' + harm + '\\nx\\n```'].join('\\n\\n')));
            await new Promise(resolve => setTimeout(resolve, 50));
            return [document.querySelectorAll('img, script:not([src]), a[href^=java]').length,
                    document.querySelectorAll('math').length, window.harmed ?? null];
        }""", harm)
        self.assertEqual(nodes, [0, 4, None])


class CodeTest(ContentTest):
    def colors(self, language, text, pieces=10 ** 9):
        shown, html, colored = self.page.evaluate(COLORS, [language, text, pieces])
        self.assertEqual(shown, text)
        return html, colored

    def test_colors(self):
        for language, text, colored in (
                ("python", "def f(x):  # 1\n    return 'a' + \"\"\"b\nc\"\"\" * 0x1f",
                 [["keyword", "def"], ["name", "f"], ["comment", "# 1\n"], ["keyword", "return"],
                  ["string", "'a'"], ["string", '"""b\n'], ["string", 'c"""'],
                  ["number", "0x1f"]]),
                ("C++", "/* a\nb */ int x = '\\'';  // c",
                 [["comment", "/* a\n"], ["comment", "b */"], ["keyword", "int"],
                  ["string", "'\\''"], ["comment", "// c"]]),
                ("sql", "Select 'it' FROM t1", [["keyword", "Select"], ["string", "'it'"],
                                               ["keyword", "FROM"]]),
                ("json", '{"a": [1.5, true]}', [["name", '"a"'], ["number", "1.5"],
                                               ["keyword", "true"]]),
                ("bash", "echo a#b $HOME # c", [["keyword", "echo"], ["meta", "$HOME"],
                                               ["comment", "# c"]]),
                ("html", "<!-- a\n--><b\nid='c'>if</b>",
                 [["comment", "<!-- a\n"], ["comment", "-->"], ["keyword", "<b"],
                  ["name", "id"], ["string", "'c'"], ["keyword", ">"], ["keyword", "</b>"]]),
                ("diff", "-a\n+b", [["removed", "-a\n"], ["added", "+b"]]),
                ("constructor", "if x", []), ("", "if x", [])):
            with self.subTest(language):
                self.assertEqual(self.colors(language, text)[1], colored)

    def test_in_pieces_as_at_once(self):
        text = "/* a\nb */ int f(x) { return 'c'; }\n" * 150 + "// " + "x" * 5000 + "\nint y = 1;"
        whole = self.colors("c", text)
        for pieces in (7, 1000):
            with self.subTest(pieces):
                self.assertEqual(self.colors("c", text, pieces), whole)

    def test_a_block_that_grows_is_read_once(self):
        # Characters that are split into lines, of a block of 22,000 in pieces of 20.
        split, grown, whole = self.page.evaluate("""async () => {
            const { LiveMarkdown } = await import('/page/live_markdown.js');
            const code = '```c\\n' + 'int x = 1;\\n'.repeat(2000) + '```';
            const text = 'a\\n\\n' + code + '\\n\\nend *here*';
            const html = step => {
                const element = document.createElement('div');
                const live = new LiveMarkdown(element);
                for (let end = step; end < text.length + step; end += step) {
                    live.showNow(text.slice(0, end));
                }
                return element.innerHTML;
            };
            let split = 0;
            const { split: before } = String.prototype;
            String.prototype.split = function(...how) {
                split += this.length;
                return before.apply(this, how);
            };
            const grown = html(20);
            String.prototype.split = before;
            return [split, grown, html(1e9)];
        }""")
        self.assertEqual(grown, whole)
        self.assertIn("<em>here</em>", grown)
        self.assertLess(split, 1_000_000)  # read anew each time: 12 million

    def test_code_in_any_pieces_is_as_at_once(self):
        for text in ("```c\nint x;\n``\n```\nend", "~~~\n```\na\n~~~\nend",
                     "```\n\n\na\n   ```  \nend", "  ```\n  a\n b\n  ```\nc",
                     "````\n```\na\n````\n\n- b", "```c\n/* a", "```\na\n```x\nb\n```"):
            with self.subTest(text):
                once = self.page.evaluate("""async text => {
                    const { LiveMarkdown } = await import('/page/live_markdown.js');
                    const element = document.createElement('div');
                    new LiveMarkdown(element).showNow(text);
                    return element.innerHTML;
                }""", text)
                self.assertEqual(self.page.evaluate(GROWING, text)[-1], once)

    def test_a_line_without_end_costs_no_more_than_its_length(self):
        # Each piece is read with the line before it, up to where lines have no colors.
        read = self.page.evaluate("""async () => {
            const { Highlighter } = await import('/page/highlight.js');
            const { CodeBlock } = await import('/page/code_block.js');
            let read = 0;
            const { read: before } = Highlighter.prototype;
            Highlighter.prototype.read = function(line, isWhole) {
                read += line.length;
                return before.call(this, line, isWhole);
            };
            const block = new CodeBlock({ language: 'c', text: '' });
            for (let i = 0; i < 2000; i += 1) block.append('int x = 1; ');
            Highlighter.prototype.read = before;
            return read;
        }""")
        self.assertLess(read, 500_000)  # quadratic: 22 million


if __name__ == "__main__":
    unittest.main()
