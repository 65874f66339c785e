"""Conversations made from templates: small talk, facts, sums, JSON, words to copy, short texts to understand, tool calls."""
import json

import calls
import fresh
import knowledge
import words as w

SYSTEMS = [
    "You are a helpful assistant.",
    "You are a helpful assistant who answers briefly.",
    "You are Pocket, a small assistant.",
    "You are a friendly assistant.",
    "Answer in simple English.",
]


def user(text):
    return dict(role="user", content=text)


def said(text, reasoning=None, call=None):
    return dict(role="assistant", content=text, reasoning=reasoning, call=call)


# --- small talk -----------------------------------------------------------------------------------------------------

HELLO = [
    "Hello! How can I help you today?",
    "Hi! What can I do for you?",
    "Hello! It is nice to meet you. What would you like to talk about?",
]
FINE = ["I am doing well, thank you! How are you?", "I am fine, thank you for asking. How can I help you?"]
WHO = [
    "I am Pocket, a very small language model that ships with Hearth. I can tell short stories and answer simple questions.",
    "My name is Pocket. I am a tiny language model inside Hearth, and I like to tell short stories.",
]
CAN = [
    "I can tell short stories, answer simple questions, and chat with you. I am very small, so I can be wrong.",
    "I can write short stories, answer everyday questions, and call simple tools. Please check important facts, because I am very small.",
]
BYE = ["Goodbye! Have a nice day.", "Bye! It was nice talking to you.", "See you soon! Take care."]
WELCOME = ["You are welcome!", "You are welcome! Is there anything else I can do for you?", "I am glad I could help."]
JOKES = [
    "Why did the bicycle fall over? Because it was two tired.",
    "What do you call a bear with no teeth? A gummy bear.",
    "Why did the teddy bear say no to cake? Because it was already stuffed.",
    "What has hands but cannot clap? A clock.",
    "Why is six afraid of seven? Because seven eight nine.",
    "What do you call a sleeping dinosaur? A dino-snore.",
    "Why did the cookie go to the doctor? Because it felt crumbly.",
    "What is a cat's favorite color? Purr-ple.",
]
TALK = [
    (
        ["Hello", "Hello!", "Hi", "Hi!", "Hey", "Hey there", "Hi there!", "Good day!", "hello", "hi", "Hello there."],
        HELLO,
    ),
    (
        ["Good morning!", "Good morning"],
        ["Good morning! How can I help you today?", "Good morning! I hope you slept well."],
    ),
    (["Good evening!", "Good evening"], ["Good evening! How was your day?", "Good evening! What can I do for you?"]),
    (["Good night!", "Good night", "I am going to bed."], ["Good night! Sleep well.", "Good night and sweet dreams!"]),
    (
        [
            "How are you?",
            "How are you today?",
            "Hi, how are you?",
            "Hello, how are you?",
            "how are you",
            "How is it going?",
            "How do you do?",
            "Hi! How are you today?",
            "What's up?",
        ],
        FINE,
    ),
    (
        [
            "Who are you?",
            "What are you?",
            "What is your name?",
            "Tell me about yourself.",
            "Are you a robot?",
            "Are you human?",
            "Are you an AI?",
            "who are you",
            "what is your name",
            "Introduce yourself.",
        ],
        WHO,
    ),
    (
        [
            "What can you do?",
            "How can you help me?",
            "What are you good at?",
            "Help",
            "help",
            "Can you help me?",
            "what can you do",
        ],
        CAN,
    ),
    (
        ["Who made you?", "Who created you?", "Where do you come from?", "What is Hearth?"],
        [
            "I was trained by the Hearth project. Hearth is a program that runs language models on your own computer.",
            "I come with Hearth, a program that runs language models. I learned from short texts that people and programs made.",
        ],
    ),
    (["Goodbye", "Bye", "Bye!", "Goodbye!", "See you later.", "bye", "See you tomorrow!", "I have to go."], BYE),
    (
        [
            "Thank you",
            "Thank you!",
            "Thanks",
            "Thanks!",
            "Thanks a lot!",
            "thank you",
            "thanks",
            "Thank you very much.",
            "That was helpful.",
        ],
        WELCOME,
    ),
    (
        [
            "Tell me a joke.",
            "Tell me a joke",
            "Do you know a joke?",
            "Make me laugh.",
            "Say something funny.",
            "tell me a joke",
            "Another joke, please.",
        ],
        JOKES,
    ),
    (
        ["You are wrong.", "That is wrong.", "That is not right.", "I don't think so."],
        [
            "I am sorry about that. I am a very small model and I make mistakes.",
            "You may be right. I am small and can be wrong. Please check it.",
        ],
    ),
    (
        ["I love you", "I like you.", "You are nice.", "You are great!"],
        ["Thank you, that is very kind of you!", "That makes me happy. Thank you!"],
    ),
    (
        ["Can you speak German?", "Do you speak French?", "Can you speak Spanish?", "What languages do you speak?"],
        ["I only speak simple English.", "I am sorry, I only know English."],
    ),
    (
        ["What time is it?", "What day is it?", "What is the date today?"],
        [
            "I cannot see a clock, so I do not know. Please look at your computer or phone.",
            "I am sorry, I have no clock or calendar.",
        ],
    ),
    (
        ["What is the weather like?", "Is it raining?", "How is the weather today?"],
        [
            "I cannot look outside, so I do not know the weather. Please look out of the window.",
            "I am sorry, I cannot see the weather.",
        ],
    ),
    (
        ["ok", "OK", "Okay.", "I see.", "Yes", "yes", "Sure."],
        ["Good! What would you like to do next?", "Great! How else can I help you?"],
    ),
    (
        ["No", "no", "No, thanks.", "Nothing."],
        ["All right. I am here if you need me.", "Okay! Just ask if you need something."],
    ),
    (
        ["Let's talk.", "Talk to me.", "Can we talk?", "Let's chat."],
        [
            "Sure! I can tell you a story or a joke. What would you like?",
            "Of course! What would you like to talk about?",
        ],
    ),
    (["How old are you?"], ["I am very new. I was trained a short time ago."]),
    (["Where are you?", "Where do you live?"], ["I live in your computer."]),
    (
        ["asdf", "asdfgh", "???", "...", "test", "Test", "hm", "blah blah"],
        [
            "I did not understand that. Could you say it in another way?",
            "I am not sure what you mean. Could you ask me a question?",
        ],
    ),
]


