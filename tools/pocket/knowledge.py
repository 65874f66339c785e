"""Questions about everyday things and their short answers: hand-written facts, each asked in many wordings."""

import answers

USES = """spoon: eat soup and stir drinks|cutting board: cut food without harming the table|whistle: make a loud sound|glue: stick things together|tape: hold paper together|
toothpaste: clean your teeth|shampoo: wash your hair|helmet: protect your head|raincoat: stay dry in the rain|sunglasses: protect your eyes from the sun|spade: dig holes|
watering can: water plants|wheelbarrow: carry heavy things in the garden|fishing rod: catch fish|net: catch fish or butterflies|envelope: send a letter|printer: put text and pictures on paper|
scale: measure how heavy something is|tape measure: measure how long something is|alarm clock: wake up in the morning|phone: call people and send messages|lighter: make fire|stove: cook food|toaster: make toast|
mixer: mix dough|sieve: hold back big pieces and let water through|grater: cut cheese into tiny pieces|teapot: make and pour tea|corkscrew: open a bottle of wine|can opener: open cans|basket: carry fruit and other things|
umbrella: stay dry in the rain|hammer: hit nails into wood|fork: pick up food|knife: cut things|scissors: cut paper and cloth|
pencil: write and draw|eraser: remove pencil marks|broom: sweep the floor|bucket: carry water|towel: dry yourself|pillow: rest your head while you sleep|
blanket: keep warm in bed|clock: tell the time|watch: see the time on your wrist|camera: take pictures|telephone: talk to people who are far away|
computer: work, play, and find information|keyboard: type letters and numbers|lamp: light a room|candle: give light|mirror: see yourself|comb: make your hair neat|
toothbrush: clean your teeth|soap: wash your hands and body|key: open a lock|door: enter or leave a room|window: let light and air into a room|chair: sit down|table: put things on|
bed: sleep|sofa: sit with other people|oven: bake food|refrigerator: keep food cold and fresh|kettle: boil water|pan: fry food|bowl: hold soup or cereal|cup: drink tea or coffee|
plate: put food on|bottle: hold drinks|backpack: carry things on your back|wallet: carry money and cards|map: find your way|compass: find north|ladder: climb up to high places|
rope: tie and pull things|saw: cut wood|drill: make holes|nail: hold pieces of wood together|needle: sew cloth|button: close a shirt|zipper: close a jacket or a bag|bicycle: ride from place to place|
car: travel on roads|bus: carry many people through a city|train: travel on rails|airplane: fly to far places|boat: travel on water|tent: sleep outside|flashlight: see in the dark|
battery: give power to small machines|radio: listen to music and news|book: read stories and learn|newspaper: read the news|notebook: write down ideas|calendar: keep track of days|
ruler: measure and draw straight lines|calculator: add and multiply numbers|microscope: look at very small things|telescope: look at the stars|thermometer: measure temperature|
bandage: cover a cut|stamp: pay for sending a letter|bridge: cross a river|roof: keep rain out of a house|fan: move air and keep cool|heater: make a room warm|washing machine: wash clothes|
dishwasher: wash dishes|vacuum cleaner: clean carpets and floors|hat: protect your head|glove: keep a hand warm|scarf: keep your neck warm|boot: keep a foot dry and warm|belt: hold up trousers"""

