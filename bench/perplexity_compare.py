#!/usr/bin/env python3
"""Compares wick's perplexity with llama.cpp's, token by token, on the same files and contexts.

The text (licences that every Debian has, or -f FILE) is cut into pieces that fit into the context. Each
piece is scored alone, from its second token on. llama.cpp runs through llama_oracle, without flash
attention and with an F32 KV cache. Limits: for F32, |wick - llama.cpp| ≤ 0.001 nats of mean NLL; for
other types, wick - llama.cpp ≤ 0.003 on the same file. Prints a Markdown table. Exits with 1 if a limit
is exceeded.
"""

import argparse
import json
import shlex
import statistics
import tempfile
from pathlib import Path

import harness
import models
import oracle

F32_LIMIT = 0.001
OTHER_LIMIT = 0.003


def token_count(value):
    return len(value) if isinstance(value, list) else value


def wick_nll(options, model, file, expected_tokens):
    """Returns the per-token NLL of one piece. Fails if wick tokenizes the text differently from the oracle."""
    command = [options.wick, "perplexity", "-m", model, "-f", file, "--ctx", options.ctx, "--json"]
    found = harness.Child(command + shlex.split(options.wick_args)).json()
    count = token_count(found["tokens"])
    if count != expected_tokens:
        raise harness.BenchError(
            f"{file.name}: wick has {count} tokens, llama.cpp {expected_tokens}: tokenizers differ")
    if len(found["nll"]) != count - 1:
        raise harness.BenchError(
            f"{file.name}: {len(found['nll'])} scores for {count} tokens, expected one less")
    return found["nll"]


def compare(options, type_name, model, files):
    peer_arguments = ["--ctx", options.ctx, "-t", options.threads, "--kv", options.peer_kv]
    peer_results = oracle.ask("nll", model, files, *peer_arguments)
    peer = [value for result in peer_results for value in result["nll"]]
    row = {"type": type_name, "tokens": len(peer), "peer": statistics.fmean(peer)}
    if options.peer_only:
        return row
    wick = []
    for file, result in zip(files, peer_results):
        wick += wick_nll(options, model, file, len(result["tokens"]))
    differences = [a - b for a, b in zip(wick, peer)]
    row["wick"] = statistics.fmean(wick)
    row["difference"] = statistics.fmean(differences)
    # The standard error of the mean: a smaller difference is insignificant.
    row["standard_error"] = statistics.stdev(differences) / len(differences) ** 0.5
    row["largest"] = max(differences, key=abs)
    row["largest_at"] = max(range(len(differences)), key=lambda i: abs(differences[i])) + 1
    if type_name == "F32":
        row["limit"], row["pass"] = F32_LIMIT, abs(row["difference"]) <= F32_LIMIT
    else:
        row["limit"], row["pass"] = OTHER_LIMIT, row["difference"] <= OTHER_LIMIT
    return row


def markdown_row(row):
    if "wick" not in row:
        return f"| {row['type']} | {row['tokens']} | – | {row['peer']:.5f} | – | – | – | – | – |"
    verdict = "pass" if row["pass"] else "**fail**"
    return (f"| {row['type']} | {row['tokens']} | {row['wick']:.5f} | {row['peer']:.5f} "
            f"| {row['difference']:+.5f} | {row['standard_error']:.5f} | {row['largest']:+.4f} "
            f"| ≤ {row['limit']:g} | {verdict} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    harness.add_wick_option(parser)
    parser.add_argument("-f", "--file", type=Path, help="a UTF-8 text to use (default: licences)")
    parser.add_argument("--tokens", type=int, default=8192,
                        help="minimum number of tokens to score (8192; one per context isn't scored)")
    parser.add_argument("--ctx", type=int, default=2048, help="size of the context and of a piece (2048)")
    parser.add_argument("--types", nargs="+", choices=models.TYPES, metavar="TYPE",
                        default=models.TYPES, help=f"of {' '.join(models.TYPES)} (all)")
    parser.add_argument("--threads", type=int, default=2, help="llama.cpp's threads (2)")
    parser.add_argument("--peer-kv", choices=["f32", "f16"], default="f32",
                        help="llama.cpp's KV cache (f32)")
    parser.add_argument("--peer-only", action="store_true", help="score with llama.cpp only")
    parser.add_argument("--wick-args", default="", metavar="ARGS",
                        help="additional arguments for wick perplexity, such as '--threads 2'")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    options = parser.parse_args()
    if not options.peer_only:
        harness.check_wick(options.wick)
    paths = models.ensure(options.types)
    text = options.file.read_text(encoding="utf-8") if options.file else oracle.default_text()
    pieces = oracle.segments(next(iter(paths.values())), text, options.ctx, options.tokens)
    rows = []
    print("| type | tokens | wick, nats | llama.cpp, nats | difference | ± | largest of a token "
          "| limit | |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        files = oracle.save_texts(folder, pieces)
        for type_name in options.types:
            rows.append(compare(options, type_name, paths[type_name], files))
            print(markdown_row(rows[-1]), flush=True)
    if options.json:
        report = {"machine": harness.machine(), "ctx": options.ctx, "rows": rows}
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if any(row.get("pass") is False for row in rows) else 0


if __name__ == "__main__":
    harness.run_main(main)
