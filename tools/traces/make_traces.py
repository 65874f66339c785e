#!/usr/bin/env python3
"""Makes synthetic agent traces for `hearth bench agent`, the same bytes for the same arguments.

    make_traces.py R3 [--scale 0.1] [--seed 1] [--output-tokens N] [-o FILE]

R2  A coding session: 3 turns of a user with 8 to 15 tool results each; from the second turn on, results older than the
    last 40k tokens are replaced by a placeholder.
R3  A main thread that grows from 20k to 60k tokens and sends out 3 subagents at once, which share a system prompt of
    18k tokens and read 5k to 15k of their own.
R4  13 turns over a fixed system prompt of 24.5k tokens, 1 to 3 tool calls each; the thinking of all assistant turns but
    the last is removed.
R5  A history of 80k to 160k tokens that is cached, and requests that add 50 to 4,000 tokens to it.
R6  R4 with a short request of another session (a title, say) between the turns.
MIX 32 people who chat at the same time: 1 to 3 turns each, questions of 10 to 600 words, answers of 16 to 128 tokens.

--scale multiplies every length but not the number of requests, so that a small model with a short context can replay
the same shape. Lengths are in words of the texts made here, of which most tokenizers make one token and a little more;
what a server counted is in what the replay prints.
"""
import argparse
import json
import random
import sys

# Common words that most vocabularies have whole, and scraps of code as tools return it.
WORDS = (
    "the of and to in is that it was for on are as with his they at be this from have or by one had not but what all "
    "were when we there can an your which their said if do will each about how up out them then she many some so these "
    "would other into has more her two like him see time could no make than first been its who now people my made over "
    "did down only way find use may water long little very after words called just where most know get through back "
    "much before go good new write our used me man too any day same right look think also around another came come "
    "work three word must because does part even place well such here take why things help put years different away "
    "again off went old number great tell men say small every found still between name should home big give air line "
    "set own under read last never us left end along while might next sound below saw something thought both few"
).split()
CODE = (
    "def return self if not in for import from class None True False int str list dict len range print open read "
    "write path name value key index error result data node left right size count start end"
).split()
TOOLS = (
    ("read_file", "Reads a file of the project.", {"path": "string", "offset": "integer", "limit": "integer"}),
    ("search", "Searches the project for a pattern.", {"pattern": "string", "folder": "string"}),
    ("edit_file", "Replaces a stretch of a file.", {"path": "string", "old": "string", "new": "string"}),
    ("run", "Runs a command in the project's folder.", {"command": "string", "timeout": "integer"}),
    ("list_folder", "Lists a folder.", {"path": "string"}),
    ("ask_agent", "Gives a task to another agent.", {"task": "string"}),
)
PLACEHOLDER = "[Old tool result content cleared]"


class Maker:
    def __init__(self, seed, scale, output_tokens):
        self.random = random.Random(seed)
        self.scale = scale
        self.output_tokens = output_tokens
        self.lines = []
        self.calls = 0

    def between(self, least, most):
        # random() is the one method whose results Python promises never to change.
        return least + int(self.random.random() * (most - least + 1))

    def words(self, count, of=WORDS):
        """About `count` words at scale 1, in lines."""
        left = max(1, round(count * self.scale))
        lines = []
        while left > 0:
            n = min(left, self.between(6, 14))
            lines.append(" ".join(of[self.between(0, len(of) - 1)] for _ in range(n)))
            left -= n
        return "\n".join(lines)

    def tools(self):
        """Schemas, with descriptions that make up about 2k words together."""
        made = []
        for name, what, parameters in TOOLS:
            properties = {p: {"type": kind, "description": self.words(20)} for p, kind in parameters.items()}
            made.append({"type": "function", "function": {
                "name": name, "description": f"{what} {self.words(250)}",
                "parameters": {"type": "object", "properties": properties, "required": [next(iter(parameters))]}}})
        return made

    def call(self, count=1, thinking=0):
        """An assistant message that calls tools, and the ids of its calls."""
        message = {"role": "assistant", "content": self.words(30)}
        if thinking:
            message["reasoning_content"] = self.words(thinking)
        message["tool_calls"] = []
        for _ in range(count):
            self.calls += 1
            name, _, parameters = TOOLS[self.between(0, 4)]
            arguments = {next(iter(parameters)): f"src/part{self.between(1, 99)}.py"}
            message["tool_calls"].append({"id": f"call_{self.calls:05}", "type": "function",
                                          "function": {"name": name, "arguments": json.dumps(arguments)}})
        return message

    def say(self, count, thinking=0):
        message = {"role": "assistant", "content": self.words(count)}
        if thinking:
            message["reasoning_content"] = self.words(thinking)
        return message

    def results(self, message, least, most):
        return [{"role": "tool", "tool_call_id": call["id"], "content": self.words(self.between(least, most), CODE)}
                for call in message["tool_calls"]]

    def user(self, count):
        return {"role": "user", "content": self.words(count)}

    def request(self, session, edits, answer=None, output=200, **fields):
        tokens = self.output_tokens or max(2, round(output * self.scale))
        line = {"session": session, **fields, "edits": edits, "max_tokens": tokens}
        if answer:
            line["answer"] = answer
        self.lines.append(line)


