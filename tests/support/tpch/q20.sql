SELECT s_name, s_address
FROM supplier, nation
WHERE s_suppkey IN (
    SELECT ps_suppkey
    FROM partsupp
    WHERE ps_partkey IN (
        SELECT p_partkey
        FROM part
        WHERE p_name LIKE 'forest%'
          /* 1: AND holds('o', p_comment) */
      )
      AND ps_availqty > (
        SELECT 0.5 * sum(l_quantity)
        FROM lineitem
        WHERE l_partkey = ps_partkey
          AND l_suppkey = ps_suppkey
          AND l_shipdate >= DATE '1994-01-01'
          AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR
          /* 2: AND holds('e', l_comment) */
      )
  )
  AND s_nationkey = n_nationkey
  AND n_name = 'CANADA'
ORDER BY s_name;

SELECT count(DISTINCT p_comment) FROM part WHERE p_name LIKE 'forest%';

SELECT count(DISTINCT l_comment)
FROM lineitem, partsupp, part
WHERE l_partkey = ps_partkey
  AND l_suppkey = ps_suppkey
  AND l_shipdate >= DATE '1994-01-01'
  AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR
  AND ps_partkey = p_partkey
  AND p_name LIKE 'forest%';
