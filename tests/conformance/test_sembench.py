"""SemBench's movie queries: the gold results, from no more values than the data's lower bounds."""

from __future__ import annotations

import pytest
from public_sets import datasets
from scripts import tuples, unordered
from sembench import FOLDER, SQL, Movies

from blendfusion.udfs.declare.labelling import SAMPLED

DATA = datasets()
pytestmark = pytest.mark.skipif(
    DATA is None or not (DATA / FOLDER).is_dir(),
    reason=f"no data set '{FOLDER}' in BLENDFUSION_DATA or in ../shared/data",
)

SAMPLED_PAIRS = {"Q7 by a sample": 4 * SAMPLED}
"""What a query asks besides the labels of texts: some pairs of each of the four pairs of labels."""


@pytest.fixture(scope="module")
def movies() -> Movies:
    assert DATA is not None
    return Movies(DATA)


@pytest.mark.parametrize("name", SQL)
def test_a_perfect_model_gives_the_gold_result_at_the_lower_bound(
    name: str, movies: Movies
) -> None:
    query = movies.query(name)
    movies.session.clear_cache()
    result, asked = movies.asked(query)
    found, gold = unordered(tuples(result)), unordered(tuples(movies.expected(query)))
    if query.is_any:
        limit = int(query.sql.rsplit(" ", 1)[1])
        assert len(found) == min(limit, len(gold))
        assert set(found) <= set(gold)
    else:
        assert found == gold
    assert 0 < asked <= query.bound + SAMPLED_PAIRS.get(name, 0)
    assert movies.asked(query)[1] == 0


def test_count_ratio_and_groups_share_their_answers(movies: Movies) -> None:
    movies.session.clear_cache()
    asked = {name: movies.asked(movies.query(name))[1] for name in ("Q3", "Q4", "Q8")}
    assert asked == {"Q3": movies.query("Q3").texts, "Q4": 0, "Q8": 0}


def test_a_movies_scores_are_known_to_the_ranking(movies: Movies) -> None:
    movies.session.clear_cache()
    one, every = movies.query("Q9"), movies.query("Q10")
    assert movies.asked(one)[1] == one.texts
    assert movies.asked(every)[1] <= every.texts - one.texts
