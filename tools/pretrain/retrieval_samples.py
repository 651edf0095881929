"""Questions about long texts to train on: those of `godwit eval` in their own words, many to a text.

A sample is a function of the seed, its index and its length. An eighth of the pairs of words and of
the numbers is held out (is_held_out), so that the final questions' answers never occur in training.
UUIDs never repeat.
"""

import random
import re
import string
from pathlib import Path

import numpy as np

WORDS = Path(__file__).resolve().parent.parent / "retrieval_words.txt"
NOISE = ("The grass is green. The sky is blue. The sun is yellow. Here we go. "
         "There and back again.\n")
TRACK = "Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n"
# Tokens of a text for each set of questions; a longer text has several sets.
LONG = 4096
# The weight of a token outside answers, and the number of such tokens of which one counts.
TEXT_WEIGHT, TEXT_EVERY = 0.02, 8


def times(room):
    return max(1, room // LONG)


def is_held_out(number):
    return number % 8 == 5


class Draws(random.Random):
    """Draws of questions. `held_out` draws only what training never sees."""

    def __init__(self, seed, held_out, words):
        super().__init__(seed)
        self.held_out, self.words = held_out, words

    def number(self, low, high):
        while True:
            number = self.randrange(low, high)
            if is_held_out(number) == self.held_out:
                return number

    def digits(self, count):
        return f"{self.number(0, 10 ** count):0{count}}"

    def stammered(self):
        digits = self.digits(5)
        for _ in range(5):
            at = self.randrange(len(digits))
            digits = digits[:at] + digits[at] + digits[at:]
        return digits

    def word_pair(self):
        adjectives, nouns, _ = self.words
        which = self.number(0, len(adjectives) * len(nouns))
        return f"{adjectives[which % len(adjectives)]}-{nouns[which // len(adjectives)]}"

    def city(self):
        return self.choice(self.words[2])

    def uuid(self):
        bits = self.getrandbits
        return (f"{bits(32):08x}-{bits(16):04x}-4{bits(12):03x}-{8 + bits(2):x}{bits(12):03x}-"
                f"{bits(48):012x}")

    def letters(self, count):
        return "".join(self.choices(string.ascii_uppercase, k=count))

    def different(self, draw, count):
        return list(dict.fromkeys(draw() for _ in range(count)))


class Text:
    """A text in parts, some of which are answers to learn."""

    def __init__(self):
        self.parts = [""]  # text, answer, text, ...

    def add(self, text, answer=""):
        self.parts[-1] += text
        if answer:
            self.parts += [answer, ""]

    def ids(self, tokenizer):
        """[BOS, ...], and for each token whether it is part of an answer. A prompt ends with its
        tokens."""
        ids, is_answer = [tokenizer.token_to_id("<s>")], [False]
        for i, part in enumerate(self.parts):
            ids += tokenizer.encode(part, add_special_tokens=False).ids
            is_answer += [i % 2 == 1] * (len(ids) - len(is_answer))
        return ids, is_answer


class Samples:
    def __init__(self, tokenizer, books, seed, held_out=False):
        """`books`: paragraphs of prose, one string."""
        self.tokenizer, self.seed, self.held_out = tokenizer, seed, held_out
        paragraphs = WORDS.read_text().split("\n\n")[1:]
        self.words = [re.findall("[A-Za-z]+", paragraph) for paragraph in paragraphs]
        self.sentences = re.split(r"(?<=[.!?])\s+", books)
        self.costs = {}

    def cost(self, text):
        """Tokens of `text`, remembered if it comes again."""
        return len(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def sample(self, kind, index, length):
        """ids [length + 1] and the weights [length] of what they predict."""
        draws = Draws(f"{self.seed}/{kind}/{index}/{length}", self.held_out, self.words)
        if kind == "repeats":
            return self.repeats(draws, length)
        room = length - 8
        for _ in range(20):
            text = Text()
            getattr(self, kind)(draws, room, text)
            found, is_answer = text.ids(self.tokenizer)
            if len(found) <= length + 1:
                break
            room -= len(found) - length + 8
        ids = np.full(length + 1, self.tokenizer.token_to_id("</s>"), np.int64)
        weights = np.zeros(length, np.float32)
        count = min(len(found), length + 1)
        ids[:count] = found[:count]
        if kind == "prose":
            weights[:count - 1:2] = TEXT_WEIGHT
        else:
            weights[draws.randrange(TEXT_EVERY):count - 1:TEXT_EVERY] = TEXT_WEIGHT
            weights[:count - 1][is_answer[1:count]] = 1
        return ids, weights

    def repeats(self, draws, length):
        """Random tokens in segments that come once more, in another order."""
        vocabulary = self.tokenizer.get_vocab_size()
        segments, total = [], 0
        while total < length // 2:
            segment = [draws.randrange(2, vocabulary) for _ in range(draws.randrange(3, 17))]
            segments.append(segment)
            total += len(segment)
        ids = [0] + [one for segment in segments for one in segment]
        weights = [0.0] * (len(ids) - 1)
        while len(ids) <= length:
            segment = draws.choice(segments)
            ids += segment
            weights += [0.0] + [0.5] * (len(segment) - 1)
        return np.array(ids[:length + 1], np.int64), np.array(weights[:length], np.float32)

    def prose(self, draws, room, text):
        for sentence in self.hay(draws, room, True):
            text.add(sentence)

    def hay(self, draws, room, is_prose):
        """Sentences, or lines of noise, of `room` tokens at most."""
        if not is_prose:
            return [NOISE] * max(1, room // 22)
        at, hay = draws.randrange(len(self.sentences)), []
        while True:
            sentence = self.sentences[at % len(self.sentences)]
            room -= self.costs.setdefault(at % len(self.sentences), self.cost(" " + sentence))
            if room < 0:
                return hay
            hay.append((" " if hay else "") + sentence)
            at += 1

    def bury(self, draws, room, text, needles, is_prose):
        hay = self.hay(draws, room - sum(map(self.cost, needles)), is_prose)
        places = sorted(draws.randrange(len(hay) + 1) for _ in needles)
        for place, needle in sorted(zip(places, needles), reverse=True, key=lambda one: one[0]):
            hay.insert(place, " " + needle if is_prose else needle + "\n")
        text.add("".join(hay).lstrip(" "))

    def passkey(self, draws, room, text):
        """Pass keys and number strings, one or both."""
        kinds = draws.sample(["pass key", "sequence of digits"], draws.choice([1, 1, 2]))
        keys = [draws.digits(5) if kind == "pass key" else draws.stammered() for kind in kinds]
        memorize = " and memorize them" if kinds[0] == "pass key" else ""
        text.add("There is an important info hidden inside a lot of irrelevant text. Find it"
                 f"{memorize}. I will quiz you about the important information there.\n\n")
        needles = [f"The {kind} is {key}. Remember it. {key} is the {kind}."
                   for kind, key in zip(kinds, keys)]
        self.bury(draws, room - 36 - 26 * len(kinds), text, needles, draws.random() < 0.2)
        for kind, key in draws.sample([*zip(kinds, keys)], len(keys)):
            text.add(f"\n\nWhat is the {kind}?\n\nThe {kind} is", f" {key}.")

    def needle(self, draws, room, text):
        cities = draws.different(draws.city, draws.choice([1, 1, 2, 4, 8]))
        cities = cities[:max(1, room // 90)]
        numbers = [draws.number(10 ** 6, 10 ** 7) for _ in cities]
        needles = [f"The special magic {city} number is: {number}."
                   for city, number in zip(cities, numbers)]
        self.bury(draws, room - 45 * len(cities), text, needles, draws.random() < 0.6)
        for city, number in draws.sample([*zip(cities, numbers)], len(cities)):
            text.add(f"\n\nWhat is the special magic {city} number? Don't give information "
                     "outside the document or repeat your findings."
                     f"\n\nThe special magic {city} number is:", f" {number}.\n")

    def lines(self, draws, room, text):
        text.add("Below is a record of lines I want you to remember. Each line begins with 'line "
                 "<line index>' and contains a '<REGISTER_CONTENT>' at the end of the line as a "
                 "numerical value. For each line index, memorize its corresponding "
                 "<REGISTER_CONTENT>. At the end of the record, I will ask you to retrieve the "
                 "corresponding <REGISTER_CONTENT> of a certain line index. Now the record "
                 "start:\n\n")
        room -= 110
        cost = draws.choice([43, 14])  # of a whole question, or of its line alone
        most = 32 * times(room)
        questions = max(1, min(most, int(room * draws.choice([0.2, 0.5]) / cost)))
        names = draws.different(draws.word_pair, max(2, (room - 43 - cost * questions) // 14))
        numbers = [draws.number(1, 50001) for _ in names]
        for name, number in zip(names, numbers):
            text.add(f"line {name}: REGISTER_CONTENT is <{number}>\n")
        chosen = draws.sample(range(len(names)), min(questions, len(names)))
        for place, i in enumerate(chosen):
            if place > 0 and cost < 43:
                text.add(f"line {names[i]}: REGISTER_CONTENT is", f" <{numbers[i]}>\n")
                continue
            text.add("\nNow the record is over. Tell me what is the <REGISTER_CONTENT> in line "
                     f"{names[i]}? I need the number.\nline {names[i]}: REGISTER_CONTENT is",
                     f" <{numbers[i]}>\n")

    def pairs(self, draws, room, text):
        """UUIDs as keys and values."""
        text.add("Extract the value corresponding to the specified key in the JSON object below."
                 "\n\nJSON data:\n")
        room -= 24
        questions = max(1, min(12 * times(room), int(room * draws.choice([0.2, 0.5]) / 75)))
        count = max(2, (room - 75 * questions) // 58)
        pairs = [(draws.uuid(), draws.uuid()) for _ in range(count)]
        text.add("{" + ", ".join(f'"{key}": "{value}"' for key, value in pairs) + "}")
        for key, value in draws.sample(pairs, min(questions, count)):
            text.add(f'\n\nKey: "{key}"\nThe value associated with the specified key is: ',
                     f"{value}\n")

    def niah(self, draws, room, text):
        """RULER's needles: several keys one by one, several values of a key, or several keys at
        once. They stand in noise, in prose, or among others of their kind."""
        is_uuid = draws.random() < 0.25
        hay = draws.choice(["noise", "prose", "prose", "needles", "needles"])
        has_uuid_keys = is_uuid and hay == "needles"
        key = draws.uuid if has_uuid_keys else draws.word_pair
        value = draws.uuid if is_uuid else lambda: f"{draws.number(10 ** 6, 10 ** 7)}"
        kind = "uuid" if is_uuid else "number"
        needle_cost = 18 + 24 * is_uuid + 22 * has_uuid_keys
        asked_cost = 34 + 24 * is_uuid + 44 * has_uuid_keys
        values = 4 if draws.random() < 0.15 and hay != "needles" else 1
        together = values == 1 and draws.random() < 0.15 and hay == "prose"
        several = values > 1 or together
        room -= 30
        if hay == "needles":
            most = 16 * times(room)
            asked = max(1, min(most, int(room * draws.choice([0.2, 0.5]) / asked_cost)))
            count = max(2, (room - asked * asked_cost) // needle_cost)
        else:
            most = max(1, room // (2 * (needle_cost * values + asked_cost)))
            several_keys = draws.choice([1, 2, 4, 4]) * (1 if together else times(room))
            asked = count = min(most, 1 if values > 1 else several_keys)
        keys = draws.different(key, count)
        facts = {one: [value() for _ in range(values)] for one in keys}
        needles = [(one, f"One of the special magic {kind}s for {one} is: {number}.")
                   for one in keys for number in facts[one]]
        draws.shuffle(needles)
        are, many = ("are", "s") if several else ("is", "")
        text.add(f"{'Some' if several else 'A'} special magic {kind}{many} {are} hidden within the "
                 f"following text. Make sure to memorize it. I will quiz you about the {kind}{many} "
                 "afterwards.\n")
        if hay == "needles":
            text.add("".join(needle + "\n" for _, needle in needles))
        else:
            self.bury(draws, room - asked * asked_cost, text, [one for _, one in needles],
                      hay == "prose")
        order = draws.sample(keys, min(asked, len(keys)))
        queries = [order] if together else [[one] for one in order]
        is_short = not several and draws.random() < 0.5
        for i, query in enumerate(queries):
            if i > 0 and is_short:
                text.add(f"One of the special magic {kind}s for {query[0]} is:",
                         f" {facts[query[0]][0]}.\n")
                continue
            name = query[0] if len(query) == 1 else ", ".join(query[:-1]) + f", and {query[-1]}"
            # Several values of a key are said in the order of the text.
            places = "".join(text.parts)
            answers = [number for one in query
                       for number in sorted(facts[one], key=lambda v: places.find(v))]
            begin = "\n" if hay == "prose" and i == 0 else ""
            text.add(f"{begin}What {are}{' all' if several else ''} the special magic {kind}{many} "
                     f"for {name} mentioned in the provided text? The special magic {kind}{many} "
                     f"for {name} mentioned in the provided text {are}",
                     " " + ", ".join(answers) + ".\n")

    def chains(self, draws, room, text):
        """RULER's variables, behind an example: the first of a chain gets a number, every other one
        the value of the one before."""
        if room > 800:
            self.track(draws, 300, text, 1, 3)
            text.add("\n\n")
            room -= 300
        self.track(draws, room, text, draws.choice([1, 1, 2, 4]) * times(room), 5)

    def track(self, draws, room, text, count, letters):
        """`count` chains of variables, whose names have that many letters."""
        count = max(1, min(count, room // 400))
        numbers = draws.different(lambda: draws.number(10 ** 4, 10 ** 5), count)
        lengths = [draws.choice([2, 3, 5, 5, 5]) for _ in numbers]
        names = draws.different(lambda: draws.letters(letters), sum(lengths) + 8)
        chains = {number: [names.pop() for _ in range(length)]
                  for number, length in zip(numbers, lengths)}
        room -= 17 + sum(62 + 18 * length for length in lengths)
        lines = self.hay(draws, room, False)
        for number, chain in chains.items():
            values = [str(number)] + [f"VAR {name} " for name in chain]
            said = [f"VAR {name} = {value}\n" for name, value in zip(chain, values)]
            places = sorted(draws.randrange(len(lines) + 1) for _ in said)
            for place, line in reversed([*zip(places, said)]):
                lines.insert(place, line)
        text.add(TRACK + "".join(lines))
        for number in draws.sample(numbers, len(numbers)):
            text.add(f"Question: Find all variables that are assigned the value {number} in the text "
                     "above. Answer: According to the chain(s) of variable assignment in the text "
                     f"above, {len(chains[number])} variables are assigned the value {number}, they "
                     "are: ", " ".join(chains[number]) + "\n")