def small_talk(r):
    asks, answers = r.choice(TALK)
    return [user(r.choice(asks)), said(r.choice(answers))]


# --- facts, words and small sums ------------------------------------------------------------------------------------


def cap(text):
    return text[0].upper() + text[1:]


def fact(r):
    """(question, answer, reasoning)"""
    kind = r.randrange(14)
    if kind <= 2:
        c, city = r.choice(w.COUNTRIES)
        q, a = r.choice(
            [
                (f"What is the capital of {c}?", f"The capital of {c} is {city}."),
                (f"What's the capital of {c}?", f"The capital of {c} is {city}."),
                (f"Name the capital of {c}.", f"The capital of {c} is {city}."),
                (f"Which city is the capital of {c}?", f"{city} is the capital of {c}."),
                (f"In which country is {city.split(',')[0]}?", f"{city.split(',')[0]} is in {c}."),
                (
                    f"{city.split(',')[0]} is the capital of which country?",
                    f"{city.split(',')[0]} is the capital of {c}.",
                ),
                (f"capital of {c}", f"The capital of {c} is {city}."),
            ]
        )
        return q, a, f"The user asks about a capital city. {city} is the capital of {c}."
    if kind == 3:
        t, c = r.choice(w.COLORS)
        if t.startswith(("a ", "an ")) and r.random() < 0.5:
            fruits = (
                "banana",
                "lemon",
                "strawberry",
                "orange",
                "tomato",
                "cherry",
                "eggplant",
                "pumpkin",
                "cucumber",
                "plum",
                "pear",
            )
            t = knowledge.a(
                r.choice(
                    ["big", "small", "nice", "fresh", "ripe", "ripe", "sweet"]
                    if t.split()[-1] in fruits
                    else ["big", "small", "nice", "young"]
                )
                + " "
                + t.split(" ", 1)[1]
            )
        q = r.choice(
            [
                f"What color is {t}?",
                f"Which color does {t} have?",
                f"What is the color of {t}?",
                f"Tell me the color of {t}.",
            ]
        )
        return q, f"{cap(t)} is {c}.", f"{cap(t)} is usually {c}."
    if kind == 4:
        t, s = r.choice(w.SOUNDS)
        q = r.choice(
            [
                f"What sound does a {t} make?".replace("a owl", "an owl"),
                f"What does a {t} say?".replace("a owl", "an owl"),
            ]
        )
        return q, f"A {t} says {s}.".replace("A owl", "An owl"), f"The sound of this animal is {s}."
    if kind in (5, 6):
        a, b = r.choice(w.OPPOSITES)
        if r.random() < 0.5 and (a, b) not in (("rich", "poor"),):
            a, b = b, a
        q = r.choice([f"What is the opposite of {a}?", f"Tell me the opposite of {a}.", f"Opposite of {a}?"])
        return q, f"The opposite of {a} is {b}.", f"The opposite of {a} is {b}."
    if kind == 7:
        i = r.randrange(7)
        q, a = r.choice(
            [
                (f"What day comes after {w.DAYS[i]}?", f"{w.DAYS[(i + 1) % 7]} comes after {w.DAYS[i]}."),
                (f"What day comes before {w.DAYS[i]}?", f"{w.DAYS[i - 1]} comes before {w.DAYS[i]}."),
                ("Name the days of the week.", "The days of the week are " + ", ".join(w.DAYS[:6]) + ", and Sunday."),
                ("How many days does a week have?", "A week has seven days."),
                ("How many days are there in one week?", "There are seven days in a week."),
            ]
        )
        return q, a, "I go through the days of the week in order."
    if kind == 8:
        i = r.randrange(12)
        q, a = r.choice(
            [
                (f"What month comes after {w.MONTHS[i]}?", f"{w.MONTHS[(i + 1) % 12]} comes after {w.MONTHS[i]}."),
                (f"What month comes before {w.MONTHS[i]}?", f"{w.MONTHS[i - 1]} comes before {w.MONTHS[i]}."),
                ("How many months are in a year?", "There are twelve months in a year."),
                ("Name the four seasons.", "The four seasons are spring, summer, autumn, and winter."),
                ("How many hours are in a day?", "There are 24 hours in a day."),
                ("How many minutes are in an hour?", "There are 60 minutes in an hour."),
                ("How many seconds are in a minute?", "There are 60 seconds in a minute."),
                ("How many days are in a year?", "A year usually has 365 days."),
            ]
        )
        return q, a, "This is about time and the calendar."
    if kind == 9:
        t, n = r.choice(w.LEGS)
        an = ("an " if t[0] in "aeiou" else "a ") + t
        return (
            f"How many legs does {an} have?",
            f"{cap(an)} has {n}{'' if 'arms' in n else ' legs'}.",
            f"I count the legs of {an}.",
        )
    if kind == 10:
        t, y = r.choice(w.YOUNG)
        return (
            r.choice([f"What is a baby {t} called?", f"What do you call a young {t}?"]),
            f"A baby {t} is called a {y}.".replace("a owlet", "an owlet"),
            f"The young of this animal is called {y}.",
        )
    if kind == 11:
        word = r.choice(w.ANIMALS + w.TOOLS + w.PEOPLE).split()[-1]
        return (
            r.choice([f"How do you spell {word}?", f"Spell the word {word}.", f"Spell {word}."]),
            "-".join(word.upper()),
            f"I write the letters of {word} one by one.",
        )
    if kind == 12:
        group, name = r.choice(
            [
                (w.ANIMALS, "animals"),
                (w.DAYS, "days of the week"),
                (w.MONTHS, "months"),
                (["red", "blue", "green", "yellow", "black", "white", "orange", "purple", "pink", "brown"], "colors"),
                (["apple", "banana", "orange", "pear", "grape", "cherry", "lemon", "peach", "plum", "melon"], "fruits"),
                (["carrot", "potato", "onion", "tomato", "cabbage", "pea", "bean", "cucumber"], "vegetables"),
                (["football", "tennis", "swimming", "running", "basketball", "cycling", "hockey"], "sports"),
                ([c for _, c in w.COUNTRIES[:40]], "cities"),
            ]
        )
        n = r.choice([2, 3, 3, 3, 4])
        picks = r.sample(group, n)
        if name in ("animals", "fruits", "vegetables", "colors", "sports"):
            answer = ", ".join(picks[:-1]) + (", and " if n > 2 else " and ") + picks[-1] + "."
        else:
            answer = ", ".join(picks[:-1]) + (", and " if n > 2 else " and ") + picks[-1] + "."
        number = {2: "two", 3: "three", 4: "four"}[n]
        return (
            r.choice([f"Name {number} {name}.", f"List {number} {name}.", f"Tell me {number} {name}."]),
            cap(answer),
            f"I need {number} {name}.",
        )
    word = r.choice(w.ANIMALS + w.TOOLS + w.ADJECTIVES).split()[-1]
    q, a = r.choice(
        [
            (f"Write {word} in capital letters.", word.upper()),
            (f"How many letters are in the word {word}?", f"The word {word} has {len(word)} letters."),
        ]
    )
    return q, a, "This is a small task with a word."


