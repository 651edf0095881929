"""tools/check_layers must fail on a tree that breaks the rules, and name the line."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_layers"


def run(files):
    """(exit status, output) of the check on a tree of {path: text}."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, str(CHECK), "--root", folder], text=True,
                              capture_output=True, check=False)
        return done.returncode, done.stdout + done.stderr


def table():
    return subprocess.run([sys.executable, str(CHECK), "--table"], text=True, capture_output=True,
                          check=True).stdout


class CheckLayers(unittest.TestCase):
    def accepts(self, files):
        status, output = run(files)
        self.assertEqual(status, 0, output)

    def refuses(self, files, *messages):
        status, output = run(files)
        self.assertEqual(status, 1, output)
        for message in messages:
            self.assertIn(message, output)

    def test_allowed_includes(self):
        self.accepts({
            "src/ops/linear.cc": '#include "kernels/kernel_table.h"\n#include <vector>\n',
            "src/model/decoder.cc": '#include "attention/core/step.h"\n#include "base/error.h"\n',
            "src/model/archs/llama.cc": '#include "model/spec.h"\n',
            "src/cli/main.cc": '#include "server/api.h"\n#include "godwit/engine.h"\n',
            "src/lab/main.cc": '#include "quant/smooth.h"\n#include "cli/options/x.h"\n',
            "src/console/table.h": '#include "godwit/error.h"\n#include "base/quote.h"\n',
            "tests/laws/laws_test.cc": '#include "attention/policies/dense.h"\n',
        })

    def test_upward_include(self):
        self.refuses({"src/tensor/view.h": '\n#include "ops/linear.h"\n'},
                     "src/tensor/view.h:2: includes ops/linear.h; tensor may include")

    def test_model_never_sees_a_policy(self):
        for header in ("attention/policies/dense.h", "attention/make_policy.h", "generate/x.h"):
            self.refuses({"src/model/decoder.cc": f'#include "{header}"\n'}, header)

    def test_the_program_includes_no_laboratory(self):
        for header in ("quant/smooth.h", "bench/suite.h", "eval/tasks.h", "train/x.h", "lab/x.h"):
            self.refuses({"src/cli/run.cc": f'#include "{header}"\n'}, header)

    def test_the_console_knows_no_model(self):
        for header in ("godwit/engine.h", "model/spec.h", "cli/run.h"):
            self.refuses({"src/console/table.h": f'#include "{header}"\n'}, header)

    def test_architectures_state_facts(self):
        self.refuses({"src/model/archs/llama.cc": '#include "ops/linear.h"\n'}, "llama.cc:1")
        self.refuses({"src/model/archs/llama.cc": '#include "model/decoder.h"\n'}, "llama.cc:1")

    def test_the_core_of_attention_knows_no_policy(self):
        for folder in ("core", "blocks"):
            for header in ("attention/policies/dense.h", "attention/make_policy.h"):
                self.refuses({f"src/attention/{folder}/x.cc": f'#include "{header}"\n'}, "x.cc:1")
        self.accepts({"src/attention/policies/x.cc": '#include "attention/blocks/block_index.h"\n'})

    def test_a_test_may_use_what_is_below_but_not_above(self):
        self.accepts({"src/model/decoder_test.cc": '#include "kernels/dispatch.h"\n'})
        self.refuses({"src/ops/linear_test.cc": '#include "model/decoder.h"\n'}, "linear_test.cc:1")

    def test_kernel_code_has_no_library_code(self):
        for name in ("vec/x.h", "gemm/x.h", "generic/x.h", "attention/softmax-inl.h",
                     "peak_avx2.cc", "table_avx512_bf16.cc", "tiles_amx-inl.h"):
            name = f"src/kernels/{name}"
            self.accepts({name: '#include <immintrin.h>\n#include "kernels/packing.h"\n'})
            self.refuses({name: "#include <algorithm>\n"}, f"{name}:1: includes algorithm")
            self.refuses({name: '#include "base/error.h"\n'}, f"{name}:1")
        self.accepts({"src/kernels/dispatch.cc": "#include <algorithm>\n"})

    def test_mpi_in_one_file(self):
        self.accepts({"src/dist/mpi.cc": "#include <mpi.h>\n"})
        self.refuses({"src/dist/local.cc": "#include <mpi.h>\n"}, "only src/dist/mpi.cc may")

    def test_public_headers_stand_alone(self):
        self.accepts({"include/godwit/engine.h": '#include "godwit/error.h"\n'})
        self.refuses({"include/godwit/engine.h": '#include "base/rng.h"\n'}, "engine.h:1")

    def test_path_from_the_root(self):
        self.refuses({"src/ops/linear.cc": '#include "linear.h"\n'}, "write it from the root")

    def test_unknown_room(self):
        self.refuses({"src/utils/x.h": "\n"}, "no room utils")

    def test_cycle_between_files(self):
        self.refuses({"src/ops/a.h": '#include "ops/b.h"\n', "src/ops/b.h": '#include "ops/a.h"\n'},
                     "include cycle: src/ops/a.h -> src/ops/b.h -> src/ops/a.h")

    def test_namespaces(self):
        self.accepts({"src/ops/linear.cc": "namespace godwit::ops {\n",
                      "src/ops/exec.h": "namespace godwit {\n",
                      "src/kernels/scalar.h": "namespace godwit::kernels::scalar {\n",
                      "src/cli/run.h": "namespace godwit {\nclass Engine;\n}\n"
                                       "namespace godwit::cli {\n",
                      "src/model/spec.h": "namespace godwit {\n"})
        self.refuses({"src/ops/linear.cc": "namespace godwit {\n"}, "of ops it is godwit::ops")
        self.refuses({"src/ops/linear.cc": "namespace godwit::opsy {\n"}, "of ops it is")
        self.refuses({"src/model/spec.h": "namespace godwit::model {\n"}, "of model it is godwit")

    def test_nothing_above_ops_computes(self):
        for text in ("exec.kernels.add(a, b, n, out);", "exec_.kernels.add(a, b, n, out);",
                     "void F(const kernels::KernelTable& table);", "kernels::KeyAt(4, d, j)",
                     "exec.Parallel(n, [&](int64_t i) {});", "exec.ParallelRows(n, m, body);",
                     "std::byte* data;", "const std::byte *data;", "HostBytes(page, n)"):
            for path in ("src/attention/core/x.cc", "src/kv/kv_cache.h", "src/engine/engine.cc"):
                self.refuses({path: f"\n{text}\n"}, f"{path}:2: ", " above ops, ")
            for path in ("src/ops/linear.cc", "src/bench/suite.cc", "src/attention/x_test.cc"):
                self.accepts({path: f"{text}\n"})
        self.refuses({"src/kv/kv_cache.cc": '#include "kernels/kernel_table.h"\n'}, "kv may include")
        self.accepts({"src/engine/engine.cc": "kernels::SelectIsa(name); Exec{.kernels = *isa.table};\n"
                                              "// std::byte* in a comment\n"
                                              "std::span<const std::byte> file;\n"})

    def test_exceptions_are_needed(self):
        self.accepts({"src/kv/kv_file.cc": "static_cast<std::byte*>(memory);\n"})
        self.refuses({"src/kv/kv_file.cc": "\n"}, "kv_file.cc: has no need of bytes of memory")

    def test_document_says_the_same(self):
        self.accepts({"docs/ARCHITECTURE.md": f"# x\n```layers\n{table()}```\n"})
        wrong = table().replace("ops -> kernels, cuda, tensor", "ops -> kernels")
        self.refuses({"docs/ARCHITECTURE.md": f"```layers\n{wrong}```\n"}, "ops -> kernels;")
        self.refuses({"docs/ARCHITECTURE.md": "# nothing\n"}, "no ```layers block")


if __name__ == "__main__":
    unittest.main()