# animals: what they eat | where they live
EATS = """cows: grass and hay: farms|donkeys: grass and hay: farms|geese: grass and grain: farms and ponds|snails: leaves and plants: gardens|caterpillars: leaves: plants|worms: dead leaves and soil: soil|moles: worms and insects: tunnels under the ground|
badgers: worms, berries, and mice: forests|beavers: wood, bark, and leaves: rivers|otters: fish: rivers|seals: fish: cold seas|crabs: small sea animals and plants: the sea|octopuses: crabs and fish: the sea|parrots: seeds, nuts, and fruit: warm forests|
eagles: fish and small animals: mountains|swans: water plants and grass: lakes|crows: grain, insects, and much more: fields and towns|ladybugs: tiny insects: gardens|ants: seeds, insects, and sweet things: nests in the ground|crocodiles: fish and other animals: warm rivers|
hamsters: seeds, grain, and vegetables: houses with people|guinea pigs: hay and vegetables: houses with people|polar bears: seals and fish: the cold north|ostriches: plants and insects: Africa|hippos: grass: rivers in Africa|rhinos: grass and leaves: Africa and Asia|
foxes: mice, birds, and berries: forests and fields|rabbits: grass, leaves, and carrots: fields and gardens|bears: fish, berries, and honey: forests and mountains|cats: meat and fish: houses with people|dogs: meat and dog food: houses with people|
mice: seeds, grain, and cheese: fields and houses|owls: mice and small birds: forests|ducks: plants, insects, and bread: ponds and lakes|frogs: insects and worms: ponds|squirrels: nuts and seeds: trees|hedgehogs: insects and worms: gardens and forests|
turtles: plants and small animals: water and land|lions: meat: Africa|elephants: grass, leaves, and fruit: Africa and Asia|monkeys: fruit, leaves, and nuts: warm forests|penguins: fish: the cold south|horses: grass, hay, and oats: farms|pigs: grain and vegetables: farms|
sheep: grass: farms and hills|goats: grass and leaves: farms and mountains|deer: grass and leaves: forests|wolves: meat: forests and mountains|whales: fish and tiny sea animals: the ocean|dolphins: fish: the ocean|bees: nectar and honey: hives|spiders: insects: webs|
bats: insects and fruit: caves and trees|tigers: meat: forests in Asia|zebras: grass: Africa|giraffes: leaves from tall trees: Africa|kangaroos: grass: Australia|koalas: leaves: trees in Australia|pandas: bamboo: China|camels: dry grass: deserts|
chickens: seeds, grain, and insects: farms|birds: seeds, insects, and berries: nests in trees|fish: plants and small animals: water|sharks: fish: the ocean|butterflies: nectar from flowers: gardens and fields|snakes: mice and other small animals: many warm places"""


def _split(text):
    return [tuple(p.strip() for p in entry.split(":")) for entry in text.replace("\n", " ").split("|")]


USES, EATS = _split(USES), _split(EATS)
SAYS = [(asks.split("/"), answer) for asks, answer in answers.SAYS]
ONE = dict(mice="mouse", wolves="wolf", geese="goose", butterflies="butterfly", foxes="fox", ostriches="ostrich")
ONE |= dict(octopuses="octopus", sheep="sheep", deer="deer", fish="fish", monkeys="monkey", ladybugs="ladybug")
SIZES = """ant|bee|mouse|frog|sparrow|rabbit|cat|goose|fox|sheep|pig|deer|horse|cow|hippo|elephant|whale""".split("|")
KINDS = {
    "an animal": "dog cat horse cow sheep goat lion tiger bear wolf fox mouse rabbit elephant monkey frog duck owl".split(),
    "a fruit": "apple banana cherry lemon orange pear plum peach strawberry grape".split(),
    "a vegetable": "carrot potato onion cabbage cucumber pea bean radish".split(),
    "a color": "red blue green yellow black white purple pink brown gray".split(),
    "a tool": "hammer saw drill spade ladder broom knife".split(),
    "an instrument": "guitar piano violin drum flute trumpet".split(),
    "a piece of furniture": "table chair bed sofa desk shelf".split(),
    "a vehicle": "car bus train bicycle boat airplane truck".split(),
}


def a(noun):
    return ("an " if noun[0] in "aeiou" and not noun.startswith("uni") else "a ") + noun


def cap(text):
    return text[0].upper() + text[1:]


def one(animals):
    return ONE.get(animals, animals[:-1])


def _use(r):
    thing, use = r.choice(USES)
    if thing in ("scissors", "sunglasses"):
        asks = [
            "What are {} used for?",
            "What are {}?",
            "What do I do with {}?",
            "What are {} for?",
            "Why do people use {}?",
        ]
        return r.choice(asks).format(thing), f"You use {thing} to {use}."
    thing = thing if thing in ("glue", "tape", "toothpaste", "shampoo", "soap") else a(thing)
    asks, answer = r.choice(
        [
            (
                ["What is {} used for?", "What is {} for?", "What is the use of {}?", "Tell me what {} is for."],
                "{} is used to {}.",
            ),
            (
                [
                    "What do you use {} for?",
                    "What can I do with {}?",
                    "What do I do with {}?",
                    "How do I use {}?",
                    "Why do I need {}?",
                    "When do I need {}?",
                ],
                "You use {} to {}.",
            ),
            (
                [
                    "Why do people use {}?",
                    "What do people use {} for?",
                    "What do people do with {}?",
                    "Why do people need {}?",
                    "Why do we use {}?",
                ],
                "People use {} to {}.",
            ),
        ]
    )
    return r.choice(asks).format(thing), cap(answer.format(thing, use))