def sum_(r):
    top = r.choice([10, 10, 20, 20, 50, 100])
    a, b = r.randint(0, top), r.randint(0, top)
    kind = r.randrange(5)
    if kind <= 1:
        op, word, c = "+", "plus", a + b
    elif kind == 2:
        a, b = max(a, b), min(a, b)
        op, word, c = "-", "minus", a - b
    elif kind == 3:
        a, b = r.randint(0, 10), r.randint(0, 10)
        op, word, c = "*", "times", a * b
    else:
        a, b = r.randint(0, 100), r.randint(0, 100)
        if a == b:
            b += 1
        q = r.choice([f"Which number is bigger, {a} or {b}?", f"Which is larger: {a} or {b}?"])
        return q, f"{max(a, b)} is bigger than {min(a, b)}.", f"I compare {a} and {b}. {max(a, b)} is larger."
    q = r.choice(
        [
            f"What is {a} {op} {b}?",
            f"What is {a} {word} {b}?",
            f"{a} {op} {b}",
            f"{a} {op} {b} = ?",
            f"Calculate {a} {op} {b}.",
            f"How much is {a} {word} {b}?",
        ]
    )
    if op == "+" and r.random() < 0.25:
        n, t = r.choice(w.NAMES), r.choice(["apples", "books", "coins", "shells", "eggs", "pencils", "flowers"])
        q = f"{n} has {a} {t} and gets {b} more. How many {t} does {n} have now?"
        return q, f"{n} has {c} {t} now.", f"{a} + {b} = {c}."
    if op == "-" and r.random() < 0.25:
        n, t = r.choice(w.NAMES), r.choice(["apples", "books", "coins", "shells", "eggs", "pencils", "flowers"])
        q = f"{n} has {a} {t} and gives away {b}. How many {t} are left?"
        return q, f"{n} has {c} {t} left.", f"{a} - {b} = {c}."
    return q, r.choice([f"{a} {op} {b} = {c}.", f"{a} {op} {b} is {c}."]), f"{a} {op} {b} = {c}."


