"""A story grammar: short, simple stories on a given topic, put together from hand-written sentences.

Marks: {H} the hero at the start of a sentence, {h} inside one, {a} with an indefinite article, {he} {him} {his} and
{He} {His} pronouns, {o} the object ("the red ball"), {f} a friend ("the owl"), {F} at the start, {p} the place.
"""
import zlib

import plots
import words as w

SHE = {"girl", "grandmother", "sister", "queen", "princess", "witch", "fairy", "hen", "cow", "nurse", "mother"}
HE = {"boy", "grandfather", "brother", "king", "knight", "wizard", "rooster", "policeman", "mailman", "fisherman"}
NEAR = [
    "in a small house near the forest",
    "in a quiet village",
    "at the edge of a green forest",
    "near a wide river",
    "on a small farm",
    "in a little town by the sea",
    "at the foot of a hill",
    "beside a blue lake",
    "in a cozy home under an old oak tree",
    "in a busy town",
    "in a green valley",
    "not far from the sea",
    "behind the old mill",
    "in the last house of the street",
    "on the other side of the mountain",
    "where the road ends and the meadows begin",
    "between two birch trees",
    "in a yellow house with a round door",
    "in the north, where the winters are long",
    "in a warm land in the south",
    "next to a small waterfall",
    "at the end of a long garden",
]
OPEN_THING = [
    "Once upon a time, there was {a}.",
    "Once there was {a}.",
    "There once was {a}.",
    "Long ago, there was {a}.",
]
OPEN = [
    "Once upon a time, there was {a} who lived {p}.",
    "Once there was {a} who lived {p}.",
    "Long ago, {a} lived {p}.",
    "There once was {a} who lived {p}.",
    "In a land far away, {a} lived {p}.",
    "{A} lived {p}.",
]
OPEN_AT = [
    "Once upon a time, there was {a}. One day, {h} was {p}.",
    "Once there was {a}. {H} was {p} that day.",
    "One morning, {a} was {p}.",
    "There once was {a}. Today {h} was {p}.",
    "It was a day like any other, and {a} was {p}.",
    "Once upon a time, {a} was {p}.",
    "This is what happened when {a} was {p}.",
    "One afternoon, {a} was {p}.",
]
TRAITS = dict(
    shy="{He} was very shy and did not like to speak in front of others.",
    brave="{He} was brave and was not afraid of many things.",
    little="{He} was little, but {he} had a big heart.",
    old="{He} was old and knew many stories.",
    kind="{He} was kind to everyone {he} met.",
    lazy="{He} was lazy and liked to sleep until noon.",
    curious="{He} was curious and wanted to know everything.",
    clever="{He} was clever and always had a good idea.",
    lonely="{He} was lonely and wished for a friend.",
    happy="{He} was happy and sang a song every morning.",
    sad="{He} was often sad, but nobody knew why.",
    tiny="{He} was so tiny that many did not see {him}.",
    big="{He} was very big, but also very gentle.",
    hungry="{He} was always hungry and thought about food all day.",
    sleepy="{He} was always sleepy and yawned all day long.",
    proud="{He} was proud and thought that {he} was the best at everything.",
    gentle="{He} was gentle and spoke with a soft voice.",
    noisy="{He} was noisy, and everyone could hear {him} from far away.",
    quiet="{He} was quiet and liked to listen.",
    funny="{He} was funny and made everyone laugh.",
    grumpy="{He} was grumpy and did not smile very often.",
    young="{He} was young and had much to learn.",
    friendly="{He} was friendly and said hello to everyone.",
    careful="{He} was careful and always looked twice.",
    silly="{He} was silly and liked to make jokes.",
    greedy="{He} was greedy and wanted to keep everything for {self}.",
    honest="{He} was honest and always told the truth.",
    patient="{He} was patient and could wait for a long time.",
    stubborn="{He} was stubborn and never wanted to give up.",
    cheerful="{He} was cheerful and smiled at everyone.",
    clumsy="{He} was clumsy and often fell over {his} own feet.",
)
DAY = [
    "One sunny morning,",
    "One day,",
    "One cold morning,",
    "One evening,",
    "On a warm day in spring,",
    "One windy day,",
    "On a quiet afternoon,",
    "Early one morning,",
    "One day in summer,",
    "After breakfast,",
]
TALK = [
    '"{Q}" asked {f}.',
    '{F} came by and asked, "{Q}"',
    'Just then, {f} came along. "{Q}" {f} asked.',
    'Then {h} met {f}. "{Q}" asked {f}.',
]
HELP = [
    '"I will help you," said {f}.',
    '"Do not worry," said {f}. "We can do it together."',
    '{F} smiled and said, "Let us try it together."',
    '"You can do it," said {f}. "I believe in you."',
    '{F} thought for a moment. "I have an idea," said {f}.',
]
# deed: problem / middle / end; each a list of variants divided by |
DEEDS = {
    "learns to swim": (
        "{H} stood by the water and watched the others swim. {He} wanted to swim too, but the water looked deep.|Every day {h} looked at the lake. {He} could not swim and was afraid of the water.",
        "First, {h} put only {his} feet into the water. Then {he} learned to float.|{F} showed {him} how to kick and how to breathe. They practiced every day.",
        'After a week, {h} could swim all the way across the water.|At last {h} swam alone for the first time. "Look, I can swim!" {he} shouted.',
    ),
    "finds a new friend": (
        "{H} had nobody to play with. {He} sat alone and felt a little sad.|{H} wanted a friend more than anything else.",
        "Soon {he} saw {f}, who was sitting alone too. They began to talk and found that they liked the same games.|{H} said hello to {f}. They shared some bread and told each other stories.",
        'From then on they met every day.|"Will you be my friend?" asked {h}. "Yes!" said {f}.',
    ),
    "gets lost": (
        "{H} walked and walked and did not look at the path. Soon {he} did not know where {he} was.|{H} followed a pretty butterfly and lost the way.",
        "{He} looked left and right, but everything looked the same. {He} felt small and began to cry.|{He} called for help, but there was no answer. Then {he} sat down and tried to stay calm.",
        "{F} knew the way and walked home with {him}.|Together with {f}, {he} followed the river until {he} saw home again.",
    ),
    "helps a neighbor": (
        "{H} saw that {f} had a heavy basket and could not carry it home.|{His} neighbor, {f}, had a broken fence and was too tired to fix it.",
        "{H} did not wait. {He} ran over and began to help.|{H} worked all afternoon, and they talked and laughed together.",
        'When the work was done, {f} gave {him} a warm piece of cake.|"Thank you," said {f}. "You are the best neighbor in the world."',
    ),
    "is afraid of the dark": (
        "When the sun went down, {h} became afraid. The dark was full of strange shadows.|Every night, {h} hid under the blanket because {he} was afraid of the dark.",
        "{F} sat down beside {him} and pointed at the sky. The stars were shining like tiny lamps.|{F} gave {him} a small lamp. They looked into every corner, and there was nothing to fear.",
        "Now {h} knew that the dark was only the night taking a rest.|After that, {h} liked the night because only then could {he} see the stars.",
    ),
    "learns to share": (
        "{H} had a big bag of apples, but {he} did not want to give one away.|{H} kept all the toys and did not let anyone play with them.",
        "Then {he} saw that {f} had nothing at all. {He} felt bad and thought about it for a long time.|But playing alone was no fun. {F} looked at {him} with sad eyes.",
        'So {h} gave half of everything to {f}. It felt better than keeping it all.|{H} said, "Here, this is for you." Then they had fun together.',
    ),
    "wants to fly": (
        '{H} watched the birds and wished to fly like them.|Every day {h} looked up at the clouds. "I want to fly," {he} said.',
        "{He} jumped from a small rock and flapped {his} arms, but {he} fell into the soft grass.|{He} made wings from leaves and paper, but the wind broke them.",
        "Then {f} built a big kite and took {him} up into the air. For a short time, {h} could really fly.|At last {f} took {him} high up on a hill. The wind blew, and it felt just like flying.",
    ),
    "plants a tree": (
        "{H} found a small seed and wanted to plant a tree.|There was not one tree near the house, so {h} decided to plant a tree.",
        "{He} dug a hole, put the seed into the soil, and gave it water every day. For a long time, nothing happened.|{F} brought a shovel, and together they dug a hole. They watered the little tree every day.",
        "Then one morning there was a tiny green leaf. Years later, the tree was tall and gave shade to everyone.|The tree grew and grew. In autumn it was full of sweet red apples.",
    ),
    "builds a house": (
        "{H} wanted a home of {his} own, so {he} decided to build a house.|The old house was too small, and {h} wanted to build a new one.",
        "{He} carried wood and stones all day long. The first wall fell down, but {he} built it again.|{F} brought nails and a hammer. They worked from morning until night.",
        "When the house was ready, it had a red roof and two round windows.|At last the house was done, and {h} invited everyone to a party.",
    ),
    "bakes a cake": (
        "{H} wanted to bake a cake for a friend.|It was a special day, and {h} decided to bake a cake.",
        "{He} mixed flour, eggs, and sugar in a big bowl. But {he} forgot the butter, and the first cake was flat.|{F} helped {him} mix the flour and the eggs. Soon the whole kitchen smelled sweet.",
        "The second cake was soft and golden. Everyone ate a big piece.|They put the cake on the table and shared it. It was the best cake they had ever tasted.",
    ),
    "tells the truth": (
        "{H} broke a pretty vase while {he} was playing. Nobody saw it.|By accident, {h} broke a window. {He} was afraid and wanted to hide.",
        "{F} asked who did it. {H} felt hot and cold, because it was hard to speak.|{He} thought about telling a lie. But a lie felt heavy, like a stone in the pocket.",
        '"I did it, and I am sorry," said {h}. {F} was not angry. "Thank you for telling the truth," {f} said.|So {h} told the truth, and they fixed it together.',
    ),
    "saves a friend": (
        "{H} heard a cry for help. It was {f}, who had fallen into the river.|{F} was stuck in a deep hole and could not get out.",
        "{H} did not wait for a moment. {He} found a long branch and held it out.|{H} ran to get a rope. {He} tied it to a tree and threw the other end down.",
        '{F} held on tight, and {h} pulled with all {his} strength. Soon {f} was safe.|With one last pull, {f} was free. "You saved me!" said {f}.',
    ),
    "goes on a journey": (
        "{H} wanted to see the world. {He} packed a small bag and left home.|{H} had never been far from home, so one day {he} went on a journey.",
        "{He} crossed a river, climbed a hill, and slept under the stars. On the way {he} met {f}, and they traveled together.|{He} walked through dark woods and over green fields. {F} showed {him} the way to the sea.",
        "When {h} came home, {he} had many stories to tell.|After many days, {h} came back. Home had never looked so beautiful.",
    ),
    "wins a race": (
        "There was going to be a big race, and {h} wanted to win it.|Everyone said that {h} was too slow for the race.",
        "{He} practiced every morning, even in the rain. On the day of the race, {his} heart was beating fast.|The race began, and the others ran ahead. But {h} did not stop. {He} took one step after another.",
        "At the end, {h} ran past everyone and won the race.|The others became tired, and {h} crossed the line first. Everyone cheered.",
    ),
    "loses a tooth": (
        "{H} had a loose tooth. It moved a little every day.|While eating an apple, {h} felt something strange. {His} tooth was loose.",
        "{He} was afraid that it would hurt. {F} told {him} that a new tooth would grow soon.|{He} pushed it with {his} tongue and waited. Then the tooth fell out, and it did not hurt at all.",
        "{H} put the tooth under the pillow. In the morning there was a shiny coin.|{H} smiled and showed everyone the gap. {He} felt very grown up.",
    ),
    "learns to read": (
        "{H} saw many books, but {he} could not read them.|{H} wanted to know what the letters on the signs meant.",
        "{F} sat down with {him} every evening. First they learned the letters, and then short words.|{He} began with small words like sun and cat. Some days it was hard, but {he} kept trying.",
        "At last {h} read a whole story alone. It felt like magic.|One evening {h} read a book to all {his} friends, and they listened quietly.",
    ),
    "makes a mistake and says sorry": (
        "{H} was in a hurry and stepped on the flowers of {f}.|{H} was angry and said something mean to {f}.",
        "{F} was very sad. {H} saw the tears and felt bad about the mistake.|That night, {h} could not sleep. {He} knew that {he} had made a mistake.",
        '"I am sorry," said {h}. {F} smiled and gave {him} a hug.|So {h} went to {f}, said sorry, and brought some new flowers. Then everything was good again.',
    ),
    "cannot sleep": (
        "It was late, but {h} could not sleep. {He} turned from one side to the other.|The moon was high in the sky, and {h} was still awake.",
        "{He} counted sheep and drank warm milk, but nothing helped. Then {f} came and sang a quiet song.|{He} heard {f} outside. They sat by the window and listened to the soft wind.",
        "Slowly, {his} eyes closed, and {h} slept until the morning.|The song was so soft that {h} fell asleep before it was over.",
    ),
    "has a birthday": (
        "It was the birthday of {h}. But nobody said anything in the morning.|{H} woke up early, because today was {his} birthday.",
        "{He} thought that all {his} friends had forgotten it. Sadly, {he} went for a walk.|{He} made a cake and put candles on it. Then {he} waited for {his} friends.",
        'But when {he} came home, everyone jumped up and shouted, "Happy birthday!"|Then the door opened, and {f} came in with a big present. They sang and danced all day.',
    ),
    "visits the moon": (
        "Every night, {h} looked at the moon. {He} wanted to visit it.|{H} dreamed of walking on the moon.",
        "So {he} built a small rocket from boxes and tin. It rose up, higher than the clouds.|With {f}, {he} flew up past the clouds and the stars. The Earth looked like a blue ball.",
        "On the moon, {h} jumped very high and left footprints in the dust. Then {he} flew home in time for dinner.|The moon was quiet and white. {H} took a small stone home to remember it.",
    ),
    "learns to sing": (
        "{H} wanted to sing, but {his} voice was rough and loud.|When {h} tried to sing, the others covered their ears.",
        "{F} taught {him} to sing slowly and to listen. They practiced by the river every day.|{He} practiced alone in the forest, where only the trees could hear {him}.",
        "After some time, {his} song was sweet and clear. Everyone stopped to listen.|At the spring party, {h} sang for everyone. They clapped for a long time.",
    ),
    "cleans the river": (
        "The river was full of old bottles and bags. The fish were sad and sick.|{H} saw that the river was dirty, and nobody did anything.",
        "So {h} took a big bag and began to clean. It was hard work, but {f} came to help.|{He} pulled out one bottle after another. Soon others saw {him} and helped too.",
        "In the evening the water was clear, and the fish danced for joy.|When the river was clean again, everyone went for a swim.",
    ),
    "shares the last piece of bread": (
        "Winter was hard, and {h} had only one last piece of bread.|{H} was hungry, but there was only one small piece of bread left.",
        "Then {f} knocked on the door. {F} was cold and had not eaten for two days.|{He} wanted to eat it, but then {he} saw that {f} was hungry too.",
        "{H} broke the bread in two and shared it. It was a small meal, but they were both happy.|So they shared the last piece of bread by the fire. The next day, {f} came back with a full basket.",
    ),
    "meets a stranger": (
        "A stranger came down the road. {H} had never seen {f} before.|{H} met a stranger who looked tired and wet.",
        'The stranger was {f}. {H} was careful at first, but the stranger had a friendly smile.|"I am new here," said the stranger. It was {f}, who had come from far away.',
        "{H} gave the stranger some soup, and the stranger told wonderful stories.|By the evening, the stranger was a stranger no more, but a friend.",
    ),
    "is kind to an enemy": (
        "{H} and {f} had been enemies for years. They never said a nice word.|{F} had always been mean to {h}.",
        "One day, {f} was hurt and could not walk. {H} could have walked away, but {he} did not.|Then {f} fell into the mud, and everyone laughed. Only {h} did not laugh.",
        '{H} helped {f} to get home. From that day on, they were no longer enemies.|{H} gave {f} a hand. "Why are you so kind?" asked {f}. "Because it is better," said {h}.',
    ),
    "looks for the sun": (
        "It had rained for many days, and {h} missed the sun.|The sky was gray, so {h} went out to look for the sun.",
        '{He} looked behind the hill and under the bridge, but the sun was not there. {F} said, "The sun is only hiding behind the clouds."|{He} climbed to the top of the highest hill. There {he} met {f}, and they waited together.',
        'Then the wind blew the clouds away, and the sun came out, warm and bright.|At last a golden light came through the clouds. "There you are!" said {h}.',
    ),
    "wants to be tall": (
        "{H} was small and wanted to be tall like the others.|{H} could not reach the apples on the tree and wished to be tall.",
        "{He} stretched every day and ate a lot, but {he} did not grow. Then {f} got stuck behind a small hole.|{He} stood on boxes and stones. It did not help much, and {he} fell down.",
        'Only {h} was small enough to go in and help. Now {he} was glad to be small.|{F} said, "You are just the right size." And {h} began to believe it.',
    ),
    "learns to wait": (
        "{H} wanted everything at once and did not like to wait.|{H} planted some strawberries and wanted to eat them the same day.",
        '{F} said, "Good things need time." So {h} sat down and watched the clouds.|Every day {he} asked, "Is it ready now?" And {f} said, "Not yet."',
        "After many days, the berries were red and sweet. Waiting had been worth it.|When the time came, it was even better than {he} had hoped.",
    ),
    "hears a strange sound": (
        "{H} heard a strange sound. It came from behind the house.|In the night, {h} heard a strange sound. It went tap, tap, tap.",
        "{His} heart was beating fast, but {he} wanted to know what it was. {He} took a lamp and walked slowly to the sound.|{He} hid under the table. Then {he} took a deep breath and opened the door.",
        'It was only {f}, who was looking for some food. They both laughed.|There sat {f}, playing on an old pot. "You made that sound!" said {h}, and they laughed.',
    ),
    "goes to school for the first time": (
        "It was the first day of school, and {h} was nervous.|Today {h} went to school for the first time.",
        "There were many new faces, and {he} did not know where to sit. Then {f} waved and moved over.|The teacher was friendly and told a funny story. In the break, {f} asked {him} to play.",
        'When school was over, {h} did not want to go home. "School is fun," {he} said.|That evening, {h} told everyone about the new friends at school.',
    ),
    "paints a picture": (
        "{H} got a box of colors and wanted to paint a picture.|{H} wanted to paint the most beautiful picture.",
        "First {he} painted a blue sky. Then a drop of red fell on the paper. {H} was upset, but {he} made a flower out of it.|{He} painted all day and used every color. {F} watched and smiled.",
        "The picture was bright and full of life. They hung it on the wall for everyone to see.|When the picture was done, {h} gave it to {f} as a gift.",
    ),
    "learns to cook": (
        "{H} wanted to learn to cook.|{H} was tired of eating cold bread, so {he} wanted to learn to cook.",
        "The first soup was too salty, and the second one was burned. {F} showed {him} how to do it slowly.|{F} gave {him} a spoon and a big pot. They cut carrots and onions and stirred for a long time.",
        "The third soup was warm and good. Everyone asked for more.|In the end, {h} cooked a fine meal for all {his} friends.",
    ),
    "misses home": (
        "{H} was far away and missed home.|At night {h} thought of home and felt sad.",
        "{He} thought of the warm kitchen and the smell of bread. {F} saw the tears and sat down beside {him}.|{F} asked {him} to tell about home. {H} talked about the garden and the old tree.",
        "Talking helped. And soon {h} went back home, where everyone was waiting at the door.|After some days, {h} came home again and gave everyone a long hug.",
    ),
    "catches a big fish": (
        "{H} sat by the lake all day but caught nothing.|{H} wanted to catch a big fish.",
        "Then the line moved. {H} pulled and pulled. It was a very big fish!|{F} came to help. They pulled together until the water splashed.",
        "The fish looked at {him} with round eyes. {H} felt sorry and let it swim away.|It was the biggest fish in the lake. They looked at it, smiled, and set it free.",
    ),
    "fixes a toy": (
        "{H} found a broken toy. One wheel was missing.|{F} was sad because a toy was broken.",
        "{H} took some glue, a nail, and a small piece of wood. {He} worked for a long time.|{He} looked at all the parts and thought. Then {he} made a new wheel from a button.",
        "At last the toy moved again, and it was as good as new.|When the toy was fixed, {f} jumped for joy.",
    ),
    "climbs a mountain": (
        "{H} wanted to climb the high mountain and see the world from above.|Everyone said that the mountain was too high for {h}.",
        "The path was steep and full of stones. {H} was tired, but {f} gave {him} some water.|{He} climbed slowly, step by step. When {he} slipped, {he} got up again.",
        "At the top, {he} could see the sea, the forest, and {his} own small home.|When {h} reached the top, the sun was setting, and the whole sky was red.",
    ),
    "finds the way home": (
        "{H} was far from home and did not know the way.|The fog was thick, and {h} could not see the path home.",
        '{He} remembered that home was near the river, so {he} listened for the water.|{F} said, "Follow the evening star." So {h} walked on and looked at the sky.',
        "Soon {he} saw a light in the window. {He} was home at last.|At last {he} smelled fresh bread and knew that {he} had found the way home.",
    ),
    "makes people laugh": (
        "Everyone in the village was sad and tired. {H} wanted to make them laugh.|{H} liked to make people laugh more than anything.",
        "{He} put a pot on {his} head and danced. First one person smiled, and then another.|{He} told a joke about a fish with shoes. {F} laughed so much that {f} fell over.",
        "Soon the whole village was laughing.|In the end everyone was laughing, and nobody was sad anymore.",
    ),
    "learns to dance": (
        "{H} wanted to dance, but {his} feet went the wrong way.|There was music in the village, but {h} could not dance.",
        "{F} took {his} hand and counted one, two, three. They went slowly around the room.|{He} practiced every night when nobody was looking.",
        "At the party, {h} danced all night long.|Soon {he} could turn and jump, and everyone clapped.",
    ),
    "is brave in a storm": (
        "A big storm came. The wind was strong, and the rain was loud.|Dark clouds came, and a storm began.",
        "The others were afraid, but {h} took a lamp and went out. {F} was still outside.|{H} was afraid too, but {he} heard {f} calling. So {he} went out into the rain.",
        '{H} found {f} and brought {f} safely home.|Step by step, they came back to the warm house. "You are so brave," said {f}.',
    ),
    "keeps a secret": (
        '{F} told {h} a secret. "Please tell nobody," said {f}.|{H} knew a secret, and it was hard to keep.',
        "The others asked and asked, but {h} only smiled. The secret was a party for a friend.|{He} wanted to tell it to everyone, but {he} had made a promise.",
        'On the next day, the surprise was ready. {H} had kept the secret well.|{F} thanked {him}. "I can trust you," said {f}.',
    ),
    "gives away a gift": (
        "{H} got a beautiful gift and was very happy about it.|{H} had a gift that {he} loved very much.",
        "Then {he} met {f}, who had never had a gift. {H} thought about it for a while.|{He} saw that {f} was sad and alone on a cold day.",
        '"This is for you," said {h} and gave the gift away. {F} smiled, and that smile was the best gift of all.|So {he} gave the gift to {f}. It felt good to see {f} so happy.',
    ),
    "asks too many questions": (
        '{H} asked questions all day long. "Why is the grass green? Why is the night dark?"|{H} wanted to know everything and asked too many questions.',
        'The others became tired of the questions. "Please stop," they said. Only {f} listened.|{F} said, "Questions are good. Let us find the answers together."',
        "They looked into a big book and learned many new things.|From then on, {h} wrote down the questions and looked for the answers too.",
    ),
    "tries again and again": (
        "{H} wanted to jump over the stream, but {he} fell into the water.|{H} tried to build a tower of stones, but it fell down.",
        '{He} tried again, and it did not work. {He} tried again and again.|"Stop," said the others. But {f} said, "Try once more."',
        "And at last it worked! {H} shouted for joy.|After the tenth time, {he} did it. Everyone cheered.",
    ),
    "takes care of a baby bird": (
        "{H} found a baby bird under a tree. It was small and cold.|A baby bird had fallen from its nest, and {h} found it.",
        "{He} made a warm nest from leaves and gave it food. {F} helped {him} every day.|{He} kept it warm and fed it with seeds. The baby bird became stronger.",
        "One morning, the bird spread its wings and flew. It came back often to sing for {him}.|When the bird could fly, {h} let it go. {He} was a little sad, but also proud.",
    ),
    "loses something important": (
        "{H} lost something important, a ring from {his} grandmother.|{H} looked into {his} bag, and something important was missing.",
        "{He} looked under the bed, behind the door, and in the garden. It was nowhere.|{F} helped {him} look. They walked the whole way back and looked at the ground.",
        "At last they found it in the tall grass, where it was shining in the sun.|Then {he} found it in {his} own pocket. They both laughed.",
    ),
    "wants to see the snow": (
        "{H} had never seen snow and wished to see it.|{H} heard stories about white snow and wanted to see it.",
        '{He} waited all winter, but only rain came. {F} said, "In the mountains there is snow."|Every morning {he} looked out of the window. The air was cold, but there was no snow.',
        'So they went to the mountains, and everything was white. {H} jumped into the snow and laughed.|Then, one morning, soft white flakes fell from the sky. "Snow!" shouted {h}.',
    ),
    "learns to ride a bike": (
        "{H} got a bike, but {he} did not know how to ride it.|{H} wanted to learn to ride a bike.",
        '{He} fell into the grass three times. {F} held the bike and ran beside {him}.|{F} said, "Look ahead and keep going." {H} tried again.',
        "Then {f} let go, and {h} was riding alone.|At last {h} rode down the street, and the wind was in {his} face.",
    ),
    "rescues a kitten": (
        "{H} heard a soft meow. A kitten was sitting high up in a tree.|A small kitten was stuck on a roof and could not get down.",
        '{H} got a ladder and climbed up slowly. The kitten was shaking with fear.|{F} held the ladder while {h} climbed up. "Do not be afraid," {he} said to the kitten.',
        "{He} took the kitten in {his} arms and brought it down safely.|Soon the kitten was safe. It purred and did not want to leave.",
    ),
    "works hard all summer": (
        "It was summer, and the others played in the sun. But {h} worked hard.|All summer long, {h} worked in the field.",
        '{He} carried grain and wood every day. {F} asked, "Why do you work so much?"|The others laughed at {him}, but {he} went on and thought of the winter.',
        "When winter came, {h} had enough food for everyone.|In winter, the house was warm and full. {H} shared everything with {his} friends.",
    ),
    "builds a bridge": (
        "The river was wide, and nobody could get to the other side. {H} wanted to build a bridge.|{H} wanted to visit a friend on the other side of the river, so {he} decided to build a bridge.",
        "{He} carried wood and stones to the water. The first bridge broke, but {he} did not give up.|{F} brought a long rope and some boards. They worked for many days.",
        "At last the bridge was strong, and everyone could walk over the river.|When the bridge was ready, {h} was the first to walk across it.",
    ),
    "opens a shop": (
        "{H} wanted to open a small shop.|{H} found an empty room and decided to open a shop.",
        "{He} painted the door blue and put bread and honey on the table. But on the first day, nobody came.|{F} made a big sign for the shop. They hung it over the door.",
        "Then {f} told everyone about it, and soon the shop was full of people.|By the end of the week, everyone knew the little shop.",
    ),
    "helps a neighbor in the snow": (
        "There was deep snow, and {f} could not leave the house.|It snowed all night, and the door of {f} was closed by snow.",
        "{H} took a shovel and began to dig. It was cold, but {he} did not stop.|{H} dug a path through the snow, from door to door.",
        'In the evening, they drank hot tea together.|"You are a true friend," said {f}.',
    ),
}
THINGS = {
    "red ball": "It was round and bounced very high",
    "old map": "It showed a river, a hill, and a small red cross",
    "lost key": "It was small and made of iron",
    "magic stone": "It was warm and shone in the dark",
    "golden coin": "It was bright and shone like the sun",
    "broken clock": "Its hands did not move anymore",
    "small boat": "It was made of wood and had a white sail",
    "blue kite": "It had a long tail that danced in the wind",
    "warm scarf": "It was soft and made of wool",
    "silver bell": "It made a clear and sweet sound",
    "big pumpkin": "It was orange and almost too heavy to lift",
    "strange egg": "It was green with little white dots",
    "wooden box": "It was closed and had a small lock",
    "letter": "It was old, and the paper was yellow",
    "music box": "It played a soft little song",
    "yellow hat": "It was as yellow as a lemon",
    "shiny shell": "It shone in pink and white",
    "torn book": "Some of its pages were missing",
    "paper plane": "It was light and flew far through the air",
    "glass marble": "There was a blue swirl inside it",
    "tiny seed": "It was as small as a grain of sand",
    "red umbrella": "It was big and bright",
    "sweet cake": "It smelled of sugar and cream",
    "jar of honey": "It was golden and sweet",
    "pair of shoes": "They were brown and almost new",
    "lantern": "It gave a warm yellow light",
    "drum": "It made a loud and happy sound",
    "feather": "It was long and blue",
    "picture": "It showed a house by the sea",
    "ring": "It had a small green stone",
    "bicycle": "It was red and had a little bell",
    "secret door": "It was hidden behind green leaves",
    "snow globe": "Tiny flakes of snow danced inside it",
    "basket of apples": "The apples were red and sweet",
    "loaf of bread": "It was still warm",
    "birthday present": "It had a big red ribbon",
    "wool blanket": "It was thick and soft",
    "toy train": "It had three wagons and a bell",
    "telescope": "With it one could see the stars",
    "flute": "It was made of light wood",
    "rope": "It was long and strong",
    "ladder": "It was tall and made of wood",
    "mirror": "It was round and clear",
    "pot of soup": "It was hot and smelled very good",
    "bag of nuts": "It was full to the top",
    "rainbow": "It had all the colors",
    "treasure chest": "It was heavy and full of coins",
    "little house": "It had a red roof and a small door",
    "bridge": "It was old and made of stone",
    "garden": "It was full of flowers",
    "lost kite": "It hung in a tree and moved in the wind",
    "old lamp": "It was covered with dust",
    "white feather": "It was as light as air",
    "wooden horse": "It was painted in bright colors",
    "green bottle": "There was a piece of paper inside",
    "small drum": "It made a happy sound",
    "blue cup": "It had a white star on it",
    "big balloon": "It wanted to fly up into the sky",
}
FOUND = [
    (
        "{H} wanted to keep {o}. But then {he} saw {f}, who was looking everywhere and was very sad.",
        '"Are you looking for this?" asked {h} and held up {o}.',
        '{F} jumped for joy. "Thank you! I thought I would never see it again."',
    ),
    (
        "{H} did not know what to do with {o}. So {he} asked {f}.",
        '{F} looked at {o} for a long time. "This is very special," said {f}. "We should take good care of it."',
        "So they kept {o} in a safe place and looked at it every day.",
    ),
    (
        "{H} carried {o} home and showed it to everyone. They all wanted to have it and began to fight.",
        '{H} did not like the fight. "Stop!" {he} said. "We can share it."',
        "So everyone had {o} for one day, and there was no more fighting.",
    ),
    (
        "At night, {h} put {o} next to the bed. In the dark, {he} heard a soft voice.",
        '"Please take me back to where I belong," said the voice. It was {o}! {H} was surprised, but {he} said yes.',
        "The next day, {h} brought {o} back, and it thanked {him} with a song.",
    ),
    (
        "{H} took {o} and ran to show it to {f}.",
        "On the way, {h} fell, and {o} rolled down the hill. {He} ran after it as fast as {he} could.",
        "{F} caught {o} just in time. They laughed and were glad that nothing was broken.",
    ),
    (
        "{H} had an idea. {He} wanted to give {o} to {f}, who was ill and had to stay in bed.",
        "{H} put {o} into a bag and walked to the house. {F} was sleeping, so {he} waited.",
        "When {f} woke up and saw {o}, the sadness was gone.",
    ),
]
LOST = (
    "One day {o} was gone. {H} looked under the bed, behind the door, and in the garden.|{H} had {o} in {his} bag, but in the evening it was not there anymore.",
    '{He} was very sad and sat down on a stone. Then {f} came and helped {him} look.|{F} said, "Let us walk back the same way." So they walked slowly and looked at the ground.',
    'At last they found {o} in the tall grass. {H} was so happy that {he} danced.|Then they saw {o} under a bush. "There it is!" shouted {h}.',
)
MADE = (
    "{H} wanted to have {o}, but {he} had no money.|{H} had a wish. {He} wanted {o} of {his} own.",
    "So {he} began to work. {He} took wood, paper, and string and tried for many hours.|{F} gave {him} some tools, and they worked together for three days.",
    "When {o} was ready, everyone came to see it. {H} was very proud.|At last {he} had {o}. It was not perfect, but it was {his} own work.",
)
PAIR = [
    (
        "{H} and {g} lived next to each other, but they had never talked. Each thought that the other was strange.",
        'Then a big storm came, and the roof of {g} flew away. "Come into my house," said {h}. They drank tea and talked all night.',
        "In the morning they fixed the roof together, and they were friends.",
    ),
    (
        '{H} met {g} on the road. "Where are you going?" asked {h}. "I want to see the big lake," said {g}.',
        "So they walked together. When {h} was tired, {g} told a funny story. When {g} was hungry, {h} shared some bread.",
        "At the lake they put their feet into the water and watched the sun go down.",
    ),
    (
        "{H} was fast, and {g} was strong. They argued about who was better.",
        "Then a tree fell across the path. {H} ran for help, and {g} pushed the tree away. Alone, nobody could have done it.",
        '"We are best together," they said and laughed.',
    ),
    (
        '{H} found {g} sitting alone under a tree. "Why are you sad?" asked {h}. "Nobody plays with me," said {g}.',
        "So {h} sat down and they played a game with stones. {G} was very good at it and began to smile.",
        "From that day on, they played together every afternoon.",
    ),
    (
        "{H} and {g} wanted to bake bread, but they had only a little flour. They asked everyone in the village.",
        "One gave them flour, another gave them milk, and a third gave them salt. They mixed it all and baked it in a big oven.",
        "In the evening the whole village ate together, and there was enough for everyone.",
    ),
]