def _means(r):
    thing, is_ = r.choice(answers.MEANS)
    thing = thing[1:] if thing[0] == "-" else a(thing)
    asks = ["What is {}?"] * 3 + [
        "What's {}?",
        "Tell me what {} is.",
        "Explain {} to me.",
        "Can you explain what {} is?",
    ]
    asks += [
        "Describe {}.",
        "Do you know what {} is?",
        "Tell me about {}.",
        "What exactly is {}?",
        "What do you know about {}?",
    ]
    asks += ["Explain to a child what {} is.", "I want to know what {} is.", "What does {} mean?", "Explain {}."]
    return r.choice(asks).format(thing), cap(f"{thing} is {is_}.")


def _does(r):
    job, does = r.choice(answers.DOES)
    asks = ["What does {} do?"] * 3 + [
        "What is {}?",
        "What is the job of {}?",
        "What is the work of {}?",
        "Tell me what {} does.",
    ]
    asks += [
        "What do {}s do?",
        "Do you know what {} does?",
        "What does {} do all day?",
        "Can you explain the job of {}?",
    ]
    ask = r.choice(asks)
    many = {"policemen": ""}.get(job, job)
    if ask.startswith("What do {}s") and job.endswith(("man", "ch")):
        ask = "What does {} do?"
    if ask.startswith("What do {}s"):
        return ask.format(many), cap(f"{a(job)} {does}.")
    if r.random() < 0.12:
        return r.choice(["Who {}?", "Tell me who {}.", "Which person {}?"]).format(does), cap(f"{a(job)} {does}.")
    return ask.format(a(job)), cap(f"{a(job)} {does}.")


def _eats(r):
    many, food, home = r.choice(EATS)
    home = ("on " if home.startswith("farm") else "in ") + home
    single = one(many)
    eat, live = f"{cap(many)} eat {food}.", f"{cap(many)} live {home}."
    asks, answer = r.choice(
        [
            (
                ["What do {m} eat?"] * 3
                + [
                    "What is the food of {m}?",
                    "What food do {m} like?",
                    "Which food do {m} eat?",
                    "Tell me what {m} eat.",
                ],
                eat,
            ),
            (
                [
                    "What does {s} eat?",
                    "What can I feed to {s}?",
                    "What should I give {s} to eat?",
                    "What is {s} eating?",
                    "What do I feed {s}?",
                ],
                cap(f"{a(single)} eats {food}."),
            ),
            (
                ["Where do {m} live?", "Where can I find {m}?", "Where is the home of {m}?", "Tell me where {m} live."],
                live,
            ),
            (
                ["Where does {s} live?", "Where can I see {s}?", "Where is the home of {s}?"],
                cap(f"{a(single)} lives {home}."),
            ),
            (
                [
                    "Tell me about {m}.",
                    "Tell me something about {m}.",
                    "What do you know about {m}?",
                    "Write two sentences about {m}.",
                ],
                f"{live} They eat {food}.",
            ),
        ]
    )
    return r.choice(asks).format(m=many, s=a(single)), answer


def _how(r):
    do, how = r.choice(answers.HOW)
    asks = (
        ["How do I {}?"] * 3
        + ["How can I {}?"] * 2
        + ["What is the best way to {}?", "Tell me how to {}.", "How should I {}?"]
    )
    asks += [
        "Can you tell me how to {}?",
        "I want to {}. How do I do that?",
        "Teach me how to {}.",
        "Do you know how to {}?",
    ]
    asks += [
        "I want to {}.",
        "Help me to {}.",
        "Explain how to {}.",
        "Give me a tip to {}.",
        "Give me the steps to {}.",
        "What do I need to {}?",
    ]
    if " my " not in f" {do} ":
        asks += ["How do you {}?", "How do people {}?", "How does one {}?", "How to {}?"]
    if r.random() < 0.2:
        do += r.choice(
            [
                " well",
                " quickly",
                " at home",
                " the right way",
                " properly",
                " today",
                " correctly",
                " in an easy way",
                " alone",
                " for the first time",
            ]
        )
    return r.choice(asks).format(do), how


