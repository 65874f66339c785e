"""What belongs to a topic of a story: a hero's ways, a deed's lines and moral, an object's use, what happens at a place.

Marks as in stories.py; variants are divided by |.
"""


def _table(text):
    return dict(line.split(" = ", 1) for line in text.strip().split("\n"))


# hero: two things about this hero
HEROES = _table(
    """
fox = {H} had a red coat and could smell a berry pie from far away.|Every evening {h} trotted along the hedge and listened to the crickets.
rabbit = {H} had long soft ears and ate a carrot for breakfast.|{H} hopped over the meadow and knew where the best clover grew.
bear = {H} slept in a warm cave and dreamed of honey.|{H} liked to scratch {his} back on an old pine tree.
cat = {H} liked warm windows and slept in the sun.|{H} walked over the roofs without making a sound.
dog = {H} had a basket by the door and a bone under the bush.|{H} wagged {his} tail at everyone who came by.
mouse = {H} lived behind a wall and collected crumbs of cheese.|{H} was so quick that nobody ever saw more than a tail.
owl = {H} slept in the day and read old books at night.|From a hollow tree, {h} watched over the whole wood.
duck = {H} had yellow feet and loved puddles.|Every morning {h} swam once around the pond.
frog = {H} sat on a green leaf and croaked a song at night.|{H} could jump farther than anyone at the pond.
squirrel = {H} had a bushy tail and hid nuts all over the wood.|{H} jumped from branch to branch and never looked down.
hedgehog = {H} rolled up into a ball when something was strange.|{H} had a bed of dry leaves under the hedge.
turtle = {H} was slow and carried {his} house on {his} back.|{H} had all the time in the world and noticed everything.
lion = {H} had a golden mane and a very deep voice.|{H} slept under the shade of a wide tree at noon.
elephant = {H} had a long trunk and never forgot a name.|{H} loved to splash water over {his} back.
monkey = {H} swung from tree to tree and ate bananas.|{H} could hang by {his} tail and peel a fruit at the same time.
penguin = {H} slid over the ice on {his} belly.|{H} wore what looked like a black coat and a white shirt.
horse = {H} could run like the wind over the fields.|{H} had a soft nose and liked apples.
cow = {H} had a bell around {his} neck and loved fresh grass.|{H} gave warm milk every morning.
pig = {H} liked mud more than anything else.|{H} had a curly tail and a pink nose.
sheep = {H} had the thickest wool on the whole hill.|{H} counted clouds and thought that they were sheep too.
goat = {H} could climb the steepest rocks.|{H} ate everything, even an old shoe.
deer = {H} had thin legs and listened to every little sound.|{H} came out of the wood only when the mist was on the meadow.
wolf = {H} sang to the moon on cold nights.|{H} had gray fur and bright eyes.
whale = {H} sang deep songs that one could hear across the sea.|{H} blew a fountain of water into the air.
dolphin = {H} jumped out of the waves and laughed.|{H} raced with every ship that came by.
crab = {H} walked sideways and had two strong claws.|{H} lived under a flat stone on the beach.
octopus = {H} had eight arms and could do eight things at once.|{H} lived in a cave between red corals.
bee = {H} flew from flower to flower all day long.|{H} had striped wings of light and a little bag for nectar.
butterfly = {H} had wings in all colors of the summer.|{H} danced over the flowers in the morning sun.
ladybug = {H} had seven black dots on {his} red back.|{H} sat on a blade of grass and counted the drops of dew.
snail = {H} carried {his} little house everywhere.|{H} left a shining trail on the leaves.
ant = {H} could carry a leaf that was bigger than {his} own body.|{H} worked with a hundred brothers and sisters.
crow = {H} had black feathers and collected shiny things.|{H} sat on the fence and knew all the news.
swan = {H} had white feathers and a long proud neck.|{H} moved over the lake like a little ship.
parrot = {H} had green feathers and repeated every word.|{H} could say good morning in five languages.
hamster = {H} had round cheeks full of seeds.|{H} ran in a wheel every night.
kitten = {H} had soft paws and chased every ball of wool.|{H} slept in an old hat.
puppy = {H} had floppy ears and chewed on every shoe.|{H} fell over {his} own paws when {he} ran.
pony = {H} had a white star between the eyes.|{H} trotted around the paddock and shook {his} mane.
donkey = {H} had long ears and carried sacks to the mill.|{H} said hee-haw whenever something was funny.
tiger = {H} had black stripes and walked without a sound.|{H} liked to lie on a warm rock above the river.
zebra = {H} had stripes and did not know whether they were black or white.|{H} ran with the wind over the wide plain.
giraffe = {H} could look over the tallest trees.|{H} ate the leaves that nobody else could reach.
kangaroo = {H} jumped over bushes and kept apples in a pouch.|{H} had the strongest legs in the whole land.
koala = {H} sat in a tree and chewed leaves all day.|{H} hugged the branch when the wind blew.
panda = {H} ate bamboo from morning until night.|{H} had black rings around the eyes and a round belly.
otter = {H} swam on {his} back and played with small stones.|{H} had built a slide of mud by the river.
beaver = {H} had strong teeth and built dams of wood.|{H} slapped the water with {his} flat tail.
badger = {H} had a striped face and a tidy home under the roots.|{H} swept the floor of {his} den every evening.
mole = {H} dug long tunnels and had hands like little shovels.|{H} could not see well, but {he} could hear a worm cough.
bat = {H} hung upside down and slept all day.|{H} flew through the dark and never hit a branch.
spider = {H} made fine webs that shone in the morning.|{H} sat in a corner and waited with great patience.
fish = {H} had silver scales and lived between green plants.|{H} swam in circles and blew little bubbles.
seal = {H} had round dark eyes and lay on a rock in the sun.|{H} could balance a shell on {his} nose.
camel = {H} carried bags across the hot sand.|{H} could walk for a week without a drink.
hen = {H} laid one brown egg every morning.|{H} scratched in the yard and talked to the other hens.
rooster = {H} woke up the whole farm at sunrise.|{H} stood on the fence and shook {his} red comb.
robin = {H} had a red chest and sang in the cold.|{H} hopped over the garden and looked for worms.
dragon = {H} had green scales and could breathe a little fire.|{H} warmed {his} tea with {his} own breath.
girl = {H} had a blue jacket with big pockets.|{H} skipped over every puddle on the way to school.
boy = {H} had a pocket full of stones and string.|{H} climbed on every tree behind the house.
baker = {H} got up at four and put the bread into the oven.|There was always a little flour on {his} nose.
farmer = {H} fed the cows and knew the name of every hen.|{H} worked in the field from the first light.
teacher = {H} carried a bag full of books and chalk.|{H} knew a story for every day of the year.
gardener = {H} had green boots and talked to the roses.|{H} could make a flower grow out of a stone.
sailor = {H} had crossed seven seas and knew the names of the winds.|{H} wore a blue cap and smelled of salt.
doctor = {H} had a black bag and warm hands.|{H} visited the sick on an old bicycle.
painter = {H} had spots of paint on every shirt.|{H} saw colors where others saw only gray.
king = {H} had a heavy crown and a very soft bed.|{H} sat on a golden chair and was often bored.
queen = {H} wore a silver crown and walked in the garden at night.|{H} knew every servant by name.
princess = {H} had a small crown but liked rubber boots better.|{H} lived in a tower with a hundred stairs.
knight = {H} had shiny armor that squeaked a little.|{H} rode a white horse and carried a wooden sword.
fisherman = {H} had an old boat and a net full of holes.|{H} knew where the fish slept.
pilot = {H} flew a small yellow plane over the hills.|{H} could read the clouds like a book.
carpenter = {H} smelled of wood and always had a pencil behind the ear.|{H} could make a chair in one afternoon.
shoemaker = {H} sat by the window and hammered little nails into soles.|{H} knew people by their shoes.
grandmother = {H} had white hair and the best cookies in the street.|{H} knitted socks by the window.
grandfather = {H} had a wooden stick and a pocket full of candy.|{H} could whistle like a bird.
wizard = {H} had a pointed hat and a book of spells.|{H} often mixed up {his} magic words.
witch = {H} had a crooked hat and a very lazy broom.|{H} cooked green soup in a big pot.
clown = {H} had a red nose and shoes that were much too long.|{H} carried three balls in {his} pocket.
cook = {H} had a tall white hat and tasted every soup twice.|{H} could smell what was missing in a dish.
tailor = {H} had a sharp needle and a box full of buttons.|{H} made coats for rich and poor.
shepherd = {H} watched the sheep and played a little flute.|{H} knew the stars and slept under them.
musician = {H} played an old violin at every party.|{H} heard music in the wind and in the rain.
dancer = {H} could turn on one toe.|{H} danced even while {he} was cooking.
astronaut = {H} had a white suit and had seen the Earth from above.|{H} counted backwards from ten every night.
scientist = {H} had a room full of bottles and notes.|{H} looked at everything through a magnifying glass.
firefighter = {H} had a big helmet and a long hose.|{H} could slide down a pole in two seconds.
policeman = {H} had a whistle and helped children cross the street.|{H} walked through the streets every night.
mailman = {H} brought letters on a yellow bicycle.|{H} knew every dog in the street.
librarian = {H} knew where every book was.|{H} wore round glasses and spoke in a whisper.
student = {H} had many books and little sleep.|{H} wrote everything down in a green notebook.
child = {H} had a teddy bear with one ear.|{H} asked why at least ten times a day.
twin = {H} looked just like another child, and people mixed them up.|{H} shared everything, even the birthday.
brother = {H} had a little sister who followed him everywhere.|{H} had built a tree house of old boards.
sister = {H} had a little brother who followed her everywhere.|{H} had a box full of letters and ribbons.
giant = {H} was as tall as a tower and wore shoes like boats.|When {h} sneezed, all the leaves fell from the trees.
elf = {H} had pointed ears and slept in a flower.|{H} could talk with the birds.
fairy = {H} had thin wings and a little star on a stick.|{H} made the flowers open in the morning.
pirate = {H} had a wooden leg and a hat with a feather.|{H} looked for treasure but was afraid of water rats.
inventor = {H} had a room full of wheels and springs.|{H} had built a machine that buttered bread.
clockmaker = {H} lived among a hundred ticking clocks.|{H} could hear when a clock was sad.
nurse = {H} had a white cap and a kind smile.|{H} sat beside the sick and told them stories.
robot = {H} had a square head and two blue lights as eyes.|{H} beeped softly whenever something was nice.
snowman = {H} had a carrot nose and a black hat.|{H} loved the cold and was afraid of spring.
train = {H} pulled six wagons through the valley every day.|{H} whistled loudly before every tunnel.
boat = {H} had a white sail and rocked on the waves.|{H} was tied to an old pier at night.
kite = {H} had a long tail with colored bows.|{H} waited on the shelf for a windy day.
star = {H} shone high above the hills.|{H} looked down on the sleeping world.
cloud = {H} was white and soft and floated over the land.|{H} could look like a sheep or like a ship.
tree = {H} had deep roots and a hundred branches.|Birds slept in {his} leaves every night.
flower = {H} had red petals and turned to the sun.|{H} drank the morning dew.
toy = {H} stood on a shelf between the blocks and the dolls.|At night, when nobody looked, {h} could walk.
car = {H} had round lamps and a horn that said toot.|{H} rolled up and down the hills all day.
scarecrow = {H} wore an old coat stuffed with straw.|{H} stood in the corn and guarded the field.
teddy bear = {H} had one button eye and soft brown fur.|{H} sat on the bed and guarded the dreams.
doll = {H} had a blue dress and painted cheeks.|{H} sat in a little chair by the window.
balloon = {H} was round and red and pulled at {his} string.|{H} wanted to see the world from above.
lighthouse = {H} stood on a rock and sent light over the waves.|Every night {h} showed the ships the way.
clock = {H} hung on the wall and said tick and tock.|{H} had never been late in {his} life.
lamp = {H} stood on a desk and gave warm light.|{H} was switched on when it became dark.
tractor = {H} was green and pulled the plow.|{H} coughed a little when it was cold.
rocket = {H} was silver and pointed at the sky.|{H} waited for the day of the big flight.
raindrop = {H} lived in a cloud with a thousand others.|{H} was clear and round and a little bit afraid of falling.
moon = {H} shone on the roofs and the sea.|{H} was round on some nights and thin on others.
leaf = {H} hung high up on an old oak.|{H} was green in summer and golden in autumn.
"""
)

