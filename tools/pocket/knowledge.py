"""Everyday knowledge written by hand, for the questions that people try first; one line an entry."""

# thing: what it is used for
USES = """umbrella: stay dry in the rain|hammer: hit nails into wood|fork: pick up food|knife: cut things|scissors: cut paper and cloth|
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

# job: what that person does
JOBS = """baker: bakes bread and cakes|farmer: grows food and takes care of animals|teacher: helps people learn|doctor: helps sick people get well|nurse: takes care of sick people|gardener: takes care of plants|
sailor: works on a ship|painter: paints pictures or walls|pilot: flies airplanes|carpenter: makes things from wood|shoemaker: makes and repairs shoes|cook: prepares meals|tailor: makes clothes|shepherd: takes care of sheep|
musician: plays music|dancer: dances for other people|astronaut: travels into space|scientist: studies how the world works|policeman: keeps people safe|mailman: brings letters and packages|
librarian: helps people find books|student: learns at a school|inventor: makes new things|dentist: takes care of teeth|waiter: brings food to the tables|writer: writes books and stories|judge: decides what is fair in a court|
plumber: repairs pipes|electrician: repairs electric wires|mechanic: repairs cars and machines|veterinarian: takes care of sick animals|photographer: takes pictures|singer: sings songs|actor: plays roles in films and plays|
bus driver: drives people through the city|fisherman: catches fish|engineer: plans machines and bridges|lawyer: helps people with the law|barber: cuts hair|king: rules a country"""

# animals: what they eat | where they live
EATS = """foxes: mice, birds, and berries: forests and fields|rabbits: grass, leaves, and carrots: fields and gardens|bears: fish, berries, and honey: forests and mountains|cats: meat and fish: houses with people|dogs: meat and dog food: houses with people|
mice: seeds, grain, and cheese: fields and houses|owls: mice and small birds: forests|ducks: plants, insects, and bread: ponds and lakes|frogs: insects and worms: ponds|squirrels: nuts and seeds: trees|hedgehogs: insects and worms: gardens and forests|
turtles: plants and small animals: water and land|lions: meat: Africa|elephants: grass, leaves, and fruit: Africa and Asia|monkeys: fruit, leaves, and nuts: warm forests|penguins: fish: the cold south|horses: grass, hay, and oats: farms|pigs: grain and vegetables: farms|
sheep: grass: farms and hills|goats: grass and leaves: farms and mountains|deer: grass and leaves: forests|wolves: meat: forests and mountains|whales: fish and tiny sea animals: the ocean|dolphins: fish: the ocean|bees: nectar and honey: hives|spiders: insects: webs|
bats: insects and fruit: caves and trees|tigers: meat: forests in Asia|zebras: grass: Africa|giraffes: leaves from tall trees: Africa|kangaroos: grass: Australia|koalas: leaves: trees in Australia|pandas: bamboo: China|camels: dry grass: deserts|
chickens: seeds, grain, and insects: farms|birds: seeds, insects, and berries: nests in trees|fish: plants and small animals: water|sharks: fish: the ocean|butterflies: nectar from flowers: gardens and fields|snakes: mice and other small animals: many warm places"""

# question: answer; the rest of the question may be asked in more than one way, divided by /
ASKED = """Why is the sky blue?/Why does the sky look blue?: Sunlight has many colors, and the air spreads the blue light the most. So the sky looks blue.
Why is the sea salty?/Why does the sea taste salty?: Rivers carry salt from rocks into the sea. The water leaves as vapor, but the salt stays.
Why do leaves fall in autumn?/Why do trees lose their leaves?: Trees drop their leaves in autumn to save water and energy for the winter.
Why do birds fly south?/Why do birds travel in winter?: Birds fly south in winter because it is warmer there and they can find food.
Why do cats purr?: Cats often purr when they are happy and relaxed.
Why do dogs bark?: Dogs bark to warn others, to say hello, or to ask for attention.
Why do people sleep?/Why is sleep important?/Why must we sleep?: Sleep gives the body and the brain time to rest and heal. After good sleep we feel fresh.
Why do we eat?/Why do we need food?: We eat because food gives our body energy and helps it grow.
Why do we need water?/Why should I drink water?/Is water good for you?: Our body needs water to work well. Water helps us stay healthy and cool.
Why do we laugh?: We laugh when something is funny or when we feel happy.
Why do we cry?: We cry when we are sad, hurt, or sometimes very happy.
Why does it rain?/Where does rain come from?: Water rises from seas and lakes and makes clouds. When the drops get heavy, they fall as rain.
Why does it snow?/What is snow?: Snow is frozen water that falls from cold clouds.
Why does ice float?: Ice floats because it is lighter than water.
Why do stars shine?/What is a star?: A star is a big ball of hot gas that gives light.
Why do plants need light?/What do plants need to live?/What does a plant need?: Plants need light, water, air, and soil. They use light to make their food.
How do plants get food?/How do trees grow?/How do flowers grow?: They grow from seeds. They take in water from the soil and use sunlight to make food.
Why do bees make honey?: Bees make honey so that they have food in the winter.
Why is exercise good for us?/Is sport healthy?/Is it good to exercise every day?: Exercise keeps the body strong and the heart healthy. It also makes us feel better.
Why should we brush our teeth?/How often should I brush my teeth?: Brush your teeth twice a day. It keeps them clean and healthy.
Why should we wash our hands?/When should I wash my hands?: Washing your hands removes dirt and germs. Wash them before you eat.
Why do we go to school?/Why is school important?: We go to school to learn new things and to meet friends.
Why do airplanes fly?/How does an airplane fly?: The wings of an airplane push air down when it moves fast, and that lifts it up.
Why do fish live in water?/How do fish breathe?: Fish breathe in water with their gills.
How do birds fly?/Why can birds fly?/What are wings for?: Birds fly by moving their wings. Their bodies are light and their feathers push the air.
Why do we have seasons?: We have seasons because the Earth is tilted while it travels around the sun.
Why is the sun hot?/What is the sun?: The sun is a star, a huge ball of very hot gas. It gives us light and warmth.
What is the moon?: The moon is a big ball of rock that travels around the Earth.
What is thunder?/What makes thunder?: Thunder is the loud sound that lightning makes.
What is lightning?: Lightning is a big spark of electricity in the sky during a storm.
What makes a rainbow?/How does a rainbow form?/When can I see a rainbow?: A rainbow appears when the sun shines through drops of rain. The drops split the light into colors.
What is a cloud?/What are clouds made of?: A cloud is made of many tiny drops of water in the sky.
What is a volcano?: A volcano is a mountain that can throw out hot melted rock.
What is a desert?: A desert is a very dry place with little rain.
What is a forest?: A forest is a large place with many trees and animals.
What is an island?: An island is land with water all around it.
What is a river?: A river is a long stream of water that flows to a lake or the sea.
What is a mountain?: A mountain is a very high piece of land.
What is an ocean?: An ocean is a very large area of salt water.
What is a museum?: A museum is a place where people look at art, old things, or science.
What is a school?: A school is a place where children learn from teachers.
What is a hospital?: A hospital is a place where doctors and nurses help sick people.
What is a market?: A market is a place where people buy and sell food and other things.
What do you do in a library?/What can I find in a library?/What is a library for?: In a library you can read and borrow books. It is a quiet place to learn.
What is a bank?: A bank is a place where people keep and borrow money.
What is a farm?: A farm is a place where people grow food and keep animals.
What is friendship?/What is a friend?: A friend is a person you like and trust. Friends help each other.
What is love?: Love is a strong and warm feeling for someone or something.
What is music?: Music is sound that people make with voices and instruments.
What is a poem?: A poem is a short text that uses beautiful words and often rhymes.
What is gravity?: Gravity is the force that pulls things down to the ground.
What is electricity?: Electricity is a kind of energy that powers lamps and machines.
What is the internet?: The internet connects computers all over the world so that they can share information.
What is a robot?: A robot is a machine that can do work by itself.
What is a computer program?: A computer program is a list of instructions for a computer.
What is a language model?: A language model is a computer program that has learned to write text.
How do I make tea?/How can I make good tea?/Teach me to make tea.: Boil some water and pour it over a tea bag in a cup. Wait three minutes and take the bag out.
How do I make coffee?: Put ground coffee in a filter and pour hot water over it. Then enjoy it with milk or sugar.
How do I boil an egg?/How long do I boil an egg?: Put the egg in boiling water for about eight minutes. Then cool it in cold water and peel it.
How do I cook rice?: Wash the rice, add two cups of water for each cup of rice, and cook it slowly for about fifteen minutes.
How do I cook pasta?: Boil a big pot of water with salt. Cook the pasta for about ten minutes and drain it.
How do I make a sandwich?: Take two slices of bread. Put cheese, ham, or vegetables between them.
How do I make a salad?: Cut some vegetables, put them in a bowl, and add oil, salt, and a little lemon juice.
How do I bake a cake?: Mix flour, eggs, sugar, and butter. Bake the mix in the oven for about forty minutes.
How do I clean a window?/What is the best way to clean a window?: Wash the window with soap and water. Then dry it with a soft cloth.
How do I wash the dishes?: Wash the dishes with hot water and soap. Rinse them and let them dry.
How can I wash my hands?/What is the best way to wash my hands?: Wet your hands, use soap, and rub them for twenty seconds. Then rinse and dry them.
How do I clean the floor?: Sweep the floor with a broom first. Then wipe it with a wet mop.
How do I plant a seed?: Make a small hole in the soil, put the seed in, cover it, and give it water.
How do I take care of a plant?: Give the plant light and water it when the soil is dry.
How do I take care of a cat?: Give your cat food and fresh water every day. Keep its box clean and play with it.
How do I train a dog?: Teach one thing at a time and give the dog a treat when it does well. Be patient.
How do I fall asleep?/How can I sleep better?/I can't sleep. What should I do?/Give me a tip to sleep well.: Go to bed at the same time each night and put your phone away. A dark and quiet room helps you fall asleep.
How do I wake up early?: Go to bed early and set an alarm. Put the alarm far from your bed.
How can I relax?/How do I calm down?: Sit down and breathe slowly. A walk, music, or a warm bath can also help.
How can I feel happier?/How can I be happy?/I feel sad. What can I do?: Talk to a friend, go for a walk, or do something you enjoy. Small things can make a day better.
How do I make friends?/How can I find friends?: Be kind, smile, and ask people about themselves. Join a club or do things you like with others.
How do I say sorry?: Tell the person that you are sorry and what you will do better next time.
How can I save money?/How do I save money?: Write down what you spend and buy only what you need. Put a little money away every month.
How do I learn a language?/How can I learn English?: Practice a little every day. Read, listen, and speak with other people.
How do I study for a test?: Start early and study a little each day. Ask yourself questions and take breaks.
How do I write a letter?: Start with a greeting, write what you want to say, and end with your name.
How can I stay healthy?/How do I stay fit?: Eat fresh food, drink water, move every day, and sleep enough.
How do I find a job?: Write a good resume, look for open jobs, and ask people you know.
How do I ride a bike?: Sit on the bike, hold the handlebars, and push the pedals. Look ahead and keep moving to stay in balance.
How do I treat a cold?/I have a cold. What should I do?: Rest, drink warm tea, and sleep a lot. See a doctor if you do not get better.
I have a headache. What should I do?/What helps against a headache?: Drink some water and rest in a quiet, dark room. See a doctor if it does not stop.
I am tired. What should I do?/I feel tired.: Take a short rest or go to bed early. Fresh air and water can help too.
I am hungry. What should I do?/I am hungry.: You could eat some fruit, a sandwich, or a bowl of soup.
I feel bored. What can I do?/What can I do when I am bored?/I have nothing to do.: You could read a book, go for a walk, draw a picture, or call a friend.
I am nervous. What should I do?: Breathe slowly and think of something nice. It is normal to feel nervous.
I am lonely.: I am sorry that you feel lonely. Maybe you can call a friend or go to a place with people.
What is a good breakfast?/What should I have for breakfast?/What is a healthy breakfast?/What can I eat in the morning?: A good breakfast is oatmeal with fruit, or eggs with bread.
What should I eat for lunch?/What is a good lunch?: You could eat a salad, a sandwich, or a bowl of soup for lunch.
What should I eat for dinner?/What can I cook for dinner?/What is a good dinner?: You could cook pasta with tomato sauce, or rice with vegetables.
What is a healthy snack?/What is a good snack?: Fruit, nuts, or yogurt make a healthy snack.
What can I do when it rains?/What is a good thing to do on a rainy day?/It is raining. What can I do?: On a rainy day you can read a book, play a game, cook something, or watch a movie.
What can I do on a sunny day?/What can I do in summer?: On a sunny day you can go for a walk, swim, or have a picnic in the park.
What can I do on the weekend?: You could meet friends, visit a museum, cook something new, or rest.
What is a good gift for a child?/What is a good present for my friend?/What should I give a friend for her birthday?: A book, a nice cup, or something you made yourself is a good gift.
What is a good gift for my mother?: Flowers, a nice card, or a good book would make her happy.
What is a good name for a cat?: Luna is a nice name for a cat.
What is a good name for a dog?: Max is a nice name for a dog.
What is a good book?/Can you recommend a book?: You could read The Little Prince. It is short and beautiful.
What is a good hobby?: Drawing, cooking, gardening, and playing music are good hobbies.
What is your favorite color?: I am a computer program, so I have no favorite, but blue is a nice color.
What is your favorite food?: I do not eat, but many people love pizza.
Do you like music?: I cannot hear music, but I like to talk about it.
Do you sleep?: No, I am a computer program, so I do not need sleep.
Can you think?/Do you have feelings?: I am a small computer program. I write words, but I do not feel like a person does.
Is the Earth round?: Yes, the Earth is round like a ball.
Is the sun a star?: Yes, the sun is a star.
Is a tomato a fruit?: Yes, a tomato is a fruit, but people cook it like a vegetable.
Is a whale a fish?: No, a whale is a mammal. It breathes air.
Is a spider an insect?: No, a spider is not an insect. It has eight legs.
Can penguins fly?: No, penguins cannot fly, but they swim very well.
Can fish fly?: Most fish cannot fly. They swim in water.
Is too much sugar bad?/Is sugar healthy?: Too much sugar is bad for your teeth and your body. A little is fine.
Are vegetables healthy?/Why should I eat vegetables?: Yes, vegetables are healthy. They give the body vitamins.
Is it important to read?/Why should I read books?/Why is reading good?: Reading is good because you learn new things and new words. It is also fun.
How many legs does a dog have?: A dog has four legs.
How many continents are there?: There are seven continents.
How many planets are there?: There are eight planets around our sun.
How many fingers does a hand have?: A hand has five fingers.
How many letters are in the alphabet?: There are 26 letters in the English alphabet.
What is the biggest animal?/What is the largest animal in the world?: The blue whale is the biggest animal in the world.
What is the tallest animal?: The giraffe is the tallest animal.
What is the fastest animal?: The cheetah is the fastest animal on land.
What is the biggest planet?: Jupiter is the biggest planet around our sun.
What is the highest mountain?/What is the tallest mountain in the world?: Mount Everest is the highest mountain in the world.
What is the longest river?: The Nile is often called the longest river in the world.
What is the biggest ocean?: The Pacific Ocean is the biggest ocean.
Who wrote Romeo and Juliet?: William Shakespeare wrote Romeo and Juliet.
Who painted the Mona Lisa?: Leonardo da Vinci painted the Mona Lisa.
Who was Albert Einstein?: Albert Einstein was a famous scientist who studied time, space, and light.
What do cows give us?: Cows give us milk and meat.
What do bees make?: Bees make honey.
What do chickens lay?: Chickens lay eggs.
Where does milk come from?: Milk comes from cows, goats, and sheep.
Where does honey come from?: Honey comes from bees.
Where does wood come from?: Wood comes from trees.
What is bread made of?: Bread is made of flour, water, salt, and yeast.
What is cheese made of?: Cheese is made of milk.
What is paper made of?: Paper is made of wood.
What is glass made of?: Glass is made of sand.
What is ice?: Ice is frozen water.
What is steam?: Steam is hot water in the form of gas."""


def _split(text):
    return [tuple(p.strip() for p in entry.split(":")) for entry in text.replace("\n", " ").split("|")]


USES, JOBS, EATS = _split(USES), _split(JOBS), _split(EATS)
ASKED = [(line.split(": ", 1)[0].split("/"), line.split(": ", 1)[1]) for line in ASKED.split("\n")]


def ask(r):
    """(question, answer)"""
    x = r.random()
    if x < 0.22:
        thing, use = r.choice(USES)
        a = thing if thing == "scissors" else ("an " if thing[0] in "aeiou" else "a ") + thing
        if thing == "scissors":
            return (
                r.choice(["What are scissors used for?", "What are scissors?", "What do I do with scissors?"]),
                f"You use scissors to {use}.",
            )
        question = r.choice(
            [
                f"What is {a} used for?",
                f"What is {a} for?",
                f"What do you use {a} for?",
                f"What is {a}?",
                f"Why do people use {a}?",
                f"What can I do with {a}?",
                f"Why do I need {a}?",
                f"What does {a} do?",
            ]
        )
        return question, r.choice(
            [f"You use {a} to {use}.", f"{a[0].upper() + a[1:]} is used to {use}.", f"People use {a} to {use}."]
        )
    if x < 0.34:
        job, does = r.choice(JOBS)
        a = ("an " if job[0] in "aeiou" else "a ") + job
        return (
            r.choice([f"What does {a} do?", f"What is {a}?", f"Who is {a}?", f"What is the job of {a}?"]),
            f"{a[0].upper() + a[1:]} {does}.",
        )
    if x < 0.50:
        animal, food, home = r.choice(EATS)
        home = ("on " if home.startswith("farm") else "in ") + home
        many = animal[0].upper() + animal[1:]
        return r.choice(
            [
                (f"What do {animal} eat?", f"{many} eat {food}."),
                (f"Where do {animal} live?", f"{many} live {home}."),
                (f"What is the food of {animal}?", f"{many} eat {food}."),
                (f"Tell me about {animal}.", f"{many} live {home}. They eat {food}."),
            ]
        )
    asks, answer = r.choice(ASKED)
    return r.choice(asks), answer
