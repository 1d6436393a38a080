#!/usr/bin/env python3
"""Writes the expected results of the tokenizer tests, which are computed without wick.

    pip install tokenizers regex gguf
    python make_fixtures.py [--gguf SmolLM2-135M-Instruct.Q4_1.gguf]

Token ids come from the `tokenizers` package, and words from the `regex` module. tokenizer.json has
the texts, a small vocabulary trained on them, and the expected results for each split pattern. If a
model file is given, smollm2.json gets the expected results for SmolLM2's vocabulary. The texts only
contain characters assigned in Unicode 14, which all engines involved support.
"""
import argparse
import json
import pathlib
import random
import unicodedata

import regex
from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent / "data"

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
MODERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
PATTERNS = {"gpt-2": GPT2, "llama-bpe": MODERN % r"\p{N}{1,3}", "qwen2": MODERN % r"\p{N}"}

TEXTS = [
    "", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\r\n\r\n", "\t", " \t ", "\t\t\tx", " \n", "\n ",
    "a", " a", "a ", "  a", "a  ", " a ", "   a   b   ", "Hello", "Hello world", "Hello, world!",
    "The quick brown fox jumps over the lazy dog.", "I'm", "I'M", "don't", "DON'T", "we'll we've",
    "WE'LL WE'VE", "they're THEY'RE", "it's IT'S 's 'S", "he'd HE'D 'd", "'tis the season's end",
    "o'clock rock'n'roll", "''s 'll'll", "'\u017f long s", "can\u2019t won\u2019t", "'", "''",
    "' s", "'x", "0", "1", "12", "123", "1234", "12345", "1234567890", " 1", "  1", "   12 ", "a1",
    "1a", "a1b2c3", "3.14159", "1,000,000", "-42", "1e-10", "0xff", "2024-01-31", "12:34:56",
    "v1.2.3-rc4", "x 1", "x  1", "x   1  y", "\n1", " \n1", "\n 1", "1\n2\n3",
    "\u00b2\u00b3\u00b9", "\u00bd cup", "\u2163 \u216b", "\u0663\u0664\u0665",
    "\u0967\u0968\u0969\u096a", "\u3007\u4e00", "\u2460\u2461 \u2776", "\U0001d7d8\U0001d7d9",
    "x\u00b2+y\u00b2=z\u00b2", "(1)(2)[3]{4}", "100%", "$5.00", "\u20ac10 \u00a320 \u00a530",
    "foo_bar", "__init__", "self.x += 1", "a+b-c*d/e", "a == b && c != d || !e", "...", "!!!",
    "?!?!", " ...",
    "#include <cstdio>\n\nint main() {\n  std::printf(\"%d\\n\", 42);\n  return 0;\n}\n",
    "def f(x):\n    if x > 0:\n        return x * 2\n    return None\n",
    "for (let i = 0; i < n; ++i) {\n\tconsole.log(`${i}`);\n}\n",
    "SELECT * FROM t WHERE id = 7 AND name LIKE '%x%';", "{\"key\": [1, 2.5, null, true]}",
    "<html><body class=\"a b\">&nbsp;</body></html>", "https://example.com/a/b?c=d&e=f#g",
    "user@example.org", "C:\\Users\\me\\file.txt", "/usr/local/lib/libx.so.1",
    "\\alpha \\frac{1}{2} $x^2$", "```python\nprint('hi')\n```", "| a | b |\n|---|---|\n| 1 | 2 |",
    "- [ ] todo\n- [x] done", "# Title\n\n## Sub\n", "\u4f60\u597d\uff0c\u4e16\u754c\uff01",
    "\u6771\u4eac\u90fd\u306b\u884c\u304d\u307e\u3057\u305f\u3002",
    "\u30ab\u30bf\u30ab\u30ca \u3072\u3089\u304c\u306a",
    "\ud55c\uad6d\uc5b4 \ud14c\uc2a4\ud2b8\uc785\ub2c8\ub2e4.",
    "\u4e2d\u6587abc\u6df7\u5408123\u6587\u672c", "\U00020000\U0002a6d6 rare",
    "\u3000\u5168\u89d2\u3000\u7a7a\u767d", "\uff21\uff22\uff23\uff11\uff12\uff13",
    "\u300c\u5f15\u7528\u300d\u3001\u3002",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!",
    "\u0393\u03b5\u03b9\u03ac \u03c3\u03bf\u03c5 \u039a\u03cc\u03c3\u03bc\u03b5",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645",
    "\u0627\u0644\u0644\u0651\u064f\u063a\u064e\u0629\u064f "
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629",
    "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd \u05e2\u05d5\u05dc\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
    "\u10d2\u10d0\u10db\u10d0\u10e0\u10ef\u10dd\u10d1\u10d0",
    "\u0531\u0532\u0533 \u0561\u0562\u0563", "\u1230\u120b\u121d",
    "\u0ba4\u0bae\u0bbf\u0bb4\u0bcd", "\ua4d0\ua4d1\ua4d2", "\U0001f600",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\U0001f44d\U0001f3fd",
    "\U0001f1eb\U0001f1f7\U0001f1e9\U0001f1ea", "\u2764\ufe0f\u200d\U0001f525",
    "hi\U0001f600there", " \U0001f600 \U0001f600\U0001f600",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "cafe\u0301 caf\u00e9", "e\u0301\u0302\u0303", "\u0301", " \u0301a", "a\u0308o\u0308u\u0308",
    "Z\u0351\u036b\u0343a\u0357l\u0306g\u034bo", "\u1112\u1161\u11ab", "n\u0303 \u00f1",
    "\u00c5 \u212b A\u030a", "na\u00efve r\u00e9sum\u00e9 co\u00f6perate",
    "Stra\u00dfe \u00dcbergr\u00f6\u00dfe", "\u0141\u00f3d\u017a \u0130stanbul \u0131",
    "\u01c5\u01f2 \u02b0\u02b2 \u00aa\u00ba", "\ufb01\ufb02 ligatures", "\u2122\u00ae\u00a9",
    "\u2190\u2191\u2192\u2193 \u2200x\u2208\u2124", "\u2581\u2582 \u2588",
    "\u00a0nbsp\u00a0\u00a0here", "a\u2003b\u2009c\u200ad", "\u2028line\u2029para", "\u0085next",
    "a\u0085\u0085b", "\u180emvs\u180e", "zero\u200bwidth\ufeffbom", "\u1680ogham \u202f\u205f",
    "a\u000bb\u000cc", "\u0000nul\u0000", "\u0001\u0002\u001c\u001f\u007f", "tab\tsep\tvalues\n",
    "trailing   \n   leading", "a\n\n\n\nb", "a \n \n b", "a\r\nb\r\nc\r\n", "\r\r\n\n\r",
    "  \r\n  x", "x.\n\ny", "x)\r\n\r\n", "end.\n   ", "    \n\n    ", "!\n", "?!\n\n \n", " {\n",
    "};\r\n\t}", "$\n1", "a\u3000\n\u3000b", "x" * 60, "ab" * 40, "a" * 300, " " * 70, "\n" * 70,
    "=" * 80, "-" * 47, "-" * 48, "-" * 49, "1" * 50, "\u4e2d" * 40, "\U0001f600" * 20,
    "lo" + "o" * 50 + "ng",
    "Donaudampfschifffahrtselektrizit\u00e4tenhauptbetriebswerkbauunterbeamtengesellschaft",
    "pneumonoultramicroscopicsilicovolcanoconiosis supercalifragilisticexpialidocious",
    "ATGCATGCCGTAGGCTAACGATCGATCGGGATCCTAGCATCGACTAGCATCGAC",
    "aGVsbG8gd29ybGQgdGhpcyBpcyBiYXNlNjQgdGV4dA==", "deadbeefcafebabe0123456789abcdef",
    "camelCaseIdentifierName HTTPServerError snake_case_name SCREAMING_CASE",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<|im_start|><|im_start|>",
    "<|im_start", "<|im_start|", "|im_end|>", "<<|im_end|>>", " <|im_end|> ", "a<|endoftext|>b",
    "<|endoftext|>", "  <|im_end|>  \n", "1<|im_end|>2", "<think>hm</think>", "<think>",
    "<thinking>", "x <think> y", "<think><|im_end|>", "<repo_name>a/b<file_sep>c", "<<<", "<|>",
    "<||>", "Once upon a time, there was a little girl who lived in a village near the forest.",
    "It was the best of times, it was the worst of times, it was the age of wisdom...",
    "To be, or not to be: that is the question:\nWhether 'tis nobler in the mind to suffer",
    "What is the capital of France? The capital of France is Paris.",
    "Explain gravity in 3 sentences.",
    "\u201cQuotes\u201d \u2018single\u2019 \u2014 dash \u2013 en\u2026", "A\u00b7B\u2022C",
    "50\u00b0C \u00b15 \u00b5m 10\u207b\u2076", "\u0394x \u2248 \u03bb/2\u03c0",
    "RT @user: #hash \U0001f389 http://t.co/x", "ALL CAPS TEXT HERE", "MiXeD cAsE",
    "   indented\n\t\tmixed \t tabs", "a,b;c:d.e?f!g", "(a)[b]{c}<d>",
    "~`@#$%^&*()_+-=[]{}|;':\",./<>?",
]