# deed: a line in the middle | a line near the end | the moral
DEED_LINES = _table(
    """
learns to swim = "The water carries you if you let it," said {f}. | "I was so afraid, and now I love it," said {h}. | {H} learned that fear becomes small when one goes step by step.
finds a new friend = "I like your laugh," said {f}. | They built a little hut of branches where they could meet. | {H} learned that a friend may be waiting where one only has to say hello.
gets lost = The shadows grew longer, and the wind blew cold. | {H} was so glad to see the lamp above the door. | {H} learned to look at the path and to ask for help in time.
helps a neighbor = "You do not have to do this," said {f}. "But I want to," said {h}. | From then on, they helped each other every week. | {H} learned that helping makes two people happy.
is afraid of the dark = "Listen, that is only the wind in the leaves," said {f}. | {H} blew out the lamp without a second thought. | {H} learned that many things are not scary when one looks at them closely.
learns to share = "May I play too?" asked {f} in a small voice. | There was more laughing than ever before. | {H} learned that joy grows when it is shared.
wants to fly = "Perhaps there is another way," said {f}. | "The fields look like a blanket from up here!" shouted {h}. | {H} learned that a dream may come true in another way than one thinks.
plants a tree = "A tree needs water, sun, and a lot of time," said {f}. | Birds built their nests in it every spring. | {H} learned that great things begin very small.
builds a house = "One stone and then another stone," said {f}. | {H} hung a lamp above the door so that everyone could find the way. | {H} learned that one's own work makes the warmest home.
bakes a cake = There was flour on the floor, on the table, and on two noses. | Nothing was left but a few sweet crumbs. | {H} learned that a mistake is only the first try.
tells the truth = The words were small, but they were hard to say. | {H} felt as light as a feather. | {H} learned that the truth is hard for a moment, but a lie is hard for a long time.
saves a friend = "Hold on, I am coming!" shouted {h}. | They sat in the sun until they were dry and warm again. | {H} learned that true friends do not look away.
goes on a journey = At every bridge they looked back once and then went on. | {H} hung a little map of the journey on the wall. | {H} learned that the world is big, and that home is the best place in it.
wins a race = "Do not look at the others, look at the road," said {f}. | {F} was the first to run up and hug {him}. | {H} learned that those who go on arrive.
loses a tooth = "Mine fell out too, and see, here is a new one," said {f}. | Soon a little white point could be seen in the gap. | {H} learned that losing something can be the start of something new.
learns to read = "This letter looks like a snake," said {h}, "and it hisses like one too." | After that, {h} never went to bed without a book. | {H} learned that every book is a door.
makes a mistake and says sorry = The word sorry was on the tip of {his} tongue. | They planted new flowers and watered them together. | {H} learned that saying sorry is brave and makes things whole again.
cannot sleep = The clock ticked, and a cricket sang outside. | {F} tucked {him} in and left on tiptoe. | {H} learned that sleep comes by itself when one is calm.
has a birthday = There was a smell of candles and warm chocolate. | {H} blew out all the candles at once and made a wish. | {H} learned that the best present is friends who think of you.
visits the moon = Behind the little window, the stars looked very near. | From that day on, {h} waved at the moon every night. | {H} learned that big dreams need a little courage.
learns to sing = "Listen first, and then open your mouth," said {f}. | Even the birds in the trees were quiet for a while. | {H} learned that practice makes a rough voice clear.
cleans the river = "One bottle less," said {f} each time. | A duck came back with seven little ones. | {H} learned that one who begins is soon not alone.
shares the last piece of bread = "Half of a little is still something," said {h}. | The fire was small, but it seemed warmer than before. | {H} learned that one who shares is never really poor.
meets a stranger = "Where do you come from?" asked {h}, and the answer was long. | On the next day, they went to the market together. | {H} learned that a stranger is a friend whom one does not know yet.
is kind to an enemy = It was very quiet between them for a moment. | The next morning there was a basket of plums at the door of {h}. | {H} learned that kindness can end a long fight.
looks for the sun = "It never goes away for good," said {f}. | The wet leaves shone like glass. | {H} learned that behind the clouds the sun is always there.
wants to be tall = "Everyone is good for something," said {f}. | That evening {h} stood in front of the mirror and smiled. | {H} learned that one is just right as one is.
learns to wait = The days went by, and one leaf opened after another. | They ate slowly so that the good taste would last. | {H} learned that waiting makes good things even better.
hears a strange sound = There it was again, a little louder than before. | They tried to make the same sound and laughed even more. | {H} learned that it is better to look than to be afraid.
goes to school for the first time = On the board there was a big yellow sun. | {H} packed {his} bag for the next day all alone. | {H} learned that a first day is only strange in the beginning.
paints a picture = There was blue on {his} fingers and yellow on {his} nose. | {H} wrote {his} name in the corner in small letters. | {H} learned that a spot can become a flower.
learns to cook = "A pinch of salt and a lot of patience," said {f}. | The smell of soup went through the whole house. | {H} learned that the third try can be the best.
misses home = "Home is a place that you carry inside," said {f}. | The bed was the same, the cup was the same, and it was wonderful. | {H} learned that one may miss home and still be brave.
catches a big fish = The rod was bent like a bow. | There was one big splash, and then the lake was quiet again. | {H} learned that letting go can be better than keeping.
fixes a toy = "Hold this wheel for me, please," said {h}. | They played with it until the lamps were lit. | {H} learned that broken things can be made whole with patience.
climbs a mountain = "Do not look up, look at the next step," said {f}. | They ate their bread at the top and said nothing for a while. | {H} learned that a high mountain is climbed with small steps.
finds the way home = An owl called, and somewhere water was running. | {H} put {his} feet near the warm stove. | {H} learned that one finds the way when one stays calm.
makes people laugh = Somewhere in the back, a child began to giggle. | Even the old mayor had to hold his belly. | {H} learned that laughing is a gift that costs nothing.
learns to dance = "One, two, three, and turn," said {f}. | {His} feet were tired, but {his} heart was not. | {H} learned that dancing begins when one stops being afraid of mistakes.
is brave in a storm = Branches broke, and the thunder rolled over the roofs. | They sat by the fire in dry socks until the wind was quiet. | {H} learned that being brave means to go although one is afraid.
keeps a secret = The secret tickled like a feather. | Nobody had guessed it, not even the clever owl. | {H} learned that trust is like a small bird that one holds carefully.
gives away a gift = {H} looked at the gift once more and nodded. | On the way home, {h} did not feel that anything was missing. | {H} learned that giving makes the heart warm.
asks too many questions = "And why does the moon follow us?" asked {h}. | Soon the others came to ask {him} when they wanted to know something. | {H} learned that a good question is worth as much as an answer.
tries again and again = {H} shook {self} and counted to three. | "I knew that you could do it," said {f}. | {H} learned that one more try can change everything.
takes care of a baby bird = "It opened its eyes!" whispered {h}. | A small feather stayed in the nest, and {h} kept it. | {H} learned that caring for someone also means letting go.
loses something important = "Where did you see it last?" asked {f}. | From then on, it had a safe place of its own. | {H} learned to take good care of what one loves.
wants to see the snow = "What does it sound like?" asked {h}. "Like nothing at all," said {f}. | They built a snowman with a crooked nose. | {H} learned that some wishes only need time.
learns to ride a bike = "Do not let go!" shouted {h}, but {f} had let go long ago. | There was a scratch on one knee and a big smile above it. | {H} learned that falling is a part of learning.
rescues a kitten = Two green eyes looked down from above. | In the evening, the kitten drank a whole bowl of milk. | {H} learned that even small ones need a helper.
works hard all summer = The sun burned, and the sacks became full. | The others said sorry and promised to help next year. | {H} learned that one who thinks of tomorrow can help others too.
builds a bridge = "If the middle holds, everything holds," said {f}. | Soon people from both sides met on the bridge to talk. | {H} learned that a bridge begins with the first board.
opens a shop = "It only needs a good smell and a friendly word," said {f}. | The little bell above the door rang all day. | {H} learned that a good start may be slow.
helps a neighbor in the snow = The shovel scratched, and the snow flew to the left and to the right. | In front of every door there was a clean path now. | {H} learned that a little work keeps many people warm.
"""
)

