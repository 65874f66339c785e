"""Random small templates for the comparison with jinja2: expressions over every type, filters, tests, methods,
statements and whitespace control. Same seed, same cases."""
import random

CONTEXT = {
    "s": "Hello, World", "u": "žluťoučký KŮŇ ß ΑΣ ǆ 🤖é", "e": "", "sp": "  a  b\tc \n d ", "h": "<a href=\"x\">'&'</a>",
    "i": 7, "n": -3, "z": 0, "f": 2.5, "g": -0.1, "big": 12345678901, "t": True, "no": False, "nil": None,
    "l": [3, 1, 2], "ls": ["b", "A", "c", "a"], "ll": [[1, 2], [3], []], "el": [], "mix": [1, "a", None, True, 2.5, [1], {"k": "v"}],
    "d": {"b": 1, "a": 2, "C": 3}, "dd": {"x": {"y": {"z": "deep"}}, "items": [1, 2], "k e y": "v"}, "ed": {},
    "ms": [{"role": "user", "content": "Hi", "n": 2}, {"role": "assistant", "content": "Yo", "n": 1, "tool_calls": []},
           {"role": "user", "content": "Bye", "n": 3}],
}
NAMES = list(CONTEXT) + ["missing"]
STRINGS = ["''", "'a'", "\"b c\"", "'x\\ny'", "'%s-%s'", "'Lo'", "','", "'é🤖'", "'A1 b2'", "' '", "'l'", "'role'", "'user'", "'{}'"]
INTS = ["0", "1", "2", "-1", "3", "10", "1000"]
FLOATS = ["1.5", "0.1", "1e3", "2.0", "1e-7", "1e16"]
FILTERS = ["abs", "capitalize", "count", "default('d')", "default('d', true)", "d", "dictsort", "dictsort(by='value')",
           "dictsort(reverse=true)", "dictsort(case_sensitive=true)", "escape", "first", "float", "float(1.5)", "groupby('role')|list", "indent", "indent(2)",
           "indent(2, true)", "indent(width=1, first=true, blank=true)", "int", "int(5)", "int(0, 16)", "items|list", "join",
           "join(', ')", "join('-', attribute='role')", "last", "length", "list", "lower", "map('upper')|list",
           "map(attribute='role')|list", "map(attribute='n', default=0)|join(',')", "map('string')|list", "max", "min",
           "max(attribute='n')", "reject('none')|list", "select|list", "select('string')|list", "selectattr('role')|list",
           "selectattr('role', 'equalto', 'user')|list", "rejectattr('role', 'eq', 'user')|list", "selectattr('tool_calls', 'defined')|list",
           "replace('l', 'L')", "replace('l', 'L', 1)", "reverse|list", "round", "round(1)", "round(2, 'floor')", "round(0, 'ceil')",
           "safe", "slice(2)|list", "slice(2, 'x')|list", "batch(2)|list", "batch(2, 'x')|list", "sort", "sort(reverse=true)",
           "sort(attribute='n')", "sort(case_sensitive=true)", "string", "sum", "sum(attribute='n')", "title", "tojson",
           "tojson(indent=2)", "tojson(ensure_ascii=true)", "tojson(sort_keys=true)", "tojson(separators=(',', ':'))", "trim",
           "trim('H d')", "truncate(8)", "truncate(8, true)", "truncate(5, true, '', 0)", "unique|list", "upper",
           "wordcount", "center(20)", "attr('upper')", "format(1, 2)", "format('x', 'y')"]
TESTS = ["defined", "undefined", "none", "boolean", "true", "false", "integer", "float", "number", "string", "mapping",
         "iterable", "sequence", "callable", "odd", "even", "divisibleby(2)", "divisibleby 3", "lower", "upper", "eq 1",
         "equalto('a')", "ne 1", "gt 1", "lt 2", "ge 1", "le 1", "in [1, 2]", "in('Hello')", "sameas none", "sameas true", "escaped",
         "filter", "test"]