def random_texts(seed, count):
    rng = random.Random(seed)
    ranges = [(32, 126)] * 6 + [(9, 13), (0xa0, 0x24f), (0x300, 0x36f), (0x370, 0x52f),
              (0x590, 0x6ff), (0x900, 0x97f), (0x2000, 0x206f), (0x2150, 0x218f), (0x3040, 0x30ff),
              (0x4e00, 0x9fff), (0xac00, 0xd7a3), (0x1f300, 0x1f6ff), (0x10000, 0x100ff)]
    texts = []
    while len(texts) < count:
        chars = []
        for _ in range(rng.randint(1, 40)):
            point = rng.randint(*rng.choice(ranges))
            if unicodedata.category(chr(point)) not in ("Cn", "Cs"):
                chars.append(chr(point) * rng.choice([1, 1, 1, 1, 2, 3]))
        texts.append("".join(chars))
    return texts


def words(pre, text):
    if pre == "smollm":
        out = []
        for part in regex.findall(r"\p{N}|\P{N}+", text):
            out += regex.findall(GPT2, part)
        return out
    return regex.findall(PATTERNS[pre], text)


def byte_level(use_regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def pre_tokenizer(pre):
    if pre == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                        byte_level(use_regex=True)])
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(PATTERNS[pre]), "isolated"),
                                    byte_level(use_regex=False)])


