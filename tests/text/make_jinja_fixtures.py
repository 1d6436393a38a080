#!/usr/bin/env python3
"""Writes tests/text/data/jinja.json: templates, variables, and what jinja2 renders of them.

    pip install jinja2==3.1.6
    tests/text/make_jinja_fixtures.py

The environment is that of compare_templates.py. A text of null: jinja2 raises an error."""
import json
import pathlib

from compare_templates import CONVERSATIONS, environment, expected, variables

HERE = pathlib.Path(__file__).parent / "data"

DATA = {
    "name": "Ada", "n": 3, "zero": 0, "x": 2.5, "yes": True, "no": False, "nothing": None,
    "text": "  Hello, World!  ", "uni": "Ünïcödé 日本 🙂", "long": "The quick brown fox jumps over it",
    "list": [3, 1, 2], "words": ["pear", "Apple", "fig", "apple"], "empty": [], "nested": [[1, 2], [3]],
    "dict": {"b": 1, "a": 2, "C": 3}, "items_key": {"items": 7, "get": 8},
    "people": [{"name": "Bo", "age": 30, "city": {"name": "Rome"}},
               {"name": "al", "age": 25, "city": {"name": "Oslo"}},
               {"name": "Cy", "age": 30, "city": {"name": "Rome"}, "on": True}],
    "markup": "<b>&'\"</b>", "lines": "one\ntwo\r\nthree\n\n four", "mixed": [1, "a", None, True, 2.0],
    "deep": {"a": [{"b": {"c": [1, {"d": "e"}]}}]}, "quote": "it's", "both": "it's \"so\"",
    "tree": [{"v": 1, "kids": [{"v": 2, "kids": [{"v": 3, "kids": []}]}, {"v": 4, "kids": []}]}],
}

