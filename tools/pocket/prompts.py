"""Prompts for the teacher: what the student's user will say, and the longer form that the teacher is asked."""
import random
import re

import words as w

STORY, QA = "story", "qa"


def plain(text):
    """Text without case and punctuation, for comparing prompts."""
    return re.sub(r"[^a-z0-9 ]", "", text.lower()).strip()


HELD_OUT = {plain(t) for t in w.HELD_OUT_STORIES + w.HELD_OUT_QUESTIONS}


def article(noun):
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def hero(r):
    noun = r.choice(r.choice([w.ANIMALS, w.ANIMALS, w.PEOPLE, w.PEOPLE, w.THINGS_ALIVE]))
    if r.random() < 0.12:
        noun = r.choice(["boy", "girl", r.choice(w.ANIMALS)]) + " named " + r.choice(w.NAMES)
    if r.random() < 0.45:
        noun = r.choice(w.ADJECTIVES) + " " + noun
    return article(noun)


def story_topic(r):
    kind = r.random()
    if kind < 0.30:
        topic = f"{hero(r)} who {r.choice(w.DEEDS)}"
    elif kind < 0.48:
        topic = f"{hero(r)} who finds {article(r.choice(w.OBJECTS))}"
    elif kind < 0.62:
        topic = f"{hero(r)} and {article(r.choice(w.OBJECTS))}"
    elif kind < 0.74:
        topic = f"{hero(r)} and {hero(r)}"
    elif kind < 0.84:
        topic = f"{hero(r)} {r.choice(w.PLACES)}"
    elif kind < 0.90:
        topic = f"two {r.choice(['friends', 'brothers', 'sisters', 'children', 'cats', 'birds', 'mice'])} who "
        topic += r.choice(["find ", "build ", "lose ", "share "]) + article(r.choice(w.OBJECTS))
    elif kind < 0.95:
        topic = f"{r.choice(w.THEMES)} {r.choice(w.PLACES)}"
    else:
        topic = r.choice(w.THEMES)
    return topic


def story_ask(r, topic):
    return r.choice(
        [
            "Write a short story about {}.",
            "Tell me a story about {}.",
            "Tell me a short story about {}.",
            "Write a story about {}.",
            "Can you tell me a story about {}?",
            "Please write a short story about {}.",
            "Story about {}, please.",
            "I want to hear a story about {}.",
            "Make up a story about {}.",
        ]
    ).format(topic)


def story(r):
    topic = story_topic(r)
    ask = story_ask(r, topic)
    style = r.choice(
        [
            "Use short, simple sentences, as for a five year old child. Give it a clear ending.",
            "Use simple words and give it a happy ending. Write about 150 words.",
            "It is a bedtime story for small children. Keep it under 180 words.",
            "Use simple words. Write two short paragraphs.",
            "Use short sentences and a little dialogue. Write about 150 words.",
        ]
    )
    return topic, ask, f"Write a short story about {topic}. {style}"


