SELECT
  100.00 * sum(CASE
    WHEN p_type LIKE 'PROMO%' /* 2: AND holds('a', p_name) */ THEN l_extendedprice * (1 - l_discount) ELSE 0
  END) / sum(l_extendedprice * (1 - l_discount)) AS promo_revenue
FROM lineitem, part
WHERE l_partkey = p_partkey
  AND l_shipdate >= DATE '1995-09-01'
  AND l_shipdate < DATE '1995-09-01' + INTERVAL '1' MONTH
  /* 1: AND holds('o', p_name) */;

SELECT count(DISTINCT p_name)
FROM lineitem, part
WHERE l_partkey = p_partkey
  AND l_shipdate >= DATE '1995-09-01'
  AND l_shipdate < DATE '1995-09-01' + INTERVAL '1' MONTH;

SELECT count(DISTINCT p_name)
FROM lineitem, part
WHERE l_partkey = p_partkey
  AND l_shipdate >= DATE '1995-09-01'
  AND l_shipdate < DATE '1995-09-01' + INTERVAL '1' MONTH
  AND p_type LIKE 'PROMO%';