TWO = [
    (
        "{N} and {M} were two {kind}. One day they {did} {an}.",
        '"It is mine," said {N}. "No, it is mine," said {M}. They both pulled at {o} and became angry.',
        'Then {N} stopped. "We should not fight," said {N}. "Let us use it together."',
        "So they shared {o}, and it was twice as much fun.",
    ),
    (
        "There were two {kind} named {N} and {M}. One day they {did} {an}.",
        "But a strong wind came and took {o} away. {N} ran after it, and {M} climbed up a tree to see better.",
        '"I can see it!" shouted {M}. {N} ran to the place and caught {o} just in time.',
        "They went home together and were proud of what they had done.",
    ),
    (
        "Once upon a time, there were two {kind}, {N} and {M}. They did everything together. One morning they {did} {an}.",
        '"What shall we do with it?" asked {N}. {M} thought for a moment. "Let us give it to grandmother. She will be happy."',
        "So they walked through the forest with {o}. They sang on the way and picked some flowers.",
        "Grandmother was so happy that she gave them warm milk and cookies.",
    ),
]

# More ways in which two of a kind spend a day with a thing.
TWO += [
    (
        "{N} and {M} were {kind}, and they lived under one roof. One rainy day they {did} {an}.",
        '"I know a game," said {N}. "Each of us may have {o} until the clock strikes." {M} nodded.',
        "So they sat by the stove and took turns. Time flew by, and the rain stopped.",
        "When the sun came out, they ran outside and showed {o} to the neighbors.",
    ),
    (
        "Everybody knew the {kind} {N} and {M}, because they were always together. One summer day they {did} {an}.",
        '"It does not belong to us," said {M}. "Somebody must miss it." So they asked at every door.',
        "An old man with a white beard opened the last door. He looked at {o} and had tears in his eyes.",
        '"Keep it," he said. "I had it when I was young, and you will take good care of it."',
    ),
    (
        "Two {kind}, {N} and {M}, could not sit still for a minute. On a windy day they {did} {an}.",
        "{N} ran ahead and did not look. Bump! {N} fell over a root and hurt one knee.",
        '{M} put a leaf on the knee and blew on it. "You may carry {o}," said {M}. "Then it will stop hurting."',
        "Arm in arm they walked home, and soon the knee was forgotten.",
    ),
]
BOYS = "Tom Ben Max Sam Leo Jack Tim Finn Noah Oscar Peter Hugo Adam Eli Mark Paul Omar Luis".split()
GIRLS = [n for n in w.NAMES if n not in BOYS]
QUESTIONS = [
    "What are you doing?",
    "Can I help you?",
    "Why do you look so thoughtful?",
    "What is the matter?",
    "Where are you going?",
    "Is everything all right?",
    "What is on your mind?",
    "May I sit down with you?",
]
TROUBLES = [
    "have a problem",
    "need some help",
    "have a big wish",
    "do not know what to do",
    "have been thinking all morning",
    "want to try something",
]
KNOWN = [
    "{His} best friend was {fa}.",
    "{His} neighbor was {fa}.",
    "Next door lived {fa}.",
    "Not far away lived {fa}.",
    "{He} often met {fa}.",
    "{His} oldest friend was {fa}.",
]
# Only for a story that is still too short.
FILLERS = [
    "Somewhere a bell rang.",
    "The clouds looked like little ships.",
    "There was a smell of fresh grass.",
    "{F} hummed a quiet song.",
    "Far away, a dog was barking.",
    "Nobody said a word for a moment.",
    '"I am glad that you are here," said {h}.',
    '"What do you think?" asked {f}. "I think that we can do it," said {h}.',
    '"Look over there!" said {f} and pointed with a smile.',
    '"You are very kind," said {h}.',
    '"It is more fun with two," said {f}.',
    '"I have never seen anything like it," said {h}.',
    '"Slowly, slowly," said {f}, and they both had to smile.',
    '"My grandmother told me about this," said {f}.',
    '"Are you tired?" asked {f}. "Not yet," said {h}.',
    '"One more time," said {h} and laughed.',
    '"That is a good idea," said {h}.',
    '"We are a good team," said {f}.',
    '"I will remember this," said {h}.',
    "{H} and {f} looked at each other and smiled.",
    "{F} had a piece of bread and gave half of it to {h}.",
    '"Do you hear that?" whispered {h}. They listened for a while.',
    '"Wait for me!" called {f}.',
    "It took longer than they had thought, but that did not matter.",
]
# Deeds in which the other one appears later, and deeds that need no talk before they begin.
UNSEEN = (
    "friend",
    "stranger",
    "enemy",
    "neighbor",
    "sound",
    "lost",
    "bread",
    "brave",
    "gift",
    "way home",
    "journey",
    "sun",
)
ALONE = (
    "birthday",
    "kitten",
    "secret",
    "truth",
    "mistake",
    "moon",
    "questions",
    "fish",
    "sleep",
    "tall",
    "school",
    "laugh",
    "summer",
    "bird",
    "dark",
    "share",
    "bridge",
)


