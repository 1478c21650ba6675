"""Calibration texts that represent "any text", by the kind of text in a question.

A model's answers to them form its prior (``calibration``). They resemble data without coming from
it, and cover all sides of common questions: half of the reviews praise, half of the messages are
unwanted, articles and questions have various subjects.
"""

from __future__ import annotations

import re

from blendfusion.types import Task

ANY = (
    "The meeting was moved to Thursday afternoon.",
    "She walked along the river until it got dark.",
    "Can you send me the address again?",
    "Two boxes of paper are on the shelf in the hall.",
    "The committee will publish its report next month.",
    "I waited about twenty minutes and then went inside.",
    "It comes in blue, grey and green.",
    "How long does the ferry take to cross the bay?",
    "The bridge will be closed for repairs over the weekend.",
    "He plays the cello in a small orchestra.",
    "The package contains a cable, a charger and a manual.",
    "Let me know when you get home.",
    "Shares of the company were little changed in early trading.",
    "The museum opens at nine and closes at five.",
    "We ordered soup, bread and a pot of tea.",
    "Researchers compared samples from three different lakes.",
    "My sister has the same one at her office.",
    "The second half begins after a short break.",
    "Who wrote the letter that was found in the attic?",
    "Please reply to this message to confirm your appointment.",
    "The film is set in a fishing village in the fifties.",
    "New rules for imported fruit take effect in spring.",
    "There are about forty seats in the room.",
    "The train from the north arrives on platform four.",
)
"""Statements, questions, messages and headlines."""

REVIEWS = (
    "Best purchase of the year, works like a charm.",
    "The staff were friendly and the food was delicious.",
    "A moving story, beautifully told.",
    "Lovely room with a view, we will come back.",
    "Great sound for such a small speaker.",
    "I laughed from the first minute to the last.",
    "Fast delivery and exactly as described.",
    "The battery lasts for days, I am very happy with it.",
    "It broke after a week and they refused a refund.",
    "Cold soup, rude waiter, never again.",
    "Two hours of boredom and a silly ending.",
    "The room was dirty and smelled of smoke.",
    "The sound is tinny and the cable is too short.",
    "A waste of money.",
    "It took a month to arrive and the colour is wrong.",
    "The battery is dead after an hour, very disappointing.",
)

MESSAGES = (
    "Running ten minutes late, please order for me.",
    "Happy birthday! See you on Saturday.",
    "ok thanks, talk tomorrow",
    "I left my keys at your place, can you bring them?",
    "The landlord says the heating is fixed.",
    "We are at the beach, where are you?",
    "Your parcel will be delivered today between 2 and 4.",
    "Reminder: dentist appointment on Monday at 10:30.",
    "You won a new phone! Click the link to claim it now.",
    "Cheap loans, no questions asked. Call 0900 now!",
    "Only today: 50% off all shoes in our shop.",
    "Last chance to get your free membership, reply YES.",
    "Meet new people tonight! Text HELLO to 8800.",
    "Your account is blocked, confirm your password at our site.",
    "Make money from home, start today, no risk!",
    "Upgrade to our best plan and save 30 a month. Reply STOP to end.",
)

ARTICLES = (
    "Ministers meet to discuss the border dispute after weeks of fighting.",
    "The president will visit three countries next month.",
    "Voters go to the polls on Sunday in a close race.",
    "Striker scores twice as the visitors win the cup.",
    "The champion withdrew from the tournament with a knee injury.",
    "Coach resigns after five defeats in a row.",
    "Shares of the airline fell after it cut its forecast.",
    "The central bank left interest rates unchanged.",
    "Two retailers agree to merge in a deal worth billions.",
    "A new chip promises faster phones that use less power.",
    "Astronomers find a planet with traces of water.",
    "Researchers warn of a flaw in a popular browser.",
    "A storm left thousands of homes without power.",
    "Police arrest four after robbery at jewellery shop.",
    "Doctors test a new vaccine against malaria.",
    "Festival opens with a film about a fishing village.",
)

QUESTIONS = (
    "Who built the first lighthouse on the island?",
    "Which painter lived in this house?",
    "Who is called the father of chemistry?",
    "Where does the longest river in Asia begin?",
    "In which city is the old stock exchange?",
    "What country has the most lakes?",
    "How many strings does a harp have?",
    "When did the two villages become one town?",
    "How far is it from the coast to the summit?",
    "Why do leaves turn red in autumn?",
    "What is a sonnet?",
    "How is glass made?",
    "What animal sleeps standing up?",
    "Which instrument has the lowest sound?",
    "What is the strongest fabric?",
    "What do the letters DIY stand for?",
)

REQUESTS = (
    "set the alarm for half past six",
    "how much money is in my account",
    "my card was stolen, please block it",
    "what is the weather like tomorrow",
    "book a table for two tonight",
    "how do i get to the airport",
    "add milk to the shopping list",
    "what is the traffic like",
    "tell me a joke",
    "what can you do",
    "turn off the lights in the kitchen",
    "how long do i boil an egg",
    "find a cheap flight to lisbon",
    "ask my boss for two days off",
    "play the next song",
    "cancel my order",
)

_KINDS = (
    (REVIEWS, "review reviews rating ratings feedback opinion opinions"),
    (MESSAGES, "message messages sms email emails mail mails chat comment comments tweet tweets"),
    (ARTICLES, "article articles news headline headlines story stories"),
    (QUESTIONS, "question questions"),
    (REQUESTS, "request requests utterance utterances command commands query queries"),
)
_BANKS = {word: bank for bank, words in _KINDS for word in words.split()}


def bank(task: Task) -> tuple[str, ...]:
    """The texts for ``task``: of the kind that its question names first, else one of its columns,
    else of any kind.

    >>> bank(Task("llm_filter", "Is this review positive?"))[0]
    'Best purchase of the year, works like a charm.'
    >>> bank(Task("llm_filter", "Is it red?", columns=("name",))) == ANY
    True
    """
    for said in (task.question, *task.columns):
        for word in re.findall("[a-z]+", said.lower()):
            if word in _BANKS:
                return _BANKS[word]
    return ANY
