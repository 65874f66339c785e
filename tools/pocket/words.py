"""Word lists from which stories and conversations are made, and the held-out lists."""

ANIMALS = """fox rabbit bear cat dog mouse owl duck frog squirrel hedgehog turtle lion elephant monkey penguin horse cow pig
sheep goat deer wolf whale dolphin crab octopus bee butterfly ladybug snail ant crow swan parrot hamster kitten puppy pony
donkey tiger zebra giraffe kangaroo koala panda otter beaver badger mole bat spider fish seal camel hen rooster robin""".split()
PEOPLE = """girl boy baker farmer teacher gardener sailor doctor painter king queen princess knight fisherman pilot carpenter
shoemaker grandmother grandfather wizard witch clown cook tailor shepherd musician dancer astronaut scientist firefighter
policeman mailman librarian student child twin brother sister giant elf fairy pirate inventor clockmaker nurse""".split()
THINGS_ALIVE = """robot dragon snowman train boat kite star cloud tree flower toy car scarecrow teddy-bear doll balloon
lighthouse clock lamp tractor rocket raindrop moon leaf""".split()
THINGS_ALIVE = [t.replace("-", " ") for t in THINGS_ALIVE]
ADJECTIVES = """shy brave little old kind lazy curious clever lonely happy sad tiny big hungry sleepy proud gentle noisy quiet
funny grumpy young friendly careful silly greedy honest patient stubborn cheerful clumsy""".split()
NAMES = """Tom Lily Ben Anna Max Sara Sam Mia Leo Emma Jack Lucy Tim Rosa Finn Ella Noah Ivy Oscar Nora Peter Grace Hugo Ruby
Adam Clara Eli Zoe Mark Amy Paul Jane Omar Nina Luis Maya""".split()
OBJECTS = """red ball|old map|lost key|magic stone|golden coin|broken clock|small boat|blue kite|warm scarf|silver bell|big
pumpkin|strange egg|wooden box|letter|music box|yellow hat|shiny shell|torn book|paper plane|glass marble|tiny seed|red
umbrella|sweet cake|jar of honey|pair of shoes|lantern|drum|feather|picture|ring|bicycle|secret door|snow globe|basket of
apples|loaf of bread|birthday present|wool blanket|toy train|telescope|flute|rope|ladder|mirror|pot of soup|bag of
nuts|rainbow|treasure chest|little house|bridge|garden""".replace(
    "\n", " "
).split(
    "|"
)
PLACES = """in the forest|by the sea|on a farm|in the city|at school|in the mountains|near the river|in the garden|on an
island|in a small village|at the market|in the desert|in the snow|at the beach|in an old castle|in the park|on a ship|at the
zoo|in the library|in the kitchen|under a bridge|in a cave|at the lake|on a hill|in the jungle|at night|in the rain|on a
train|in space|under the sea""".replace(
    "\n", " "
).split(
    "|"
)

TOOLS = """umbrella hammer spoon fork knife scissors pencil eraser broom bucket towel pillow blanket clock watch camera
telephone computer keyboard lamp candle mirror comb toothbrush soap key door window chair table bed sofa oven refrigerator
kettle pan bowl cup plate bottle bag backpack wallet map compass ladder rope saw drill nail screw needle thread button zipper
bicycle car bus train airplane boat ship truck helmet tent flashlight battery radio television book newspaper notebook
calendar ruler calculator microscope telescope thermometer bandage stamp envelope wheel bridge fence roof chimney stove
washing-machine vacuum-cleaner dishwasher microwave fan heater coat hat glove scarf boot sock belt""".replace(
    "-", " "
).split()
TOOLS = [t for t in TOOLS if t not in ("washing", "machine", "vacuum", "cleaner")] + [
    "washing machine",
    "vacuum cleaner",
]
FEELINGS = """happy|sad|tired|bored|nervous|angry|lonely|excited|sick|worried|hungry|proud|stressed|confused|scared|
grateful|sleepy|cold|lazy|relaxed""".replace(
    "\n", ""
).split(
    "|"
)
# More words for fresh.py, which takes every word of this file.
MORE = """alligator apartment asks ate baby basketball bicycles budget buying camping caring castles cheaply coral creative
crocodile dancing deserts desk dinosaurs distance dreams drinking eating enemy families farms finding fixes flight
fossil frogs gifts giving growing guitars handling hears helping hiking holidays horses hosting impression interviews
islands keeping libraries listener losing magnetism making markets misses mistake museums oceans organize packing
painting photos pianos plastic race raising remembering respect robots saving saying schools shares sharing sharks
shoe sleeping snowy speaking speed started staying stress studying sunset swimming taking teamwork telephones
traveling tries visiting visits waking watched whales wins working writing""".split()