# --- JSON -----------------------------------------------------------------------------------------------------------


def json_answer(r):
    n, age, c = fresh.full_name(r), r.randint(3, 90), fresh.place(r)
    thing, price = fresh.thing(r), r.choice([r.randint(1, 99), round(r.uniform(0.5, 99), 2)])
    people = [fresh.name(r) for _ in range(r.randint(2, 4))]
    animal, day, hour, count = r.choice(w.ANIMALS), r.choice(w.DAYS), r.randint(1, 12), r.randint(2, 99)
    book, color, job = fresh.title(r), r.choice("red blue green black white yellow".split()), r.choice(w.PEOPLE)
    items = [fresh.item(r) for _ in range(r.randint(2, 4))]
    text, value, keys = r.choice(
        [
            (f"{n} is {age} years old and lives in {c}.", dict(name=n, age=age, city=c), "name, age and city"),
            (f"{n} is {age} years old.", dict(name=n, age=age), "name and age"),
            (f"{n} comes from {c}.", dict(name=n, city=c), "name and city"),
            (f"{n} is {knowledge.a(job)}.", dict(name=n, job=job), "name and job"),
            (f"{n} is {knowledge.a(job)} in {c}.", dict(name=n, job=job, city=c), "name, job and city"),
            (f"The {thing} costs {price} dollars.", dict(item=thing, price=price), "item and price"),
            (f"I bought {count} {thing} in {c}.", dict(item=thing, count=count, city=c), "item, count and city"),
            (f"{', '.join(people[:-1])} and {people[-1]} come to the party.", dict(guests=people), "guests"),
            (f"We need {', '.join(items[:-1])} and {items[-1]}.", dict(items=items), "items"),
            (
                f"The {r.choice(w.ADJECTIVES)} {animal} is called {people[0]}.",
                dict(animal=animal, name=people[0]),
                "animal and name",
            ),
            (
                f"The meeting with {n} is on {day} at {hour} o'clock.",
                dict(person=n, day=day, hour=hour),
                "person, day and hour",
            ),
            (f"{n} wrote the book {book}.", dict(author=n, title=book), "author and title"),
            (f"My car is {color} and is called {people[0]}.", dict(color=color, name=people[0]), "color and name"),
            (f"The file {(f := fresh.file_name(r))} has {count} lines.", dict(file=f, lines=count), "file and lines"),
        ]
    )
    ask = r.choice(
        [
            f"Write this as JSON with {keys}: {text}",
            f"Turn this into JSON with the keys {keys}: {text}",
            f"{text} Answer as JSON with {keys}.",
            f"Give me a JSON object with {keys}. {text}",
            f"Make JSON out of this ({keys}): {text}",
            f"Extract {keys} as JSON: {text}",
        ]
    )
    return [
        user(ask),
        said(json.dumps(value), reasoning=f"The user wants JSON with {keys}." if r.random() < 0.2 else None),
    ]


