"""godwit logits against what Hugging Face computes, through the .npy file."""

import ast
import json
import struct
import unittest

from harness import GOLDEN, TINY, CliTest


def read_npy(data):
    """(shape, elements) of a version 1.0 file of little-endian floats."""
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    length = struct.unpack("<H", data[8:10])[0]
    assert (10 + length) % 64 == 0
    header = ast.literal_eval(data[10:10 + length].decode())
    assert header["descr"] == "<f4" and header["fortran_order"] is False
    rows, columns = header["shape"]
    body = data[10 + length:]
    assert len(body) == 4 * rows * columns, (len(body), header)
    return header["shape"], struct.unpack(f"<{rows * columns}f", body)


def read_safetensors(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    formats = {"F32": "f", "I64": "q"}
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        code = formats[entry["dtype"]]
        size = struct.calcsize(code)
        tensors[name] = struct.unpack(f"<{(end - begin) // size}{code}", data[begin:end])
    return tensors


class LogitsTest(CliTest):
    def logits(self, *arguments):
        out = self.folder / "out.npy"
        self.ok("logits", *arguments, "-o", out)
        self.assertEqual(list(self.folder.iterdir()), [out])  # no temporary file
        return read_npy(out.read_bytes())

    def test_golden(self):
        for path in ("llama/gqa", "qwen2/tied", "qwen3/gqa_head_dim", "gpt_neox/parallel",
                     "internlm2/gqa", "mistral/window", "opt/post_norm", "bloom/alibi",
                     "mixtral/two_of_five", "glm4/sandwich"):
            folder = GOLDEN / path
            with self.subTest(model=path):
                golden = read_safetensors(folder / "golden.safetensors")
                ids = ",".join(map(str, golden["input_ids"]))
                shape, logits = self.logits("-m", folder, "--tokens", ids, "-ub", "16",
                                            "--weights", "f32")
                self.assertEqual(shape[0], len(golden["input_ids"]))
                self.assertEqual(len(logits), len(golden["logits"]))
                largest = max(map(abs, golden["logits"]))
                difference = max(abs(a - b) for a, b in zip(logits, golden["logits"]))
                self.assertLess(difference, 2e-4 * largest)

    def test_text_is_framed_as_a_prompt(self):
        ids = json.loads(self.ok("tokenize", "-m", TINY, "-p", "Once upon", "--ids"))
        self.assertEqual(self.logits("-m", TINY, "-p", "Once upon"),
                         self.logits("-m", TINY, "--tokens", json.dumps(ids)))

    def test_replaces_a_file(self):
        out = self.folder / "out.npy"
        out.write_text("before")
        self.assertEqual(self.logits("-m", TINY, "--tokens", "1")[0], (1, 512))

    def test_standard_output(self):
        data = self.godwit("logits", "-m", TINY, "--tokens", "1,2", "-o", "-", text=False,
                           stdin=b"").stdout
        self.assertEqual(read_npy(data), self.logits("-m", TINY, "--tokens", "1,2"))


if __name__ == "__main__":
    unittest.main()