COUNTRIES = (
    """France:Paris|Germany:Berlin|Italy:Rome|Spain:Madrid|Portugal:Lisbon|England:London|the United
Kingdom:London|Ireland:Dublin|Scotland:Edinburgh|Norway:Oslo|Sweden:Stockholm|Denmark:Copenhagen|Finland:Helsinki|
Poland:Warsaw|Austria:Vienna|Hungary:Budapest|Greece:Athens|Turkey:Ankara|Russia:Moscow|Ukraine:Kyiv|the
Netherlands:Amsterdam|Belgium:Brussels|Switzerland:Bern|Czechia:Prague|Romania:Bucharest|Bulgaria:Sofia|Serbia:Belgrade|
Croatia:Zagreb|Iceland:Reykjavik|Egypt:Cairo|Morocco:Rabat|Kenya:Nairobi|Ethiopia:Addis Ababa|Ghana:Accra|Nigeria:Abuja|
Tunisia:Tunis|Japan:Tokyo|China:Beijing|South Korea:Seoul|India:New Delhi|Thailand:Bangkok|Vietnam:Hanoi|
Indonesia:Jakarta|the Philippines:Manila|Nepal:Kathmandu|Iran:Tehran|Iraq:Baghdad|Israel:Jerusalem|Saudi
Arabia:Riyadh|Pakistan:Islamabad|Bangladesh:Dhaka|Mongolia:Ulaanbaatar|Australia:Canberra|New Zealand:Wellington|
Canada:Ottawa|the United States:Washington, D.C.|Mexico:Mexico City|Cuba:Havana|Brazil:Brasilia|Argentina:Buenos Aires|
Chile:Santiago|Peru:Lima|Colombia:Bogota|Venezuela:Caracas|Ecuador:Quito|Uruguay:Montevideo""".replace(
        "\n", " "
    )
    .replace("| ", "|")
    .split("|")
)
COUNTRIES = [tuple(c.split(":")) for c in COUNTRIES]
COLORS = """a plum:purple|a pear:green|the night sky:black|the sky:blue|grass:green|snow:white|a banana:yellow|a lemon:yellow|coal:black|a strawberry:red|blood:red|the
sun:yellow|an orange:orange|a carrot:orange|a tomato:red|milk:white|a leaf:green|chocolate:brown|an elephant:gray|a
fire truck:red|a frog:green|a flamingo:pink|an eggplant:purple|a pumpkin:orange|a cloud:white|a crow:black|a polar
bear:white|a cucumber:green|a cherry:red""".replace(
    "\n", " "
).split(
    "|"
)
COLORS = [tuple(c.split(":")) for c in COLORS]
SOUNDS = """dog:woof|cat:meow|cow:moo|sheep:baa|duck:quack|pig:oink|horse:neigh|lion:roar|bird:tweet|frog:croak|bee:buzz|
snake:hiss|owl:hoot|rooster:cock-a-doodle-doo|mouse:squeak|wolf:howl|donkey:hee-haw|chick:cheep""".replace(
    "\n", ""
).split(
    "|"
)
SOUNDS = [tuple(c.split(":")) for c in SOUNDS]
OPPOSITES = """hot:cold|big:small|fast:slow|happy:sad|up:down|old:young|light:dark|day:night|open:closed|full:empty|hard:soft|
wet:dry|early:late|loud:quiet|rich:poor|strong:weak|long:short|high:low|near:far|left:right|clean:dirty|new:old|good:bad|
easy:difficult|thick:thin|heavy:light|inside:outside|above:below|first:last|true:false|win:lose|begin:end|buy:sell|
push:pull|love:hate|brave:afraid|sweet:sour|summer:winter|black:white|always:never|give:take|laugh:cry""".replace(
    "\n", ""
).split(
    "|"
)
OPPOSITES = [tuple(c.split(":")) for c in OPPOSITES]
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
LEGS = """dog:four|cat:four|spider:eight|bird:two|ant:six|horse:four|bee:six|octopus:no legs but eight arms|snake:no|
fish:no|cow:four|butterfly:six|chicken:two|person:two|crab:ten|frog:four|elephant:four""".replace(
    "\n", ""
).split(
    "|"
)
LEGS = [tuple(c.split(":")) for c in LEGS]
YOUNG = """dog:puppy|cat:kitten|cow:calf|horse:foal|sheep:lamb|goat:kid|bear:cub|lion:cub|duck:duckling|hen:chick|deer:fawn|
frog:tadpole|goose:gosling|pig:piglet|kangaroo:joey|swan:cygnet|owl:owlet|elephant:calf|whale:calf|butterfly:caterpillar""".replace(
    "\n", ""
).split(
    "|"
)
YOUNG = [tuple(c.split(":")) for c in YOUNG]
CITIES = """Paris London Rome Berlin Madrid Tokyo Cairo Lima Oslo Delhi Boston Chicago Dublin Vienna Athens Prague Seoul
Sydney Toronto Lagos Nairobi Lisbon Milan Munich Dallas Denver Seattle Miami Austin Geneva Zurich Krakow Porto Naples Bergen
Osaka Kyoto Quito Bogota Havana Accra Tunis Riga Vilnius Tallinn Helsinki Stockholm Copenhagen Warsaw Budapest""".split()

HELD_OUT_STORIES = [
    "a clever mole who builds a bridge",
    "a shy dragon who bakes a cake",
    "a lonely lighthouse by the sea",
    "a farmer who finds a strange egg",
    "two sisters and a lost kite",
    "a sleepy bear who cannot sleep",
    "a little robot who wants to see the snow",
    "a grumpy baker who learns to share",
    "a boy named Finn and a paper plane",
    "a penguin who is afraid of the dark",
    "an old sailor and a silver bell",
    "a rainy day in the library",
    "a cat who learns to swim",
    "a girl named Ivy who plants a tree",
    "a brave snail in a big storm",
    "a tailor who loses a golden coin",
    "a picnic on a hill",
    "a curious monkey and a broken clock",
    "a kind giant who helps a neighbor",
    "a duck who gets lost at the market",
]
HELD_OUT_QUESTIONS = [
    "What is a spoon used for?",
    "Why do we need sleep?",
    "How do I make a cup of tea?",
    "What is the capital of Norway?",
    "What color is a ripe banana?",
    "What should I eat for breakfast?",
    "How can I fall asleep faster?",
    "What is a rainbow?",
    "Why do birds have wings?",
    "What can I do on a rainy day?",
    "How do I wash my hands properly?",
    "What is a good gift for a friend?",
    "What do cows eat?",
    "Is it good to drink water every day?",
    "How many days are in a week?",
    "What is the opposite of hot?",
    "What does a firefighter do?",
    "How do plants grow?",
    "I am bored. What should I do?",
    "What is a library?",
]