class _Story:
    def __init__(self, r):
        self.r, self.words = r, {}

    def hero(self, noun=None):
        """(phrase, short form, pronoun, adjective, noun)"""
        r = self.r
        adjective, name = None, None
        if noun is None:
            noun = r.choice(r.choice([w.ANIMALS, w.ANIMALS, w.PEOPLE, w.PEOPLE, w.THINGS_ALIVE]))
            if r.random() < 0.15:
                noun = r.choice(["boy", "girl", "girl", "boy", r.choice(w.ANIMALS)])
                name = r.choice(BOYS if noun == "boy" else GIRLS if noun == "girl" else w.NAMES)
        if r.random() < (0.25 if name else 0.5):
            adjective = r.choice(w.ADJECTIVES)
        phrase = (adjective + " " if adjective else "") + noun
        phrase = ("an " if phrase[0] in "aeiou" else "a ") + phrase + (f" named {name}" if name else "")
        sex = (
            "she"
            if noun in SHE
            else "he"
            if noun in HE
            else "it"
            if noun in w.THINGS_ALIVE
            else self.pick("sex", ["he", "she"], noun)
        )
        return phrase, name or f"the {noun}", sex, adjective, noun

    def pick(self, slot, options, key):
        """Mostly the option that belongs to the key: what depends on the topic can be learned, and differs by topic."""
        at = zlib.crc32(f"{slot} {key}".encode()) % len(options)
        return options[at] if self.r.random() < 0.7 else self.r.choice(options)

    def set(self, phrase, short, sex, adjective, noun):
        him, his = dict(he=("him", "his"), she=("her", "her"), it=("it", "its"))[sex]
        up = lambda t: t[0].upper() + t[1:]
        self.words.update(
            a=phrase,
            A=up(phrase),
            h=short,
            H=up(short),
            he=sex,
            He=up(sex),
            him=him,
            his=his,
            His=up(his),
            self=dict(he="himself", she="herself", it="itself")[sex],
        )
        self.adjective, self.noun, self.key = adjective, noun, short
        people = noun in w.PEOPLE or noun in ("boy", "girl")
        taken = phrase + " " + self.words.get("g", "")
        friends = [
            f
            for f in (plots.HUMAN_FRIENDS if people else plots.ANIMAL_FRIENDS)
            if not any(x in taken for x in f.split())
        ]
        friend = self.pick("friend", friends, short)
        self.words.update(f="the " + friend, F="The " + friend, fa=("an " if friend[0] in "aeiou" else "a ") + friend)

    def say(self, text, key=None):
        options = text.split("|")
        chosen = self.pick(options[0][:20], options, key or self.key) if len(options) > 1 else text
        return chosen.format(**self.words).strip()

    def first(self, at=None, scene="", friend=True):
        """Who the hero is: where, how, a habit, and the friend."""
        out = []
        if at == "at night":
            out.append(
                self.say(
                    "It was night. {A} was still awake.|One night, {a} looked out into the dark.|The sun had gone down, and {a} was not tired yet."
                )
            )
        elif at:
            self.words["p"] = at
            out.append(self.say("|".join(OPEN_AT)))
        elif self.noun in w.THINGS_ALIVE:
            out.append(self.say("|".join(OPEN_THING)))
        else:
            self.words["p"] = self.pick("near", NEAR, self.key)
            out.append(self.say("|".join(OPEN)))
        out += [scene] if at else []
        if self.adjective:
            out.append(self.say(TRAITS[self.adjective]))
        if not self.adjective or at or self.r.random() < 0.6:
            out.append(self.say(plots.HEROES[self.noun]))
        if friend:
            out.append(self.say("|".join(KNOWN)))
        return " ".join(out)

    def talk(self, key):
        """A short talk with the friend about the problem."""
        question = self.pick("question", QUESTIONS, key)
        text = self.pick("talk", TALK, key).replace("{Q}", question).format(**self.words)
        if self.r.random() < 0.5:
            text += ' "I ' + self.pick("trouble", TROUBLES, key) + f'," said {self.words["h"]}.'
        return text + " " + self.pick("help", HELP, key).format(**self.words)

    def introduce(self, text):
        """The friend, who is new here, is named with "a" the first time."""
        f, F, fa = (self.words[x] for x in ("f", "F", "fa"))
        at = min((i for i in (text.find(f), text.find(F)) if i >= 0), default=-1)
        if at < 0:
            return text
        return text[:at] + (fa[0].upper() + fa[1:] if text[at] == "T" else fa) + text[at + len(f) :]

    def close(self, moral, last=None):
        out = [self.say(moral)] if moral and self.r.random() < 0.75 else []
        if last:
            out.append(last)
        if not last or self.r.random() < 0.3:
            out.append(self.pick("end", plots.ENDS, self.key).format(**self.words))
        return " ".join(out)

    def tell(self, first, *parts):
        paragraphs = [first, *(p for p in parts if p)]
        pool = (
            sorted(FILLERS, key=lambda x: zlib.crc32((x + self.key).encode()))
            if self.r.random() < 0.7
            else self.r.sample(FILLERS, len(FILLERS))
        )
        while sum(len(p.split()) for p in paragraphs) < 106:
            paragraphs[-2] += " " + pool.pop().format(**self.words)
        return ("\n\n" if self.r.random() < 0.6 else " ").join(paragraphs)