def questions():
    """(student question, hint for the teacher) for every combination of the lists."""
    one, two, tips = (
        "Answer in one short, simple sentence.",
        "Answer in two short, simple sentences.",
        "Give three short tips in simple words.",
    )
    for t in w.TOOLS:
        a = article(t) if not t.endswith("s") else t
        yield f"What is {a} used for?" if not t.endswith("s") else f"What are {t} used for?", one
        yield f"What is {a}?" if not t.endswith("s") else f"What are {t}?", one
        yield f"How do I use {a}?", two
        yield f"Where can I buy {a}?", one
        yield f"What can I use instead of {a}?", one
        yield f"Write a sentence about {a}.", "Write only the sentence."
        yield f"How do I clean {a}?", two
    for t in w.NATURE + w.IDEAS:
        yield f"What is {t}?", one
        yield f"Explain {t} to a child.", two
        yield f"Tell me about {t}.", two
        yield f"Can you describe {t}?", two
        yield f"Why is {t} important?", two
        yield f"Write a sentence about {t}.", "Write only the sentence."
        yield f"Tell me a fun fact about {t}.", one
        yield f"Write a short poem about {t}.", "Write four short lines."
        yield f"What is interesting about {t}?", one
    for t in w.TASKS:
        yield f"How do I {t}?", two
        yield f"How can I {t}?", two
        yield f"What is the best way to {t}?", two
        yield f"What do I need to {t}?", one
        yield f"Teach me how to {t}.", "Give three or four short steps, numbered."
        yield f"Give me the steps to {t}.", "Give three or four short steps, numbered."
        yield f"Is it hard to {t}?", two
        yield f"Why should I {t}?", one
    for t in w.WHYS:
        yield f"Why {t}?", two
        yield f"Can you explain why {re.sub(r'^(is|are|do|does) ', '', t)}?" if t.startswith(
            "do "
        ) else f"Tell me, why {t}?", two
    for t in w.TOPICS_TELL:
        yield f"Tell me about {t}.", two
        yield f"Tell me something interesting about {t}.", one
        yield f"What do you know about {t}?", two
        yield f"Why do people like {t}?", two
        yield f"Give me a short description of {t}.", two
        yield f"Do you like {t}?", two
        yield f"Write a short paragraph about {t}.", "Write three or four simple sentences."
        yield f"Write a short poem about {t}.", "Write four short lines."
        yield f"Name three facts about {t}.", "Give three short facts, numbered."
    for t in w.ADVICE:
        yield f"Give me tips for {t}.", tips
        yield f"Give me some advice about {t}.", two
        yield f"What is your best tip for {t}?", one
        yield f"I need help with {t}.", two
    for t in w.PAIRS:
        yield f"What is the difference between {t}?", two
        yield f"How are {t} different?", two
        yield f"How are {t} alike?", one
        yield f"Which is better, {t.replace(' and ', ' or ')}?", two
    for t in w.ANIMALS:
        p = {
            "mouse": "mice",
            "fish": "fish",
            "butterfly": "butterflies",
            "ladybug": "ladybugs",
            "deer": "deer",
            "sheep": "sheep",
            "wolf": "wolves",
            "puppy": "puppies",
            "pony": "ponies",
            "octopus": "octopuses",
            "donkey": "donkeys",
            "monkey": "monkeys",
            "turkey": "turkeys",
            "fox": "foxes",
        }.get(t, t + "s")
        yield f"What do {p} eat?", one
        yield f"Where do {p} live?", one
        yield f"Tell me about {p}.", two
        yield f"What is special about {p}?", one
        yield f"Describe {article(t)}.", two
        yield f"How do {p} sleep?", one
        yield f"Are {p} dangerous?", one
        yield f"Can I keep {article(t)} as a pet?", two
    for t in w.PEOPLE + [
        "bus driver",
        "lawyer",
        "engineer",
        "dentist",
        "waiter",
        "writer",
        "judge",
        "plumber",
        "electrician",
        "mechanic",
        "soldier",
        "veterinarian",
        "photographer",
        "actor",
        "singer",
    ]:
        yield f"What does {article(t)} do?", one
        yield f"What does {article(t)} need?", one
        yield f"Write a sentence about {article(t)}.", "Write only the sentence."
    for t in w.PLACES:
        yield f"What can I do {t}?", two
        yield f"What can I see {t}?", one
        yield f"Name three things you can find {t}.", "Answer in one sentence."
    for t in w.FEELINGS:
        yield f"I am {t}. What should I do?", two
        yield f"I feel {t}.", "Answer kindly in two short sentences."
        yield f"I feel {t} today. Can you help me?", "Answer kindly in two short sentences."
        yield f"Why do I feel {t}?", two
        yield f"What does it mean to be {t}?", one
        yield f"What can I do when I am {t}?", two
    for t in w.EVENTS:
        yield t, "Answer kindly in one or two short sentences."
        yield f"{t} What do you think?", "Answer kindly in one or two short sentences."
        yield f"{t} What should I do?", two
    for c, _ in w.COUNTRIES:
        yield f"Tell me about {c}.", two
        yield f"What is {c} known for?", one
        yield f"What food do people eat in {c}?", one
        yield f"What can I see in {c}?", one
    for meal in ["breakfast", "lunch", "dinner", "a snack", "dessert"]:
        for ask in [
            "What should I eat for {}?",
            "What can I cook for {}?",
            "Give me an idea for {}.",
            "What is a healthy {}?",
            "What do people eat for {}?",
            "What is a simple {} for children?",
        ]:
            yield ask.format(meal).replace("healthy a ", "healthy ").replace("simple a ", "simple "), two
    for day in [
        "a rainy day",
        "a sunny day",
        "a cold day",
        "the weekend",
        "a holiday",
        "a long trip",
        "a free evening",
    ]:
        yield f"What can I do on {day}?", two
        yield f"Give me three ideas for {day}.", "Give three short ideas, numbered."
        yield f"What should I wear on {day}?", one
    for who in [
        "a friend",
        "my mother",
        "my father",
        "my teacher",
        "a child",
        "my sister",
        "my brother",
        "a neighbor",
        "my grandmother",
        "a coworker",
    ]:
        yield f"What is a good gift for {who}?", two
        yield f"How can I help {who}?", two
        yield f"How do I say thank you to {who}?", two
        yield f"Write a short birthday message for {who}.", "Write two short sentences."
        yield f"Write a short thank you note to {who}.", "Write three short sentences."
        yield f"Write an invitation to a party for {who}.", "Write three short sentences."
    for thing in [
        "book",
        "movie",
        "hobby",
        "game",
        "sport",
        "song for children",
        "pet",
        "fruit",
        "place to visit",
        "drink",
        "flower",
        "name for a cat",
        "name for a dog",
        "present",
        "exercise",
        "soup",
        "sandwich",
    ]:
        yield f"Can you recommend a {thing}?", one
        yield f"What is a good {thing}?", one
        yield f"What is your favorite {thing}?", one
        yield f"Give me three ideas for a {thing}.", "Give three short ideas, numbered."


def loosen(r, text):
    """The student also meets prompts in lower case and without their last mark."""
    x = r.random()
    if x < 0.10:
        text = text.lower()
    if x < 0.06 or 0.10 <= x < 0.14:
        text = text.rstrip(".?!")
    elif x > 0.97:
        text = r.choice(["Please tell me: ", "Hi! ", "Hello. ", "Quick question: "]) + text
    return text


def make(count, seed, story_share=0.45):
    """count dicts with kind, topic, user (for the student), ask (for the teacher), limit (ids), temperature."""
    r = random.Random(seed)
    pool = [q for q in dict.fromkeys(questions()) if plain(q[0]) not in HELD_OUT]
    out, order = [], []
    while len(out) < count:
        if r.random() < story_share:
            topic, user, ask = story(r)
            if plain(topic) in HELD_OUT:
                continue
            out.append(dict(kind=STORY, topic=topic, user=loosen(r, user), ask=ask, limit=290, temperature=0.7))
        else:
            if not order:
                order = r.sample(pool, len(pool))
            user, hint = order.pop()
            long = hint.startswith(("Give three", "Write three", "Write four"))
            out.append(
                dict(
                    kind=QA,
                    topic=user,
                    user=loosen(r, user),
                    ask=f"{user} {hint}",
                    limit=120 if long else 90,
                    temperature=0.4,
                )
            )
    return out
