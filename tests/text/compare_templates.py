#!/usr/bin/env python3
"""Compares wick's rendering of chat templates with jinja2's, on conversations of all kinds.

The templates are files *.jinja in folders that the command names; published templates aren't part
of this repository. PROGRAM is build/release/bin/render_templates. Needs jinja2.

    tests/text/compare_templates.py PROGRAM FOLDER...

A rendering that jinja2 refuses must be refused by wick. Exits with 1 if any rendering differs."""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

NOW = 1753800000


class Generation(jinja2.ext.Extension):
    """The tag {% generation %} of Transformers, which marks a model's text for training."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    """Returns the environment in which Transformers renders chat templates, at a fixed time."""
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    now = datetime.datetime.fromtimestamp(NOW)
    env.globals["strftime_now"] = lambda form: now.strftime(form)
    return env


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Returns the weather of a place.\nIn degrees.",
    "parameters": {"type": "object", "properties": {
        "place": {"type": "string", "description": "A \"city\" or é town"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
        "days": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        "detail": {"type": ["string", "null"]},
        "place_of": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
        "any": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
        "required": ["place"]}, "return": {"type": "number", "description": "Degrees"}}}
CLOCK = {"type": "function", "function": {
    "name": "get_time", "description": "Returns the time.",
    "parameters": {"type": "object", "properties": {}}}}


def call(name, arguments, number="abc123def"):
    return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(text, name="get_weather", number="abc123def"):
    return {"role": "tool", "name": name, "tool_call_id": number, "content": text}


CALLED = [user("Weather in Paris?"),
          {"role": "assistant", "content": "", "tool_calls": [
              call("get_weather", {"place": "Paris", "days": [1, 2], "deep": {"a": None, "b": 1.5}})]},
          tool('{"degrees": 21.5}')]
SYSTEM = {"role": "system", "content": " You are brief.\n"}
DOCUMENTS = [{"title": "Cats", "text": "Cats purr.", "doc_id": 1, "content": "Cats purr."},
             {"title": "Dogs <b>", "text": "Dogs bark.\n", "doc_id": 2, "content": "Dogs bark."}]
PARTS = [{"role": "user", "content": [{"type": "text", "text": "Look: "}, {"type": "image"},
                                      {"type": "text", "text": "what is it?"}]}]

CONVERSATIONS = {
    "one": dict(messages=[user("Hi")]),
    "unprompted": dict(messages=[user("Hi"), assistant("Hello!")], add_generation_prompt=False),
    "system": dict(messages=[SYSTEM, user("  Hi  ")]),
    "turns": dict(messages=[user("Hi"), assistant("Hello."), user("A\n\nB"), assistant(" C "),
                            user("<|im_end|> {{ x }} é日🙂")]),
    "system turns": dict(messages=[SYSTEM, user("Hi"), assistant("Hello."), user("Bye")]),
    "tools": dict(messages=[SYSTEM, user("Weather?")], tools=[WEATHER, CLOCK]),
    "tools without system": dict(messages=[user("Weather?")], tools=[WEATHER]),
    "called": dict(messages=CALLED, tools=[WEATHER]),
    "called without tools": dict(messages=CALLED),
    "called, answered": dict(messages=[SYSTEM] + CALLED + [assistant("21.5 degrees."), user("Ok")],
                             tools=[WEATHER]),
    "arguments as text": dict(messages=[user("Weather?"), {
        "role": "assistant", "content": None, "tool_calls": [
            call("get_weather", '{"place": "Rome"}')]}, tool("20")], tools=[WEATHER]),
    "two calls": dict(messages=[user("Both?"), {
        "role": "assistant", "content": "I look.", "tool_calls": [
            call("get_weather", {"place": "Oslo"}), call("get_time", {}, "xyz456uvw")]},
        tool("1"), tool("12:00", "get_time", "xyz456uvw")], tools=[WEATHER, CLOCK]),
    "tool without name": dict(messages=CALLED[:2] + [{"role": "tool", "content": "21"}],
                              tools=[WEATHER]),
    "plain calls": dict(messages=[user("?"), {"role": "assistant", "tool_calls": [
        {"name": "get_time", "arguments": {}}]}, {"role": "tool", "content": "12"}], tools=[CLOCK]),
    "thinking": dict(messages=[user("2+2?"), assistant("<think>\nEasy.\n</think>\n\n4"),
                               user("3+3?")], enable_thinking=True),
    "no thinking": dict(messages=[user("2+2?"), assistant("<think>Easy.</think>4"), user("?")],
                        enable_thinking=False, thinking=False),
    "reasoning": dict(messages=[user("2+2?"), assistant("4", reasoning_content="Easy.",
                                                        thinking="Easy."), user("?")],
                      thinking=True, reasoning_effort="high"),
    "reasoning and call": dict(messages=[user("?"), {
        "role": "assistant", "content": "", "reasoning_content": "I need the time.",
        "thinking": "I need the time.", "tool_calls": [call("get_time", {})]},
        tool("12", "get_time")], tools=[CLOCK], enable_thinking=True),
    "documents": dict(messages=[SYSTEM, user("Do cats bark?")], documents=DOCUMENTS),
    "documents, other form": dict(messages=[user("Do cats bark?")], documents=DOCUMENTS,
                                  citation_mode="fast"),
    "parts": dict(messages=PARTS),
    "parts after system": dict(messages=[{"role": "system", "content": [
        {"type": "text", "text": "Be brief."}]}] + PARTS),
    "developer": dict(messages=[{"role": "developer", "content": "Be brief."}, user("Hi")]),
    "wrong order": dict(messages=[user("a"), user("b"), assistant("c"), assistant("d")]),
    "late system": dict(messages=[user("a"), SYSTEM, user("b")]),
    "unknown role": dict(messages=[{"role": "narrator", "content": "Once"}]),
    "no content": dict(messages=[user("Hi"), {"role": "assistant"}]),
    "none": dict(messages=[]),
    "prefix": dict(messages=[user("Hi"), assistant("Hel", prefix=True)],
                   add_generation_prompt=False, continue_final_message=True),
    "date": dict(messages=[user("Hi")], date_string="26 Jul 2024", tools_in_user_message=False,
                 tools=[WEATHER]),
    "builtin tools": dict(messages=[user("Hi")], builtin_tools=["browser", "python"],
                          model_identity="You are wick.", custom_tools=[WEATHER]),
}


def variables(conversation):
    result = {"add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>",
              "pad_token": "<pad>", "unk_token": "<unk>"}
    if "tools" not in conversation:
        result["tools"] = None
    if "documents" not in conversation:
        result["documents"] = None
    return {**result, **conversation}


class Wick:
    """Runs render_templates."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def render(self, template, context):
        request = json.dumps({"template": template, "variables": context, "now": NOW})
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"render_templates ended: {self.process.wait()}")
        return json.loads(line)