def _deed(r, hero, deed, place=None):
    s = _Story(r)
    s.set(*hero)
    problem, middle, end = (s.say(x) for x in DEEDS[deed])
    mid, late, moral = plots.DEED_LINES[deed].split(" | ")
    unseen = any(x in deed for x in UNSEEN)
    scene, last = "", None
    if place:
        parts = plots.PLACE_PLOTS[place].split(" | ")
        scene, last = parts[0], s.say(parts[4])
    first = s.first(place, scene, friend=not unseen)
    if not place and r.random() < 0.5 and problem.startswith(s.words["H"] + " "):
        problem = s.pick("day", DAY, s.key) + " " + s.words["h"] + problem[len(s.words["h"]) :]
    talk = s.talk(deed) if not unseen and not any(x in deed for x in ALONE) and r.random() < 0.6 else ""
    if r.random() < 0.85 or len(middle) < 90:
        middle += " " + s.say(mid)
    if r.random() < 0.8:
        end += " " + s.say(late)
    if unseen:
        cut = len(problem)
        both = s.introduce(problem + middle)
        cut += (len(both) - len(problem + middle)) if s.words["f"][4:] in problem else 0
        problem, middle = both[:cut], both[cut:]
    return s.tell(first, " ".join(x for x in (problem, talk) if x), middle, end + " " + s.close(moral, last))