# Each line is a template; \n in it is a newline.
LINES = r"""
Hello {{ name }}!
{{ missing }}|{{ dict.missing }}|{{ dict['missing'] }}|{{ list[9] }}|{{ nothing }}|{{ nothing.x }}
{{ missing.attribute }}
{{ dict.missing.more }}
{{ missing['a'] }}
{{ missing() }}
{{ 1 }} {{ 1.0 }} {{ 1e3 }} {{ 1e16 }} {{ 1e-5 }} {{ 0.1 }} {{ 123456789.125 }} {{ 1.5e300 }} {{ 100000000000000000.0 }}
{{ 1_000 }} {{ 0x1f }} {{ 0o17 }} {{ 0b101 }} {{ 1_0.5 }} {{ 12.0e-3 }}
{{ true }} {{ True }} {{ false }} {{ False }} {{ none }} {{ None }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }}
{{ 7.5 // 2 }} {{ -7.5 // 2 }} {{ 7.5 % 2 }} {{ -7.5 % 2 }} {{ 2 ** 0.5 }} {{ 1 + 2.0 }} {{ 3 - 1.5 }} {{ 2 * 1.5 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1 + 'a' }}
{{ 'a' + 1 }}
{{ 'a' ~ 1 ~ none ~ true ~ missing ~ [1, 'b'] }}
{{ 'ab' * 3 }} {{ 3 * 'ab' }} {{ [1] * 2 }} {{ (1, 2) * 2 }} {{ 'a' * -1 }}|
{{ 2 + 3 * 4 ** 2 }} {{ (2 + 3) * 4 }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }} {{ +n }} {{ -n }} {{ -n + 1 }}
{{ 1 ~ 2 + 3 ~ 4 }}
{{ true + 1 }} {{ true + true }} {{ -true }} {{ true * 2.5 }}
{{ [1, 2] + [3] }} {{ (1,) + (2, 3) }} {{ 'a' 'b' "c" }}
{{ 1 == 1.0 }} {{ 1 == true }} {{ 'a' == 'a' }} {{ [1] == [1] }} {{ {'a': 1} == {'a': 1.0} }} {{ none == none }} {{ missing == nope }} {{ none == false }} {{ 1 != 2 }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 3 > 2 >= 2 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ (1, 'a') < (1, 'b') }} {{ 1 <= 1.0 }}
{{ 1 < 'a' }}
{{ none < 1 }}
{{ [1] < (2,) }}
{{ 1 in list }} {{ 9 in list }} {{ 9 not in list }} {{ 'el' in 'hello' }} {{ 'a' in dict }} {{ 1 in missing }} {{ none in mixed }} {{ '' in '' }}
{{ 1 in 'a' }}
{{ 'a' in 1 }}
{{ [] in dict }}
{{ not true }} {{ not '' }} {{ not not 1 }} {{ true and 'b' }} {{ '' and 'b' }} {{ '' or 'c' }} {{ 0 or none }} {{ 1 or missing.x }}
{{ not 1 == 2 }} {{ not 1 in list }} {{ 1 if true }} {{ 1 if false }}| {{ 1 if false else 2 }} {{ 1 if no else 2 if yes else 3 }} {{ (1 if false) is defined }}
{{ (1, 2) }} {{ (1,) }} {{ () }} {{ [1, 'a', none] }} {{ {'a': 1, 2: [3], none: true, 1.5: (1,)} }} {{ 1, 2 }}
{{ {'a': 1, 'a': 2} }} {{ {1: 'a', true: 'b', 1.0: 'c'} }} {{ {[]: 1} }}
{{ {(1, 2): 3}[(1, 2)] }} {{ {1: 2}[true] }} {{ {'a': 1}.a }} {{ {'a': {'b': 2}}['a'].b }}
{{ list[0] }} {{ list[-1] }} {{ list.0 }} {{ nested.0.1 }} {{ text[2] }} {{ uni[1] }} {{ uni[-1] }} {{ list[1.0] }}| {{ list['0'] }}| {{ text[99] }}|
{{ list[1:] }} {{ list[:-1] }} {{ list[::-1] }} {{ list[::2] }} {{ list[5:] }} {{ list[-2:] }} {{ list[2:0:-1] }} {{ list[none:2] }} {{ (1, 2, 3)[1:] }}
{{ uni[1:4] }} {{ uni[::-1] }} {{ uni[::2] }} {{ uni[-2:] }} {{ uni[4:1] }}| {{ uni[8:0:-3] }} {{ text[2:7] }} {{ text[-100:5] }} {{ range(10)[2:8:3] | list }} {{ range(10)[::-4] | list }}
{{ list[::0] }}
{{ nothing[1:] }}
{{ missing[1:] }}
{{ n[1:] }}
{{ dict[1:] }}
{{ 'abc'[1:][0] }} {{ 'abc'.upper()[0] }} {{ ('abc' | upper)[1] }} {{ [1, 2][1] + 1 }}
{{ dict }} {{ dict.items() }} {{ dict.keys() }} {{ dict.values() }} {{ dict.items() | list }} {{ dict.get('a') }} {{ dict.get('z') }} {{ dict.get('z', 5) }}
{{ dict.get('z', default=5) }}
{{ items_key['items'] }}|{{ items_key['get'] }}
{{ dict.items is callable }} {{ dict.items is defined }} {{ 'a'.upper is defined }} {{ 'a'.nothing is defined }} {{ dict.copy() }} {{ dict['items'] is callable }}
{{ dict.pop('a') }}
{{ dict.update({'z': 1}) }}
{{ list.append(1) }}
{{ list.append is defined }} {{ list.__class__ is defined }} {{ list.__class__ }}|{{ ''.__class__ }}
{{ list.__class__.__mro__ }}
{{ list.count(1) }} {{ list.index(2) }} {{ (1, 2, 1).count(1) }} {{ list.copy() }}
{{ list.index(99) }}
{{ quote }} {{ [quote] }} {{ [both] }} {{ ['a\nb\t\\'] }} {{ ['é日🙂'] }} {{ ['\x01\x7f\u00ad\u200b\u2028\U000e0001'] }} {{ [markup] }}
{{ 'a\tb\\n\'\"\x41\u00e9\U0001F642\101\q' }} {{ "a'b" }} {{ 'a"b' }}
{{ text.strip() }}|{{ text.lstrip() }}|{{ text.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'abcab'.strip('ba') }}|{{ 'éaé'.strip('é') }}|{{ '\u3000a\u00a0'.strip() }}|{{ ''.strip() }}|{{ 'aaa'.strip('a') }}
{{ 'a,b,,c'.split(',') }} {{ 'a,b,,c'.split(',', 1) }} {{ 'a,b,,c'.rsplit(',', 1) }} {{ ' a  b c '.split() }} {{ ' a  b c '.split(none, 1) }} {{ ' a  b c '.rsplit(none, 1) }} {{ ' a  b c '.rsplit() }} {{ ''.split() }} {{ ''.split(',') }} {{ 'a'.split('ab') }}
{{ 'a b'.split(maxsplit=1) }} {{ 'a--b--c'.split('--')[-1] }} {{ 'x</think>y'.split('</think>')[-1].lstrip('\n') }} {{ 'a b c d'.split(' ', 2) }} {{ 'a.b.c'.rsplit('.') }}
{{ 'a'.split('') }}
{{ lines.splitlines() }} {{ lines.splitlines(true) }} {{ 'a\n'.splitlines() }} {{ '\n'.splitlines() }} {{ ''.splitlines() }} {{ 'a\x0bb\x1cc\u2028d\x85e'.splitlines() }}
{{ 'hello'.startswith('he') }} {{ 'hello'.startswith('lo') }} {{ 'hello'.startswith(('a', 'h')) }} {{ 'hello'.startswith('l', 2) }} {{ 'hello'.startswith('e', 1, 2) }} {{ 'hello'.endswith('lo') }} {{ 'hello'.endswith(('x', 'o')) }} {{ 'hello'.endswith('l', 0, 4) }} {{ 'a'.startswith('', 5) }} {{ ''.startswith('') }}
{{ 'hello'.startswith(1) }}
{{ 'hello'.replace('l', 'L') }} {{ 'hello'.replace('l', 'L', 1) }} {{ 'hello'.replace('', '-') }} {{ 'hello'.replace('', '-', 2) }} {{ 'aaa'.replace('aa', 'b') }} {{ 'é日'.replace('', '.') }} {{ 'a'.replace('b', 'c') }}
{{ 'hello'.replace('l') }}
{{ 'Hello World'.upper() }} {{ 'Hello World'.lower() }} {{ 'hello world'.title() }} {{ "they're bill's".title() }} {{ 'hELLO wORLD'.capitalize() }} {{ uni.upper() }} {{ uni.lower() }} {{ 'éa'.capitalize() }} {{ 'x1y é2z'.title() }} {{ ''.capitalize() }}|
{{ 'hello'.find('l') }} {{ 'hello'.find('z') }} {{ 'hello'.rfind('l') }} {{ 'hello'.find('l', 3) }} {{ uni.find('日') }} {{ 'hello'.index('e') }} {{ 'hello'.rindex('l') }} {{ 'hello'.count('l') }} {{ 'aaaa'.count('aa') }} {{ 'é日'.count('') }} {{ 'hello'.find('') }} {{ 'hello'.find('', 9) }} {{ 'hello'.count('l', 3) }} {{ 'hello'.find('o', -2) }}
{{ 'hello'.index('z') }}
{{ ', '.join(words) }} {{ ''.join([]) }}| {{ '-'.join('abc') }} {{ '-'.join(dict) }} {{ '/'.join(words | map('upper')) }}
{{ ', '.join([1, 2]) }}
{{ 'abc'.isalpha() }} {{ 'ab1'.isalpha() }} {{ ''.isalpha() }} {{ '12'.isdigit() }} {{ '1.2'.isdigit() }} {{ 'ab1'.isalnum() }} {{ ' \n'.isspace() }} {{ ''.isspace() }} {{ 'AB'.isupper() }} {{ 'Ab'.isupper() }} {{ 'ab1'.islower() }} {{ '1'.islower() }} {{ 'é日'.isalpha() }} {{ '²'.isdigit() }} {{ '½'.isnumeric() }} {{ '½'.isdecimal() }} {{ 'a'.isascii() }} {{ 'é'.isascii() }}
{{ 'a-b-c'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ 'abc'.partition('-') }} {{ 'abc'.rpartition('-') }} {{ 'prefix'.removeprefix('pre') }} {{ 'prefix'.removesuffix('fix') }} {{ 'a'.removesuffix('') }} {{ '7'.zfill(3) }} {{ '-7'.zfill(4) }} {{ 'a'.ljust(3) }}| {{ 'a'.rjust(3, '.') }} {{ 'ab'.center(5, '*') }} {{ 'abc'.center(6, '*') }} {{ 'é'.center(4) }}|
{{ 'hi {} {}'.format(1, 'a') }} {{ '{1} {0}'.format(1, 2) }} {{ '{a} {b[0]} {c.x}'.format(a=1, b=[2], c={'x': 3}) }} {{ '{{}}'.format() }} {{ '{:>5}|{:<5}|{:^5}|{:*^5}'.format('a', 'b', 'c', 'd') }} {{ '{:05d} {:+d} {:,} {:x} {:#x} {:b}'.format(42, 42, 1234567, 255, 255, 5) }} {{ '{:.2f} {:e} {:g} {:.1%} {:8.3f}'.format(3.14159, 12345.678, 0.0001, 0.256, 2.5) }} {{ '{!r} {!s}'.format('a', 'a') }} {{ '{:.2}'.format('abc') }} {{ '{:5}|'.format(3) }} {{ '{}'.format(none) }}
{{ '{} {}'.format(1) }}
{{ '{'.format(1) }}
{{ '%s %d %5.2f %x %05d %-5s| %%' % ('a', 3, 2.5, 255, 42, 'b') }} {{ '%s' % 'one' }} {{ '%(a)s %(b)d' % {'a': 1, 'b': 2} }} {{ '%s' % [1, 2] }} {{ '%r' % 'a' }} {{ '%c' % 65 }} {{ '%+d % d' % (1, 2) }} {{ '%e %g' % (12345.678, 0.00001) }} {{ '%d' % 3.9 }} {{ '%o %X %#x' % (8, 255, 255) }} {{ '%.3s|' % 'abcdef' }} {{ '%5s|' % 'ab' }}
{{ '%s %s' % ('a',) }}
{{ '%s' % ('a', 'b') }}
{{ '%d' % 'a' }}
{{ '%s, %s!' | format('Hi', name) }} {{ '%(a)s' | format(a=1) }} {{ '%.1f' | format(x) }}
{{ text | trim }}|{{ 'xax' | trim('x') }}|{{ nothing | trim }}|{{ missing | trim }}|{{ 5 | trim }}
{{ name | upper }} {{ name | lower }} {{ 'hello wORLD-foo (bar)' | title }} {{ 'hELLO' | capitalize }} {{ 5 | upper }} {{ nothing | lower }} {{ uni | upper }}
{{ list | length }} {{ name | count }} {{ dict | length }} {{ missing | length }} {{ uni | length }} {{ dict.items() | length }} {{ range(5) | length }} {{ '' | length }}
{{ 5 | length }}
{{ list | map('string') | length }}
{{ words | join }} {{ words | join(', ') }} {{ [1, none, 2.0, true] | join('-') }} {{ people | join(', ', attribute='name') }} {{ people | join('|', 'city.name') }} {{ missing | join(',') }}| {{ 'abc' | join('.') }} {{ dict | join(',') }}
{{ missing | default('d') }} {{ missing | default }}| {{ '' | default('d') }}| {{ '' | default('d', true) }} {{ none | default('d') }} {{ none | d('d', boolean=true) }} {{ dict.x | default(dict.y | default(3)) }} {{ 0 | default(1, true) }}
{{ list | first }} {{ list | last }} {{ empty | first }}| {{ empty | last }}| {{ 'abc' | first }} {{ 'abc' | last }} {{ dict | first }} {{ range(3) | last }} {{ dict.items() | first }} {{ list | map('string') | first }} {{ '' | first }}|
{{ list | map('string') | last }}
{{ 5 | first }}
{{ 'abc' | list }} {{ dict | list }} {{ (1, 2) | list }} {{ range(3) | list }} {{ missing | list }} {{ uni | list }}
{{ nothing | list }}
{{ 5 | string + '5' }} {{ none | string }} {{ [1] | string }} {{ 1.0 | string }} {{ missing | string }}| {{ true | string | lower }}
{{ '42' | int }} {{ '42.9' | int }} {{ 'x' | int }} {{ 'x' | int(7) }} {{ 3.9 | int }} {{ -3.9 | int }} {{ true | int }} {{ none | int }} {{ '0x1f' | int(0, 16) }} {{ '11' | int(base=2) }} {{ ' 12 ' | int }} {{ '1_000' | int }} {{ '1e3' | int }} {{ '-5' | int }} {{ '+5' | int }} {{ [] | int(3) }} {{ '' | int }}
{{ '4.5' | float }} {{ 'x' | float }} {{ 'x' | float(1.5) }} {{ 3 | float }} {{ none | float }} {{ '1e3' | float }} {{ 'inf' | float }} {{ '-1' | float }} {{ ' 2.5 ' | float }}
{{ missing | int }}
{{ -5 | abs }} {{ (-5) | abs }} {{ -2.5 | abs }} {{ (-2.5) | abs }} {{ 3 | abs }}
{{ 'a' | abs }}
{{ 2.5 | round }} {{ 3.5 | round }} {{ 2.675 | round(2) }} {{ 42.55 | round(1) }} {{ 42.55 | round(1, 'floor') }} {{ 42.51 | round(1, 'ceil') }} {{ 3 | round }} {{ 2.5 | round(0, 'ceil') }} {{ 1234.5 | round(-2) }} {{ 7 | round(0, 'floor') }} {{ -0.4 | round }}
{{ 'a' | round }}
{{ 2.5 | round(1, 'up') }}
{{ 'hello' | replace('l', 'L') }} {{ 'hello' | replace('l', 'L', 1) }} {{ 112 | replace(1, 2) }} {{ none | replace('N', 'n') }} {{ 'a' | replace(old='a', new='b') }} {{ 'aaa' | replace('a', 'b', count=none) }}
{{ 'abc' | reverse }} {{ list | reverse | list }} {{ dict | reverse | list }} {{ (1, 2) | reverse | list }} {{ list | map('string') | reverse }} {{ uni | reverse }} {{ range(3) | reverse | list }}
{{ list | reverse | length }}
{{ list | sort }} {{ words | sort }} {{ words | sort(case_sensitive=true) }} {{ words | sort(reverse=true) }} {{ people | sort(attribute='age') | map(attribute='name') | list }} {{ people | sort(attribute='age,name') | map(attribute='name') | list }} {{ people | sort(true, attribute='age') | map(attribute='name') | list }} {{ 'bca' | sort }} {{ people | sort(attribute='city.name') | map(attribute='name') | join }} {{ nested | sort(attribute=0) }} {{ [2, 1.5, true] | sort }}
{{ mixed | sort }}
{{ people | sort(attribute='nope') | length }}
{{ words | unique | list }} {{ words | unique(true) | list }} {{ people | unique(attribute='age') | map(attribute='name') | list }} {{ [1, 1.0, true, '1'] | unique | list }}
{{ list | min }} {{ list | max }} {{ words | min }} {{ words | max }} {{ empty | min }}| {{ people | max(attribute='age') }} {{ people | min(attribute='name') }} {{ words | max(case_sensitive=true) }} {{ 'hello' | max }}
{{ list | sum }} {{ people | sum(attribute='age') }} {{ list | sum(start=10) }} {{ [1.5, 2] | sum }} {{ empty | sum }} {{ nested | sum(start=[]) }}
{{ words | sum }}
{{ words | map('upper') | list }} {{ words | map('replace', 'a', 'b') | list }} {{ people | map(attribute='name') | list }} {{ people | map(attribute='on', default=false) | list }} {{ people | map(attribute='city.name') | join(',') }} {{ nested | map('length') | list }} {{ nested | map(attribute=0) | list }} {{ nested | map('join', '-') | list }} {{ none | map('upper') | list }} {{ words | map('default', 'x') | list }}
{{ words | map('nope') | list }}
{{ (words | map) | list }}
{{ list | select | list }} {{ list | select('odd') | list }} {{ list | select('gt', 1) | list }} {{ list | reject('odd') | list }} {{ mixed | select('string') | list }} {{ mixed | reject('none') | list }} {{ [0, 1, ''] | select | list }} {{ list | select('divisibleby', 2) | list }} {{ list | select('in', [1, 2]) | list }} {{ none | select | list }} {{ list | select('>', 1) | list }}
{{ people | selectattr('on') | map(attribute='name') | list }} {{ people | selectattr('on', 'defined') | map(attribute='name') | list }} {{ people | selectattr('age', 'equalto', 30) | map(attribute='name') | list }} {{ people | rejectattr('age', 'eq', 30) | map(attribute='name') | list }} {{ people | selectattr('city.name', '==', 'Rome') | list | length }} {{ people | rejectattr('on', 'undefined') | list | length }}
{{ list | select('nope') | list }}
{{ people | selectattr | list }}
{{ people | selectattr('name', 'in') | list }}
{{ dict | items | list }} {{ missing | items | list }} {{ dict | dictsort }} {{ dict | dictsort(true) }} {{ dict | dictsort(by='value') }} {{ dict | dictsort(reverse=true) }} {{ dict | dictsort(false, 'value', true) }}
{{ list | items | list }}
{{ list | dictsort }}
{{ dict | tojson }} {{ people | tojson }} {{ none | tojson }} {{ true | tojson }} {{ 1.0 | tojson }} {{ 1e20 | tojson }} {{ [] | tojson }} {{ {} | tojson }} {{ (1, [2]) | tojson }} {{ uni | tojson }} {{ uni | tojson(ensure_ascii=true) }} {{ '<a & "b">\n\t\\/\x01\x7f' | tojson }} {{ {1: 2, true: 3, none: 4, 1.5: 6} | tojson }}
{{ deep | tojson(indent=2) }} {{ dict | tojson(sort_keys=true) }} {{ dict | tojson(separators=(',', ':')) }} {{ dict | tojson(indent=4, sort_keys=true) }} {{ [1, []] | tojson(indent=1) }} {{ {'a': {}} | tojson(indent='--') }} {{ dict | tojson(false, 2) }} {{ dict | tojson(indent=0) }} {{ ('inf' | float) | tojson }} {{ ('nan' | float) | tojson }}
{{ missing | tojson }}
{{ range(3) | tojson }}
{{ dict.items() | tojson }}
{{ {(1, 2): 3} | tojson }}
{{ dict | tojson(nope=1) }}
{{ markup | e }} {{ markup | escape }} {{ markup | safe }} {{ (markup | safe) + markup }} {{ markup + (markup | safe) }} {{ (markup | safe) ~ markup }} {{ (markup | e) | e }} {{ (markup | e) | forceescape }} {{ ('<' | safe).upper() + '<' }} {{ (' <' | safe) | trim + '<' }} {{ ('<' | safe)[0] + '<' }} {{ ('<' | safe) * 2 + '<' }} {{ ('<' | safe) is escaped }} {{ '<' is escaped }} {{ ('a<b' | safe).split('<')[1] + '<' }} {{ 5 | safe + '<' }}
{{ 'a\nb\n\nc' | indent }}|{{ 'a\nb\n\nc' | indent(2, true) }}|{{ 'a\nb\n\nc' | indent(2, false, true) }}|{{ 'a\nb' | indent('> ') }}|{{ 'a\nb' | indent(width=1, first=true, blank=true) }}|{{ '' | indent }}|{{ 'a\n' | indent }}|
{{ long | truncate(15) }} {{ long | truncate(15, true) }} {{ long | truncate(15, false, '!') }} {{ long | truncate(31) }} {{ long | truncate(15, leeway=0) }} {{ 'short' | truncate }} {{ 'abcdefghij' | truncate(5, leeway=0) }}
{{ long | truncate(2) }}
{{ long | wordcount }} {{ '' | wordcount }} {{ "it's é_1 日本" | wordcount }} {{ 'ab' | center(6) }}| {{ 'a b/c?é&' | urlencode }} {{ 5 | center(4) }}|
{{ range(7) | batch(3) | list }} {{ range(7) | batch(3, 'x') | list }} {{ range(7) | slice(3) | list }} {{ range(7) | slice(3, 'x') | list }} {{ [] | batch(2) | list }}
{{ people | groupby('age') | length }} {% for age, group in people | groupby('age') %}{{ age }}:{{ group | map(attribute='name') | join(',') }};{% endfor %} {% for g in people | groupby('city.name') %}{{ g.grouper }}={{ g.list | length }} {% endfor %}{{ people | groupby('on', default=false) | map('first') | list }} {{ ['b', 'A', 'a'] | groupby(0) | map(attribute='grouper') | list }}
{{ dict | attr('a') }}|{{ dict | attr('items') is callable }}|{{ name | attr('upper') is callable }}
{{ name is defined }} {{ missing is defined }} {{ missing is undefined }} {{ missing is not defined }} {{ not missing is defined }} {{ nothing is none }} {{ nothing is not none }} {{ name is string }} {{ n is number }} {{ yes is number }} {{ n is integer }} {{ yes is integer }} {{ x is float }} {{ n is float }} {{ yes is boolean }} {{ n is boolean }}
{{ dict is mapping }} {{ list is mapping }} {{ list is sequence }} {{ name is sequence }} {{ dict is sequence }} {{ n is sequence }} {{ missing is sequence }} {{ dict.items() is sequence }} {{ range(3) is sequence }} {{ (list | map('string')) is sequence }} {{ list is iterable }} {{ name is iterable }} {{ n is iterable }} {{ missing is iterable }} {{ dict.items() is iterable }} {{ missing is mapping }} {{ nothing is iterable }}
{{ yes is true }} {{ no is false }} {{ n is true }} {{ 1 is true }} {{ 3 is odd }} {{ 3 is even }} {{ 4.0 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ 'a' is eq 'a' }} {{ 1 is eq(1.0) }} {{ 1 is ne 2 }} {{ 1 is lt 2 }} {{ 1 is gt 2 }} {{ 1 is le 1 }} {{ 1 is ge 2 }} {{ 1 is lessthan 2 }} {{ 1 is greaterthan 2 }} {{ 1 is equalto 1 }}
{{ 1 is in list }} {{ 1 is not in list }} {{ 'a' is in 'abc' }} {{ none is sameas none }} {{ yes is sameas true }} {{ 1 is sameas true }} {{ list is sameas list }} {{ range is callable }} {{ name is callable }} {{ missing is callable }} {{ 'upper' is filter }} {{ 'nope' is filter }} {{ 'odd' is test }} {{ 'nope' is test }} {{ 'abc' is lower }} {{ 'ABC' is upper }} {{ 'Abc' is upper }} {{ name is string and n is number }} {{ name is defined or 1 }} {{ 5 is number + 1 if false else 2 }}
{{ 'a' is odd }}
{{ missing is odd }}
{{ 1 is nope }}
{{ 1 | nope }}
{% if false %}{{ 1 | nope }}{{ 1 is nope }}{% endif %}ok {{ (1 | nope) if false else 2 }}
{% if true %}{{ 1 | nope }}{% endif %}
{% for i in [] %}{{ 1 | nope }}{% endfor %}
{{ range(3) | list }} {{ range(1, 4) | list }} {{ range(5, 0, -2) | list }} {{ range(0) | list }} {{ range(3) }} {{ range(2, 5)[1] }} {{ range(3, 0) | list }}
{{ range(200000) | length }}
{{ range(1, 2, 0) }}
{{ range('a') }}
{{ dict(a=1, b=2) }} {{ dict({'a': 1}, b=2) }} {{ dict([('a', 1)]) }}
{{ namespace(a=1).a }} {{ namespace({'a': 2}).a }} {{ namespace().a }}| {% set ns = namespace(a=1, b='x') %}{{ ns }} {{ ns['a'] }} {{ ns.missing }}| {{ ns is mapping }}
{% set ns = namespace(n=0) %}{% for i in list %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }} {% set ns.new = [1] %}{{ ns.new }}
{% set d = {} %}{% set d.a = 1 %}
{% set nope.a = 1 %}
{% set j = joiner() %}{{ j() }}a{{ j() }}b {% set k = joiner('; ') %}{{ k() }}x{{ k() }}y{{ k() }}z
{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.current }}
{{ cycler() }}
{{ raise_exception('No ' ~ name) }}
{{ strftime_now('%Y-%m-%d %H:%M %B %b %d %j %A') }}
{% if n == 3 %}three{% elif n == 4 %}four{% else %}other{% endif %} {% if zero %}a{% elif yes %}b{% endif %} {% if empty %}a{% else %}b{% endif %}
{% if missing %}a{% else %}b{% endif %} {% if missing is defined and missing.x %}a{% endif %}| {% if name and not no %}c{% endif %} {% if [] or {} or '' or 0 or 0.0 or none %}x{% else %}all false{% endif %}
{% for i in list %}{{ i }},{% endfor %} {% for c in name %}[{{ c }}]{% endfor %} {% for k in dict %}{{ k }}{% endfor %} {% for k, v in dict.items() %}{{ k }}={{ v }};{% endfor %} {% for i in missing %}x{% else %}none{% endfor %} {% for i in empty %}x{% else %}empty{% endfor %}
{% for i in 5 %}{% endfor %}
{% for i in none %}{% endfor %}
{% for a, b in [(1, 2), [3, 4]] %}{{ a }}-{{ b }} {% endfor %} {% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %} {% for (a, b) in [(1, 2)] %}{{ a + b }}{% endfor %}
{% for a, in [(1,)] %}{{ a }}{% endfor %}
{% for a, b in [1] %}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% for i in list %}{{ loop.index }}/{{ loop.length }} {{ loop.index0 }} {{ loop.revindex }} {{ loop.revindex0 }} {{ loop.first }} {{ loop.last }} {{ loop.depth }} {{ loop.depth0 }} {{ loop.previtem }} {{ loop.nextitem }} {{ loop.cycle('a', 'b') }} {{ loop.changed(i > 1) }}\n{% endfor %}
{% for i in list if i > 1 %}{{ loop.index }}:{{ i }} of {{ loop.length }} {% endfor %} {% for i in list if i > 5 %}x{% else %}none{% endfor %} {% for k, v in dict.items() if v > 1 %}{{ k }}{% endfor %}
{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %} {% for i in list %}{% for j in list %}{% if j == 1 %}{% break %}{% endif %}{{ i }}{{ j }} {% endfor %}{% endfor %} {% for i in list %}{% break %}{% else %}else{% endfor %}
{% for i in list %}{% set s = i %}{{ s }}{% endfor %}{{ s }}| {% set t = 0 %}{% for i in list %}{% set t = t + i %}{{ t }} {% endfor %}{{ t }} {% if yes %}{% set u = 5 %}{% endif %}{{ u }}
{% for i in list %}{% for j in list %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %} {% for i in list %}{% set outer = loop %}{% for j in [1, 2] %}{{ outer.index }}.{{ loop.index }} {% endfor %}{% endfor %}
{% for i in list %}{{ i }}{% endfor %}{{ i }}|{{ loop }}|
{% for node in tree recursive %}{{ node.v }}@{{ loop.depth }}{% if node.kids %}({{ loop(node.kids) }}){% endif %}{% endfor %}
{% for i in list %}{{ loop([]) }}{% endfor %}
{% for i in list | reverse %}{{ i }}{{ ',' if not loop.last }}{% endfor %} {% for m in people | selectattr('on') %}{{ m.name }} {{ loop.length }}{% endfor %} {% for i in list[1:] %}{{ i }}{% endfor %} {% for a in people | map(attribute='age') %}{{ loop.first }}{% endfor %}
{% set a = 1 %}{% set a, b = 2, 3 %}{{ a }}{{ b }} {% set (c, d) = [4, 5] %}{{ c }}{{ d }} {% set e = 1, 2 %}{{ e }} {% set f = 'x' if yes else 'y' %}{{ f }} {% set range = 5 %}{{ range }}
{% set block %}  Hi {{ name }}  {% endset %}[{{ block }}] {% set up | upper | trim %} low {{ name }} {% endset %}[{{ up }}] {% set r | replace('a', 'b') %}banana{% endset %}{{ r }} {{ block is string }} {% set q %}{% set inner = 1 %}{% endset %}{{ inner }}|
{% set true = 1 %}
{% filter upper %}hello {{ name }}{% endfilter %} {% filter trim | replace('l', 'L') %} hello {% endfilter %}| {% filter indent(2) %}a\nb{% endfilter %}
{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}| {% with %}{% set z = 1 %}{{ z }}{% endwith %}{{ z }}| {% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }} {% with (c, d) = (1, 2) %}{{ c + d }}{% endwith %}
{% macro m(a, b=2, c='x') %}{{ a }}-{{ b }}-{{ c }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(1, c='z') }}{{ m(a=5, b=6) }}{{ m() }}{{ m(*[7, 8]) }}{{ m(**{'a': 9}) }}{{ m(1, *[2], **{'c': 3}) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}
{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m() }}
{% macro m() %}{{ varargs }} {{ kwargs }}{% endmacro %}{{ m(1, 2, a=3) }} {{ m() }} {% macro k(a) %}{{ a }}{{ varargs | join('+') }}{{ kwargs.items() | list }}{% endmacro %}{{ k(1, 2, 3, z=4) }}
{% macro wrap(tag) %}<{{ tag }}>{{ caller() }}</{{ tag }}>{% endmacro %}{% call wrap('b') %}bold {{ name }}{% endcall %} {% macro each(xs) %}{% for x in xs %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}{% call(v, i) each(list) %}{{ i }}:{{ v }} {% endcall %}
{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}
{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}
{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}
{% macro fact(n) %}{% if n > 1 %}{{ n }}*{{ fact(n - 1) }}{% else %}1{% endif %}{% endmacro %}{{ fact(5) }} {{ fact.name }} {{ fact }}
{% set g = 1 %}{% macro m() %}{{ g }}{% set g = 5 %}{{ g }}{% endmacro %}{{ m() }}{{ g }} {% set g = 2 %}{{ m() }} {% macro n(a, b=a) %}{{ b }}{% endmacro %}
{% for i in list %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %} {% macro outer() %}{% macro inner() %}in{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }} {% if yes %}{% macro c() %}c{% endmacro %}{% endif %}{{ c() }}
{% macro m(x) %}{{ x | upper }}{% endmacro %}{{ m('a') | lower }} {{ m('a') + 'b' }} {{ m('a') is string }} {{ m('abc') | length }}
{% raw %}{{ not }} {% evaluated %}{% endraw %} {%- raw -%} a {%- endraw -%} b {% raw %}\n  x\n  {% endraw %}y
{# comment #}a{#- b -#} c {# {{ x }} {% if %} #}d\n{# line #}\ne
a\n  {% if yes %}\n  b\n  {% endif %}\nc
a\n  {%- if yes -%}\n  b\n  {%- endif -%}\n  c
a\n  {%+ if yes +%}\n  b\n  {%+ endif +%}\n  c
a  {{- ' b ' -}}  c  {{ 'd' }}\n{{ 'e' }}\n\n  {{- 'f' }}  \n
  {% if yes %}x{% endif %}  \n  {{ name }}  \n  {# c #}  \nend
{% for i in list %}\n  {{ i }}\n{% endfor %}\ndone\n
{% for i in list -%}\n  {{ i }}\n{%- endfor %}\ndone\n\n
\t{% if yes %}\n\t\tx\n\t{% endif %}\n\ty
x {% if yes %} y {% endif %} z
{%if yes%}{{name}}{%endif%}{%-if yes-%} a {%-endif-%} b
{% generation %}{% set s = 1 %}{{ s }} {{ name }}{% endgeneration %}{{ s }}|
{% print name %} {% print 1, 2 %}
{{ '}}' }} {{ '%}' }} {{ "{{" }} {{ {'a': {'b': 1}}}} {{ {'a': 1}['a'] }} { { } } {% if '%}' %}x{% endif %}
{{ name -}} {{- name }} {{ 5 -}} x {{ 5 - 3 }} {{- -3 }}
a{{ '\n' }}b\r\nc\rd
{{ [1, 2,] }} {{ {'a': 1,} }} {{ (1, 2,) }} {{ dict.get('a',) }}
{{ name.upper().lower().title() }} {{ name | upper | lower | replace('a', 'b') | length }} {{ (name | upper).lower() }} {{ ('a' ~ 'b') | upper }} {{ 'a' ~ 'b' | upper }} {{ -1 | string }} {{ n | string ~ 'x' }}
{{ [1, 2
{% if yes %}
{% for i in list %}
{% endif %}
{% if yes %}{% endfor %}
{% nope %}
{{ }}
{% if %}{% endif %}
{{ 1 + }}
{{ a b }}
{{ (1 }}
{{ 'abc }}
{# never
{% raw %} never
{{ ] }}
{{ x[ }}
{% for in list %}{% endfor %}
{% for i of list %}{% endfor %}
{% set = 1 %}
{% set 1 = 1 %}
{% macro %}{% endmacro %}
{% macro m(a=1, b) %}{% endmacro %}
{% call 5 %}{% endcall %}
{% break %}
{% continue %}
{% else %}
{% endif %}
{% include 'x' %}
{% import 'x' as y %}
{% extends 'x' %}
{{ f(a=1, 2) }}
{{ 1 is defined is none }}
{{ @ }}
{{ $x }}
{{ 1.5.2 }}
{% set x %}never
{% filter %}x{% endfilter %}
{{ {1, 2} }}
{{ dict.items()[0] }}|
{{ dict.keys()[0] }}|
{{ (list | map('string'))[0] }}|
{% set g = list | map('string') %}{{ g | list }}{{ g | list }} {% set h = list | select %}{{ h | first }}{{ h | list }}
{% for k in dict | dictsort %}{{ k[0] }}{{ k }}{% endfor %} {% for x in (1, 2), (3, 4) %}{{ x }}{% endfor %} {% for i in 1, 2, 3 %}{{ i }}{% endfor %}
{{ 9223372036854775807 }} {{ -9223372036854775807 - 1 }} {{ 4611686018427387904 + 4611686018427387903 }} {{ 9223372036854775807 == 9223372036854775808.0 }} {{ 9007199254740993 < 9007199254740992.0 }}
{{ 5 % 3.5 }} {{ -5 % 3.5 }} {{ 5 // 0.3 }} {{ 1e308 * 10 }} {{ 0.1 + 0.2 }} {{ 1/3 }} {{ 2.0 ** 3 }} {{ 10 ** 15 }} {{ 1e15 }} {{ 123456789012345680.0 }} {{ 0.0001 }} {{ 0.00001 }} {{ -0.0 }} {{ 5e-324 }}
""".strip("\n").splitlines()