# object: what is done with it in the end
THING_LINES = _table(
    """
red ball = They threw it high into the air and caught it again.
old map = They followed its thin lines with one finger and dreamed of far lands.
lost key = It turned in the lock with a soft click.
magic stone = It glowed like a little moon in the night.
golden coin = It lay in an open hand and shone.
broken clock = After a drop of oil, it began to tick again.
small boat = They let it sail on the pond until the sun was low.
blue kite = It rose above the trees and danced among the clouds.
warm scarf = It was long enough for two necks.
silver bell = Its clear sound went over the fields every evening.
big pumpkin = They made a big pot of soup from it and put a candle into the shell.
strange egg = One morning it cracked, and a tiny green bird looked out.
wooden box = They kept their best stones and feathers in it.
letter = They read it aloud, word by word, by the light of a candle.
music box = They opened it every night and listened to its little song.
yellow hat = One could see it from the other side of the valley.
shiny shell = Whoever held it to the ear could hear the sea.
torn book = They glued the pages one by one and read it from the start.
paper plane = It sailed over the fence, over the pond, and landed softly in the grass.
glass marble = It rolled over the floor and threw blue light on the walls.
tiny seed = They planted it, and in summer a tall sunflower stood there.
red umbrella = There was room for two under it when the rain came.
sweet cake = They cut it into pieces so that everyone had one.
jar of honey = They spread it on warm bread and licked their fingers.
pair of shoes = They fit well and walked many happy miles.
lantern = Its light made the dark path look friendly.
drum = Boom, boom, it went, and everyone marched behind it.
feather = It was light enough to dance on a breath.
picture = They hung it over the fireplace, where everyone could see it.
ring = It sparkled like a drop of dew in the morning.
bicycle = They rode down the hill, and the bell rang all the way.
secret door = Behind it there was a room full of old toys and sunlight.
snow globe = They shook it, and it was winter in the little glass for a while.
basket of apples = They ate some and made a pie from the rest.
loaf of bread = They broke it with their hands, and it was still warm inside.
birthday present = Under the paper there was a small music box.
wool blanket = They sat under it together and told each other stories.
toy train = It ran around the table and through a tunnel of books.
telescope = They looked at the rings of a far planet and were amazed.
flute = Its song was so soft that the birds came nearer.
rope = They made a swing from it and hung it in the old oak.
ladder = With it they picked the apples at the very top.
mirror = It showed two smiling faces, side by side.
pot of soup = They ate it with big spoons, and nobody stayed hungry.
bag of nuts = They cracked them by the fire and counted the shells.
rainbow = They watched it until the last color was gone.
treasure chest = They gave the coins to those who had nothing and kept one as a memory.
little house = They put flowers in front of the window and moved in.
bridge = They stood in the middle and looked at the water below.
garden = They picked beans in the morning and roses in the evening.
lost kite = They fixed its tail and let it fly above the hill.
old lamp = They cleaned it until it shone and put it into the window.
white feather = They used it as a pen and wrote a letter to the stars.
wooden horse = They rode on it to all the lands that they could think of.
green bottle = They read the paper inside. It was a greeting from the other side of the sea.
small drum = They played it at the spring party until late at night.
blue cup = They drank hot chocolate from it, one sip for each.
big balloon = They tied a note to it and let it fly over the hills.
"""
)

