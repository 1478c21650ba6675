"""Ten questions of HybridQA as queries, written by hand.

The data set has many tables of Wikipedia in one long form: ``cells`` (a row a cell), ``links``
(from a cell to a passage) and ``passages``, and ``tables`` with what they are called, registered as
they are; ``linked`` is a view of the join of the first three. ``$table`` is the table that the
question is about. The words of the questions are in the data set only, under these ids.

``reads`` says how a person would read the passages: for each question that the query asks a model,
a pattern that finds the answer in one passage. A boolean is whether it is found, anything else its
group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

RELATIONS = ("tables", "cells", "links", "passages")

LINKED = """
CREATE VIEW linked AS
SELECT cells.table_id, cells.row, cells.sql_column, cells.text AS cell, passages.text AS passage
FROM links
JOIN cells ON cells.table_id = links.table_id AND cells.row = links.row AND cells.col = links.col
JOIN passages ON passages.url = links.passage_url
"""

BIRTHDAY = r"born (\w+ \d+ , \d{4}|\d+ \w+ \d{4})"


@dataclass(frozen=True)
class HybridQuery:
    """A question of the data set, by its id, and the query that answers it."""

    question_id: str
    sql: str
    reads: Mapping[str, str]


QUERIES = (
    # A row by what a passage says: the date is compared, not the text.
    HybridQuery(
        "5c6f2f4d065a08f9",
        """
        SELECT college.text AS answer
        FROM linked AS player
        JOIN cells AS college ON college.table_id = player.table_id AND college.row = player.row
        WHERE player.table_id = $table AND player.sql_column = 'name'
          AND college.sql_column = 'college'
          AND llm_date('When was he born?', player.passage) = DATE '1949-06-13'
        """,
        {"When was he born?": BIRTHDAY},
    ),
    # The largest number of a column is for SQL; one passage is left to read.
    HybridQuery(
        "5569076660fb277b",
        """
        SELECT llm_text('Which city is the capital of the province now?', province.passage) AS answer
        FROM linked AS province
        JOIN cells AS deputies
          ON deputies.table_id = province.table_id AND deputies.row = province.row
        WHERE province.table_id = $table AND province.sql_column = 'province'
          AND deputies.sql_column = 'deputies'
        ORDER BY CAST(deputies.text AS INT) DESC LIMIT 1
        """,
        {
            "Which city is the capital of the province now?": r"capital of .* is the city of ([^,]+) ,"
        },
    ),
    # A number in words, in passages that a cheap predicate leaves.
    HybridQuery(
        "5f4b76fd90ed23a9",
        """
        SELECT venue.text AS answer
        FROM linked AS sport
        JOIN cells AS venue ON venue.table_id = sport.table_id AND venue.row = sport.row
        WHERE sport.table_id = $table AND sport.sql_column = 'sports'
          AND venue.sql_column = 'venue'
          AND sport.passage ILIKE '%weight%'
          AND llm_int('How many weight divisions were there?', sport.passage) = 7
        """,
        {"How many weight divisions were there?": r"were (\w+) weight divisions"},
    ),
    # A filter on passages, then arithmetic between rows.
    HybridQuery(
        "c785e669858ec6f2",
        """
        SELECT person.text AS answer
        FROM linked AS minister
        JOIN cells AS his_age
          ON his_age.table_id = minister.table_id AND his_age.row = minister.row
        JOIN cells AS age
          ON age.table_id = minister.table_id
          AND CAST(age.text AS INT) = CAST(his_age.text AS INT) + 1
        JOIN cells AS person ON person.table_id = age.table_id AND person.row = age.row
        WHERE minister.table_id = $table AND minister.sql_column = 'name'
          AND his_age.sql_column = 'age' AND age.sql_column = 'age'
          AND person.sql_column = 'name'
          AND llm_filter('Was this person a Baptist minister?', minister.passage)
        """,
        {"Was this person a Baptist minister?": r"Baptist minister"},
    ),
    # The smallest answer, among the rows of one party.
    HybridQuery(
        "1dce3877f261dfbc",
        """
        SELECT member.cell AS answer
        FROM linked AS member
        JOIN cells AS party ON party.table_id = member.table_id AND party.row = member.row
        WHERE member.table_id = $table AND member.sql_column = 'name'
          AND party.sql_column = 'political_party' AND party.text = 'PNP'
        ORDER BY llm_int('Since which year a member of the Senate?', member.passage) LIMIT 1
        """,
        {"Since which year a member of the Senate?": r"Senate of .* since .*?(\d{4})"},
    ),
    # A search over all passages of all tables; those that are linked here are read.
    HybridQuery(
        "6b4aa2db358ad9e3",
        """
        SELECT system.text AS answer
        FROM llm_search('passages', 'best small town in America Smithsonian magazine',
                        k => 20, mode => 'text') AS town
        JOIN links ON links.passage_url = town.url
        JOIN cells AS system ON system.table_id = links.table_id AND system.row = links.row
        WHERE links.table_id = $table AND system.sql_column = 'system'
          AND llm_filter('Was it named one of the best small towns by a magazine?', town.text)
        """,
        {
            "Was it named one of the best small towns by a magazine?": r"best small town in America by"
        },
    ),
    # The latest date among the rows of one position.
    HybridQuery(
        "25d6f29b970711df",
        """
        SELECT player.cell AS answer
        FROM linked AS player
        JOIN cells AS position
          ON position.table_id = player.table_id AND position.row = player.row
        WHERE player.table_id = $table AND player.sql_column = 'player'
          AND position.sql_column = 'position' AND position.text = 'Defender'
        ORDER BY llm_date('When was he born?', player.passage) DESC LIMIT 1
        """,
        {"When was he born?": BIRTHDAY},
    ),
    # A closed set of answers, from the data.
    HybridQuery(
        "8a93731bc6d377ff",
        """
        SELECT llm_map('In which province is this city?', city.passage,
                       options => (SELECT DISTINCT trim(split_part(text, ',', 2)) FROM cells
                                   WHERE table_id = $table AND sql_column = 'city')) AS answer
        FROM linked AS city
        JOIN cells AS launch ON launch.table_id = city.table_id AND launch.row = city.row
        WHERE city.table_id = $table AND city.sql_column = 'city'
          AND launch.sql_column = 'digital_ota_launch_date' AND launch.text = 'December 9 , 2011'
        """,
        {"In which province is this city?": r"the province of (\w+)"},
    ),
    # One question about several passages.
    HybridQuery(
        "be5e63f7eb17d423",
        """
        SELECT llm_qa('To which country are these species endemic?', reptile.passage) AS answer
        FROM linked AS reptile
        JOIN cells AS family
          ON family.table_id = reptile.table_id AND family.row = reptile.row
        JOIN cells AS concern
          ON concern.table_id = reptile.table_id AND concern.row = reptile.row
        WHERE reptile.table_id = $table AND reptile.sql_column = 'scientific_name'
          AND family.sql_column = 'family' AND family.text = 'Anguidae'
          AND concern.sql_column = 'conservation_concern'
          AND (concern.text = 'Moderate' OR concern.text LIKE '%extirpated%')
        """,
        {"To which country are these species endemic?": r"endemic to the (?:\w+ern )?(\w+ \w+) "},
    ),
    # A row by its own cells, then a number from its passage.
    HybridQuery(
        "5e8c3616221487d4",
        """
        SELECT llm_int('In which year was he born?', wrestler.passage) AS answer
        FROM linked AS wrestler
        JOIN cells AS years ON years.table_id = wrestler.table_id AND years.row = wrestler.row
        WHERE wrestler.table_id = $table AND wrestler.sql_column = 'name'
          AND years.sql_column = 'year_s' AND years.text = '2009'
        """,
        {"In which year was he born?": r"[Bb]orn \w+ \d+ , (\d{4})"},
    ),
)