def _object(r, hero, thing, how):
    s = _Story(r)
    s.set(*hero)
    s.words["o"] = "the " + thing
    an = ("an " if thing[0] in "aeiou" else "a ") + thing
    about = THINGS[thing] + "."
    late = plots.THING_LINES[thing]
    if how == "found":
        at = s.pick("found", range(len(FOUND)), thing)
        problem, middle, end = (s.say(x) for x in FOUND[at])
        moral = plots.FOUND_MORALS[at]
        seen = s.pick(
            "seen",
            [
                "{day} {h} found {an} {where}.",
                "{day} {h} went for a walk and found {an}.",
                "{day} {h} saw something {where}. It was {an}.",
                "{day} {h} nearly fell over something {where}. It was {an}.",
            ],
            thing,
        )
        where = s.pick(
            "where",
            [
                "in the grass",
                "under a tree",
                "near the path",
                "behind the house",
                "by the river",
                "between two stones",
                "under the stairs",
                "in a hollow tree",
            ],
            s.key,
        )
        problem = (
            seen.format(day=s.pick("day", DAY, s.key), h=s.words["h"], an=an, where=where) + " " + about + " " + problem
        )
        late = "" if at in (0, 3) else late
    elif how == "lost":
        problem, middle, end = (s.say(x) for x in LOST)
        problem = s.words["H"] + f" had {an}. {about} " + problem
        middle = s.talk(thing) + " " + s.say('"I have lost {o}," said {h}.') + " " + middle
        moral = plots.LOST_MORAL
    else:
        problem, middle, end = (s.say(x).replace("the " + thing, an, 1) for x in MADE)
        problem += " " + s.talk(thing)
        end, moral = end + f" {about}", plots.MADE_MORAL
    if late and r.random() < 0.85:
        end += " " + late
    return s.tell(s.first(), problem, middle, end + " " + s.close(moral))