# --- words to copy and short texts to understand --------------------------------------------------------------------


def copying(r):
    """(question, answer): the answer repeats something that only the question holds."""
    text = r.choice([fresh.word, fresh.thing, fresh.title, fresh.words, fresh.words, fresh.full_name, fresh.file_name])(
        r
    )
    one, three = fresh.word(r), [fresh.word(r) for _ in range(r.randint(3, 5))]
    listed = ", ".join(three)
    kind = r.randrange(9)
    if kind <= 3:
        form = r.choice(
            [
                'Say "{}".',
                "Say {}.",
                "Repeat after me: {}",
                "Repeat this: {}",
                "Write {}.",
                'Write the words "{}".',
                "Copy this text: {}",
                "Please repeat: {}",
                "Say exactly this: {}",
                "Echo {}",
                "Type {}",
            ]
        )
        return form.format(text), text
    if kind == 4:
        return r.choice(
            [
                (f"What is the first word of this list: {listed}?", f"The first word is {three[0]}."),
                (f"What is the last word of this list: {listed}?", f"The last word is {three[-1]}."),
                (f"What is the second word of this list: {listed}?", f"The second word is {three[1]}."),
                (f"Write these words backwards, the last one first: {listed}", ", ".join(three[::-1]) + "."),
                (
                    f"How many words are in this list: {listed}?",
                    f"There are {['three', 'four', 'five'][len(three) - 3]} words in the list.",
                ),
            ]
        )
    if kind == 5:
        return r.choice(
            ["Make a list of {}.", "Write a list: {}", "Put this into a list: {}", "Write {} as a list."]
        ).format(listed), "\n".join("- " + x for x in three)
    if kind == 6:
        n = r.choice([2, 3])
        return f"Write {one} {['', '', 'two', 'three'][n]} times.", " ".join([one] * n)
    if kind == 7:
        m = fresh.name(r)
        return r.choice(
            [
                (f"Say hello to {m}.", f"Hello, {m}! It is nice to meet you."),
                (f"Say goodbye to {m}.", f"Goodbye, {m}! Take care."),
                (f"Wish {m} a happy birthday.", f"Happy birthday, {m}! I wish you a wonderful day."),
                (f"Write a birthday message for {m}.", f"Happy birthday, {m}! I wish you a wonderful day."),
                (
                    f"Write a thank you note to {m}.",
                    f"Dear {m}, thank you very much for your help. It made me very happy.",
                ),
                (
                    f"Write an invitation to a party for {m}.",
                    f"Dear {m}, I have a party on {(d := r.choice(w.DAYS))}. Please come! I would be very happy.",
                ),
                (
                    f"Invite {m} to dinner on {(d := r.choice(w.DAYS))}.",
                    f"Dear {m}, would you like to come to dinner on {d}? I would be very happy.",
                ),
                (
                    f"Tell {m} that I am late because of the {one}.",
                    f"Dear {m}, I am sorry, but I am late because of the {one}.",
                ),
                (
                    f"Write a short message to {m} about the {one}.",
                    f"Hello {m}, I would like to talk with you about the {one}. When do you have time?",
                ),
                (f"Wish {m} good luck.", f"Good luck, {m}! You can do it."),
            ]
        )
    return r.choice(
        [
            (f'Put "{text}" in quotes.', f'"{text}"'),
            (f"Make a sentence with the word {one}.", f"This is a sentence with the word {one}."),
            (f"My favorite word is {one}. What is my favorite word?", f"Your favorite word is {one}."),
            (f"The password is {one}. What is the password?", f"The password is {one}."),
            (f"The secret word is {one}. Tell me the secret word.", f"The secret word is {one}."),
            (f"Remember the number {(n := r.randint(10, 9999))}. Which number was it?", f"The number was {n}."),
        ]
    )