CHATS = {
    # ChatML with tools, thinking and tool responses, in the manner of Qwen's templates.
    "chatml": r"""{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\n\n' }}
    {%- endif %}
    {{- "# Functions\n<functions>" }}
    {%- for tool in tools %}
        {{- "\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\n</functions><|im_end|>\n" }}
{%- elif messages and messages[0].role == 'system' %}
    {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
{%- endif %}
{%- set ns = namespace(searching=true, last=messages | length - 1) %}
{%- for message in messages[::-1] %}
    {%- set place = (messages | length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and message.content is string and not (message.content.startswith('<out>') and message.content.endswith('</out>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last = place %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if message.role == "user" or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>\n' }}
    {%- elif message.role == "assistant" %}
        {%- set thought = '' %}
        {%- if message.reasoning_content is string %}
            {%- set thought = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set thought = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or thought) %}
            {{- '<|im_start|>assistant\n<think>\n' + thought.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
        {%- else %}
            {{- '<|im_start|>assistant\n' + content }}
        {%- endif %}
        {%- for call in message.tool_calls or [] %}
            {%- if (loop.first and content) or not loop.first %}{{- '\n' }}{%- endif %}
            {%- if call.function %}{%- set call = call.function %}{%- endif %}
            {{- '<call>\n{"name": "' ~ call.name ~ '", "arguments": ' }}
            {{- call.arguments if call.arguments is string else call.arguments | tojson }}
            {{- '}\n</call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or messages[loop.index0 - 1].role != "tool" %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\n<out>\n' + content + '\n</out>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != "tool" %}{{- '<|im_end|>\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}
{%- endif %}""",
    # Headers with a date and a tool preamble, in the manner of Llama 3.
    "headers": r"""{{- bos_token }}
{%- set date = date_string if date_string is defined else strftime_now("%d %b %Y") %}
{%- if messages and messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{%- if tools is not none %}{{- "Environment: ipython\n" }}{%- endif %}
{{- "Today: " + date + "\n\n" }}
{%- if tools is not none %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\n\n" }}
    {%- endfor %}
{%- endif %}
{{- system }}{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls | length == 1 %}{{- raise_exception("One call at once!") }}{%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}
        {{- '{"name": "' + call.name + '", ' }}
        {{- '"parameters": ' }}{{- call.arguments | tojson }}{{- "}<|eot_id|>" }}
    {%- else %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\n\n" }}
        {%- if message.content is mapping or message.content is iterable %}{{- message.content | tojson }}{%- else %}{{- message.content }}{%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %}
""",
    # Strict alternation with instruction brackets, in the manner of Mistral.
    "instructions": r"""{%- if messages and messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("Roles must alternate: user, assistant, user, …") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}{{- '"' + key + '": "' + val + '"' }}{%- else %}{{- '"' + key + '": ' + val | tojson }}{%- endif %}
                    {%- if not loop.last %}{{- ", " }}{%- endif %}
                {%- endfor %}
                {{- "}}" }}{%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" }}{%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\n\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function | tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id | length != 9 %}
                {{- raise_exception("Ids of calls have 9 characters!") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" + eos_token }}{%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"] | trim + eos_token }}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[TOOL_RESULTS] {"content": ' + content | string + ", " }}
        {{- '"call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}
        {{- raise_exception("Unknown role " ~ message.role) }}
    {%- endif %}
{%- endfor %}
""",
    # Macros that print schemas as TypeScript, parts of content, and documents.
    "macros": r"""{%- macro type_of(spec, required) -%}
    {%- if spec.type == "array" -%}
        {%- if spec['items'] -%}{{- type_of(spec['items'], []) + '[]' }}{%- else -%}any[]{%- endif -%}
    {%- elif spec.type is defined and spec.type is iterable and spec.type is not string and spec.type | length > 0 -%}
        {{- spec.type | join(' | ') }}
    {%- elif spec.anyOf -%}
        {%- for one in spec.anyOf -%}{{- type_of(one, required) }}{%- if not loop.last %} | {% endif -%}{%- endfor -%}
    {%- elif spec.enum -%}
        {{- '"' + spec.enum | join('" | "') + '"' }}
    {%- elif spec.type == "object" and spec.properties -%}
        {{- "{" }}
        {%- for name, inner in spec.properties.items() -%}
            {{- name -}}{%- if name not in (spec.required or []) -%}?{%- endif -%}: {{ type_of(inner, []) }}{{ ", " if not loop.last }}
        {%- endfor -%}
        {{- "}" }}
    {%- elif spec.type in ("integer", "number") -%}number
    {%- else -%}{{- spec.type | default('any') }}
    {%- endif -%}
{%- endmacro -%}
{%- macro content_of(content) -%}
    {%- if content is string -%}{{- content }}
    {%- elif content is iterable -%}
        {%- for part in content -%}{{- part.text if part.type == 'text' else '<' ~ part.type ~ '>' }}{%- endfor -%}
    {%- endif -%}
{%- endmacro -%}
{{- bos_token }}
{%- if tools %}
namespace functions {
{%- for tool in tools %}
    {%- set f = tool.function %}
// {{ f.description | replace('\n', ' ') }}
type {{ f.name }} = (_: {{ type_of(f.parameters, f.parameters.required) }}) => any;
{%- endfor %}
}
{%- endif %}
{%- for document in documents or [] %}
<doc id="{{ loop.index }}">{{ document.title | upper }}: {{ document.text | trim | truncate(20) }}</doc>
{%- endfor %}
{% for message in messages %}
<|{{ message.role }}|>
{{ content_of(message.content) | indent(2, first=true) }}
{%- for call in message.tool_calls | default([]) %}
    {%- if call.function is defined %}{% set call = call.function %}{% endif %}

{{ call.name }}(
    {%- if call.arguments is mapping -%}
        {%- for key, value in call.arguments | dictsort %}{{ key }}={{ value | tojson }}{{ ', ' if not loop.last else '' }}{% endfor %}
    {%- endif -%})
{%- endfor %}
{{ eos_token }}
{% endfor %}
{%- if add_generation_prompt -%}<|assistant|>
{% endif %}""",
}