METHODS = ["upper()", "lower()", "title()", "capitalize()", "strip()", "lstrip()", "rstrip()", "strip('Hd')", "lstrip(' a')",
           "split()", "split(',')", "split('l', 1)", "split(maxsplit=1)", "rsplit('l', 1)", "rsplit(none, 1)", "splitlines()", "splitlines(true)", "startswith('H')",
           "startswith(('x', 'H'))", "startswith('e', 1)", "endswith('d')", "endswith(('x', 'd'))", "replace('l', '')", "replace('', '-')",
           "replace('l', 'L', 1)", "find('l')", "find('l', 4)", "find('', 3)", "rfind('l')", "index('l')", "count('l')", "count('')",
           "join(ls)", "join(['a', 'b'])", "partition(',')", "rpartition(',')", "removeprefix('He')", "removesuffix('ld')",
           "center(15)", "center(16, '*')", "ljust(15)", "rjust(15, '.')", "zfill(15)", "isdigit()", "isalpha()", "isalnum()", "isspace()", "islower()",
           "isupper()", "isnumeric()", "isdecimal()", "format(1, 2)", "items()|list", "items()", "keys()|list", "keys()", "values()|list",
           "get('a')", "get('a', 1)", "get('nope')", "get('nope', 'x')", "copy()", "append(1)", "pop()", "pop('a')", "index(1)",
           "count(1)", "update({})", "nosuch()", "x", "b", "items", "role", "0", "1"]