# place: the scene | a problem | a middle | an end | a last sentence
PLACE_PLOTS = _table(
    """
in the forest = The trees were tall, and the birds were singing. | {H} wanted to pick berries, but all the bushes near the path were empty. | {F} knew a clearing deep between the pines where the berries were big and sweet. "Follow me," said {f}. | They filled two baskets under the trees and ate until their mouths were blue. | The forest was quiet and golden when they went home.
by the sea = The waves were rolling, and the air smelled of salt. | A thick fog came over the water, and a small ship could not find the harbor. {H} wanted to help. | {H} made as much light as {he} could, and {f} rang a bell on the beach. | The ship came safely to the shore, and the sailors waved their caps. | The waves sang the whole night, and {h} was not alone anymore.
on a farm = There were cows, hens, and a big red barn. | The gate of the farm was open, and all the hens had run away. | {H} looked behind the barn, and {f} looked in the hay. They found one hen after another. | In the evening every hen sat on its perch, and the farmer gave them fresh milk. | Behind the barn, the sun went down over the corn.
in the city = The streets were full of cars and people. | {H} wanted to cross the city to see the big clock, but the streets all looked the same. | {F} had lived in the city for years. They rode on a red bus and counted the stops. | At noon they stood under the clock tower when it struck twelve times. | The lights of the city were like stars when they went back.
at school = The room was full of books and children. | {H} had forgotten {his} lunch and sat alone in the break. | {F} came over with a lunch box. "I have two rolls, one for you," said {f}. | After school they did their homework together at the same desk. | The school bell rang, and they both looked forward to the next morning.
in the mountains = The peaks were white with snow. | {H} wanted to see the eagle's nest, but the path was steep and the air was thin. | {F} tied a rope around both of them, and they climbed from rock to rock. | Behind the last rock they saw the nest and three hungry little eagles. | The mountains turned red in the evening light.
near the river = The water was clear and fast. | {H} had built a little raft, but the river carried it away. | {F} ran along the bank and caught the raft with a long branch. | They fixed it with more string and floated slowly down the river together. | The river told its old story while they dried their feet.
in the garden = Flowers were growing in every color. | The tomatoes in the garden hung their heads, for it had not rained for days. | {H} carried water from the well, and {f} brought an old can. They watered every bed. | The next morning the plants stood straight, and the first tomato was red. | Bees hummed over the garden, and all was well.
on an island = There was blue water all around. | {H} had come to the island by boat, but in the night the wind took the boat away. | {F} showed {him} where the coconuts grew, and they made a fire on the beach. | On the third day a ship saw the smoke and sent a boat to the island. | When the island was only a small dot, {h} waved once more.
in a small village = Everyone knew everyone there. | The well in the middle of the village was dry, and the people were worried. | {H} and {f} followed the old stream up the hill. A big stone had blocked it. They pushed with all their strength. | The stone rolled away, and the water ran down to the village again. | That night the whole village danced around the well.
at the market = There were apples, cheese, and flowers on the tables. | {H} had a list, but the wind blew it away between the stalls. | "Then we must use our noses," said {f}. They went from stall to stall and remembered one thing after another. | In the end the basket was full, and nothing was missing. | The market women waved when they walked home.
in the desert = There was only sand and the hot sun. | {H} was thirsty, and the bottle was empty. | {F} knew the way to a spring behind the third dune. They walked in the cool of the night. | In the morning they saw palms and clear water. They drank and laughed. | The desert did not seem so empty anymore.
in the snow = Everything was white and quiet. | {H} wanted to go home, but the snow had covered every path. | {F} knew the trees and found the way from one to the next. They left deep footprints behind them. | At last they saw the lamp in the window and shook the snow from their feet. | Outside, new flakes covered their tracks without a sound.
at the beach = The sand was warm and soft. | {H} built a big castle of sand, but a wave washed it away. | "We need a wall of stones," said {f}. They carried stones and shells until the sun was high. | The next wave came, and this time the castle stood. | They put a shell on the highest tower and ran into the water.
in an old castle = The rooms were dark and full of dust. | Every night something knocked behind the walls of the castle, and {h} wanted to know what it was. | {H} took a candle and went up the stairs with {f}. Behind a door they found a window that moved in the wind. | They closed it with a nail, and the castle was quiet. | Moonlight fell on the old stones, and nobody was afraid.
in the park = Children were playing on the green grass. | {H} wanted to go on the swing, but there was always someone on it. | {F} waited on the bench too. "Let us feed the ducks until it is free," said {f}. | They fed the ducks at the pond and had so much fun that they forgot the swing. | When the park closed, they were the last to leave.
on a ship = The ship moved up and down on the waves. | The ship's cat was gone, and the captain was very sad. {H} promised to find it. | {H} and {f} looked under the sails, in the kitchen, and behind the barrels. | They found the cat in the captain's own hat. The captain laughed until the ship shook. | The sea was calm that night, and the ship sailed on under the stars.
at the zoo = There were lions, monkeys, and tall giraffes. | The smallest monkey at the zoo had lost its banana and cried. {H} felt sorry for it. | {H} asked {f}, who worked with the animals, and they brought a whole bowl of fruit. | The monkey gave the first banana to {h} as a thank you. | When the gates of the zoo closed, all the animals were full and happy.
in the library = There were books from the floor to the roof, and it was very quiet. | {H} looked for a book about the stars, but its place on the shelf was empty. | {F} sat by the window and was reading that very book. "We can read it together," {f} whispered. | They read page after page and did not hear the clock. | When the library closed, they borrowed the book for one more night.
in the kitchen = It smelled of warm bread and soup. | {H} wanted to make soup, but there was only one potato in the kitchen. | {F} brought a carrot, and a neighbor brought an onion. They cut and stirred and tasted. | The soup was so good that three people asked for more. | The kitchen was warm, and the big pot was empty.
under a bridge = It was cool and dark there, and the water made a soft sound. | {H} had found a dry place under the bridge, but someone was already there. It was {f}. | "There is room for two," said {f}. They shared a blanket and listened to the steps above. | In the morning they painted the gray wall under the bridge with a big sun. | From then on, everyone who crossed the bridge said hello.
in a cave = It was dark, and every step made an echo. | {H} heard water deep in the cave and wanted to see it. | {F} held the lamp high. The walls were full of old pictures of deer and hands. | At the end they found a little lake that was as clear as glass. | When they came out of the cave, the sun seemed twice as bright.
at the lake = The water was as smooth as a mirror. | {H} wanted to row to the small island in the lake, but the boat had a hole. | {F} brought some tar and a board. They fixed the hole and waited until it was dry. | They rowed across the lake, slowly and without a sound, and had the island to themselves. | The moon lay on the lake like a silver coin.
on a hill = From there one could see the whole valley. | {H} wanted to fly a kite on the hill, but there was no wind. | "Then let us roll down the grass while we wait," said {f}. They rolled down and climbed up again and again. | At last a breeze came over the hill, and the kite went up. | They lay on top of the hill and watched the clouds.
in the jungle = There were green leaves and strange sounds everywhere. | {H} had lost the path in the jungle, and something roared behind the leaves. | It was only {f}, who had a cold and could not stop sneezing. {H} gave {f} a warm drink. | {F} showed {him} the way along the river, past parrots and giant flowers. | The jungle hummed and whispered, and {h} was not afraid anymore.
at night = The moon was bright, and the stars were shining. | {H} was still awake and saw a small light between the trees. | {H} followed the light. It was {f} with a lamp, who was looking at the night flowers. | They sat still and saw how the white flowers opened one after another. | Then the first bird sang, and the night was over.
in the rain = Big drops were falling, and the ground was wet. | {H} had no umbrella, and the rain ran down {his} back. | {F} sat under a huge leaf. "Come in, there is room," said {f}. They counted the drops and sang a rain song. | When they were wet anyway, they jumped into every puddle on the way home. | The rain went on, but now it sounded like music.
on a train = The fields and houses flew past the window. | {H} had lost the ticket, and the man with the cap came nearer and nearer. | {F}, who sat on the other side, helped {him} to look under the seats and in every bag. | The ticket was in {his} own hat. The man with the cap laughed and made a hole in it. | The train rolled on, and they shared an apple until the last stop.
in space = There were stars everywhere, and it was very quiet. | The little ship had no more power and floated among the stars. {H} did not know what to do. | {F}, who came by on a comet, threw a long rope. "Hold on!" said {f}. | The comet pulled the ship past two planets and a ring of ice, all the way home. | Whenever a comet crossed the sky, {h} waved.
under the sea = Colorful fish were swimming between the plants. | A net lay under the sea, and a small fish could not get out. | {H} pulled from one side, and {f} bit through the strings on the other. | The small fish swam free and led them to a garden of red corals. | Far above, the sun made golden spots on the waves.
in a storm = The wind was strong, and the rain was loud. | {H} was far from home when the storm began. A branch fell right beside {him}. | "Over here!" called {f} from under a big rock. {H} went on step by step, against the wind, until {he} was there. | They held each other's hands until the thunder was far away. | After the storm the air was clear, and a rainbow stood over the hills.
in a big storm = The wind howled, and dark clouds rolled over the sky. | The storm had broken the little fence, and {f} was out there alone. {H} did not stay inside. | {H} went out into the storm and called as loud as {he} could. {F} held on to a tree and answered. | Slowly, close to the ground, they came back through the rain to a dry place. | When the storm was over, they saw that the sun had not forgotten them.
in the fog = Everything was gray, and one could not see ten steps ahead. | {H} could not see the path in the fog. | {F} tied a bell to a stick and rang it so that {h} could follow the sound. | Slowly they came to the door and laughed, for it had been near all the time. | By noon the fog was gone, and the fields were shining.
in the wind = The trees were bending, and leaves flew through the air. | The wind took the hat of {h} and carried it over the fence. | {F} ran after it too. It landed on a tree, on a roof, and then in a puddle. | {F} caught it at last, and they hung it by the fire to dry. | All night the wind sang around the house.
on a hot day = The sun was burning, and not a leaf moved. | {H} was too hot to play and lay in the shade. | {F} came with a bucket. "I know a cold spring behind the hill," said {f}. | They splashed each other with cold water until they were shivering with joy. | In the evening a cool breeze came, and they slept well.
in the mud = It had rained all night, and there was mud everywhere. | {H} was stuck in the mud with both feet. | {F} came with a board and a rope. They pulled until it went plop. | They were brown from head to foot and laughed about each other. | It took three buckets of water until they were clean again.
"""
)