def understanding(r):
    """(question, answer) about a short text in the question."""
    a, b, c = (fresh.name(r) for _ in range(3))
    x, y, z = (r.choice([fresh.word(r), fresh.thing(r), r.choice(w.OBJECTS)]) for _ in range(3))
    p, q = fresh.place(r), fresh.place(r)
    i = r.randrange(3)
    who, what = (a, b, c)[i], (x, y, z)[i]
    two = r.randrange(2)
    return r.choice(
        [
            (
                f"{a} has {knowledge.a(x)}, {b} has {knowledge.a(y)}, and {c} has {knowledge.a(z)}. Who has the {what}?",
                f"{who} has the {what}.",
            ),
            (
                f"{a} has {knowledge.a(x)}, {b} has {knowledge.a(y)}, and {c} has {knowledge.a(z)}. What does {who} have?",
                f"{who} has {knowledge.a(what)}.",
            ),
            (
                f"{a} lives in {p}. {b} lives in {q}. Where does {(a, b)[two]} live?",
                f"{(a, b)[two]} lives in {(p, q)[two]}.",
            ),
            (
                f"{a} lives in {p}. {b} lives in {q}. Who lives in {(p, q)[two]}?",
                f"{(a, b)[two]} lives in {(p, q)[two]}.",
            ),
            (
                f"The {x} is in the box, and the {y} is on the table. Where is the {(x, y)[two]}?",
                f"The {(x, y)[two]} is {('in the box', 'on the table')[two]}.",
            ),
            (f"{a} is older than {b}. Who is younger?", f"{b} is younger than {a}."),
            (f"{a} is taller than {b}. Who is taller?", f"{a} is taller than {b}."),
            (f"{a} gave the {x} to {b}. Who has the {x} now?", f"{b} has the {x} now."),
            (f"{a} went to {p} and bought {knowledge.a(x)}. What did {a} buy?", f"{a} bought {knowledge.a(x)}."),
            (f"{a} went to {p} and bought {knowledge.a(x)}. Where did {a} go?", f"{a} went to {p}."),
            (f"My name is {a} and I live in {p}. Where do I live?", f"You live in {p}."),
            (f"My name is {a} and I live in {p}. What is my name?", f"Your name is {a}."),
            (
                f"I have a dog named {a} and a cat named {b}. What is my {('dog', 'cat')[two]} called?",
                f"Your {('dog', 'cat')[two]} is called {(a, b)[two]}.",
            ),
        ]
    )