def _pair(r, one, two):
    s = _Story(r)
    s.words.update(g=two[1], G=two[1][0].upper() + two[1][1:])
    s.set(*one)
    at = s.pick("pair", range(len(PAIR)), two[1])
    problem, middle, end = (s.say(x) for x in PAIR[at])
    first = s.first(friend=False)
    s.words.update(f=s.words["g"], F=s.words["G"])
    habit = plots.HEROES[two[4]].split("|")[r.randrange(2)]
    him, his = dict(he=("him", "his"), she=("her", "her"), it=("it", "its"))[two[2]]
    second = f"Not far away lived {two[0]}. " + habit.format(
        **dict(s.words, h=two[1], H=s.words["G"], he=two[2], him=him, his=his)
    )
    return s.tell(first + " " + second, problem, middle, end + " " + s.close(plots.PAIR_MORALS[at]))


def _at(r, hero, place):
    s = _Story(r)
    s.set(*hero)
    scene, problem, middle, end, last = (s.say(x) for x in plots.PLACE_PLOTS[place].split(" | "))
    known = r.random() < 0.3
    if not known:
        if s.words["f"] in problem or s.words["F"] in problem:
            problem = s.introduce(problem)
        else:
            middle = s.introduce(middle)
    return s.tell(s.first(place, scene, friend=known), problem, middle, end + " " + s.close(None, last))