# theme: what begins | a problem | a middle | an end | a last sentence
THEME_PLOTS = _table(
    """
a rainy day = It was a rainy day, and the drops were knocking on the windows. | {H} had wanted to play outside, but everything was wet. | "Let us make our own sunshine," said {f}. They drew a big yellow sun and hung it up. Then they made paper boats. | When the rain was softer, they let the boats swim in the puddles. | After all, it had been a wonderful rainy day.
a picnic = It was a fine day for a picnic. {H} carried a basket with bread, cheese, and apples. | When {h} opened the basket, a line of ants was already eating the cake. | "They are hungry too," said {f}. They put some crumbs on a leaf, and the ants followed them. Then the picnic could begin. | They spread out the blanket, ate cheese and apples, and drank cold lemonade. | Nobody had ever had a better picnic.
a secret garden = Behind an old wall there was a secret garden full of roses. | {H} had found the key to the garden, but the door did not open. | {F} pulled the ivy from the door, and they turned the key together. Inside, the roses were thirsty and wild. | Every day they came to water and to cut, and the garden bloomed again. | They never told anyone where the key was.
a new baby = There was a new baby in the family, and everything was different now. | Everyone looked only at the baby, and {h} felt forgotten. | "The baby will need you," said {f}. "You can show it everything you know." {H} went to the little bed and sang. | The baby stopped crying and held on to one finger. It smiled for the first time. | Now {h} was proud to be the big one.
a long winter = It was a long winter, and the snow lay up to the windows. | The wood was nearly gone, and the days were dark. {H} was tired of the winter. | {F} came through the snow with a sack of wood and a pot of soup. They told each other stories of the summer. | One morning water dripped from the roof, and the first snowdrop looked out. | The long winter was over at last.
a school play = The school play was near, and everyone was nervous. | {H} had only one sentence to say in the play, but {he} always forgot it. | {F} had an idea. They sang the sentence together on the way to school every day. | On the great evening, {h} stepped into the light and said it loud and clear. | The whole hall clapped, and the play was a success.
a busy market = It was a busy market with many people and many colors. | {H} had saved three coins to buy a gift, but everything cost more. | {F} had a stall with apples and needed a helper. {H} carried baskets and called, "Sweet red apples!" | When the market closed, {h} had five coins and bought a little bell. | The busy market was empty now, and the bell rang all the way home.
a snowy morning = It was a snowy morning, and everything was white. | {H} wanted to be the first to walk in the snow, but there were already small footprints. | {H} followed them around the house and past the well. At the end stood {f}, who was laughing. | They made angels in the snow and a snowman with a carrot nose. | Then they drank hot chocolate with cold red hands.
a big storm = A big storm was coming, and the wind was loud. | The boats were not tied, and the waves grew. {H} saw it first. | {H} ran from door to door and called everyone. {F} held the ropes while the others pulled. | When the storm came, all the boats were safe on the sand. | In the morning the sea was calm, and everybody thanked {h}.
a camping trip = It was the first day of the camping trip. The tent was small but cozy. | At night {h} heard steps around the tent. | "It is only a hedgehog," whispered {f}. They lay still and watched it eat the last cookie. | They made a fire, toasted bread on sticks, and looked at the stars. | It was the best camping trip of the year.
a birthday party = It was the day of the birthday party. There were balloons and a big cake. | All the guests were there, but the cake fell from the table. {H} nearly cried. | "We still have candles," said {f}. They put one candle on every apple, and it looked beautiful. | They sang, danced, and ate birthday apples until the evening. | It was a party that nobody forgot.
a full moon = It was the night of the full moon, and everything was silver. | {H} could not sleep, because the moon was so bright. | {F} sat outside too. "On such a night one can see the hares dance," said {f}. They waited behind a bush. | Then the hares came and danced in a ring until the moon was low. | They went home on tiptoe and kept it a secret.
friendship = {H} and {f} had been friends for as long as they could think. | One day they had a fight about a silly thing and did not speak for three days. | {H} missed the jokes of {f} and went to the old bench. {F} was already sitting there. "I am sorry," they said at the same time. | They laughed and shared an apple, as they always did. | A real friendship is stronger than a fight.
sharing = {H} had one big warm coat, and the winter was cold. | On the road sat {f}, who had no coat and was shivering. | {H} thought for a while and cut the big coat in two. "Half for you, half for me," said {h}. | They both were warm enough, and they walked on together. | When one shares, there is enough for two.
courage = Everyone said that {h} had no courage. | One day a little child fell into the deep well, and nobody dared to climb down. | {H} was afraid too, but {he} tied a rope around {self}. {F} held the other end. | {H} came up again with the child in {his} arms, and everyone cheered. | Courage is being afraid and doing it all the same.
honesty = {H} found a purse full of money in the street. | Nobody had seen it, and there were so many things that {h} wished for. | {H} thought of the one who had lost it. {He} asked everywhere, until {f} said, "It is mine. I was so worried." | {F} thanked {him} with tears in the eyes and gave {him} a warm loaf of bread. | An honest heart sleeps well.
kindness = {H} had a kind word for everyone. | But {f} was always in a bad mood and never said hello. | Every morning {h} put a flower at the door of {f}. On the seventh day the door opened. "Nobody has ever given me flowers," said {f}. | They drank tea together, and the bad mood was gone. | A little kindness can open a closed door.
patience = {H} wanted everything at once. | {He} planted a cherry stone and dug it up every day to see if it had grown. | "Leave it alone and wait," said {f}. {H} watered it and waited, through the winter and the spring. | One morning there was a green tip, and years later there were cherries. | Patience had a very sweet taste.
the first day of school = It was the first day of school, and {h} had a new bag. | {H} held on to the gate and did not want to go in. | {F} was new too. "I am afraid as well," said {f}. "Let us go in together." They chose two chairs side by side. | The teacher showed them the letter A, and they could already write it at noon. | On the second day they ran to school.
a lost toy = {H} had a toy rabbit with one ear, and one evening it was gone. | Without it, {h} could not sleep. | {F} took a lamp, and they looked in the yard, under the stairs, and in the box of apples. | There it was, fast asleep between two apples, or so it seemed. | That night {h} held the toy very tight.
a family trip = The whole family wanted to go to the sea. {H} had packed shells and a shovel. | After an hour the car stopped with a loud bang, and everyone got out. | {F} came by with a horse. "I will pull you," said {f}. So they rolled slowly through the fields and sang. | In the evening they stood with bare feet in the sea. | It was the slowest and the funniest trip of all.
saying sorry = {H} had said something unkind to {f}. | All day long, {his} belly felt heavy, as if there was a stone inside. | {H} went to {f} and took a deep breath. "I am sorry. I did not mean it," said {h}. | {F} nodded, and they went to feed the ducks together. | The stone in the belly was gone.
being different = {H} looked different from all the others and wished to be like them. | {He} tried to hide it with a big hat and a long coat. | One day {f} got lost in the fog. Because {h} was so different, {f} could see {him} from far away. | "I am so glad that you look just like you," said {f}. | {H} took off the hat and never wore it again.
helping others = {H} walked through the town with open eyes. | An old man could not carry his bag, a child could not reach the bell, and {f} could not find {his} glasses. | {H} carried the bag, rang the bell, and found the glasses. It took the whole morning. | At noon {h} had a wet nose and no more strength, and all three came with cake. | Helping others comes back in the end.
the end of summer = It was the end of summer, and the evenings grew cool. | {H} was sad that the swimming and the long days were over. | {F} said, "Let us put the summer into a jar." They collected a shell, a dry flower, and some sand. | When it snowed, they opened the jar, and it still smelled of summer. | Every end is also a beginning.
losing and finding = {H} always lost things. First it was a glove, then a book, then a shoe. | One day {h} lost the way as well and stood in a strange street. | {F} found {him} there. In the bag of {f} were a glove, a book, and a shoe. "I have been following you all week," said {f}. | They laughed so much that they had to sit down. | {H} had lost a few things and found a friend.
trust = {F} asked {h} to look after a box and not to open it. | All night {h} wondered what was inside. Something scratched and rustled. | {H} put {his} hands behind {his} back and sang to think of something else. | In the morning {f} opened the box. A little bird flew out and sat on the shoulder of {h}. "It is for you, because I can trust you," said {f}. | Trust is a gift for both.
working together = A big tree had fallen over the road. | {H} pulled alone, and the tree did not move at all. | {F} came, and then five others came too. "One, two, three!" they called and pulled at the same time. | The tree rolled away, and the road was free. | Together they had done what nobody could do alone.
a good night's sleep = {H} had not slept well for a week and yawned all day. | In bed, {he} thought of a hundred things. | {F} opened the window, closed the curtain, and told a very slow story about a very slow snail. | Before the snail had crossed the path, {h} was asleep. | After a good night's sleep the world looked new.
moving to a new house = {H} moved to a new house, and everything stood in boxes. | The rooms were empty and had a strange echo, and {h} missed the old window. | {F} from next door knocked with a pie. They ate it on the boxes and gave each room a name. | In the evening the lamp was lit, and the new house looked friendly. | Soon it felt as if {h} had always lived there.
"""
)

