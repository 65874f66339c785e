"""Requests for tools and the calls that answer them; nearly every value has to be copied from the request."""
import json

import fresh
import words as w

TEXT, NUMBER, SWITCH = "string", "integer", "boolean"


def clock(r):
    return f"{r.randint(0, 23):02d}:{r.choice([r.randint(0, 59), 0, 15, 30, 45]):02d}"


def number(low, high):
    return lambda r: r.randint(low, high)


def pick(*options):
    return lambda r: r.choice(options)


def task(r):
    return r.choice(
        [
            "buy ",
            "call ",
            "water the ",
            "feed the ",
            "clean the ",
            "meet ",
            "bring the ",
            "send the ",
            "fix the ",
            "visit ",
            "find the ",
            "pay the ",
        ]
    ) + (fresh.name(r) if r.random() < 0.2 else fresh.thing(r))


def phrase(r):
    return r.choice(
        [
            "good morning",
            "thank you",
            "where is the " + fresh.word(r),
            "I like " + fresh.thing(r),
            "the " + fresh.word(r) + " is " + fresh.word(r),
            "see you on " + r.choice(w.DAYS),
            "I am " + r.choice(w.FEELINGS),
            fresh.words(r),
        ]
    )


def sum_text(r):
    return f"{r.randint(2, 999)} {r.choice('+-*/')} {r.randint(2, 999)}" + (
        f" {r.choice('+-*')} {r.randint(2, 99)}" if r.random() < 0.15 else ""
    )


def event(r):
    return r.choice(["dinner", "meeting", "party", "lunch", "concert", "lesson", fresh.thing(r)]) + r.choice(
        ["", "", " with " + fresh.name(r)]
    )


def date(r):
    return r.choice(
        [
            r.choice(w.DAYS),
            "tomorrow",
            "today",
            f"{r.choice(w.MONTHS)} {r.randint(1, 28)}",
            f"{r.randint(2024, 2032)}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}",
        ]
    )


def mail(r):
    return f"{fresh.word(r)}@{fresh.word(r)}.{r.choice(['com', 'org', 'net', 'de'])}"


def address(r):
    return f"https://{fresh.word(r)}.{r.choice(['com', 'org', 'net'])}" + r.choice(["", "/" + fresh.word(r)])


OK = '{"status": "ok"}'
LANGUAGES = pick("French", "German", "Spanish", "Italian", "Polish", "Greek", "Dutch", "Turkish", "Japanese")
ROOM = pick("kitchen", "bedroom", "bathroom", "living room", "garden", "office", "hall", "garage", "attic", "cellar")