def _two(r):
    kind = r.choice(
        ["friends", "brothers", "sisters", "children", "cats", "birds", "mice", "rabbits", "neighbors", "boys", "girls"]
    )
    thing = r.choice(list(THINGS))
    an = ("an " if thing[0] in "aeiou" else "a ") + thing
    verb, did = r.choice(
        [
            ("find", "found"),
            ("build", "built"),
            ("lose", "lost"),
            ("share", "shared"),
            ("buy", "bought"),
            (None, "had"),
            (None, "found"),
        ]
    )
    n, m = r.sample(BOYS if kind in ("brothers", "boys") else GIRLS if kind in ("sisters", "girls") else w.NAMES, 2)
    s = _Story(r)
    s.words, s.key = dict(h=n, H=n, f=m, F=m), n + thing
    parts = [
        x.format(N=n, M=m, kind=kind, did=did if did != "lost" else "had", an=an, o="the " + thing)
        for x in s.pick("two", TWO, thing + kind)
    ]
    parts[0] += f" {THINGS[thing]}."
    if did == "lost":
        parts[
            1
        ] = f"But one day, the {thing} was gone. {n} looked in the house, and {m} looked in the garden. It was nowhere."
        parts[
            2
        ] = f'"Do not cry," said {m}. "Let us look by the river." They walked along the path and looked behind every stone.'
        parts[3] = f"At last they found the {thing} in the grass and took it home."
    if r.random() < 0.85:
        parts[3] += " " + plots.THING_LINES[thing]
    topic = f"two {kind} and {an}" if verb is None else f"two {kind} who {verb} {an}"
    ends = [
        "That night, they slept well.",
        "They laughed all the way home.",
        "From that day on, they were never angry with each other for long.",
        "It was the best day of the year.",
        "They learned that together everything is easier.",
        "They learned that half a joy is a double joy when it is shared.",
        f"{n} and {m} told everyone about it.",
        "In the evening they fell asleep side by side.",
    ]
    return topic, s.tell(*parts[:3], parts[3] + " " + s.pick("ends", ends, thing))