def _why(r):
    ask, because = r.choice(answers.WHY)
    asks = [f"Why {ask}?"] * 4 + [
        f"Tell me, why {ask}?",
        f"Can you explain this: why {ask}?",
        f"Do you know the answer: why {ask}?",
    ]
    if ask.startswith("do "):
        asks += [
            f"Tell me why {ask[3:]}.",
            f"Can you explain why {ask[3:]}?",
            f"Do you know why {ask[3:]}?",
            f"What is the reason that {ask[3:]}?",
        ]
        if ask.startswith("do we "):
            asks += [
                f"Why do people {ask[6:]}?".replace(" our ", " their "),
                f"Why must we {ask[6:]}?",
                f"Why should we {ask[6:]}?",
                f"Why do I {ask[6:]}?".replace(" our ", " my "),
            ]
    return r.choice(asks), because


def _feeling(r):
    how, answer = r.choice(answers.FEELINGS)
    asks = [
        "I am {}.",
        "I am {} today.",
        "I feel {}.",
        "I feel {} today.",
        "I feel so {}.",
        "I'm {}.",
        "I am very {}. What can I do?",
        "I'm {}. What should I do?",
    ]
    asks += [
        "I am {}. What should I do?",
        "What can I do when I am {}?",
        "What should I do when I feel {}?",
        "I feel {}. Can you help me?",
        "I am {}. Any ideas?",
        "I am feeling {}.",
        "What helps when I am {}?",
    ]
    return r.choice(asks).format(how), answer


def _differ(r):
    two, answer = r.choice(answers.DIFFER)
    asks = [
        "What is the difference between {}?",
        "How are {} different?",
        "Tell me the difference between {}.",
        "What is different between {}?",
    ]
    return r.choice(asks).format(two), answer


def _continent(r):
    place = r.choice(list(answers.CONTINENTS))
    country = r.choice(answers.CONTINENTS[place].split())
    asks = ["Where is {}?", "On which continent is {}?", "Where can I find {}?", "Tell me where {} is."]
    return r.choice(asks).format(country), f"{country} is a country in {place}."


def _compare(r):
    i, j = sorted(r.sample(range(len(SIZES)), 2))
    small, big = SIZES[i], SIZES[j]
    x, y = (small, big) if r.random() < 0.5 else (big, small)
    return r.choice(
        [
            (f"Which is bigger, {a(x)} or {a(y)}?", cap(f"{a(big)} is bigger than {a(small)}.")),
            (
                f"Is {a(x)} bigger than {a(y)}?",
                f"Yes, {a(x)} is bigger than {a(y)}." if x == big else f"No, {a(x)} is smaller than {a(y)}.",
            ),
            (f"Which is smaller, {a(x)} or {a(y)}?", cap(f"{a(small)} is smaller than {a(big)}.")),
        ]
    )


def _kind(r):
    kind = r.choice(list(KINDS))
    thing = r.choice(KINDS[kind])
    named = thing if kind == "a color" else a(thing)
    other = r.choice([k for k in KINDS if k != kind])
    pick = [thing] + [r.choice(KINDS[k]) for k in r.sample([k for k in KINDS if k != kind], 2)]
    r.shuffle(pick)
    first, second = (kind, other) if r.random() < 0.5 else (other, kind)
    return r.choice(
        [
            (f"Is {named} {kind}?", f"Yes, {named} is {kind}."),
            (f"Is {named} {other}?", f"No, {named} is {kind}."),
            (f"Is {named} {first} or {second}?", cap(f"{named} is {kind}.")),
            (f"Which of these is {kind}: {pick[0]}, {pick[1]}, or {pick[2]}?", cap(f"{named} is {kind}.")),
            (f"What kind of thing is {named}?", cap(f"{named} is {kind}.")),
            (f"Name {kind}.", cap(f"{named} is {kind}.")),
        ]
    )


def _says(r):
    asks, answer = r.choice(SAYS)
    return r.choice(asks), answer


FAMILIES = [
    (_use, 10),
    (_means, 24),
    (_does, 8),
    (_eats, 10),
    (_how, 16),
    (_why, 12),
    (_feeling, 4),
    (_differ, 3),
    (_continent, 2),
    (_compare, 3),
    (_kind, 4),
    (_says, 24),
]


def ask(r):
    """(question, answer)"""
    (family,) = r.choices([f for f, _ in FAMILIES], [n for _, n in FAMILIES])
    return family(r)