# (names, description, [(parameter names, type, description, maker)], requests, reply)
TOOLS = [
    (
        ["get_weather", "weather", "current_weather", "check_weather"],
        "Get the weather of a city",
        [(["city", "location", "place"], TEXT, "Name of the city", fresh.place)],
        [
            "What is the weather like in {0}?",
            "How is the weather in {0}?",
            "Tell me the weather in {0}.",
            "Is it raining in {0}?",
            "Do I need an umbrella in {0}?",
            "weather in {0}",
            "Check the weather for {0}.",
            "Is it warm in {0} now?",
            "Will it rain in {0} tomorrow?",
            "I am going to {0}. How is the weather there?",
            "Should I take a jacket to {0}?",
            "Does the sun shine in {0}?",
            "How cold is it in {0} this morning?",
            "What's the weather in {0} today?",
        ],
        lambda r, a: (
            json.dumps(
                dict(temperature=(v := r.randint(-9, 35)), sky=(s := r.choice(["sunny", "cloudy", "rainy", "windy"])))
            ),
            f"It is {s} in {a[0]}, with {v} degrees.",
        ),
    ),
    (
        ["set_timer", "timer", "start_timer"],
        "Start a timer",
        [(["minutes", "duration"], NUMBER, "Length in minutes", number(1, 120))],
        [
            "Set a timer for {0} minutes.",
            "Start a timer of {0} minutes.",
            "{0} minutes timer",
            "Wake me in {0} minutes.",
            "Timer for {0} minutes, please.",
            "Tell me when {0} minutes are over.",
            "Count down {0} minutes.",
            "I need a timer for {0} minutes.",
        ],
        lambda r, a: (OK, f"The timer is set for {a[0]} minutes."),
    ),
    (
        ["set_alarm", "alarm", "add_alarm"],
        "Set an alarm",
        [(["time", "at"], TEXT, "Time of day", clock)],
        [
            "Set an alarm for {0}.",
            "Wake me up at {0}.",
            "I have to get up at {0}.",
            "alarm at {0}",
            "Set the alarm to {0} for tomorrow.",
            "Please wake me at {0} in the morning.",
            "I want to get up at {0}. Set an alarm.",
        ],
        lambda r, a: (OK, f"The alarm is set for {a[0]}."),
    ),
    (
        ["play_music", "play_song", "play"],
        "Play a song",
        [(["title", "song", "name"], TEXT, "Name of the song", fresh.title)],
        [
            "Play {0}.",
            "Play {0}",
            "Play the song {0}.",
            "I want to hear {0}.",
            "Put on {0}.",
            "Start the song {0}.",
            "Can we listen to {0}?",
            "Play {0} for me.",
            "Let me hear {0}",
            "Play the track called {0}.",
            "Next song: {0}",
        ],
        lambda r, a: (OK, f"Now playing {a[0]}."),
    ),
    (
        ["play_movie", "watch", "start_movie"],
        "Start a movie",
        [(["title", "movie", "film"], TEXT, "Name of the movie", fresh.title)],
        [
            "Start the movie {0}.",
            "I want to watch {0}.",
            "Show the film {0}.",
            "Let us watch {0} tonight.",
            "Put on the movie {0}",
        ],
        lambda r, a: (OK, f"I started {a[0]}."),
    ),
    (
        ["search", "web_search", "search_web", "find_on_web"],
        "Search the web",
        [(["query", "text", "q"], TEXT, "What to search for", fresh.thing)],
        [
            "Search for {0}.",
            "Search for {0}",
            "Search the web for {0}.",
            "Look up {0}.",
            "Find {0} on the internet.",
            "Google {0}",
            "Look for {0} on the web.",
            "I am looking for {0}. Search the web.",
            "Can you find {0} online?",
            "Do a search for {0}.",
        ],
        lambda r, a: (json.dumps(dict(results=(v := r.randint(2, 90)))), f"I found {v} pages about {a[0]}."),
    ),
    (
        ["add_item", "add_to_list", "shopping_add"],
        "Add an item to the shopping list",
        [(["item", "name", "product"], TEXT, "What to buy", fresh.item)],
        [
            "Add {0} to my shopping list.",
            "Put {0} on the list.",
            "I need to buy {0}.",
            "Add {0} to the list, please.",
            "We need {0}. Add it to the list.",
            "There is no {0} left. Put it on the list.",
            "We have no more {0}, so add it to my list.",
            "The {0} is empty. Write it on the list.",
            "I want to buy {0} tomorrow, please note it.",
            "Don't let me forget to buy {0}.",
            "Shopping list: {0}",
            "I ran out of {0}. Please add it.",
            "We have run out of {0}, add it to the list.",
            "I am out of {0}. Note it.",
            "The {0} is gone, we need more. List it.",
        ],
        lambda r, a: (OK, f"I added {a[0]} to the list."),
    ),
    (
        ["remove_item", "delete_item", "remove_from_list"],
        "Remove an item from the shopping list",
        [(["item", "name", "product"], TEXT, "What to remove", fresh.item)],
        [
            "Remove {0} from my list.",
            "Take {0} off the list.",
            "I already have {0}, remove it from the list.",
            "Delete {0} from the shopping list.",
        ],
        lambda r, a: (OK, f"I removed {a[0]} from the list."),
    ),
    (
        ["set_reminder", "remind", "create_reminder"],
        "Create a reminder",
        [(["text", "task"], TEXT, "What to remember", task), (["time", "at"], TEXT, "Time of day", clock)],
        [
            "Remind me to {0} at {1}.",
            "Set a reminder to {0} at {1}.",
            "At {1}, remind me to {0}.",
            "I must {0} at {1}. Remind me.",
            "Don't let me forget to {0} at {1}.",
        ],
        lambda r, a: (OK, f"I will remind you to {a[0]} at {a[1]}."),
    ),
    (
        ["add_note", "write_note", "save_note"],
        "Write a note",
        [(["text", "note", "content"], TEXT, "Text of the note", lambda r: fresh.words(r, 2, 7))],
        [
            "Write a note: {0}",
            "Note this: {0}",
            "Save the note {0}.",
            "Make a note that says {0}.",
            "Please write down: {0}",
            "Take a note: {0}.",
        ],
        lambda r, a: (OK, "I saved the note."),
    ),
    (
        ["create_event", "add_event", "calendar_add"],
        "Add an event to the calendar",
        [(["title", "name"], TEXT, "Name of the event", event), (["day", "date"], TEXT, "Day of the event", date)],
        [
            "Add {0} to my calendar on {1}.",
            "Put {0} in the calendar for {1}.",
            "I have {0} on {1}. Add it to my calendar.",
            "{1}: {0}. Put that in my calendar.",
            "Plan {0} for {1}.",
        ],
        lambda r, a: (OK, f"I added {a[0]} on {a[1]}."),
    ),
    (
        ["set_light", "light", "switch_light"],
        "Switch a light on or off",
        [(["room", "place"], TEXT, "Which room", ROOM), (["state", "value"], TEXT, "on or off", pick("on", "off"))],
        [
            "Turn {1} the light in the {0}.",
            "Turn the {0} light {1}.",
            "Switch {1} the lights in the {0}.",
            "{0} light {1}, please",
            "Can you turn {1} the lamp in the {0}?",
        ],
        lambda r, a: (OK, f"The light in the {a[0]} is {a[1]}."),
    ),
    (
        ["set_temperature", "heating", "thermostat"],
        "Set the room temperature",
        [(["degrees", "temperature", "value"], NUMBER, "Degrees Celsius", number(5, 35))],
        [
            "Set the temperature to {0} degrees.",
            "Make it {0} degrees.",
            "Heat the room to {0} degrees.",
            "Set the heating to {0}.",
            "I want {0} degrees in this room.",
            "It should be {0} degrees here.",
            "Turn the heating up to {0}.",
        ],
        lambda r, a: (OK, f"The temperature is set to {a[0]} degrees."),
    ),
    (
        ["set_volume", "volume"],
        "Set the volume",
        [(["level", "volume", "percent"], NUMBER, "Volume from 0 to 100", number(0, 100))],
        ["Set the volume to {0}.", "Volume {0}", "Make it as loud as {0} percent.", "Turn the volume to {0} percent."],
        lambda r, a: (OK, f"The volume is {a[0]} percent."),
    ),
    (
        ["translate", "translate_text"],
        "Translate text",
        [
            (["text", "phrase"], TEXT, "Text to translate", phrase),
            (["language", "to", "target"], TEXT, "Target language", LANGUAGES),
        ],
        [
            "Translate {0} into {1}.",
            "How do you say {0} in {1}?",
            "Translate to {1}: {0}",
            "What is {0} in {1}?",
            "I want to say {0} in {1}.",
        ],
        lambda r, a: (OK, f"Here is your text in {a[1]}."),
    ),
    (
        ["calculate", "calculator", "compute"],
        "Calculate a number",
        [(["expression", "formula", "input"], TEXT, "What to calculate", sum_text)],
        [
            "Calculate {0}.",
            "What is {0}?",
            "How much is {0}?",
            "Use the calculator for {0}.",
            "{0}",
            "Tell me the result of {0}.",
            "Compute {0}",
        ],
        lambda r, a: (json.dumps(dict(result=(v := r.randint(2, 999)))), f"The result is {v}."),
    ),
    (
        ["convert_currency", "exchange", "currency"],
        "Convert money",
        [
            (["amount", "value"], NUMBER, "How much", number(1, 5000)),
            (["from", "source"], TEXT, "From", pick("dollars", "euros", "pounds", "yen")),
            (["to", "target"], TEXT, "To", pick("francs", "pesos", "crowns", "rupees")),
        ],
        ["Convert {0} {1} to {2}.", "How many {2} are {0} {1}?", "Change {0} {1} into {2}."],
        lambda r, a: (json.dumps(dict(result=(v := r.randint(2, 999)))), f"{a[0]} {a[1]} are {v} {a[2]}."),
    ),
    (
        ["book_table", "reserve_table", "reservation"],
        "Book a table in a restaurant",
        [
            (["people", "guests", "seats"], NUMBER, "Number of people", number(1, 14)),
            (["time", "at"], TEXT, "Time of day", clock),
        ],
        [
            "Book a table for {0} at {1}.",
            "Reserve a table for {0} people at {1}.",
            "I need a table for {0} at {1}.",
            "We are {0} people and come at {1}. Get us a table.",
        ],
        lambda r, a: (OK, f"I booked a table for {a[0]} at {a[1]}."),
    ),
    (
        ["read_file", "open_file", "cat"],
        "Read a file",
        [(["path", "file", "filename"], TEXT, "Path of the file", fresh.file_name)],
        [
            "Read the file {0}.",
            "Open {0}.",
            "Show me {0}.",
            "What is in {0}?",
            "Show me the contents of {0}.",
            "cat {0}",
            "Print {0}",
            "What does {0} say?",
            "Let me see {0}",
            "Read {0} for me.",
        ],
        lambda r, a: (json.dumps(dict(text=(t := fresh.words(r)))), f"The file {a[0]} contains: {t}"),
    ),
    (
        ["write_file", "save_file", "create_file"],
        "Write text into a file",
        [
            (["path", "file", "filename"], TEXT, "Path of the file", fresh.file_name),
            (["text", "content"], TEXT, "Text to write", lambda r: fresh.words(r, 1, 5)),
        ],
        [
            "Write {1} into {0}.",
            "Save {1} to the file {0}.",
            "Create the file {0} with the text {1}.",
            "Put {1} into {0}",
        ],
        lambda r, a: (OK, f"I wrote the text into {a[0]}."),
    ),
    (
        ["delete_file", "remove_file", "rm"],
        "Delete a file",
        [(["path", "file", "filename"], TEXT, "Path of the file", fresh.file_name)],
        ["Delete {0}.", "Remove the file {0}.", "I do not need {0} anymore. Delete it.", "rm {0}"],
        lambda r, a: (OK, f"I deleted {a[0]}."),
    ),
    (
        ["list_files", "ls", "list_directory"],
        "List the files in a folder",
        [(["path", "folder", "directory"], TEXT, "Path of the folder", fresh.folder)],
        [
            "List the files in {0}.",
            "What files are in {0}?",
            "Show the folder {0}.",
            "ls {0}",
            "What is in the {0} folder?",
            "Show me the {0} folder.",
            "List everything in the {0} directory.",
            "Which files do I have in {0}?",
            "Look into the folder {0}.",
        ],
        lambda r, a: (
            json.dumps(dict(files=(f := [fresh.file_name(r), fresh.file_name(r)]))),
            f"There are two files in {a[0]}: {f[0]} and {f[1]}.",
        ),
    ),
    (
        ["run_command", "shell", "execute"],
        "Run a shell command",
        [
            (
                ["command", "cmd"],
                TEXT,
                "The command",
                lambda r: r.choice(["ls", "cat", "make", "git log", "python3", "grep", "mkdir", "cd"])
                + " "
                + fresh.file_name(r),
            )
        ],
        ["Run {0}", "Run the command {0}.", "Execute {0}.", "Please run: {0}"],
        lambda r, a: (json.dumps(dict(output=(t := fresh.words(r)))), f"The command printed: {t}"),
    ),
    (
        ["define", "define_word", "dictionary"],
        "Look up a word",
        [(["word", "term"], TEXT, "The word", fresh.word)],
        [
            "Define {0}.",
            "Look up the word {0}.",
            "What does {0} mean?",
            "What is the meaning of {0}?",
            "Find {0} in the dictionary.",
            "I do not know the word {0}.",
            "Explain the word {0}.",
        ],
        lambda r, a: (OK, f"I found the word {a[0]} in the dictionary."),
    ),
    (
        ["roll_dice", "dice", "random_number"],
        "Draw a random number",
        [
            (
                ["max", "sides", "limit"],
                NUMBER,
                "Largest number",
                lambda r: r.choice([6, 8, 10, 12, 20, 100, r.randint(3, 99)]),
            )
        ],
        [
            "Roll a die with {0} sides.",
            "Give me a random number up to {0}.",
            "Pick a number between 1 and {0}.",
            "Throw a dice that has {0} sides.",
            "Draw a number from 1 to {0}.",
        ],
        lambda r, a: (json.dumps(dict(number=(v := r.randint(1, a[0])))), f"The number is {v}."),
    ),
    (
        ["get_news", "news", "headlines"],
        "Get the news about a topic",
        [(["topic", "subject"], TEXT, "Topic", lambda r: r.choice([fresh.thing, fresh.thing, fresh.place])(r))],
        [
            "What is the news about {0}?",
            "Show me news about {0}.",
            "Any news on {0}?",
            "Get the headlines about {0}.",
            "Is there anything new about {0}?",
            "Tell me the latest about {0}.",
            "What happened with {0}?",
            "news about {0}",
            "What is new with {0}?",
            "Are there any news about {0}?",
            "What is going on with {0}?",
            "Is there something new on {0}?",
        ],
        lambda r, a: (json.dumps(dict(count=(v := r.randint(2, 40)))), f"There are {v} new stories about {a[0]}."),
    ),
    (
        ["find_route", "directions", "navigate"],
        "Find the way between two places",
        [(["from", "start"], TEXT, "Start", fresh.place), (["to", "end", "destination"], TEXT, "Goal", fresh.place)],
        [
            "How do I get from {0} to {1}?",
            "Find a route from {0} to {1}.",
            "Directions from {0} to {1}, please.",
            "Navigate to {1} from {0}.",
            "How far is it from {0} to {1}?",
            "I am in {0} and want to go to {1}.",
        ],
        lambda r, a: (
            json.dumps(dict(km=(v := r.randint(5, 900)))),
            f"The way from {a[0]} to {a[1]} is {v} kilometers long.",
        ),
    ),
    (
        ["get_time", "time_in", "local_time"],
        "Get the time in a city",
        [(["city", "place", "location"], TEXT, "Name of the city", fresh.place)],
        [
            "What time is it in {0}?",
            "Tell me the time in {0}.",
            "time in {0}",
            "What is the local time in {0}?",
            "Is it already morning in {0}?",
        ],
        lambda r, a: (json.dumps(dict(time=(t := clock(r)))), f"It is {t} in {a[0]}."),
    ),
    (
        ["call", "call_contact", "phone"],
        "Call a person",
        [(["name", "contact", "person"], TEXT, "Who to call", fresh.full_name)],
        [
            "Call {0}.",
            "Call {0}",
            "Please call {0}.",
            "Phone {0}.",
            "I want to talk to {0}. Call them.",
            "Give {0} a call.",
            "Call my friend {0}.",
            "Ring {0} for me.",
            "Dial {0}",
        ],
        lambda r, a: ('{"status": "calling"}', f"I am calling {a[0]} now."),
    ),
    (
        ["send_message", "message", "text_contact"],
        "Send a message to a person",
        [
            (["name", "contact", "to"], TEXT, "Who gets it", fresh.name),
            (["text", "message"], TEXT, "What to say", phrase),
        ],
        [
            "Tell {0} {1}.",
            "Write {0} a message: {1}",
            "Send {1} to {0}.",
            "Text {0}: {1}",
            "Send a message to {0} that says {1}.",
        ],
        lambda r, a: (OK, f"I sent the message to {a[0]}."),
    ),
    (
        ["send_email", "email", "mail"],
        "Send an email",
        [(["to", "address", "recipient"], TEXT, "Address", mail), (["subject", "title"], TEXT, "Subject", fresh.thing)],
        [
            "Send an email to {0} with the subject {1}.",
            "Email {0} about {1}.",
            "Write to {0}, subject {1}.",
            "Mail {0}. The subject is {1}.",
        ],
        lambda r, a: (OK, f"I sent the email to {a[0]}."),
    ),
    (
        ["open_page", "open_url", "browse"],
        "Open a web page",
        [(["url", "address", "page"], TEXT, "Address of the page", address)],
        ["Open {0}", "Open the page {0}.", "Go to {0}", "Show me the website {0}."],
        lambda r, a: (OK, f"I opened {a[0]}."),
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
                        fresh.item(r),
                        fresh.thing(r),
                        fresh.word(r),
                        fresh.word(r),
                    ]
                ),
            )
        ],
        [
            "Find a recipe for {0}.",
            "How do I cook {0}? Find a recipe.",
            "I want to make {0}. Find me a recipe.",
            "Get a {0} recipe.",
            "I would like to eat {0}. Look for a recipe.",
            "Is there a good recipe for {0}?",
            "Let us cook {0} tonight.",
        ],
        lambda r, a: (OK, f"I found a recipe for {a[0]}."),
    ),
    (
        ["open_app", "launch", "start_app"],
        "Open an app",
        [
            (
                ["app", "name", "program"],
                TEXT,
                "Name of the app",
                lambda r: r.choice([fresh.word, fresh.word, fresh.name, fresh.title])(r),
            )
        ],
        [
            "Open the {0} app.",
            "Open the {0} app",
            "Start {0}.",
            "Launch {0}.",
            "Please open {0}.",
            "Start the {0} app.",
            "Open the app {0}",
            "Can you launch the {0} app?",
        ],
        lambda r, a: (OK, f"I opened {a[0]}."),
    ),
    (
        ["order_taxi", "taxi", "get_taxi"],
        "Order a taxi",
        [(["to", "destination", "place"], TEXT, "Where to go", fresh.place)],
        ["Get me a taxi to {0}.", "Order a taxi to {0}.", "I need a cab to {0}.", "Take me to {0}."],
        lambda r, a: (OK, f"A taxi to {a[0]} is on its way."),
    ),
    (
        ["book_flight", "find_flight", "flight"],
        "Find a flight",
        [(["to", "city", "destination"], TEXT, "Goal", fresh.place), (["date", "day"], TEXT, "Day", date)],
        ["Find a flight to {0} on {1}.", "I want to fly to {0} on {1}.", "Book me a flight to {0} for {1}."],
        lambda r, a: (OK, f"I found a flight to {a[0]} on {a[1]}."),
    ),
    (
        ["walk_dog", "log_walk"],
        "Note that a dog had its walk",
        [(["name", "dog"], TEXT, "Name of the dog", fresh.name)],
        ["I walked the dog {0}.", "{0} had a walk.", "Walk the dog {0}", "Take {0} for a walk."],
        lambda r, a: (OK, f"I noted the walk of {a[0]}."),
    ),
    (
        ["buy_ticket", "ticket", "get_ticket"],
        "Buy tickets for a show",
        [
            (["show", "event", "title"], TEXT, "Name of the show", fresh.title),
            (["count", "number"], NUMBER, "How many", number(1, 9)),
        ],
        ["Buy {1} tickets for {0}.", "Get {1} tickets for the show {0}.", "I want to see {0}. Get {1} tickets."],
        lambda r, a: (OK, f"I bought {a[1]} tickets for {a[0]}."),
    ),
    (
        ["get_price", "price", "stock_price"],
        "Get the price of a thing",
        [(["name", "item", "product"], TEXT, "What", fresh.thing)],
        ["What does {0} cost?", "How much is {0}?", "What is the price of {0}?", "price of {0}", "Is {0} expensive?"],
        lambda r, a: (json.dumps(dict(price=(v := r.randint(1, 999)))), f"The price of {a[0]} is {v} dollars."),
    ),
    (
        ["set_color", "color", "light_color"],
        "Set the color of the lamp",
        [
            (
                ["color", "value"],
                TEXT,
                "The color",
                pick("red", "blue", "green", "yellow", "white", "purple", "orange", "pink"),
            )
        ],
        ["Make the lamp {0}.", "Set the color to {0}.", "I want {0} light."],
        lambda r, a: (OK, f"The lamp is {a[0]} now."),
    ),
]