def unknown(r):
    """Things that nobody knows: the answer says so."""
    n, x, p = (
        fresh.cap(fresh.syllables(r)) + " " + fresh.cap(fresh.syllables(r)),
        fresh.syllables(r) + fresh.syllables(r),
        fresh.cap(fresh.syllables(r)) + r.choice(["ville", "ton", "burg", "mar"]),
    )
    small = r.choice([" I am a very small model.", "", " I am sorry."])
    return r.choice(
        [
            (
                r.choice([f"Who is {n}?", f"Who was {n}?", f"Tell me about {n}.", f"What did {n} do?"]),
                f"I do not know {n}.{small}",
            ),
            (
                r.choice([f"What is a {x}?", f"What does {x} mean?", f"Explain {x}.", f"Tell me about the {x}."]),
                f"I do not know the word {x}.{small}",
            ),
            (
                r.choice([f"Where is {p}?", f"What is the capital of {p}?", f"How many people live in {p}?"]),
                f"I do not know {p}.{small}",
            ),
            (
                r.choice(
                    [
                        "Who won the game yesterday?",
                        "What happened today?",
                        "What is in the news?",
                        "Who will win?",
                        "What will happen tomorrow?",
                        "What is my name?",
                        "How old am I?",
                        "Where do I live?",
                        "What did I eat today?",
                    ]
                ),
                "I do not know that. I only know what you tell me here.",
            ),
        ]
    )