BINARY = ["+", "-", "*", "/", "//", "%", "~", "~", "+", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or", "and", "or"]
SLICES = ["[0]", "[-1]", "[1:]", "[:1]", "[::-1]", "[1:-1]", "[::2]", "[-2:]", "[5:1:-2]", "['a']", "['items']", "[100]", "[100:]", "[:-100]",
          "[i]", "[none:2]", "['x']['y']", "['nope']", "[1.5]"]


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, options):
        return self.random.choice(options)

    def atom(self):
        kind = self.random.random()
        if kind < 0.5:
            return self.pick(NAMES)
        if kind < 0.7:
            return self.pick(STRINGS)
        if kind < 0.8:
            return self.pick(INTS)
        if kind < 0.85:
            return self.pick(FLOATS)
        return self.pick(["true", "false", "none", "[]", "{}", "()", "[1, 'a']", "(1,)", "(1, 2)", "{'a': 1, 'b': [2]}", "{1: 2, true: 3}",
                          "range(3)", "range(5, 0, -2)", "dict(a=1)", "namespace(a=1).a", "[s, i]", "{'k': s}", "missing.x", "l|map('string')|list",
                          "\"\\u00e9\\x41\\101\\q\"", "'a' 'b'", "1_000", "0x1f", "07", "2 ** 3", "-2 ** 2", "2 ** -1", "2 ** 3 ** 2", "f ** 2", "10 ** 20"])

    def expression(self, depth):
        if depth <= 0:
            return self.atom()
        kind = self.random.random()
        inner = lambda: self.expression(depth - 1)
        paren = lambda: self.atom() if self.random.random() < 0.5 else f"({inner()})"
        if kind < 0.15:
            return self.atom()
        if kind < 0.35:
            operator = self.pick(BINARY)
            # The other side of * stays small: Python would fill the memory.
            return f"{paren()} {operator} {self.pick(['2', '0', '-1', 's', 'f', 'l']) if operator == '*' else paren()}"
        if kind < 0.55:
            return f"{paren()}|{self.pick(FILTERS)}"
        if kind < 0.63:
            return f"{paren()} is {self.pick(['', 'not '])}{self.pick(TESTS)}"
        if kind < 0.8:
            return f"{paren()}.{self.pick(METHODS)}"
        if kind < 0.9:
            return f"{self.pick(NAMES) if self.random.random() < 0.7 else f'({self.pick(NAMES)} ~ {inner()})'}{self.pick(SLICES)}"
        if kind < 0.93:
            return f"{inner()} if {inner()} else {inner()}"
        if kind < 0.95:
            return f"{paren()} if {paren()}"
        if kind < 0.97:
            return f"{self.pick(['not ', '-', '+', 'not not '])}{paren()}"
        return f"{paren()} {self.pick(['<', '==', '>=', '!='])} {paren()} {self.pick(['<', '==', 'in', 'not in'])} {paren()}"

    def space(self):
        return self.pick(["", "", " ", "\n", "  ", "\n\n", "\n  ", "\t\n ", "x", "é ", "\r\n", " \n\n  "])

    def tag(self, text):
        opener = self.pick(["{%", "{%", "{%-", "{%+"])
        closer = self.pick(["%}", "%}", "-%}", "+%}"])
        return f"{self.space()}{opener} {text} {closer}{self.space()}"

    def output(self, depth):
        opener = self.pick(["{{", "{{", "{{-", "{{+"] if self.random.random() < 0.1 else ["{{", "{{-"])
        return self.space() + opener + " " + self.expression(depth) + self.pick([" }}", " -}}"]) + self.space()

    def body(self, depth, in_loop=False):
        return "".join(self.statement(depth, in_loop) for _ in range(self.random.randint(1, 3)))

    def statement(self, depth, in_loop):
        kind = self.random.random()
        name = self.pick(["a", "b", "x", "s", "l"])
        if depth <= 0 or kind < 0.25:
            return self.output(1)
        body = lambda loop=in_loop: self.body(depth - 1, loop)
        if kind < 0.35:
            return self.tag(f"set {name} = {self.expression(1)}")
        if kind < 0.4:
            return self.tag(f"set {name}{self.pick(['', ' | upper', ' | trim | length'])}") + body() + self.tag("endset")
        if kind < 0.55:
            text = self.tag(f"if {self.expression(1)}") + body()
            if self.random.random() < 0.4:
                text += self.tag(f"elif {self.expression(1)}") + body()
            if self.random.random() < 0.5:
                text += self.tag("else") + body()
            return text + self.tag("endif")
        if kind < 0.75:
            target, iterable = self.pick([("x", "l"), ("x", "ls"), ("k, v", "d.items()"), ("m", "ms"), ("x", "range(3)"), ("x", "missing"),
                                          ("x", "s"), ("x", "el"), ("k, v", "d|dictsort"), ("x", "d"), ("(a, b)", "[(1, 2), (3, 4)]"),
                                          ("x", self.expression(1)), ("x", "ll|sum(start=[])"), ("m", "ms[::-1]")])
            condition = self.pick(["", "", "", " if x is defined", f" if {self.expression(1)}"])
            loop = self.pick(["{{ loop.index }}", "{{ loop.last }}", "{{ loop.index0 ~ loop.first }}", "{{ loop.previtem }}", "{{ loop.nextitem|default('-') }}",
                              "{{ loop.cycle('o', 'e') }}", "{{ loop.changed(loop.index // 2) }}", "{{ loop.revindex ~ loop.revindex0 ~ loop.length }}",
                              "{{ loop.depth }}", "{% if loop.index == 2 %}{% break %}{% endif %}", "{% if loop.first %}{% continue %}{% endif %}", "", "{{ x }}"])
            text = self.tag(f"for {target} in {iterable}{condition}") + loop + body(True)
            if self.random.random() < 0.3:
                text += self.tag("else") + body()
            return text + self.tag("endfor")
        if kind < 0.82:
            parameters, arguments = self.pick([("", ""), ("a", "1"), ("a, b=2", "1"), ("a, b=a", "s"), ("a='x', b=[1]", "b=3"), ("a", ""), ("a", "1, 2"),
                                               ("a", "c=1"), ("a, b=1", "*l"), ("a=1", "**{'a': 2}")])
            extra = self.pick(["", "", "{{ varargs }}", "{{ kwargs }}", "{{ caller() }}", "{{ a }}{{ b }}"])
            text = self.tag(f"macro m({parameters})") + extra + body(False) + self.tag("endmacro")
            if self.random.random() < 0.3:
                return text + self.tag(f"call m({arguments})") + body(False) + self.tag("endcall")
            return text + "{{ m(" + arguments + ") }}" + self.pick(["", "{{ m(" + arguments + ")|length }}"])
        if kind < 0.88:
            return self.tag(f"set ns = namespace(v={self.expression(0)}, w=0)") + self.tag("for q in range(2)") + self.tag(
                f"set ns.v = {self.pick(['ns.v ~ q', 'q', self.expression(1), '[ns.v]'])}") + body(False) + self.tag("endfor") + "{{ ns.v }}{{ ns.nope }}"
        if kind < 0.91:
            return self.tag(f"with a = {self.expression(1)}, b = a") + body() + self.tag("endwith")
        if kind < 0.94:
            return self.tag("filter " + self.pick(["upper", "trim", "replace('a', 'b')|lower", "indent(2)"])) + body() + self.tag("endfilter")
        if kind < 0.96:
            return self.tag("generation") + body(False) + self.tag("endgeneration")
        if kind < 0.98:
            return self.pick(["{#", "{#-", "{#+"]) + " comment\n " + self.pick(["#}", "-#}", "+#}"]) + self.space()
        return self.tag("raw") + " {{ raw }} {% if %}\n" + self.tag("endraw")


def cases(count, seed):
    generator = Generator(seed)
    result = []
    for i in range(count):
        if i % 3 == 2:
            # Jinja decides when it compiles which scope a name belongs to; a first reading at the top makes it the
            # context's, which is the only case that matters to us.
            template = "{{ s }}{{ l }}{{ x }}{{ a }}{{ b }}" + generator.body(3) + generator.pick(["", "\n", "\n\n", " "])
        else:
            template = "{{ " + generator.expression(generator.pick([1, 2, 2, 3])) + " }}"
        result.append({"name": f"case {i}", "template": template, "context": CONTEXT})
    return result