def expected(env, template, context):
    """Returns jinja2's text, or None and the error."""
    try:
        return env.from_string(template).render(**context), None
    except Exception as error:  # pylint: disable=broad-except
        return None, f"{type(error).__name__}: {error}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("-v", "--verbose", action="store_true", help="print texts that differ")
    args = parser.parse_args()
    wick, env = Wick(args.program), environment()
    templates = sorted(path for folder in args.folders for path in folder.rglob("*.jinja"))
    same = refused = differ = 0
    for path in templates:
        source = path.read_text(encoding="utf-8")
        for name, conversation in CONVERSATIONS.items():
            context = variables(conversation)
            text, error = expected(env, source, context)
            answer = wick.render(source, context)
            if text is not None and answer.get("text") == text:
                same += 1
            elif text is None and "error" in answer:
                refused += 1
                if args.verbose:
                    print(f"refused {path.name}, {name}: {error} | {answer['error']}")
            else:
                differ += 1
                print(f"DIFFERS {path.name}, {name}: jinja2: {error or repr(text)[:2000]}\n"
                      f"    wick: {answer.get('error') or repr(answer['text'])[:2000]}")
    print(f"{len(templates)} templates, {len(CONVERSATIONS)} conversations: {same} renderings are "
          f"the same, {refused} are refused by both, {differ} differ")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