VERBS = """wash brush find show rent order visit hide paint copy print count move lock unlock start stop check clean fix
measure pack weigh tag follow block invite greet add remove get track scan rename mark watch""".split()
NOUNS = """pet horse rabbit pony parrot car bike boat room house garden plant tree toy lamp door window shelf box bag letter
photo video guest student driver player team shop ticket parcel machine engine robot museum beach hotel_room table tool cup
dish meal coat shoe""".replace(
    "hotel_room", "room"
).split()
VALUES = [
    fresh.name,
    fresh.name,
    fresh.full_name,
    fresh.place,
    fresh.thing,
    fresh.word,
    fresh.title,
    fresh.file_name,
    number(1, 999),
]


def made_up(r):
    """A tool that no list holds, in the form of TOOLS."""
    verb, noun, maker = r.choice(VERBS), r.choice(NOUNS), r.choice(VALUES)
    sample = maker(r)
    kind = NUMBER if isinstance(sample, int) else TEXT
    if kind == NUMBER:
        params, asks = ["number", "count", "id", "value", "amount"], [
            f"{verb} {noun} number {{0}}",
            f"{verb} {{0}} {noun}s",
            f"{verb} the {noun} with the number {{0}}",
        ]
    elif maker == fresh.place:
        params, asks = ["city", "place", "location", "where"], [
            f"{verb} a {noun} in {{0}}",
            f"{verb} me a {noun} in {{0}}",
            f"{verb} the {noun} in {{0}}",
            f"{verb} my {noun} near {{0}}",
        ]
    else:
        params = ["name", "name", "title", "text", "target", "label", noun, fresh.word(r)]
        asks = [
            f"{verb} the {noun} {{0}}",
            f"{verb} {{0}}",
            f"{verb} my {noun} {{0}}",
            f"{verb} the {noun} called {{0}}",
            f"{verb} a {noun} named {{0}}",
            f"I want to {verb} {{0}}",
            f"{verb} the {r.choice(NOUNS)} {{0}}",
        ]
    asks = [(x if x[0] == "I" else x[0].upper() + x[1:]) + r.choice([".", ".", ""]) for x in asks]
    one = (params, kind, r.choice(["Name", "Which one", "The " + noun, "What to use", params[0].capitalize()]), maker)
    return [f"{verb}_{noun}"], f"{verb.capitalize()} a {noun}", [one], asks, lambda r, a: (OK, "Done.")


