"""Writes golden.json: small templates and what jinja2, set up as Hugging Face does, makes of them."""
import json
import sys

import reference

CONTEXT = {
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"},
                 {"role": "assistant", "content": "Yo", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}],
    "s": "Hello, World", "u": "žluť ß ΑΣ 🤖é", "l": [3, 1, 2], "d": {"b": 1, "a": [None, True, 2.5, "x'y"]}, "n": 7, "f": 0.1,
    "h": "<b>\"q\" & 'r'</b>",
}
TEMPLATES = r"""
{{ none }} {{ true }} {{ 1.0 }} {{ 1e16 }} {{ 1e-5 }} {{ 123456789012345678901234567890 }} {{ d }} {{ (1,) }} {{ [] }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ -2 ** 2 }} {{ 2 ** -1 }} {{ 1 + true }} {{ 5.5 % 2 }}
{{ 'a' ~ 1 ~ none ~ true ~ [1, 'x'] }} {{ 'ab' * 3 }} {{ [1] * 2 + [3] }} {{ '%s is %d and %05.2f' % ('x', 3, 2.5) }}
{{ u[0] }}{{ u[-1] }} {{ u[::-1] }} {{ u|length }} {{ u|upper }} {{ u|title }} {{ u.title() }} {{ u.lower() }} {{ s[1:4] }} {{ s[:-5] }}
{{ u|tojson }} {{ u|tojson(ensure_ascii=true) }} {{ d|tojson }} {{ d|tojson(indent=2) }} {{ h|tojson }} {{ [1.0, 1e20, none]|tojson }}
{{ [u, "it's", 'q"q', '\n\t\\', '\u200b'] }}
{{ messages[0].role }} {{ messages[-1]['content'] }} {{ messages[9] }} {{ missing }} {{ missing|default('d') }} {{ ''|default('e', true) }}
{{ missing.attribute }}
{{ messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|join(',') }} {{ messages|map(attribute='role')|list }}
{{ l|sort }} {{ l|sum }} {{ l|max }} {{ l|reverse|list }} {{ l|join('-') }} {{ d|dictsort }} {{ d.items()|list }} {{ d|items|list }} {{ d.keys() }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' in s }} {{ 'H' in s }} {{ 4 not in l }} {{ 'b' in d }} {{ l == [3, 1, 2] }} {{ 1 == 1.0 == true }}
{{ s is string }} {{ d is mapping }} {{ l is sequence }} {{ d is iterable }} {{ n is odd }} {{ n is divisibleby 7 }} {{ missing is defined }} {{ none is none }}
{{ 'yes' if n > 5 else 'no' }} {{ 'yes' if n > 50 }} {{ n and 'x' }} {{ missing or 'y' }} {{ not n }}
{{ s.split(', ') }} {{ ' a  b '.split() }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ '  x '.strip() }}| {{ 'xxay'.lstrip('x') }} {{ s.replace('l', 'L', 2) }}
{{ s.startswith('He') }} {{ s.endswith(('x', 'ld')) }} {{ s.find('W') }} {{ s.count('l') }} {{ 'abc'.upper() }} {{ 'x'.join(['1', '2']) }} {{ d.get('z', 5) }}
{{ ('<x>' | safe) ~ '&' }} {{ '<' + ('<x>'|safe) }} {{ h|escape }} {{ h|e|e }} {{ (h|safe)|length }}
{{ 'it''s' }} {{ "a\tb\x41\u00e9\101\q" }} {{ 'one' 'two' }} {{ 0x1f }} {{ 1_000 }} {{ 1.5e3 }}
{% for m in messages %}{{ loop.index }}{{ loop.first }}{{ loop.last }}{{ loop.revindex }} {{ m.role }}{% if not loop.last %}, {% endif %}{% endfor %}
{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}
{% for x in l if x > 1 %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% else %}none{% endfor %}{% for x in [] %}{% else %}empty{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for (a, b) in [(1, 2)] %}{{ a + b }}{% endfor %}
{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{{ loop.cycle('a', 'b') }}{% endfor %}
{% set x = 1 %}{% for i in l %}{% set x = i %}{{ x }}{% endfor %}{{ x }}
{% set ns = namespace(n=0) %}{% for i in l %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}{{ ns.missing }}
{% set x %}  a {{ n }} {% endset %}[{{ x }}]{% set y | trim | upper %} b {% endset %}[{{ y }}]
{% macro m(a, b=2, c=a) %}{{ a }}-{{ b }}-{{ c }}{{ varargs }}{{ kwargs }};{% endmacro %}{{ m(1) }}{{ m(1, c=3) }}{{ m(1, 2, 3, 4) }}{{ m(1, z=9) }}
{% macro w() %}<{{ caller('x') }}>{% endmacro %}{% call(v) w() %}{{ v }}{{ n }}{% endcall %}
{% macro rec(x) %}{% if x > 0 %}{{ x }}{{ rec(x - 1) }}{% endif %}{% endmacro %}{{ rec(4) }}
{% for x in [1, [2, [3]]] recursive %}{% if x is number %}{{ x }}@{{ loop.depth }}{% else %}({{ loop(x) }}){% endif %}{% endfor %}
{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}{% filter upper %}x{{ n }}y{% endfilter %}{% raw %}{{ x }}{% endraw %}
{% generation %}kept {{ n }}{% endgeneration %}{# comment #}{% if false %}{% elif n == 7 %}seven{% else %}other{% endif %}
{{ strftime_now('%Y-%m-%d %d %b %Y %B %H:%M') }} {{ bos_token }}{{ eos_token }}
{{ raise_exception('no ' ~ n) }}
{{ l.append(4) }}
{{ d.items }}{{ d['nope'] }}
{{ range(3) }} {{ range(5, 0, -2)|list }} {{ dict(a=1, b=2) }} {{ joiner }}
{% set j = joiner('|') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}
{{ 3.7|int }} {{ '42'|int + 1 }} {{ 'x'|int(9) }} {{ '1.5'|float }} {{ 2.675|round(2) }} {{ 7|round(-1) }} {{ 42.55|round(1, 'floor') }} {{ -3|abs }}
{{ l|batch(2)|list }} {{ l|slice(2)|list }} {{ messages|groupby('role')|map('first')|list }} {{ [1, 1, 2]|unique|list }} {{ 'a\nb'|indent }}
{{ 'word word'|wordcount }} {{ 'a long text here'|truncate(9) }} {{ 'x'|center(5) }}| {{ '<p>a <b>c</b></p>'|striptags }} {{ [3, 'a']|first }}
{{ 1 + 'a' }}
{{ 1 < 'a' }}
{{ undefined_function() }}
{{ s|nosuch }}
{% if false %}{{ s|nosuch }}{% endif %}fine
{% if n %}
    indented
    {%- if true %}
  a
    {%- endif %}
  {% set q = 1 %}
tail {{ q }}
{% endif %}

last

""".strip("\n")
WHITESPACE = ["  {% if true %}\n  x\n  {% endif %}\n", "a {%- if true -%}  b  {%- endif -%} c\n\n", "{{ n }}\n{{ n }}\n", "\n{{ n -}}\n  x",
              "{%+ if true +%}\n x {%+ endif %}\n", "  {#- c -#}  x {# d #}\ny", "a\r\nb\rc\r\n", "{%- raw -%} {{ a }} {%- endraw %}\nx",
              "\u00a0{% if true %}x{% endif %}\u3000{%- if true %}y{% endif %}", "{{ {'a': {'b': 1}} }}{{ {'a':1}['a'] }}"]
BROKEN = ["{{ ", "{% if %}", "{% if true %}", "{{ 1 + }}", "{{ (1 }}", "{% endfor %}", "{{ 'abc }}", "{# x", "{% for in l %}{% endfor %}",
          "{% nosuch %}", "{{ a b }}", "{% break %}", "{{ [1, }}", "{% macro m(a=1, b) %}{% endmacro %}", "{% set true = 1 %}", "{% raw %}", "{{ ] }}"]


def main():
    templates = TEMPLATES.split("\n{% if n %}\n")
    whole = "{% if n %}\n" + templates[1]
    cases = templates[0].split("\n") + [whole] + WHITESPACE + BROKEN
    golden = []
    for template in cases:
        ok, text = reference.render({"template": template, "context": CONTEXT})
        if " at 0x" in text or "<class" in text:
            continue
        golden.append({"template": template, "text": text} if ok else {"template": template})
    json.dump({"context": CONTEXT, "cases": golden}, sys.stdout, ensure_ascii=False, indent=0)
    sys.stdout.write("\n")


main()
