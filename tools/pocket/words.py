"""Word lists from which prompts and templates are made."""

ANIMALS = """fox rabbit bear cat dog mouse owl duck frog squirrel hedgehog turtle lion elephant monkey penguin horse cow pig
sheep goat deer wolf whale dolphin crab octopus bee butterfly ladybug snail ant crow swan parrot hamster kitten puppy pony
donkey tiger zebra giraffe kangaroo koala panda otter beaver badger mole bat spider fish seal camel hen rooster robin""".split()
PEOPLE = """girl boy baker farmer teacher gardener sailor doctor painter king queen princess knight fisherman pilot carpenter
shoemaker grandmother grandfather wizard witch clown cook tailor shepherd musician dancer astronaut scientist firefighter
policeman mailman librarian student child twin brother sister giant elf fairy pirate inventor clockmaker nurse""".split()
THINGS_ALIVE = """robot dragon snowman train boat kite star cloud tree flower toy car scarecrow teddy-bear doll balloon
lighthouse clock lamp tractor rocket raindrop moon leaf""".replace(
    "teddy-bear", "teddy bear"
).split()
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
DEEDS = """learns to swim|finds a new friend|gets lost|helps a neighbor|is afraid of the dark|learns to share|wants to
fly|plants a tree|builds a house|bakes a cake|tells the truth|saves a friend|goes on a journey|wins a race|loses a
tooth|learns to read|makes a mistake and says sorry|cannot sleep|has a birthday|visits the moon|learns to sing|cleans the
river|shares the last piece of bread|meets a stranger|is kind to an enemy|looks for the sun|wants to be tall|learns to
wait|hears a strange sound|goes to school for the first time|paints a picture|learns to cook|misses home|catches a big
fish|fixes a toy|climbs a mountain|finds the way home|makes people laugh|learns to dance|is brave in a storm|keeps a
secret|gives away a gift|asks too many questions|tries again and again|takes care of a baby bird|loses something
important|wants to see the snow|learns to ride a bike|rescues a kitten|works hard all summer""".replace(
    "\n", " "
).split(
    "|"
)
THEMES = """friendship|sharing|courage|honesty|kindness|patience|a rainy day|a birthday party|the first day of school|a lost
toy|a picnic|a snowy morning|a family trip|a secret garden|saying sorry|being different|helping others|a new baby|moving to a
new house|the end of summer|a long winter|a full moon|a school play|a big storm|a camping trip|a busy market|losing and
finding|working together|trust|a good night's sleep""".replace(
    "\n", " "
).split(
    "|"
)