HELD_OUT_CALLS = [
    ("get_weather", "city", TEXT, "Get the weather of a city", "What is the weather in Hamburg?", "Hamburg"),
    ("get_weather", "location", TEXT, "Get the current weather", "Will I need a coat in Reno today?", "Reno"),
    ("set_timer", "minutes", NUMBER, "Start a timer", "Please start a timer for 17 minutes", 17),
    ("play_song", "title", TEXT, "Play a song", "Play Yellow Submarine", "Yellow Submarine"),
    ("search", "query", TEXT, "Search the web", "Search for cheap bicycles", "cheap bicycles"),
    ("add_item", "item", TEXT, "Add an item to the shopping list", "We are out of sugar, put it on the list.", "sugar"),
    ("get_time", "city", TEXT, "Get the time in a city", "How late is it in Bangkok?", "Bangkok"),
    ("define_word", "word", TEXT, "Look up a word", "What does the word lantern mean?", "lantern"),
    ("read_file", "path", TEXT, "Read a file", "Show me what is in budget.csv", "budget.csv"),
    (
        "list_files",
        "folder",
        TEXT,
        "List the files in a folder",
        "Which files are in the downloads folder?",
        "downloads",
    ),
    ("calculate", "expression", TEXT, "Calculate a number", "What is 37 * 21?", "37 * 21"),
    ("set_temperature", "degrees", NUMBER, "Set the room temperature", "Make it 23 degrees in here", 23),
    ("call_contact", "name", TEXT, "Call a person", "Call Beatrice", "Beatrice"),
    ("set_alarm", "time", TEXT, "Set an alarm", "Wake me up at 05:30 tomorrow.", "05:30"),
    ("get_news", "topic", TEXT, "Get the news about a topic", "What is new about electric cars?", "electric cars"),
    ("find_recipe", "dish", TEXT, "Find a recipe", "I want to cook lasagna. Find a recipe.", "lasagna"),
    ("open_app", "app", TEXT, "Open an app", "Open the weather app", "weather"),
    ("roll_dice", "sides", NUMBER, "Roll a dice", "Roll a dice with 30 sides", 30),
    ("feed_pet", "name", TEXT, "Feed a pet", "Feed the cat Whiskers", "Whiskers"),
    ("book_hotel", "city", TEXT, "Book a hotel room", "Book me a hotel in Salzburg", "Salzburg"),
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


def _instance(r, tool):
    names, description, params, requests, reply = tool
    chosen = r.choice(names)
    if r.random() < 0.1:  # names the model has not seen
        chosen = fresh.word(r) + "_" + chosen
    picked = []
    for options, kind, text, _ in params:
        free = [n for n in options if n not in [p[0] for p in picked]]
        param = r.choice(free)
        picked.append((param, kind, r.choice([text, text, text, param.capitalize()])))
    return chosen, description, picked, requests, [make for *_, make in params], reply


def _ask(r, requests, values):
    """The request in the user's words, and the values as they stand in it."""
    form = r.choice(requests)
    if len(form) > 4 and form[0] != "{" and r.random() < 0.2:
        form = r.choice(["Please ", "Can you please ", "Hey, ", "Hi! ", "Could you ", "Now ", "Pocket, ", "Okay, "]) + (
            form if form.startswith("I ") else form[0].lower() + form[1:]
        )
    if form[-1] == "." and r.random() < 0.2:
        form = form[:-1] + r.choice([", please.", " now.", " for me.", " please", ", thank you.", " right away."])
    if form[-1] in ".?" and r.random() < 0.12:
        form = form[:-1]
    shown = [str(v) for v in values]
    if r.random() < 0.08:
        shown = [f'"{v}"' if isinstance(v, str) else str(v) for v in values]
    elif r.random() < 0.08:
        form = form.lower()
        values = [v.lower() if isinstance(v, str) else v for v in values]
        shown = [str(v) for v in values]
    return form.format(*shown), values


def conversation(r, answered):
    """(messages, tools); answered(r) gives (question, answer) that need no tool."""
    user = lambda text: dict(role="user", content=text)
    said = lambda text, reasoning=None, call=None: dict(role="assistant", content=text, reasoning=reasoning, call=call)
    count = r.choice([1, 1, 1, 2, 2, 3])
    made = [_instance(r, made_up(r) if r.random() < 0.2 else t) for t in r.sample(TOOLS, count)]
    tools = [schema(n, d, p) for n, d, p, *_ in made]
    fn, description, params, requests, makers, reply = made[0]
    r.shuffle(tools)
    if r.random() < 0.04:
        question, answer = answered(r)
        return [user(question), said(answer)], tools
    messages = []
    for _ in range(2 if r.random() < 0.12 else 1):
        ask, values = _ask(r, requests, [make(r) for make in makers])
        call = dict(name=fn, arguments={n: v for (n, _, _), v in zip(params, values)})
        why = f"The user wants to use {fn}. I will call it with {', '.join(f'{n} = {v}' for (n, _, _), v in zip(params, values))}."
        messages += [user(ask), said("", reasoning=why if r.random() < 0.2 else None, call=call)]
        result, answer = reply(r, values)
        messages += [dict(role="tool", content=result), said(answer)]
    if r.random() < 0.6:
        messages = messages[:-2]
    return messages, tools
