"""Words, names, titles and file names from spaces too large to remember, so that a model has to copy them."""
import re

import answers
import words as w

_TEXT = " ".join(str(getattr(answers, n)) for n in dir(answers) if n.isupper()) + " ".join(
    str(getattr(w, n)) for n in dir(w) if n.isupper() and not n.startswith("HELD_OUT")
)
# Every word of the hand-written answers and lists, and tokens of the vocabulary that consist of letters (set by use()).
LEXICON = sorted(set(re.findall(r"\b[a-z]{3,}\b", _TEXT)))
PIECES = ["ma", "ri", "ton", "sel", "vor", "lin", "ka", "ber", "dan", "ou", "st", "el", "ing", "ar", "tro", "fen"]
_V, _C = "aeiou", "bcdfghjklmnprstvwz"


def use(tokens):
    """Takes the letter tokens of a vocabulary as pieces of words, with and without a space in front."""
    global PIECES
    PIECES = sorted({t.lstrip("\u0120").lower() for t in tokens if re.fullmatch("\u0120?[A-Za-z][a-z]+", t)})


def cap(text):
    return text[:1].upper() + text[1:]


def syllables(r):
    text = "".join(
        r.choice(_C) + r.choice(_V) + (r.choice("nlrstm") if r.random() < 0.3 else "")
        for _ in range(r.choice([1, 2, 2, 2, 3]))
    )
    return (r.choice(_V) if r.random() < 0.15 else "") + text + r.choice(["", "", "n", "s", "r", "k", "th", "x", "ck"])


def word(r):
    """One word in small letters."""
    x = r.random()
    if x < 0.45:
        return r.choice(LEXICON) + (r.choice(["s", "s", "er", "y"]) if r.random() < 0.12 else "")
    if x < 0.65:
        return r.choice(LEXICON) + r.choice(LEXICON)
    if x < 0.82:
        return "".join(r.choice(PIECES) for _ in range(r.choice([1, 2, 2, 3])))
    return syllables(r)


def name(r):
    """A person or an animal."""
    x = r.random()
    if x < 0.25:
        return r.choice(w.NAMES)
    if x < 0.55:
        return cap(syllables(r))
    if x < 0.85:
        return cap("".join(r.choice(PIECES) for _ in range(r.choice([2, 2, 3]))))
    return cap(word(r))


def full_name(r):
    return name(r) + (" " + name(r) if r.random() < 0.35 else "")


def place(r):
    x = r.random()
    if x < 0.25:
        return r.choice(w.CITIES)
    if x < 0.35:
        return r.choice(["New ", "Old ", "San ", "Port ", "Saint ", "Upper ", "East "]) + name(r)
    if x < 0.55:
        return cap("".join(r.choice(PIECES) for _ in range(r.choice([1, 2])))) + r.choice(
            ["burg", "ton", "ville", "stad", "ford", "berg", "field", "dorf", "kok", "polis"]
        )
    return name(r)


def thing(r):
    """One to three words in small letters, such as "cheap red bicycles"."""
    x = r.random()
    if x < 0.4:
        return word(r)
    if x < 0.8:
        return word(r) + " " + word(r)
    return " ".join(word(r) for _ in range(3))


def item(r):
    """Something to buy or to eat."""
    x = r.random()
    if x < 0.35:
        return r.choice(FOODS)
    if x < 0.55:
        return r.choice(FOODS).split()[-1] + " " + word(r)
    return thing(r)


def title(r):
    """Of a song, a book or a film."""
    x = r.random()
    words = lambda n: " ".join(cap(word(r)) for _ in range(n))
    if x < 0.2:
        return words(1)
    if x < 0.6:
        return words(2)
    if x < 0.75:
        return "The " + words(r.choice([1, 2]))
    if x < 0.85:
        return words(1) + r.choice([" of ", " and ", " in ", " for ", " without "]) + words(1)
    return words(3)


def file_name(r):
    parts = r.choice(["", "_", "-"]).join(word(r) for _ in range(r.choice([1, 1, 2])))
    end = r.choice(
        ["txt", "md", "py", "json", "csv", "log", "html", "cpp", "h", "yaml", "toml", "pdf", "png", "jpg", "sh", "xml"]
    )
    return (
        ("" if r.random() < 0.75 else word(r) + "/")
        + parts
        + (str(r.randint(1, 99)) if r.random() < 0.2 else "")
        + "."
        + end
    )


def folder(r):
    x = r.random()
    if x < 0.2:
        return r.choice(["src", "docs", "home", "photos", "music", "tests", "pictures", "videos", "backup", "desktop"])
    return word(r) + ("/" + word(r) if r.random() < 0.25 else "")


def words(r, low=2, high=6):
    return " ".join(word(r) for _ in range(r.randint(low, high)))


FOODS = """milk bread butter eggs cheese rice pasta flour salt pepper honey tea coffee juice apples bananas lemons oranges
pears grapes cherries carrots potatoes onions tomatoes beans peas corn soup chicken fish ham yogurt cream oil vinegar nuts
cookies chocolate soap paper batteries candles""".split()
