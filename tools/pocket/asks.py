"""How users ask for stories, and what no training text may hold."""
import re

import calls
import words as w


def plain(text):
    """Text without case and punctuation, for comparing prompts."""
    return re.sub(r" +", " ", re.sub(r"[^a-z0-9 ]", "", text.lower())).strip()


_HELD = re.compile(
    r"\b("
    + "|".join(
        re.escape(plain(t)) for t in w.HELD_OUT_STORIES + w.HELD_OUT_QUESTIONS + [c[4] for c in calls.HELD_OUT_CALLS]
    )
    + r")\b"
)


def held_out(text):
    """Whether a user's message contains a topic, question or request of the held-out lists."""
    return _HELD.search(plain(text)) is not None


def story(r, topic):
    return r.choice(
        [
            "Write a short story about {}.",
            "Tell me a story about {}.",
            "Tell me a story about {}.",
            "Tell me a short story about {}.",
            "Write a story about {}.",
            "Can you tell me a story about {}?",
            "Please write a short story about {}.",
            "Story about {}, please.",
            "I want to hear a story about {}.",
            "Make up a story about {}.",
            "Do you know a story about {}?",
            "I would like a story about {}.",
            "Please tell my child a story about {}.",
            "A bedtime story about {}, please.",
        ]
    ).format(topic)


ANY_STORY = [
    "Tell me a story.",
    "Tell me a bedtime story.",
    "Write a short story.",
    "Can you tell me a story?",
    "I want to hear a story.",
    "Make up a story.",
    "Story, please.",
    "Tell me a story with a happy ending.",
    "Tell me a short story for children.",
]
MORE = [
    "Tell me another story.",
    "Another one, please.",
    "One more story!",
    "Please tell me one more.",
    "More, please.",
    "And another story?",
]