def oracle(pre, tokens, types, merges):
    vocab = {t: i for i, (t, kind) in enumerate(zip(tokens, types))}
    tok = Tokenizer(models.BPE(vocab=vocab, merges=[tuple(m.split(" ")) for m in merges],
                               ignore_merges=pre == "llama-bpe"))
    tok.pre_tokenizer = pre_tokenizer(pre)
    for text, kind in zip(tokens, types):
        if kind in (3, 4):
            tok.add_tokens([AddedToken(text, special=kind == 3, normalized=False)])
    return tok


def small_vocabulary(texts):
    """Returns control and user-defined tokens, 256 bytes and some 700 merges."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizer("llama-bpe")
    tok.train_from_iterator([t for t in texts if "<|" not in t] * 2, trainers.BpeTrainer(
        vocab_size=960, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    state = json.loads(tok.to_str())["model"]
    merges = [m if isinstance(m, str) else " ".join(m) for m in state["merges"]]
    learned = sorted(state["vocab"], key=state["vocab"].get)
    control = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    user = ["<think>", "<thinking>", "</think>"]
    return control + user + learned, [3] * 3 + [4] * 3 + [1] * len(learned), merges


def write(name, data):
    HERE.mkdir(exist_ok=True)
    path = HERE / name
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    path.write_text(text.replace("],", "],\n") + "\n")
    print(path, path.stat().st_size, "bytes")


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--gguf", help="a SmolLM2 model file")
    args = args.parse_args()
    texts = TEXTS + random_texts(1, 60)
    assert len(set(texts)) == len(texts)
    tokens, types, merges = small_vocabulary(texts)
    ids, lengths = {}, {}
    for pre in ("smollm", "gpt-2", "llama-bpe", "qwen2"):
        tok = oracle(pre, tokens, types, merges)
        ids[pre] = [tok.encode(t).ids for t in texts]
        cut = [words(pre, t) for t in texts]
        assert all("".join(c) == t for c, t in zip(cut, texts)), pre
        lengths[pre] = [[len(w.encode()) for w in c] for c in cut]
    write("tokenizer.json", {"texts": texts, "tokens": tokens, "types": types, "merges": merges,
                             "ids": ids, "words": lengths})
    if args.gguf:
        from gguf import GGUFReader
        fields = GGUFReader(args.gguf).fields
        get = lambda key: fields["tokenizer.ggml." + key].contents()
        tok = oracle("smollm", get("tokens"), get("token_type"), get("merges"))
        write("smollm2.json", {"ids": [tok.encode(t).ids for t in texts]})


if __name__ == "__main__":
    main()