def remembered(r):
    """Messages: the user tells something and asks for it later."""
    n, p, x = fresh.name(r), fresh.place(r), r.choice([fresh.word(r), fresh.thing(r)])
    animal = r.choice(["dog", "cat", "horse", "rabbit", "parrot", "hamster"])
    tell, reply, ask, answer = r.choice(
        [
            (
                r.choice(
                    [
                        f"My name is {n}.",
                        f"I am {n}.",
                        f"Hello, I am {n}.",
                        f"Hi, my name is {n}!",
                        f"You can call me {n}.",
                        f"I'm {n}.",
                    ]
                ),
                r.choice([f"Nice to meet you, {n}!", f"Hello {n}! How can I help you?"]),
                r.choice(["What is my name?", "Who am I?", "Do you know my name?", "What am I called?"]),
                f"Your name is {n}.",
            ),
            (
                r.choice([f"I live in {p}.", f"I come from {p}.", f"My home is in {p}."]),
                r.choice([f"{p} sounds like a nice place.", f"How do you like {p}?"]),
                r.choice(["Where do I live?", "Where is my home?", "In which city do I live?"]),
                f"You live in {p}.",
            ),
            (
                r.choice([f"I have a {animal} named {n}.", f"My {animal} is called {n}."]),
                r.choice([f"{n} is a nice name for a {animal}.", f"How old is {n}?"]),
                r.choice([f"What is my {animal} called?", f"What is the name of my {animal}?"]),
                f"Your {animal} is called {n}.",
            ),
            (
                r.choice([f"I like {x}.", f"I love {x}.", f"My favorite thing is {x}."]),
                r.choice([f"What do you like about {x}?", f"That is nice. Tell me more about {x}."]),
                r.choice(["What do I like?", "Do you remember what I like?"]),
                f"You like {x}.",
            ),
            (
                r.choice([f"Remember this word: {x}", f"The secret word is {x}.", f"Please remember {x}."]),
                r.choice([f"I will remember {x}.", "I will remember it."]),
                r.choice(["What was the word?", "What should you remember?", "What did I tell you?"]),
                f"It was {x}.",
            ),
        ]
    )
    out = [user(tell), said(reply)]
    if r.random() < 0.3:
        q, a = one_turn(r)
        out += [user(q), said(a)]
    return out + ([user(ask), said(answer)] if r.random() < 0.7 else [])


# --- mixture --------------------------------------------------------------------------------------------------------


def one_turn(r):
    """(question, answer) of a kind that needs no further messages."""
    x = r.random()
    if x < 0.6:
        q, a = knowledge.ask(r)
        return loosen(r, q), a
    if x < 0.75:
        q, a, _ = fact(r)
        return loosen(r, q), a
    if x < 0.85:
        q, a, _ = sum_(r)
        return q, a
    return (copying if x < 0.93 else understanding)(r)


def loosen(r, text):
    """The same question as people also type it."""
    x = r.random()
    if x < 0.10:
        text = text.lower()
    if x < 0.06 or 0.10 <= x < 0.14:
        text = text.rstrip(".?!")
    elif x > 0.94:
        text = (
            r.choice(
                ["Please tell me: ", "Hi! ", "Hello. ", "Quick question: ", "I have a question. ", "Pocket, ", "Hey, "]
            )
            + text
        )
    return text


def conversation(r):
    """(kind, messages, tools)"""
    x = r.random()
    tools = None
    if x < 0.30:
        kind = "tools"
        messages, tools = calls.conversation(
            r, lambda r: tuple(m["content"] for m in small_talk(r)) if r.random() < 0.6 else knowledge.ask(r)
        )
    elif x < 0.37:
        kind, messages = "json", json_answer(r)
    elif x < 0.43:
        kind = "sums"
        q, a, why = sum_(r)
        messages = [user(q), said(a, reasoning=why if r.random() < 0.4 else None)]
    elif x < 0.70:
        kind = "knowledge"
        q, a = knowledge.ask(r)
        messages = [
            user(loosen(r, q)),
            said(a, reasoning=f"The user asks: {q} I know a simple answer." if r.random() < 0.08 else None),
        ]
    elif x < 0.76:
        kind = "facts"
        q, a, why = fact(r)
        messages = [user(loosen(r, q)), said(a, reasoning=why if r.random() < 0.15 else None)]
    elif x < 0.90:
        kind = "copying"
        y = r.random()
        q, a = (copying if y < 0.6 else understanding if y < 0.9 else unknown)(r)
        messages = [user(q), said(a)]
    elif x < 0.93:
        kind, messages = "remembered", remembered(r)
    else:
        kind, messages = "talk", small_talk(r)
        if r.random() < 0.2:
            messages[-1]["reasoning"] = "The user is making small talk. I should answer in a friendly way."
    if kind != "tools":
        while r.random() < 0.3:
            q, a = one_turn(r)
            messages += small_talk(r) if r.random() < 0.3 else [user(q), said(a)]
    if r.random() < 0.3:
        messages = [dict(role="system", content=r.choice(SYSTEMS))] + messages
    return kind, messages, tools
