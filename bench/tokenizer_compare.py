#!/usr/bin/env python3
"""Compares wick's token ids with llama.cpp's on fixed and random texts.

Random texts mix letters of many scripts, digits, contractions, white space of all kinds,
punctuation, emoji and combining marks, for which pattern engines differ. A seed always gives the same
texts. Exits with 1 if the ids of any text differ.
"""

import argparse
import random

import harness
import models
import oracle

FIXED = [
    " ", "\n", "\t\t x", "a  b   c    d", "line\r\nline\n\n\nline  \n  indented",
    "I'm you're he'll WE'VE it's o'clock 'tis 'LL",
    "1 12 123 1234 12345 1,234.56 0x1F 3.14e-10 ½ Ⅷ ٣",
    "don’t “quotes” — dash… ellipsis", "naïve café cafe\u0301 ÅÅ ﬁ", "日本語のテキスト、漢字と かな。한국어 文字列",
    "Привет, мир! Γειά σου Κόσμε שלום עולם مرحبا بالعالم नमस्ते ไทย", "👍🏽👨‍👩‍👧‍👦🇫🇷 ☃\ufe0f",
    "\u00a0nbsp\u2003em\u200bzero\u3000wide\u0085next",
    "snake_case camelCase HTTPServer2Go __init__ ++i;",
    "https://example.org/a?b=c&d=%20#e", "<|im_start|>user\nhi<|im_end|>", "a\u0300\u0301\u0302b",
    "\x01\x7f\x1b[0m",
    "\U0001d54f\U00010348 \U000e0041", "$5 €5 £5 #tag @name 50% a+b=c", "....!!!???---",
]
ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", " " * 8 + "\n\t\r",
    ".,;:!?'\"()[]{}<>@#$%^&*-_=+/\\|~`", "äöüßéèêñçøåÆŒ", "абвгдЖЗИЙ", "αβγδεΩ", "漢字日本語文", "한국어",
    "\u0300\u0301\u20dd\ufe0f\u200d", "👍😀🇩🇪", "½²₃Ⅷ٣४", "\u00a0\u2003\u3000\u2028\u200b", "’“”—…€",
]
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'RE", "'x"]


def random_text(generator):
    parts = []
    for _ in range(generator.randint(1, 24)):
        if generator.random() < 0.1:
            parts.append(generator.choice(CONTRACTIONS))
            continue
        alphabet = generator.choice(ALPHABETS)
        parts.append("".join(generator.choices(alphabet, k=generator.randint(1, 7))))
        parts.append(generator.choice(["", "", " ", "  "]))
    return "".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    harness.add_wick_option(parser)
    parser.add_argument("-m", "--model", help="a GGUF file (default: the default model)")
    parser.add_argument("--random", type=int, default=200, help="number of random texts (200)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random texts (1)")
    parser.add_argument("--special", action="store_true",
                        help="llama.cpp reads <|…|> in a text as special tokens")
    options = parser.parse_args()
    harness.check_wick(options.wick)
    model = options.model or models.ensure(["Q4_1"])["Q4_1"]
    generator = random.Random(options.seed)
    texts = FIXED + [random_text(generator) for _ in range(options.random)]
    special = ["--special"] if options.special else []
    expected = oracle.ask_texts("tokenize", model, texts, *special)
    wrong = 0
    for text, result in zip(texts, expected):
        # "-p=TEXT" would be safer for a text that starts with "-", but not all parsers accept it.
        text_option = ["-p", text] if not text.startswith("-") else [f"--prompt={text}"]
        ids = harness.Child([options.wick, "tokenize", "-m", model, *text_option,
                             "--json"]).json()["tokens"]
        if ids != result["tokens"]:
            wrong += 1
            print(f"FAIL {text!r}\n  wick      {ids}\n  llama.cpp {result['tokens']}", flush=True)
    print(f"{len(texts) - wrong} of {len(texts)} texts have the same ids")
    return 1 if wrong else 0


if __name__ == "__main__":
    harness.run_main(main)