def main():
    env = environment()
    cases = []
    for line in LINES:
        template = line.replace("\\n", "\n") if "'" not in line and '"' not in line else line
        # In lines with string literals only newlines outside of tags are meant.
        if template is line:
            parts, inside = [], 0
            i = 0
            while i < len(line):
                if line.startswith(("{{", "{%", "{#"), i) and not inside:
                    inside, step = 1, line[i:i + 2]
                elif line.startswith(("}}", "%}", "#}"), i) and inside:
                    inside, step = 0, line[i:i + 2]
                elif not inside and line.startswith("\\n", i):
                    parts.append("\n")
                    i += 2
                    continue
                elif not inside and line.startswith("\\r", i):
                    parts.append("\r")
                    i += 2
                    continue
                else:
                    step = line[i]
                parts.append(step)
                i += len(step)
            template = "".join(parts)
        text, _ = expected(env, template, DATA)
        cases.append([template, text])
    chats = []
    for name, template in CHATS.items():
        texts = {key: expected(env, template, variables(conversation))[0]
                 for key, conversation in CONVERSATIONS.items()}
        chats.append({"name": name, "template": template, "texts": texts})
    conversations = {key: variables(value) for key, value in CONVERSATIONS.items()}
    path = HERE / "jinja.json"
    path.write_text(json.dumps(
        {"data": DATA, "cases": cases, "conversations": conversations, "chats": chats},
        ensure_ascii=True, indent=0) + "\n")
    refused = sum(text is None for _, text in cases)
    print(path, path.stat().st_size, "bytes,", len(cases), "cases, of which", refused, "are refused")


if __name__ == "__main__":
    main()