# how a find goes on: problem | middle | end | moral
FOUND_MORALS = [
    "{H} learned that giving back is better than keeping.",
    "{H} learned that some treasures are there to be looked at together.",
    "{H} learned that fair turns keep the peace.",
    "{H} learned that everything has a place where it belongs.",
    "{H} learned to be careful with what is dear.",
    "{H} learned that a small gift can make someone well.",
]
LOST_MORAL = "{H} learned that one who looks calmly finds more.|{H} learned to keep a better eye on dear things.|{H} learned that four eyes see more than two."
MADE_MORAL = "{H} learned that what one makes with one's own hands is worth more.|{H} learned that a wish needs work.|{H} learned that a long work ends with great joy."
PAIR_MORALS = [
    "They learned that a closed door may hide a friend.",
    "They learned that a long way is short with a friend.",
    "They learned that everyone is good at something else.",
    "They learned that one kind question can change a day.",
    "They learned that many small gifts make a big one.",
]

ANIMAL_FRIENDS = "owl|mouse|rabbit|old turtle|robin|squirrel|hedgehog|frog|little bee|goose|badger|crow|otter|young deer|lamb|field hare|beetle|stork|woodpecker|toad".split(
    "|"
)
HUMAN_FRIENDS = "old woman|little girl|neighbor|kind farmer|young boy|miller|blacksmith|market woman|old soldier|schoolteacher|ferryman|wise aunt|flower seller|night watchman|gray cat|small dog|beekeeper|stable boy".split(
    "|"
)

ENDS = [
    "That night, {h} fell asleep with a smile.",
    "{H} went home with a light heart.",
    "And {h} never forgot that day.",
    "{H} and {f} stayed friends for the rest of their lives.",
    "In the evening, they sat together and watched the stars.",
    "{H} thanked {f} and went home happily.",
    "And so the day ended well for everyone.",
    "They laughed until the sun went down.",
    "Everyone was happy, and there was a big dinner.",
    "They often talked about it in the years that followed.",
    "{H} and {f} met every day from then on.",
    "When {h} was old, {he} still liked to tell this story.",
    "The stars came out, and the world was at peace.",
    "{H} hummed a little song all the way home.",
    "The next morning, {h} woke up full of new plans.",
    "{F} waved for a long time, and {h} waved back.",
    "Then they shared a warm meal and were content.",
    "It had been a good day, and tomorrow there would be another one.",
    "And if you ever pass by, you may hear them laugh.",
    "The wind carried their laughter over the fields.",
]
