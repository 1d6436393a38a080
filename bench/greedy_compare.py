#!/usr/bin/env python3
"""Compares wick's greedy output with llama.cpp's F32 run, token by token, until the first near-tie.

Both run the F32 model. llama.cpp runs through llama_oracle (no flash attention, F32 KV cache), which
also reports the gap between its two highest logits at each step. If the gap is below 0.02 nats, two
correct programs may differ, so the comparison of that prompt ends there. Exits with 1 after a
disagreement before a near-tie, or if the prompts' token ids differ.
"""

import argparse
import shlex

import harness
import models
import oracle

NEAR_TIE = 0.02
CTX = 1024
PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n",
    "Q: What is 17 + 25?\nA:",
    "The three laws of thermodynamics are:\n1.",
    "Dear Sir or Madam,\n\nI am writing to",
    "Die Hauptstadt von Österreich ist",
    "Ingredients: 2 eggs, 200 g flour, ½ l milk.\nMethod:",
    "In mathematics, a prime number is",
    "#include <stdio.h>\n\nint main(void) {\n",
]


def wick_tokens(options, model, prompt):
    command = [options.wick, "generate", "-m", model, "-p", prompt, "-n", options.count, "--temp",
               "0", "--json", "--threads", options.threads, "--ctx", CTX]
    tokens = harness.Child(command + shlex.split(options.wick_args)).json()["tokens"]
    if not isinstance(tokens, list):
        raise harness.BenchError("wick generate --json: \"tokens\" is not a list of ids")
    return tokens


def compare_one(options, model, prompt, expected):
    """Returns (whether they agree, a description) for one prompt."""
    if not options.no_tokenize:
        command = [options.wick, "tokenize", "-m", model, "-p", prompt, "--json"]
        ids = harness.Child(command).json()["tokens"]
        if ids != expected["prompt"]:
            return False, f"the prompt's ids differ: wick {ids}, llama.cpp {expected['prompt']}"
    wick, peer, gaps = wick_tokens(options, model, prompt), expected["tokens"], expected["gap"]
    for i, (id_, gap) in enumerate(zip(peer, gaps)):
        if gap < NEAR_TIE:
            return True, f"{i} tokens equal, then a near-tie (gap {gap:.4f})"
        if i >= len(wick):
            # wick may omit the end-of-text token itself, but nothing before it.
            if expected["ended"] and i == len(peer) - 1:
                break
            return False, f"wick ends after {i} tokens, llama.cpp goes on with {id_}"
        if wick[i] != id_:
            second = " (its second choice)" if wick[i] == expected["second"][i] else ""
            return False, f"token {i}: wick {wick[i]}{second}, llama.cpp {id_}, gap {gap:.4f}"
    return True, f"{min(len(peer), len(wick))} tokens equal, no near-tie"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    harness.add_wick_option(parser)
    parser.add_argument("-n", "--count", type=int, default=96, help="tokens per prompt (96)")
    parser.add_argument("-p", "--prompt", action="append", help="use this prompt instead (repeatable)")
    parser.add_argument("--type", choices=models.TYPES, default="F32",
                        help="compare another type; its rounding causes more near-ties (F32)")
    parser.add_argument("--threads", type=int, default=2, help="threads on both sides (2)")
    parser.add_argument("--wick-args", default="", metavar="ARGS",
                        help="additional arguments for wick generate")
    parser.add_argument("--no-tokenize", action="store_true",
                        help="don't compare the prompts' token ids first")
    options = parser.parse_args()
    harness.check_wick(options.wick)
    model = models.ensure([options.type])[options.type]
    prompts = options.prompt or PROMPTS
    results = oracle.ask_texts("greedy", model, prompts, "-n", options.count, "-t", options.threads,
                               "--ctx", CTX)
    wrong = 0
    for prompt, expected in zip(prompts, results):
        agrees, found = compare_one(options, model, prompt, expected)
        wrong += not agrees
        print(f"{'ok  ' if agrees else 'FAIL'} {prompt[:40]!r}: {found}", flush=True)
    print(f"{len(prompts) - wrong} of {len(prompts)} prompts agree until the first near-tie")
    return 1 if wrong else 0


if __name__ == "__main__":
    harness.run_main(main)