def _theme(r):
    theme = r.choice(list(plots.THEME_PLOTS))
    place = r.choice(w.PLACES) if r.random() < 0.4 else None
    s = _Story(r)
    hero = s.hero(r.choice(["boy", "girl", None, None, None]))
    if hero[4] in w.THINGS_ALIVE:
        hero = s.hero(r.choice(w.ANIMALS))
    s.set(*hero)
    opening, problem, middle, end, last = (s.say(x) for x in plots.THEME_PLOTS[theme].split(" | "))
    parts = [s.say(x) for x in plots.PLACE_PLOTS[place].split(" | ")] if place else None
    named = s.words["f"] in opening or s.words["F"] in opening
    opening = s.introduce(opening)
    who = s.first(place, parts[0] if place else "", friend=not named)
    if place and r.random() < 0.7:
        last = last + " " + parts[4]
    first = (
        who + " " + opening
        if s.words["h"] in opening or s.words["H"] in opening or r.random() < 0.5
        else opening + " " + who
    )
    return theme + (" " + place if place else ""), s.tell(first, problem, middle, end + " " + s.close(None, last))


def make(r):
    """(topic, story)"""
    s = _Story(r)
    x = r.random()
    if x < 0.34:
        hero, deed = s.hero(), r.choice(list(DEEDS))
        place = r.choice(w.PLACES) if r.random() < 0.2 and " in " not in deed else None
        return f"{hero[0]} who {deed}" + (" " + place if place else ""), _deed(r, hero, deed, place)
    if x < 0.60:
        hero, thing = s.hero(), r.choice(list(THINGS))
        an = ("an " if thing[0] in "aeiou" else "a ") + thing
        how, verb = r.choice(
            [
                ("found", "who finds"),
                ("found", "and"),
                ("found", "and"),
                ("lost", "who loses"),
                ("lost", "and"),
                ("made", "who makes"),
                ("made", "who builds"),
                ("made", "who wants"),
                ("found", "who finds"),
            ]
        )
        return f"{hero[0]} {verb} {an}", _object(r, hero, thing, how)
    if x < 0.68:
        one, two = s.hero(), s.hero()
        if one[1] == two[1] or one[4] == two[4]:
            return make(r)
        return f"{one[0]} and {two[0]}", _pair(r, one, two)
    if x < 0.81:
        hero, place = s.hero(), r.choice(list(plots.PLACE_PLOTS))
        return f"{hero[0]} {place}", _at(r, hero, place)
    if x < 0.88:
        return _two(r)
    if x < 0.97:
        return _theme(r)
    hero = s.hero()  # a hero alone: what happens belongs to the hero
    return hero[0], _deed(r, hero, s.pick("deed", sorted(DEEDS), hero[4]))
