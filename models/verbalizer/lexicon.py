"""A lexicon of related words of common labels, with their opposites.

A small model that reads about a goal and a cup answers *football* or *game* as readily as *sports*.
All related words are scored at the same position, so they cost nothing, and together they vary less
than one word (verbalizers with outside knowledge: Hu et al., "Knowledgeable Prompt-tuning", 2022).
The words were written for this project: nearest neighbours among word vectors made answers worse,
as most are other forms of the same word (docs/lab.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_IDEAS = """
# what a text is about
world, international, global, foreign: world international politics war government foreign
politics, political, government, policy: politics government election president parliament law
sports, sport, athletics: sports game football team baseball player
business, economy, economics, commerce, companies: business company economy market trade industry
finance, financial, investing, markets: finance money market stocks bank investment
science, research, sci: science research study physics biology experiment
technology, tech, computing, computers, it: technology computer software internet phone electronics
internet, web, online: internet website online web network
entertainment, showbiz, culture, arts, art: entertainment film music art theatre celebrity
film, films, movie, movies, cinema: film movie cinema actor director
music, songs: music song band concert album singer
book, books, literature, reading: book novel author literature poem reading
television, tv: television series show episode channel
games, gaming: games game gaming player console
health, healthcare, medical, medicine: health medicine doctor hospital disease patient
fitness, exercise, training: fitness exercise training running gym
food, cooking, recipes, kitchen, cuisine: food cooking recipe meal kitchen dish
dining, restaurant, restaurants: restaurant dining food waiter menu dinner
drink, drinks, beverage, beverages: drink coffee tea beer wine juice
travel, tourism, trip, vacation, holiday: travel trip flight hotel vacation tourist
flight, flights, airline, airlines, aviation: flight airline plane airport aircraft
transport, transportation, traffic, commute: transport traffic train bus road car
car, cars, auto, automotive, vehicle, vehicles: car vehicle engine driving tire fuel
education, school, schools, university: education school student teacher university lesson
work, job, jobs, employment, career, office: work job office employee boss salary
home, house, household, housing: home house room household furniture apartment
garden, gardening: garden plants flowers gardening lawn
family, parenting, children: family children parents mother baby
relationship, relationships, dating, love: relationship love partner marriage friend
fashion, clothing, clothes, apparel: fashion clothes dress shoes clothing
beauty, cosmetics: beauty makeup skin hair cosmetics
shopping, retail, purchase: shopping store buy price purchase
property, estate: property house rent apartment mortgage
law, legal, justice: law court judge lawyer legal
crime, criminal, police: crime police murder theft arrest
war, military, conflict, defence, defense: war army military soldiers weapons
religion, faith: religion church god faith prayer
history, historical: history century ancient war king
nature, environment, environmental: nature environment forest pollution wildlife
climate, weather: weather climate rain temperature storm
animal, animals, pets, wildlife: animal dog cat bird horse fish
plant, plants: plant tree flower leaf
energy, power: energy electricity oil gas power
space, astronomy: space planet moon rocket astronomy
mathematics, math, maths: mathematics math equation algebra geometry
chemistry: chemistry chemical acid molecule
philosophy: philosophy ethics thought
agriculture, farming: agriculture farm crops farmer
wedding, weddings, event, events: event party festival wedding concert
# what a question asks for, or a name names
person, people, human, individual: person people man name someone human
group, organisation, organization, institution: organization group company team association
company, firm, brand: company brand firm corporation manufacturer
place, location, geography: place location city country town
country, nation: country nation state land
city, town: city town village capital
number, numeric, quantity, amount, count: number amount count quantity date year
date, time, year: date time year day month
price, cost, money: price cost money dollars amount
distance, size, length, weight: size length distance weight height
thing, entity, object, item: thing object item animal product food
product, products, goods: product item device goods
description, definition, explanation, meaning: description definition explanation meaning reason
reason, cause: reason cause purpose why
manner, method, process, procedure: method process way manner steps
abbreviation, acronym, abbreviations: abbreviation acronym initials letters
language, languages: language English word dialect
title, name: name title called
colour, color: color colour red blue
# how somebody feels
positive, good, favourable, favorable: positive good great excellent happy <> negative, bad, unfavourable, unfavorable: negative bad poor terrible disappointed
neutral, mixed, average: neutral average okay normal fair
satisfied, happy, pleased, delighted: happy satisfied pleased glad delighted <> dissatisfied, unhappy, unsatisfied, disappointed, displeased: unhappy disappointed dissatisfied frustrated angry
joy, joyful, happiness, cheerful: joy happy cheerful excited glad <> sadness, sad, grief, sorrow: sad sadness unhappy grief lonely
anger, angry, annoyed, annoyance, furious: angry anger annoyed furious frustrated <> contented: calm relaxed happy pleased satisfied
calm, relaxed: calm relaxed peaceful quiet
fear, afraid, scared, anxiety, anxious: fear afraid scared anxious worried
surprise, surprised: surprise surprised shocked amazed
disgust, disgusted: disgust disgusted gross
excitement, excited: excited excitement thrilled
frustration, frustrated: frustrated frustration annoyed
confusion, confused: confused confusion unclear
gratitude, grateful, thankful: grateful thanks thankful gratitude
# what a message is, or wants
spam, junk, scam, phishing: spam scam junk advertisement promotion offer < personal, private: personal private friend family
advertisement, ad, advertising, promotion, promotional, marketing: advertisement promotion advertising marketing offer < personal
complaint, complaints: complaint problem angry disappointed <> praise, compliment: praise compliment thanks great
question, questions, inquiry, enquiry: question asking inquiry
request, requests: request please asking
suggestion, feedback, idea: suggestion feedback idea improvement
greeting, greetings: greeting hello hi welcome
farewell, goodbye: goodbye bye farewell
joke, humour, humor: joke funny humor
invitation: invitation invite party
apology: apology sorry
order, orders: order buy purchase
delivery, shipping, shipment: delivery shipping package courier
payment, billing, invoice, bill, payments: payment bill invoice money charge
refund, return, returns: refund return money
account, login, password: account password login
security, safety: security safety protection attack
bug, error, defect, fault: bug error problem crash
support, help, assistance: help support assistance
feature: feature function option
cancellation: cancel cancellation
appointment, booking, reservation, meeting: appointment booking reservation meeting
bank, banking: bank account money transfer balance
card, credit: credit card bank limit
insurance: insurance policy claim coverage
news: news report article
review, opinion: review opinion rating
fact, factual: fact true information <> fiction, fictional, story: story fiction tale novel
# what is said of something
quality: quality durable well material
service, staff: service staff waiter friendly employees
cleanliness: clean dirty cleanliness
comfort: comfortable comfort soft
sound, audio: sound audio noise music
screen, display: screen display picture
battery: battery charge power
design, appearance: design look style appearance
performance, speed: performance speed fast slow
expensive: expensive overpriced costly <> cheap: cheap affordable inexpensive
clean: clean tidy spotless <> dirty: dirty filthy stained
fast: fast quick rapid <> slow: slow late delayed
easy: easy simple <> difficult, hard: difficult hard complicated
friendly, polite, kind: friendly polite kind helpful <> unfriendly, impolite, rude: rude unfriendly angry
safe: safe secure harmless <> dangerous, unsafe: dangerous unsafe harmful
funny: funny hilarious amusing <> serious: serious sad important
urgent, critical, severe, important: urgent important serious critical emergency < low, minor, unimportant, trivial: low minor small unimportant
medium, moderate: medium moderate normal
true, correct: true yes correct right <> false, incorrect: false no wrong incorrect
male, man, men: male man boy he <> female, woman, women: female woman girl she
formal: formal polite official <> informal, casual: informal casual friendly
"""
"""One line per idea: the labels that name it, then its words. After ``<>`` stands its opposite, in
the same form, or a name of it; after ``<`` an idea that is true of more texts. Ideas under one
heading compete with each other."""

RARE = 0.5


@dataclass(frozen=True, slots=True)
class Idea:
    """The idea behind a label. ``against``: the words of its opposite; without one (not
    ``has_opposite``), those of all competing ideas. ``rarity``: the threshold above a neutral text
    in standard deviations; negative for an idea that is true of most texts."""

    words: tuple[str, ...]
    against: tuple[str, ...]
    has_opposite: bool
    rarity: float


def _read(ideas: str) -> dict[str, Idea]:
    found: dict[str, Idea] = {}
    for heading in ideas.split("\n#")[1:]:
        lines = heading.splitlines()[1:]
        sides = [side for line in lines for side in re.split("<>?", line) if ":" in side]
        every = [word for side in sides for word in _words(side)]
        named = {name: _words(side) for side in sides for name in _names(side)}
        for line in lines:
            one, *opposite = re.split("<>?", line)
            own = _words(one)
            if not opposite:
                against = tuple(word for word in dict.fromkeys(every) if word not in own)
                _name(found, one, Idea(own, against, has_opposite=False, rarity=RARE))
                continue
            other = _words(opposite[0]) or named[opposite[0].strip()]
            rarity = 0.0 if "<>" in line else RARE
            _name(found, one, Idea(own, other, has_opposite=True, rarity=rarity))
            if ":" in opposite[0]:
                _name(found, opposite[0], Idea(other, own, has_opposite=True, rarity=-rarity))
    return found


def _name(found: dict[str, Idea], side: str, idea: Idea) -> None:
    for name in _names(side):
        found.setdefault(name, idea)


def _names(side: str) -> list[str]:
    return [name.strip() for name in side.partition(":")[0].split(",")]


def _words(side: str) -> tuple[str, ...]:
    return tuple(side.partition(":")[2].split())


_NAMED = _read(_IDEAS)


def idea_of(name: str) -> Idea | None:
    """The idea that a label of one word names, in any case, in singular or plural.

    >>> idea_of("Person").words[:3]
    ('person', 'people', 'man')
    >>> idea_of("unhappy").against[:2]
    ('happy', 'satisfied')
    """
    name = name.strip().lower()
    return _NAMED.get(name) or _NAMED.get(name.removesuffix("s"))