# Things that "What is ...?" and "What is ... used for?" can ask about.
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
NATURE = """the sun|the moon|a star|a planet|the ocean|a river|a lake|a mountain|a volcano|a desert|a forest|a jungle|an
island|rain|snow|wind|a cloud|a rainbow|lightning|thunder|a storm|fog|ice|fire|water|air|soil|sand|a rock|gold|iron|salt|a
tree|a flower|a leaf|a seed|grass|a mushroom|a bee|a bird|a fish|a whale|a dog|a cat|a horse|a cow|a spider|a butterfly|a
snake|a frog|an elephant|a lion|a bear|a wolf|a shark|a penguin|an owl|the heart|the brain|a bone|blood|skin|sleep|a
dream|gravity|energy|electricity|light|sound|heat|magnetism|the sky|winter|summer|spring|autumn|a season|an
earthquake|a glacier|a waterfall|coral|a dinosaur|a fossil|oxygen|a cell|an atom""".replace(
    "\n", " "
).split(
    "|"
)
IDEAS = """friendship|love|honesty|courage|patience|music|art|a poem|a story|money|a bank|a job|a school|a library|a museum|a
hospital|a city|a village|a country|a law|a vote|a map|history|science|math|a language|a word|a joke|a game|a sport|football|
basketball|tennis|chess|swimming|dancing|cooking|a recipe|a holiday|a birthday|a wedding|a family|a neighbor|a
teacher|a doctor|a farmer|a market|a restaurant|bread|cheese|milk|rice|pasta|soup|salad|a sandwich|chocolate|honey|tea|coffee|
juice|an apple|a banana|a carrot|a potato|a tomato|an onion|an egg|sugar|a vitamin|exercise|a habit|a goal|a plan|a
promise|trust|respect|kindness|teamwork|the internet|a computer program|a robot|a website|an email|a password|a
calendar|recycling|pollution|climate|a garden|a hobby""".replace(
    "\n", " "
).split(
    "|"
)
TASKS = """clean a window|wash the dishes|make tea|make coffee|boil an egg|cook rice|cook pasta|bake bread|bake a cake|make a
sandwich|make a salad|make soup|fry an egg|make pancakes|peel an orange|cut an onion|plant a seed|water a plant|grow
tomatoes|take care of a cat|train a dog|feed a bird|wash a dog|ride a bike|fix a flat tire|change a light bulb|hang a
picture|paint a wall|clean the floor|fold a shirt|iron a shirt|sew a button|tie a shoe|remove a stain|wash clothes|make a
bed|pack a suitcase|write a letter|write an email|write a poem|write a story|read faster|learn a language|learn new
words|study for a test|remember names|make a friend|say sorry|say no politely|give a speech|ask for help|tell a joke|save
money|make a budget|find a job|prepare for an interview|write a resume|plan a trip|read a map|build a campfire|set up a
tent|swim|run faster|stretch|lose weight|eat healthy food|drink more water|fall asleep|wake up early|relax|stop
worrying|feel happier|calm down|make a plan|set a goal|stay focused|keep a diary|take a good photo|draw a cat|draw a
face|play chess|play the guitar|sing better|dance|make a paper plane|make a kite|wrap a gift|plan a party|treat a small
cut|cure a headache|treat a cold|brush my teeth|wash my hands|stay warm in winter|stay cool in summer|save water|save
energy|recycle paper|keep food fresh|clean the kitchen|organize a desk|use a dictionary|use a computer|choose a
book|choose shoes|talk to a stranger|help a sad friend|be more patient|be a good neighbor|learn to cook|start a
garden""".replace(
    "\n", " "
).split(
    "|"
)
WHYS = """is the sky blue|is the sea salty|do leaves fall in autumn|do birds fly south|do cats purr|do dogs bark|do we
sleep|do we dream|do we eat|do we need water|do we laugh|do we cry|do we yawn|does it rain|does it snow|does ice float|does
the moon change shape|do stars shine|is the sun hot|is grass green|do we have seasons|do plants need light|do bees make
honey|do fish live in water|do people work|do people read books|do children play|is exercise good for us|is sleep
important|are vegetables healthy|is too much sugar bad|should we brush our teeth|should we wash our hands|should we recycle|
should we be honest|is friendship important|do we go to school|do we learn math|do we need money|do people travel|do people
like music|do we celebrate birthdays|do we wear clothes|do we use umbrellas|do cars need fuel|do airplanes fly|do boats
float|do magnets stick to iron|do onions make us cry|does bread rise|does metal rust|does hair turn gray|do we get
hungry|do we get tired|do we feel pain|do we feel cold|is fire dangerous|is water wet|do volcanoes erupt|do earthquakes
happen|do rivers flow|is the desert dry|do mountains have snow|do owls hunt at night|do bears sleep in winter|do spiders
make webs|do butterflies change|do snakes shed their skin|do zebras have stripes|do elephants have trunks|do giraffes have
long necks|are trees important|are forests important|are oceans important|are bees important|is patience a good thing|is
reading useful|do we say thank you|do we need friends|do we shake hands""".replace(
    "\n", " "
).split(
    "|"
)
TOPICS_TELL = (
    """dogs|cats|horses|elephants|whales|birds|bees|trees|flowers|the sun|the moon|the stars|the ocean|rivers|
mountains|deserts|forests|islands|rain|snow|winter|summer|spring|autumn|Paris|London|Rome|New York|Tokyo|Egypt|Italy|Japan|
France|Africa|Australia|the North Pole|bread|cheese|chocolate|pizza|rice|tea|coffee|apples|music|pianos|guitars|painting|
dancing|football|swimming|running|chess|books|libraries|schools|trains|airplanes|boats|bicycles|cars|computers|robots|the
internet|telephones|clocks|castles|bridges|farms|gardens|markets|museums|birthdays|holidays|families|friends|dreams|sleep|
the heart|the brain|healthy food|exercise|penguins|lions|sharks|spiders|butterflies|frogs|dinosaurs|volcanoes|the
weather|space|planets|gold|water|fire|light|sound|colors|numbers|money|jobs|doctors|teachers|farmers|
cooking""".replace(
        "\n", " "
    )
    .replace("| ", "|")
    .split("|")
)
FEELINGS = """happy|sad|tired|bored|nervous|angry|lonely|excited|sick|worried|hungry|proud|stressed|confused|scared|
grateful|sleepy|cold|lazy|relaxed""".replace(
    "\n", ""
).split(
    "|"
)
EVENTS = """I had a bad day at work.|I had a great day!|My dog is sick.|I got a new job!|I lost my keys.|I passed my
exam!|I failed my test.|It is raining again.|I am going on a trip.|I can't sleep.|I made a cake today.|My friend is moving
away.|I am learning to cook.|I started running.|I read a good book.|I saw a beautiful sunset.|I have a headache.|I am going to
a party.|It is my birthday today.|I broke a cup.|I bought a new bike.|I miss my family.|I have a job interview tomorrow.|I
planted some flowers.|My cat sleeps all day.|I forgot my umbrella.|I watched a funny movie.|I want to learn the
guitar.|I had an argument with my brother.|I cleaned the whole house.|I am late for work.|I spilled my coffee.|I won a
game today.|The weather is nice today.|I love music.|I am moving to a new city.|I don't know what to cook.|I have
nothing to do.|I can't find my phone.|My grandmother is visiting.|I feel like going for a walk.|I have too much
homework.|I want to make new friends.|I ate too much.|I am on holiday.|I saw a bird in the garden.|My car broke
down.|I need a break.""".replace(
    "\n", " "
).split(
    "|"
)
ADVICE = (
    """saving money|sleeping better|learning a language|making friends|eating healthy|staying fit|studying|reading
more|being on time|public speaking|cooking at home|gardening|traveling cheaply|keeping a clean house|taking photos|
working from home|being more creative|handling stress|raising a puppy|caring for a cat|growing vegetables|writing
well|drawing|playing chess|running|swimming|hiking|camping|buying a used car|finding a job|job interviews|giving
gifts|hosting a party|packing for a trip|saving energy|using less plastic|drinking more water|waking up early|staying
focused|remembering things|being a good friend|being a good listener|staying calm|feeling happier|a healthy
breakfast|a rainy day|a long flight|learning math|making a good first impression|keeping plants alive""".replace(
        "\n", " "
    )
    .replace("| ", "|")
    .split("|")
)
PAIRS = """a cat and a dog|a lake and a river|tea and coffee|the sun and the moon|summer and winter|a car and a bus|a train
and an airplane|a city and a village|a frog and a toad|butter and cheese|a story and a poem|a doctor and a nurse|rice and
pasta|a fork and a spoon|a hill and a mountain|a sea and an ocean|a fruit and a vegetable|milk and water|a guitar and a
violin|football and basketball|gold and silver|a horse and a donkey|a bee and a wasp|a boat and a ship|rain and
snow|breakfast and dinner|a book and a newspaper|day and night|a planet and a star|an apple and an orange|a lion and a
tiger|a crocodile and an alligator|a clock and a watch|a table and a desk|a house and an apartment|a friend and a
neighbor|a bird and a bat|weather and climate|speed and distance|a shark and a whale|fire and light|ice and steam|a duck and
a goose|a potato and a tomato|a hat and a cap|a letter and an email""".replace(
    "\n", " "
).split(
    "|"
)

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
COLORS = """the sky:blue|grass:green|snow:white|a banana:yellow|a lemon:yellow|coal:black|a strawberry:red|blood:red|the
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
