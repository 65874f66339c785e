"""Conversations made from templates without a teacher: tool calls, JSON, small sums, facts, small talk."""
import json
import random

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
            "I come with Hearth, a program that runs language models. I learned from short texts written by a bigger model.",
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
        ["I am bored", "Let's talk.", "Talk to me.", "Can we talk?"],
        [
            "Sure! I can tell you a story or a joke. What would you like?",
            "Of course! What would you like to talk about?",
        ],
    ),
    (["How old are you?"], ["I am very new. I was trained a short time ago."]),
    (["Where are you?", "Where do you live?"], ["I live in your computer."]),
    (
        ["What is the meaning of life?", "Why are we here?"],
        ["People give many answers. Being kind, learning, and enjoying time with others is a good start."],
    ),
    (
        ["asdf", "asdfgh", "???", "...", "test", "Test", "hm", "blah blah"],
        [
            "I did not understand that. Could you say it in another way?",
            "I am not sure what you mean. Could you ask me a question?",
        ],
    ),
]


def vary(r, text):
    """The same question as people also type it."""
    x = r.random()
    if x < 0.12:
        text = text.lower()
    if x < 0.07 or 0.12 <= x < 0.16:
        text = text.rstrip("?.")
    return text


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
        verb = "is"
        q = r.choice([f"What color is {t}?", f"Which color does {t} have?", f"what color is {t}"])
        return q, f"{cap(t)} {verb} {c}.", f"{cap(t)} is usually {c}."
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
    word = r.choice(w.ANIMALS + w.OBJECTS + w.ADJECTIVES)
    q, a = r.choice(
        [
            (f"Write {word} in capital letters.", word.upper()),
            (f"Repeat after me: {word}", cap(word) + "."),
            (f'Say "{word}".', cap(word) + "."),
            (
                f"How many letters are in the word {word.split()[-1]}?",
                f"The word {word.split()[-1]} has {len(word.split()[-1])} letters.",
            ),
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


def rare_name(r):
    """A word the model has not seen: names are to be copied, not recalled."""
    v, c = "aeiou", "bcdfghjklmnprstvz"
    return cap(
        "".join(r.choice(c) + r.choice(v) for _ in range(r.choice([2, 2, 3]))) + r.choice(["", "n", "s", "r", "k"])
    )


def name(r):
    return r.choice(w.NAMES) if r.random() < 0.6 else rare_name(r)


def city(r):
    return r.choice(w.CITIES) if r.random() < 0.6 else rare_name(r)


def json_answer(r):
    n, age, c = name(r), r.randint(3, 90), city(r)
    thing, price = r.choice(w.TOOLS), r.choice([r.randint(1, 99), round(r.uniform(0.5, 99), 2)])
    people = [name(r) for _ in range(r.randint(2, 4))]
    options = [
        (f"{n} is {age} years old and lives in {c}.", dict(name=n, age=age, city=c), "name, age and city"),
        (f"{n} is {age} years old.", dict(name=n, age=age), "name and age"),
        (f"A {thing} costs {price} dollars.", dict(item=thing, price=price), "item and price"),
        (f"{', '.join(people[:-1])} and {people[-1]} come to the party.", dict(guests=people), "guests"),
        (f"The {r.choice(w.ADJECTIVES)} {r.choice(w.ANIMALS)} is called {n}.", None, "animal and name"),
        (f"The meeting with {n} is on {r.choice(w.DAYS)} at {r.randint(1, 12)} o'clock.", None, "person, day and hour"),
    ]
    text, value, keys = r.choice(options)
    if value is None:
        parts = text.rstrip(".").split()
        value = (
            dict(animal=parts[2], name=n)
            if keys.startswith("animal")
            else dict(person=n, day=parts[6], hour=int(parts[8]))
        )
    ask = r.choice(
        [
            f"Write this as JSON with {keys}: {text}",
            f"Turn this into JSON with the keys {keys}: {text}",
            f"{text} Answer as JSON with {keys}.",
            f"Give me a JSON object with {keys}. {text}",
        ]
    )
    return [
        user(ask),
        said(json.dumps(value), reasoning=f"The user wants JSON with {keys}." if r.random() < 0.3 else None),
    ]


# --- tools ----------------------------------------------------------------------------------------------------------

TEXT, NUMBER = "string", "integer"


def clock(r):
    return f"{r.randint(0, 23):02d}:{r.choice([0, 15, 30, 45]):02d}"


def short_text(r):
    return r.choice(
        [
            "buy milk",
            "call " + name(r),
            "water the plants",
            "feed the " + r.choice(w.ANIMALS),
            "take out the trash",
            "clean the kitchen",
            "meet " + name(r),
            "pay the rent",
            "wash the car",
            "read a book",
            "go for a walk",
            "bring the " + r.choice(w.TOOLS),
            "send the report",
        ]
    )


def phrase(r):
    return r.choice(
        [
            "good morning",
            "thank you",
            "how are you",
            "where is the " + r.choice(w.TOOLS),
            "I like " + r.choice(w.ANIMALS) + "s",
            "the " + r.choice(w.ANIMALS) + " is " + r.choice(w.ADJECTIVES),
            "see you on " + r.choice(w.DAYS),
            "I am " + r.choice(w.FEELINGS),
        ]
    )


# (names, description, [(parameter names, type, description, maker)], requests, reply)
TOOLS = [
    (
        ["get_weather", "weather", "current_weather", "check_weather"],
        "Get the weather of a city",
        [(["city", "location", "place"], TEXT, "Name of the city", city)],
        [
            "What is the weather in {0}?",
            "How is the weather in {0}?",
            "Tell me the weather in {0}.",
            "Is it raining in {0}?",
            "Do I need an umbrella in {0}?",
            "weather in {0}",
            "Check the weather for {0}.",
        ],
        lambda r, a: (
            json.dumps(
                dict(temperature=(t := r.randint(-5, 35)), sky=(s := r.choice(["sunny", "cloudy", "rainy", "windy"])))
            ),
            f"It is {s} in {a[0]} with {t} degrees.",
        ),
    ),
    (
        ["get_time", "current_time", "time_in_city"],
        "Get the time in a city",
        [(["city", "place", "location"], TEXT, "Name of the city", city)],
        ["What time is it in {0}?", "Tell me the time in {0}.", "What is the time in {0}?", "How late is it in {0}?"],
        lambda r, a: (json.dumps(dict(time=(t := clock(r)))), f"It is {t} in {a[0]}."),
    ),
    (
        ["set_timer", "start_timer", "timer"],
        "Start a timer",
        [(["minutes", "duration"], NUMBER, "Length in minutes", lambda r: r.randint(1, 90))],
        [
            "Set a timer for {0} minutes.",
            "Start a {0} minute timer.",
            "Wake me in {0} minutes.",
            "Please set a timer to {0} minutes.",
            "Timer for {0} minutes",
        ],
        lambda r, a: ('{"status": "ok"}', f"The timer is set for {a[0]} minutes."),
    ),
    (
        ["set_alarm", "create_alarm", "alarm"],
        "Set an alarm",
        [(["time", "at"], TEXT, "Time of day", clock)],
        ["Set an alarm for {0}.", "Wake me up at {0}.", "I need an alarm at {0}.", "Please set the alarm to {0}."],
        lambda r, a: ('{"status": "ok"}', f"The alarm is set for {a[0]}."),
    ),
    (
        ["send_message", "send_text", "message"],
        "Send a message to a person",
        [
            (["to", "recipient", "person"], TEXT, "Who gets it", name),
            (["text", "body", "message"], TEXT, "What to say", phrase),
        ],
        [
            "Send {0} a message: {1}",
            "Text {0}: {1}",
            "Write to {0} and say {1}",
            "Tell {0} {1}",
            "Send the message {1} to {0}",
        ],
        lambda r, a: ('{"sent": true}', f"I sent your message to {a[0]}."),
    ),
    (
        ["send_email", "email", "write_email"],
        "Send an email",
        [(["to", "recipient"], TEXT, "Who gets it", name), (["subject", "title"], TEXT, "Subject line", short_text)],
        [
            "Send an email to {0} about {1}.",
            "Email {0} with the subject {1}.",
            "Write an email to {0} with the subject {1}.",
        ],
        lambda r, a: ('{"sent": true}', f"I sent the email to {a[0]}."),
    ),
    (
        ["search", "web_search", "search_web", "find"],
        "Search the web",
        [
            (
                ["query", "q", "text"],
                TEXT,
                "What to look for",
                lambda r: r.choice(
                    [
                        r.choice(w.TOPICS_TELL),
                        r.choice(w.IDEAS).split()[-1],
                        "how to " + r.choice(w.TASKS),
                        rare_name(r),
                    ]
                ),
            )
        ],
        [
            "Search for {0}.",
            "Search the web for {0}.",
            "Look up {0}.",
            "Find pages about {0}.",
            "Can you search for {0}?",
            "Google {0}",
        ],
        lambda r, a: ('{"results": 3}', f"I found three pages about {a[0]}."),
    ),
    (
        ["play_music", "play_song", "play"],
        "Play music",
        [(["artist", "name", "song"], TEXT, "What to play", name)],
        ["Play music by {0}.", "Play something by {0}.", "I want to hear {0}.", "Put on {0}, please."],
        lambda r, a: ('{"status": "playing"}', f"Now playing {a[0]}."),
    ),
    (
        ["add_item", "add_to_list", "shopping_list_add"],
        "Add an item to the shopping list",
        [
            (
                ["item", "name"],
                TEXT,
                "The item",
                lambda r: r.choice(
                    w.TOOLS + ["milk", "bread", "eggs", "apples", "cheese", "rice", "tea", "coffee", "butter", "soap"]
                ),
            )
        ],
        ["Add {0} to my shopping list.", "Put {0} on the list.", "I need to buy {0}.", "Add {0} to the list, please."],
        lambda r, a: ('{"status": "ok"}', f"I added {a[0]} to the list."),
    ),
    (
        ["set_reminder", "remind", "create_reminder"],
        "Create a reminder",
        [(["text", "task"], TEXT, "What to remember", short_text), (["time", "at"], TEXT, "Time of day", clock)],
        ["Remind me to {0} at {1}.", "Set a reminder to {0} at {1}.", "At {1}, remind me to {0}."],
        lambda r, a: ('{"status": "ok"}', f"I will remind you to {a[0]} at {a[1]}."),
    ),
    (
        ["create_event", "add_event", "calendar_add"],
        "Add an event to the calendar",
        [
            (
                ["title", "name"],
                TEXT,
                "Name of the event",
                lambda r: r.choice(["dinner", "meeting", "party", "lunch", "concert", "lesson"])
                + r.choice(["", " with " + name(r)]),
            ),
            (["day", "date"], TEXT, "Day of the week", lambda r: r.choice(w.DAYS)),
        ],
        [
            "Add {0} to my calendar on {1}.",
            "Put {0} in the calendar for {1}.",
            "I have {0} on {1}. Add it to my calendar.",
        ],
        lambda r, a: ('{"status": "ok"}', f"I added {a[0]} on {a[1]}."),
    ),
    (
        ["set_light", "light", "switch_light"],
        "Switch a light on or off",
        [
            (
                ["room", "place"],
                TEXT,
                "Which room",
                lambda r: r.choice(
                    ["kitchen", "bedroom", "bathroom", "living room", "garden", "office", "hall", "garage"]
                ),
            ),
            (["state", "value"], TEXT, "on or off", lambda r: r.choice(["on", "off"])),
        ],
        [
            "Turn {1} the light in the {0}.",
            "Turn the {0} light {1}.",
            "Switch {1} the lights in the {0}.",
            "{0} light {1}, please",
        ],
        lambda r, a: ('{"status": "ok"}', f"The light in the {a[0]} is {a[1]}."),
    ),
    (
        ["set_temperature", "heating", "thermostat"],
        "Set the room temperature",
        [(["degrees", "temperature", "value"], NUMBER, "Degrees Celsius", lambda r: r.randint(10, 30))],
        [
            "Set the temperature to {0} degrees.",
            "Make it {0} degrees.",
            "Heat the room to {0} degrees.",
            "Set the heating to {0}.",
        ],
        lambda r, a: ('{"status": "ok"}', f"The temperature is set to {a[0]} degrees."),
    ),
    (
        ["translate", "translate_text"],
        "Translate text",
        [
            (["text", "phrase"], TEXT, "Text to translate", phrase),
            (
                ["language", "to", "target"],
                TEXT,
                "Target language",
                lambda r: r.choice(["French", "German", "Spanish", "Italian", "Polish", "Greek", "Dutch"]),
            ),
        ],
        ["Translate {0} into {1}.", "How do you say {0} in {1}?", "Translate to {1}: {0}", "What is {0} in {1}?"],
        lambda r, a: ('{"status": "ok"}', f"Here is your text in {a[1]}."),
    ),
    (
        ["calculate", "calculator", "compute"],
        "Calculate a number",
        [
            (
                ["expression", "formula", "input"],
                TEXT,
                "What to calculate",
                lambda r: f"{r.randint(2, 999)} {r.choice('+-*/')} {r.randint(2, 999)}",
            )
        ],
        ["Calculate {0}.", "What is {0}?", "How much is {0}?", "Use the calculator for {0}.", "{0}"],
        lambda r, a: (json.dumps(dict(result=(v := r.randint(2, 999)))), f"The result is {v}."),
    ),
    (
        ["convert_currency", "exchange", "currency"],
        "Convert money",
        [
            (["amount", "value"], NUMBER, "How much", lambda r: r.randint(1, 500)),
            (["from", "source"], TEXT, "From", lambda r: r.choice(["dollars", "euros", "pounds", "yen"])),
            (["to", "target"], TEXT, "To", lambda r: r.choice(["francs", "pesos", "crowns", "rupees"])),
        ],
        ["Convert {0} {1} to {2}.", "How many {2} are {0} {1}?", "Change {0} {1} into {2}."],
        lambda r, a: (json.dumps(dict(result=(v := r.randint(2, 999)))), f"{a[0]} {a[1]} are {v} {a[2]}."),
    ),
    (
        ["book_table", "reserve_table", "reservation"],
        "Book a table in a restaurant",
        [
            (["people", "guests", "seats"], NUMBER, "Number of people", lambda r: r.randint(1, 12)),
            (["time", "at"], TEXT, "Time of day", clock),
        ],
        ["Book a table for {0} at {1}.", "Reserve a table for {0} people at {1}.", "I need a table for {0} at {1}."],
        lambda r, a: ('{"status": "ok"}', f"I booked a table for {a[0]} at {a[1]}."),
    ),
    (
        ["read_file", "open_file", "cat"],
        "Read a file",
        [
            (
                ["path", "file", "filename"],
                TEXT,
                "Path of the file",
                lambda r: r.choice(["notes", "todo", "main", "report", "data", rare_name(r).lower()])
                + r.choice([".txt", ".md", ".py", ".json", ".csv"]),
            )
        ],
        ["Read the file {0}.", "Open {0}.", "Show me {0}.", "What is in {0}?", "Show me the contents of {0}."],
        lambda r, a: ('{"text": "hello"}', f"The file {a[0]} contains: hello"),
    ),
    (
        ["list_files", "ls", "list_directory"],
        "List the files in a folder",
        [
            (
                ["path", "folder", "directory"],
                TEXT,
                "Path of the folder",
                lambda r: r.choice(["src", "docs", "home", "photos", "music", "tests", rare_name(r).lower()]),
            )
        ],
        ["List the files in {0}.", "What files are in {0}?", "Show the folder {0}.", "ls {0}"],
        lambda r, a: (
            json.dumps(dict(files=(f := ["a.txt", "b.txt"]))),
            f"There are two files in {a[0]}: a.txt and b.txt.",
        ),
    ),
    (
        ["define", "define_word", "dictionary"],
        "Look up a word",
        [(["word", "term"], TEXT, "The word", lambda r: r.choice(w.ANIMALS + w.ADJECTIVES + [rare_name(r).lower()]))],
        ["Define {0}.", "Look up the word {0}.", "What does the word {0} mean?", "Find {0} in the dictionary."],
        lambda r, a: ('{"status": "ok"}', f"I found the word {a[0]} in the dictionary."),
    ),
    (
        ["roll_dice", "dice", "random_number"],
        "Draw a random number",
        [(["max", "sides", "limit"], NUMBER, "Largest number", lambda r: r.choice([6, 8, 10, 12, 20, 100]))],
        ["Roll a dice with {0} sides.", "Give me a random number up to {0}.", "Pick a number between 1 and {0}."],
        lambda r, a: (json.dumps(dict(number=(v := r.randint(1, a[0])))), f"The number is {v}."),
    ),
    (
        ["get_news", "news", "headlines"],
        "Get the news about a topic",
        [(["topic", "subject"], TEXT, "Topic", lambda r: r.choice(w.TOPICS_TELL + [city(r)]))],
        ["What is the news about {0}?", "Show me news about {0}.", "Any news on {0}?", "Get the headlines about {0}."],
        lambda r, a: ('{"count": 2}', f"There are two new stories about {a[0]}."),
    ),
    (
        ["find_route", "directions", "navigate"],
        "Find the way between two places",
        [(["from", "start"], TEXT, "Start", city), (["to", "end", "destination"], TEXT, "Goal", city)],
        [
            "How do I get from {0} to {1}?",
            "Find a route from {0} to {1}.",
            "Directions from {0} to {1}, please.",
            "Navigate to {1} from {0}.",
        ],
        lambda r, a: (
            json.dumps(dict(km=(v := r.randint(5, 900)))),
            f"The way from {a[0]} to {a[1]} is {v} kilometers long.",
        ),
    ),
    (
        ["call", "call_contact", "phone"],
        "Call a person",
        [(["name", "contact", "person"], TEXT, "Who to call", name)],
        ["Call {0}.", "Please call {0}.", "Phone {0}.", "I want to talk to {0}. Call them."],
        lambda r, a: ('{"status": "calling"}', f"I am calling {a[0]} now."),
    ),
    (
        ["find_recipe", "recipe", "get_recipe"],
        "Find a recipe",
        [
            (
                ["dish", "food", "query"],
                TEXT,
                "What to cook",
                lambda r: r.choice(
                    [
                        "pancakes",
                        "tomato soup",
                        "apple pie",
                        "pizza",
                        "rice",
                        "salad",
                        "bread",
                        "pasta",
                        "curry",
                        rare_name(r).lower(),
                    ]
                ),
            )
        ],
        [
            "Find a recipe for {0}.",
            "How do I cook {0}? Find a recipe.",
            "I want to make {0}. Find me a recipe.",
            "Get a {0} recipe.",
        ],
        lambda r, a: ('{"status": "ok"}', f"I found a recipe for {a[0]}."),
    ),
    (
        ["open_app", "launch", "start_app"],
        "Open an app",
        [
            (
                ["app", "name", "program"],
                TEXT,
                "Name of the app",
                lambda r: r.choice(
                    ["camera", "calendar", "mail", "maps", "notes", "music", "clock", "photos", rare_name(r)]
                ),
            )
        ],
        ["Open the {0} app.", "Start {0}.", "Launch {0}.", "Please open {0}."],
        lambda r, a: ('{"status": "ok"}', f"I opened {a[0]}."),
    ),
]

HELD_OUT_CALLS = [
    ("get_weather", "city", TEXT, "Get the weather of a city", "What is the weather in Hamburg?"),
    ("get_weather", "location", TEXT, "Get the current weather", "Will I need a coat in Reno today?"),
    ("set_timer", "minutes", NUMBER, "Start a timer", "Please start a timer for 17 minutes"),
    ("play_song", "title", TEXT, "Play a song", "Play Yellow Submarine"),
    ("search", "query", TEXT, "Search the web", "Search for cheap bicycles"),
    ("add_item", "item", TEXT, "Add an item to the shopping list", "We are out of sugar, put it on the list."),
    ("get_time", "city", TEXT, "Get the time in a city", "How late is it in Bangkok?"),
    ("define_word", "word", TEXT, "Look up a word", "What does the word lantern mean?"),
    ("read_file", "path", TEXT, "Read a file", "Show me what is in budget.csv"),
    ("list_files", "folder", TEXT, "List the files in a folder", "Which files are in the downloads folder?"),
    ("calculate", "expression", TEXT, "Calculate a number", "What is 37 * 21?"),
    ("set_temperature", "degrees", NUMBER, "Set the room temperature", "Make it 23 degrees in here"),
    ("call_contact", "name", TEXT, "Call a person", "Call Beatrice"),
    ("set_alarm", "time", TEXT, "Set an alarm", "Wake me up at 05:30 tomorrow."),
    ("get_news", "topic", TEXT, "Get the news about a topic", "What is new about electric cars?"),
    ("find_recipe", "dish", TEXT, "Find a recipe", "I want to cook lasagna. Find a recipe."),
    ("open_app", "app", TEXT, "Open an app", "Open the weather app"),
    ("roll_dice", "sides", NUMBER, "Roll a dice", "Roll a dice with 30 sides"),
    ("feed_pet", "name", TEXT, "Feed a pet", "Feed the cat Whiskers"),
    ("book_hotel", "city", TEXT, "Book a hotel room", "Book me a hotel in Salzburg"),
]


def schema(tool_name, description, params):
    properties = {n: dict(type=t, description=d) for n, t, d in params}
    return dict(
        type="function",
        function=dict(
            name=tool_name,
            description=description,
            parameters=dict(type="object", properties=properties, required=[n for n, _, _ in params]),
        ),
    )


def instance(r, tool):
    names, description, params, requests, reply = tool
    chosen = r.choice(names)
    if r.random() < 0.1:  # names the model has not seen
        chosen = rare_name(r).lower() + "_" + chosen
    picked = [(r.choice(options), kind, text) for options, kind, text, _ in params]
    return chosen, description, picked, requests, [make for *_, make in params], reply


def tool_call(r):
    """(messages, tools)"""
    count = r.choice([1, 1, 1, 2, 2, 3])
    chosen = r.sample(TOOLS, count)
    made = [instance(r, t) for t in chosen]
    tools = [schema(n, d, p) for n, d, p, *_ in made]
    fn, description, params, requests, makers, reply = made[0]
    r.shuffle(tools)
    if r.random() < 0.06:
        asks, answers = r.choice(TALK[:10])
        return [user(r.choice(asks)), said(r.choice(answers))], tools
    values = [make(r) for make in makers]
    ask = r.choice(requests).format(*values)
    if r.random() < 0.15:
        ask = r.choice(["Please ", "Can you please ", "Hey, ", "Hi! "]) + ask[0].lower() + ask[1:]
    call = dict(name=fn, arguments={n: v for (n, _, _), v in zip(params, values)})
    why = f"The user wants to use {fn}. I will call it with {', '.join(f'{n} = {v}' for (n, _, _), v in zip(params, values))}."
    messages = [user(ask), said("", reasoning=why if r.random() < 0.25 else None, call=call)]
    if r.random() < 0.35:
        result, answer = reply(r, values)
        messages += [dict(role="tool", content=result), said(answer)]
    return messages, tools


def conversations(count, seed):
    """Yields (kind, messages, tools)."""
    r = random.Random(seed)
    for _ in range(count):
        x = r.random()
        tools = None
        if x < 0.30:
            kind = "tools"
            messages, tools = tool_call(r)
        elif x < 0.36:
            kind, messages = "json", json_answer(r)
        elif x < 0.48:
            kind = "sums"
            q, a, why = sum_(r)
            messages = [user(q), said(a, reasoning=why if r.random() < 0.4 else None)]
        elif x < 0.76:
            kind = "knowledge"
            q, a = knowledge.ask(r)
            messages = [
                user(vary(r, q)),
                said(a, reasoning=f"The user asks: {q} I know a simple answer." if r.random() < 0.1 else None),
            ]
        elif x < 0.86:
            kind = "facts"
            q, a, why = fact(r)
            messages = [user(vary(r, q)), said(a, reasoning=why if r.random() < 0.2 else None)]
        else:
            kind, messages = "talk", small_talk(r)
            if r.random() < 0.2:
                messages[-1]["reasoning"] = "The user is making small talk. I should answer in a friendly way."
            while r.random() < 0.35:
                messages += (
                    small_talk(r)
                    if r.random() < 0.5
                    else [user((f := (fact(r) if r.random() < 0.5 else knowledge.ask(r)))[0]), said(f[1])]
                )
        if r.random() < 0.3:
            messages = [dict(role="system", content=r.choice(SYSTEMS))] + messages
        yield kind, messages, tools