def append(*messages):
    return [{"op": "append", "message": message} for message in messages]


def system(text):
    return {"op": "system", "text": text}


def r2(m):
    edits, first, window = [system(m.words(10000))], {"tools": m.tools()}, 40000
    history = []
    for turn in range(3):
        new = [m.user(m.between(60, 400))]
        for step in range(m.between(8, 15)):
            if turn > 0:
                newer = 0
                for index in reversed(range(len(history))):
                    message = history[index]
                    if message["role"] == "tool" and message["content"] != PLACEHOLDER and newer > window * m.scale:
                        history[index] = {**message, "content": PLACEHOLDER}
                        edits.append({"op": "replace", "index": index, "message": history[index]})
                    newer += len(message["content"].split())
            answer = m.call()
            m.request("main", edits + append(*new), answer, think=0 if step == 0 and turn == 0 else 1.0, **first)
            history += new + [answer]
            new, edits, first = m.results(answer, 500, 4000), [], {}
        answer = m.say(300)
        m.request("main", append(*new), answer, output=400, think=1.0)
        history += new + [answer]


def r3(m):
    tools, shared = m.tools(), m.words(16000)
    m.request("main", [system(m.words(17000))] + append(m.user(1000)), answer := m.call(), tools=tools)
    for round_ in range(2):
        for _ in range(4):  # on its own: 4 results of about 2.5k
            m.request("main", append(*m.results(answer, 2000, 3000)), answer := m.call(), think=0.5)
        names = [f"sub{round_}.{i}" for i in range(3)]
        for name in names:
            task = m.call()
            m.request(name, [system(shared)] + append(m.user(m.between(200, 600))), task, tools=tools, wait_for=["main"])
        for name in names:
            last = m.lines[[l["session"] for l in m.lines].index(name)]["answer"]
            for _ in range(m.between(3, 5)):
                m.request(name, append(*m.results(last, 1500, 3000)), last := m.call(), think=0.2)
            m.request(name, append(*m.results(last, 500, 1500)), m.say(400), output=400, think=0.2)
        # What they found comes back as the result of the call that sent them out.
        m.request("main", append(*m.results(answer, 8000, 10000)), answer := m.call(), wait_for=names)
    m.request("main", append(*m.results(answer, 1000, 2000)), m.say(500), output=500)


def r4(m, asides=False):
    fields, edits = {"tools": m.tools()}, [system(m.words(22000))]
    size = 0  # messages of the session
    thoughts = []  # index and message without its thinking, of assistant turns that still have it
    for turn in range(13):
        new = [m.user(m.between(30, 300))]
        for step in range(4):
            last = step == 3 or step > 0 and m.random.random() < 0.4
            answer = m.say(200, thinking=150) if last else m.call(thinking=150)
            while len(thoughts) > 1:
                index, bare = thoughts.pop(0)
                edits.append({"op": "replace", "index": index, "message": bare})
            m.request("main", edits + append(*new), answer, think=1.0 if turn or step else 0, **fields)
            size += len(new)
            thoughts.append((size, {k: v for k, v in answer.items() if k != "reasoning_content"}))
            size += 1
            fields, edits = {}, []
            if last:
                break
            new = m.results(answer, 100, 1500)
        if asides and turn < 12:
            name = f"aside{turn}"
            m.request(name, [system(m.words(100))] + append(m.user(300)), output=30, wait_for=["main"])
            fields = {"wait_for": [name]}


def r5(m):
    m.request("main", [system(m.words(10000))] + append(m.user(70000)), m.say(200), tools=m.tools())
    grown = 82000
    for new in (50, 500, 4000, 50, 2000, 4000, 30000, 50, 4000, 500, 30000, 50, 4000, 2000):
        if grown + new < 160000:
            m.request("main", append(m.user(new)), m.say(100), think=0.5)
            grown += new


def r6(m):
    r4(m, asides=True)


def r7(m):
    for turn in range(6):
        for i in range(3):
            edits = [] if turn else [system(m.words(6000))]
            m.request(f"chat{i}", edits + append(m.user(m.between(200, 400))), m.say(100), output=100, wait_for=[f"chat{(i + 2) % 3}"] if turn or i else [])


def mix(m):
    for person in range(32):
        edits = [system(m.words(20))]
        for turn in range(m.between(1, 3)):
            question = m.user(m.between(10, 600) if m.between(0, 2) == 0 else m.between(10, 80))
            answer = m.between(16, 128)
            m.request(f"person{person}", edits + append(question), m.say(answer), output=answer)
            edits = []


def main():
    kinds = {"R2": r2, "R3": r3, "R4": r4, "R5": r5, "R6": r6, "R7": r7, "MIX": mix}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=kinds)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies every length (default 1)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output-tokens", type=int, default=0, help="tokens of each answer, whatever the scale")
    parser.add_argument("-o", "--output", default="-", help="file to write; -: stdout")
    args = parser.parse_args()
    if not 0 < args.scale <= 100:
        parser.error("--scale must be above 0 and at most 100")
    maker = Maker(args.seed, args.scale, args.output_tokens)
    kinds[args.kind](maker)
    text = "".join(json.dumps(line) + "\n" for line in maker.lines)
    if args.output == "-":
        sys.stdout.write(text)
    else:
        with open(args.output, "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()
